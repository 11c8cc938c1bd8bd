"""Move the state machines: through virtual time with faults, or against real brokers and real clients.

Time, chance and transport belong to this package; assignors and protocols have none of them.

scenario/      scenario files: a group, its workload and a timeline of events
measure/       facts of a run (the trace) and what they show: ownership, gaps, lag, costs, invariants
timeline/      applies events to a simulated or live world: rollouts, scaling, processes that come and go
hosts/         interfaces of a coordinator to its host; the dual coordinator of both protocols
conversation/  the short language of tests and examples, and request sequences
simulator/     one run in virtual time: kernel, network, broker, records, consumer processes
evaluate/      many runs: comparison, statistics, recommendation, report, sizing
kafka/         everything that talks to a real Kafka: brokers, the wire protocol, live runs, live groups
fidelity/      a prediction beside the real run.

Imports point one way: scenario <- measure <- timeline <- simulator <- evaluate. hosts lies below conversation,
simulator and kafka; fidelity stands above evaluate and kafka. import-linter holds this (pyproject.toml).
"""
