"""Assign as Kafka's range does: each subscriber gets one contiguous block per topic, the same in topics that look
alike.

Given      a group; owned partitions and generations play no part
Returns    an assignment whose counts per topic differ by at most one
Racks      KIP-881: where it costs no balance, partitions go to members on a rack of one of their replicas. Topics with
           the same subscribers and as many partitions stay co-partitioned: one partition number, one member
Reference  RangeAssignor of Apache Kafka 4.3.1
Start at   RangeAssignor.assign, then range_racks.py
"""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.assignors.classic.block_share import BlockShare
from rebalance_lab.assignors.classic.range_racks import assign_with_racks, needs_racks
from rebalance_lab.assignors.interface import RebalanceProtocol
from rebalance_lab.assignors.model import Assignment, Group, Layout
from rebalance_lab.assignors.subscribers import static_members_first, subscribers_by_topic


class RangeAssignor:
    name = "range"
    supported_protocols = (RebalanceProtocol.EAGER,)
    promises = ("per-topic-balanced", "rack-aware")

    def assign(self, group: Group) -> Assignment:
        ids = static_members_first(group.members)
        members = [group.members[member_id] for member_id in ids]
        layout = group.layout
        subscribers = subscribers_by_topic(layout, [member.topics for member in members])
        alike = topics_alike(layout, subscribers)
        racks = [member.rack or None for member in members]
        topics = [group.topics[name] for name in layout.names]
        shares: Sequence[Sequence[int]]
        if needs_racks(topics, subscribers, racks):
            shares = assign_with_racks(layout, topics, alike, subscribers, racks)
        else:
            shares = blocks(layout, alike, subscribers, len(members))
        complete = all(subscribers[topic] for topic, count in enumerate(layout.counts) if count)
        return Assignment(layout, dict(zip(ids, shares, strict=True)), complete=complete)


def topics_alike(layout: Layout, subscribers: Sequence[Sequence[int]]) -> list[list[int]]:
    """Put topics with as many partitions and the same subscribers together; those without either are left out."""
    alike: dict[tuple[int, int], list[int]] = {}
    for topic, (count, positions) in enumerate(zip(layout.counts, subscribers, strict=True)):
        if count and positions:
            # Equal subscribers are one object, so its identity will do as a key.
            alike.setdefault((count, id(positions)), []).append(topic)
    return list(alike.values())


def blocks(
    layout: Layout, alike: Sequence[Sequence[int]], subscribers: Sequence[Sequence[int]], members: int
) -> list[Sequence[int]]:
    """Return each member's share: one block in each topic."""
    shares: list[Sequence[int]] = [()] * members
    for same in alike:
        give_blocks(layout, same, subscribers[same[0]], shares)
    return shares


def give_blocks(layout: Layout, alike: Sequence[int], subscribers: Sequence[int], shares: list[Sequence[int]]) -> None:
    """Give the larger blocks first; topics that are alike have the same blocks."""
    starts = [layout.starts[topic] for topic in alike]
    size, larger = divmod(layout.counts[alike[0]], len(subscribers))
    begin = 0
    for i, member in enumerate(subscribers):
        end = begin + size + (i < larger)
        if begin == end:
            break
        share = shares[member]
        block = BlockShare(starts, begin, end)
        if isinstance(share, list):
            share.extend(block)
        else:  # most members have blocks of one kind only, which cost nothing until they are looked at
            shares[member] = [*share, *block] if share else block
        begin = end
