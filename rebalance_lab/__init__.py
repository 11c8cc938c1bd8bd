"""Rebalance Lab: see what a Kafka consumer group will do before production does it.

The folders of the repository are the rooms of this package: each name below is a link to the folder beside it.

assignors     pure functions: a group in, an assignment out; start at assignors/interface.py
protocol_v1   the classic protocol as state machines without I/O
protocol_v2   KIP-848, the consumer group protocol, as state machines without I/O
harness       scenarios, the simulator, its measures and comparisons, and everything that talks to a real Kafka
spark_eval    thousands to millions of runs as Spark jobs
api           the command line, the HTTP service and its client

Importing this package loads none of them.
"""
