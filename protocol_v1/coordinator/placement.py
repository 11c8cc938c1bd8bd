"""Compute which partition of __consumer_offsets, and with it which broker, coordinates a group."""

from __future__ import annotations

from rebalance_lab.assignors.java.hash_order import string_hash

OFFSETS_TOPIC_PARTITIONS = 50


def coordinator_partition(group_id: str, partitions: int = OFFSETS_TOPIC_PARTITIONS) -> int:
    """Compute Kafka's Utils.abs(groupId.hashCode) % partitions; that abs makes 0 of the one int without a positive
    twin.
    """
    h = string_hash(group_id)
    if h >= 2**31:
        h = 2**32 - h
    return 0 if h == 2**31 else h % partitions
