"""Kafka's round robin: all partitions of all topics, dealt one by one to the members in a circle.

Given      a group; racks, owned partitions and generations play no part
Returns    an assignment; the circle does not start anew at the next topic, and skips members that do not subscribe
Reference  RoundRobinAssignor of Apache Kafka 4.3.1
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from assignors.interface import AssignorError, RebalanceProtocol
from assignors.model import Assignment, Group, Layout
from assignors.subscribers import static_members_first, subscribers_by_topic


class RoundRobinAssignor:
    name = "roundrobin"
    supported_protocols = (RebalanceProtocol.EAGER,)
    promises = ()

    def assign(self, group: Group) -> Assignment:
        if not group.members:
            raise AssignorError(
                "round robin has nobody to deal to: the group has no members",
                path="group.members",
                java_exception="IllegalArgumentException",
            )
        ids = static_members_first(group.members)
        layout = group.layout
        subscribers = subscribers_by_topic(layout, [group.members[member_id].topics for member_id in ids])
        shares = deal(layout, subscribers, len(ids))
        complete = all(subscribers[topic] for topic, count in enumerate(layout.counts) if count)
        return Assignment(layout, dict(zip(ids, shares, strict=True)), complete=complete)


def deal(layout: Layout, subscribers: Sequence[Sequence[int]], members: int) -> list[list[int]]:
    """Neighbouring topics with the same subscribers are dealt in one go, each member's part of them being a slice."""
    shares: list[list[int]] = [[] for _ in range(members)]
    cursor = 0
    topic = 0
    while topic < len(layout.names):
        circle = subscribers[topic]
        start = end = layout.starts[topic]
        while topic < len(layout.names) and subscribers[topic] is circle:
            end = layout.starts[topic] + layout.counts[topic]
            topic += 1
        if not circle or start == end:
            continue
        first = bisect_left(circle, cursor)
        dealt = range(start, end)
        for turn in range(min(len(circle), len(dealt))):
            shares[circle[(first + turn) % len(circle)]] += dealt[turn :: len(circle)]
        cursor = circle[(first + len(dealt) - 1) % len(circle)] + 1
    return shares
