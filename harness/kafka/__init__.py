"""Talk to a real Kafka.

brokers/        a running cluster behind one small interface
wire/           the wire protocol: our members on a cluster, our coordinator for real clients, comparisons of both
live/           scenarios with real consumers, real signals and a producer
groups/         a live group as it is now, read and nothing else
offsets_topic/  records of __consumer_offsets, decoded
environment.py  the environment report: what this computer has, and what is off without the rest
"""
