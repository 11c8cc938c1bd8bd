"""Predict whether brokers have enough incremental fetch sessions (KIP-227), and what a deploy loses for lack of them.

prediction.py  sessions that groups need, slots that brokers have
cache.py       a broker's cache with the eviction rules of Kafka 4.3.1
load.py        clients against that cache, in virtual time
"""
