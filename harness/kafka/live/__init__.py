"""Run scenarios with confluent-kafka consumers as processes on a real cluster, with the same trace and measures.

consumer.py             a member's process: polls, works, and tells what it does as facts
producer.py             the process that writes numbered records at the scenario's rates
librdkafka_settings.py  a strategy and a scenario as librdkafka's settings
actors.py               those processes as the timeline sees them: stop, kill, pause, slow down
live_world.py           topics, processes and the clock: harness/timeline/schedule.py applies its events to it
group_facts.py          the group's states, read from the coordinator's own log
live_lag.py             the lag curve of a live run
sequence_oracle.py      no record skipped, none committed before it was processed
live_run.py             live: a scenario, a strategy and a cluster give a trace
end_signals.py          SIGTERM and SIGHUP end a run and all that it started
"""
