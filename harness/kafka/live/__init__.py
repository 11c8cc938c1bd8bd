"""Scenarios done for real: confluent-kafka consumers as processes on a real cluster, the same trace, the same measures.

Reading order:
  consumer.py      a member's process: polls, works, and tells what it does as facts
  producer.py      the process that writes numbered records at the scenario's rates
  settings.py      a strategy and a scenario as librdkafka's settings
  actors.py        those processes as the timeline sees them: stop, kill, pause, slow down
  world.py         topics, processes and the clock: what harness/timeline/schedule.py does its events to
  group_facts.py   what the coordinator says the group was, read from its own log
  oracle.py        no record skipped, none committed before it was processed
  run.py           live: a scenario, a strategy and a cluster give a trace
  calibration.py   what the simulator's constants are on a real machine, measured once
  explanations.py  why a live run may differ from a simulated one
  fidelity.py      both side by side
"""
