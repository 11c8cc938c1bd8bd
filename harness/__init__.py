"""Makes the machines move: virtual time and faults, or real brokers and real clients. Owns time, chance and transport.

machine.py    what this computer has, and what is off without the rest
brokers/      a running Kafka cluster behind one small interface
"""
