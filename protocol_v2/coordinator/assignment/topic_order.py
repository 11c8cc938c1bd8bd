"""Order the topics of a member's target as a broker does: uniform lets a member with too much keep the first ones.

Given      an assignor call: the group that it sees, then its answer, and for a heterogeneous group what it moved
Returns    a member's topics in the order of the record that Kafka writes; None where any order will do
History    a target is a HashMap by topic id. Java walks the ids in one bucket in the order in which they got there,
           which goes back to the previous target. It walks all other ids by bucket, whatever their history
Cost       a look at the members that have several topics, and more for members with two topics in one bucket. With few
           topics that hardly ever happens
Reference  deepCopyAssignment, both uniform builders, RangeAssignor and Assignment.fromRecord in Apache Kafka
Start at   TopicOrders.of
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property

from rebalance_lab.assignors.broker.group_view import existing_in_java_order, known_numbers, topic_ids
from rebalance_lab.assignors.broker.uniform_mixed import Move
from rebalance_lab.assignors.java.hash_order import (
    DEFAULT_CAPACITY,
    HashTable,
    OrderNotReproducible,
    capacity_for,
    power_of_two_above,
    put_order,
    uuid_hash,
)
from rebalance_lab.assignors.model import Assignment, Group

Change = tuple[int, int]
"""A topic, by its place in the layout, and +1 or -1 for a partition of it."""


class TopicOrders:
    def __init__(self, group: Group, *, by_range: bool) -> None:
        self.group, self.layout, self.by_range = group, group.layout, by_range
        self.hashes = [uuid_hash(*each) for each in topic_ids(group)]
        self.moves: list[Move] | None = [] if share_a_bucket(self.hashes, DEFAULT_CAPACITY) else None
        """What a heterogeneous builder does, step by step; None where no two topics share a bucket."""
        self.answer = Assignment(group.layout, {})

    @cached_property
    def moved(self) -> dict[str, list[Change]]:
        return moves_by_member(self.group, self.moves or ())

    def of(self, member_id: str) -> tuple[str, ...] | None:
        numbers = self.answer.numbers.get(member_id)
        if self.moves is None or not numbers or self.topic_of(min(numbers)) == self.topic_of(max(numbers)):
            return None
        topics = set(map(self.topic_of, numbers))
        if not share_a_bucket([self.hashes[topic] for topic in topics], capacity_after(len(topics))):
            return None
        try:
            order = self.blocks(member_id, topics) if self.by_range else self.changed(member_id)
        except OrderNotReproducible:
            return None
        return tuple(self.layout.names[topic] for topic in order)

    def topic_of(self, number: int) -> int:
        return self.layout.topic_of(number)

    def table(self, capacity: int) -> HashTable[int]:
        return HashTable(self.hashes.__getitem__, capacity)

    def blocks(self, member_id: str, given: set[int]) -> HashTable[int]:
        """Order topics as range does: it puts them into a new map, in the order of the subscription."""
        subscribed = self.group.members[member_id].topics
        table = self.table(capacity_for(len(subscribed)))
        for topic in existing_in_java_order(self.group, subscribed):
            if topic in given:
                table.put(topic)
        return table

    def changed(self, member_id: str) -> HashTable[int]:
        """Order topics as uniform does: it copies the previous target, and takes and gives partition by partition."""
        before = known_numbers(self.layout, self.group.members[member_id]) or ()
        counts = Counter(map(self.topic_of, before))
        table, topics = self.table(power_of_two_above(len(counts))), list(counts)
        for i in put_order([self.hashes[topic] for topic in topics]):
            table.put(topics[i])
        for topic, by in self.changes(member_id, before):
            counts[topic] += by
            if by > 0:
                table.compute_if_absent(topic)
            elif not counts[topic]:
                table.remove(topic)
        return table

    def changes(self, member_id: str, before: Sequence[int]) -> Iterator[Change]:
        if self.moved:
            wanted = set(map(self.layout.index.get, self.group.members[member_id].topics))
            yield from ((topic, -1) for topic in map(self.topic_of, before) if topic not in wanted)
            yield from self.moved.get(member_id, ())
            return
        after = self.answer.numbers[member_id]
        kept = set(before).intersection(after)
        yield from ((self.topic_of(number), -1) for number in before if number not in kept)
        yield from ((self.topic_of(number), +1) for number in after if number not in kept)


def share_a_bucket(hashes: Sequence[int], capacity: int) -> bool:
    """Tell whether any hashes share a bucket. Those that do in a large table do so in a small one as well."""
    return len({(h ^ h >> 16) & (capacity - 1) for h in hashes}) < len(hashes)


def capacity_after(puts: int) -> int:
    """Return the capacity of a table that has grown: it doubles when more than three quarters are in use."""
    return max(DEFAULT_CAPACITY, power_of_two_above(-(-puts * 4 // 3)))


def moves_by_member(group: Group, moves: Sequence[Move]) -> dict[str, list[Change]]:
    order, topic_of = group.hash_order if moves else (), group.layout.topic_of
    found: dict[str, list[Change]] = {}
    for number, giver, taker in moves:
        if giver >= 0:
            found.setdefault(order[giver], []).append((topic_of(number), -1))
        found.setdefault(order[taker], []).append((topic_of(number), +1))
    return found
