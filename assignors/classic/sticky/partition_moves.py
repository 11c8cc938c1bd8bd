"""Remember which partitions moved while a sticky assignment with mixed subscriptions is being balanced.

A partition may be about to go from A to B when another partition of the same topic has gone from B to A before. Java
then sends that one back instead, so that two moves undo each other. Of several such partitions hash order decides.
Reference  PartitionMovements in AbstractStickyAssignor of Apache Kafka 4.3.1
"""

from __future__ import annotations

from rebalance_lab.assignors.java.hash_order import HashTable, string_hash, topic_partition_hash
from rebalance_lab.assignors.model import Layout

Pair = tuple[int, int]


class Moves:
    """Record moves. Members are numbers here; a record says where a partition was at first and where it is now."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.count = 0
        self.record_of: dict[int, Pair] = {}
        self.moved: dict[tuple[int, Pair], HashTable[int]] = {}

    def better_choice(self, topic: int, number: int, holder: int, receiver: int) -> int:
        """Return this partition, or the one whose return does the same for the balance."""
        first_holder = self.record_of[number][0] if number in self.record_of else holder
        reverse = self.moved.get((topic, (receiver, first_holder)))
        return number if reverse is None else next(iter(reverse))

    def record(self, topic: int, number: int, holder: int, receiver: int) -> None:
        self.count += 1
        if number not in self.record_of:
            self._add(topic, number, (holder, receiver))
            return
        pair = self.record_of.pop(number)
        partitions = self.moved[topic, pair]
        partitions.remove(number)
        if not partitions:
            del self.moved[topic, pair]
        if pair[0] != receiver:
            self._add(topic, number, (pair[0], receiver))

    def _add(self, topic: int, number: int, pair: Pair) -> None:
        self.record_of[number] = pair
        partitions = self.moved.get((topic, pair))
        if partitions is None:
            topic_hash, start = string_hash(self.layout.names[topic]), self.layout.starts[topic]
            partitions = HashTable(lambda number: topic_partition_hash(topic_hash, number - start))
            self.moved[topic, pair] = partitions
        partitions.put(number)
