"""Talk to a real Kafka.

brokers/        a running cluster behind one small interface
wire/           the wire protocol: our members on a cluster, our coordinator for real clients, both compared
live/           scenarios with real consumers, real signals and a producer
groups/         a live group as it is now, read and nothing else
offsets_topic/  records of __consumer_offsets, decoded
environment.py  what this computer has, and what is off without the rest
"""
