"""Simulate one run: the state machines of both protocols in virtual time, with a network, records and faults.

engine.py              run_world: from a scenario, a strategy and a seed to a world that is over
world.py               processes, a network, one group's coordinator, topics and records
kernel.py              virtual time: a heap of events, timers, idle leaps (rest.py, routine.py)
consumer_process.py    one process: a consumer, its connection and its application (batches.py, manual_commits.py,
                       fetch_positions.py)
broker.py, network.py  the coordinator's broker (coordinator_log.py, request_sizes.py); what carries messages
record_flow.py         how far partitions are written and read; topic_catalogue.py has the topics
surroundings.py        the interfaces between a process and its world
group_types/           members and coordinators of a strategy
"""
