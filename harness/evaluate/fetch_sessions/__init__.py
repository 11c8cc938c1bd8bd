"""Predict whether brokers have enough incremental fetch sessions (KIP-227), and how many a deploy loses otherwise.

prediction.py     sessions that groups need, slots that brokers have
session_cache.py  a broker's cache with the eviction rules of Kafka 4.3.1
load.py           clients against that cache, in virtual time
"""
