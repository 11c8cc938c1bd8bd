"""Assign as Kafka's round robin does: deal all partitions of all topics, one by one, to the members in a circle.

Given      a group; racks, owned partitions and generations play no part
Returns    an assignment; the circle does not start anew at the next topic, and skips members that do not subscribe
Reference  RoundRobinAssignor of Apache Kafka 4.3.1
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import cycle

from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.interface import RebalanceProtocol
from rebalance_lab.assignors.model import Assignment, Group, Layout
from rebalance_lab.assignors.subscribers import static_members_first, subscribers_by_topic

FEW_ROUNDS = 4
"""Up to here dealing one by one is faster than a slice for each member."""


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


def deal(layout: Layout, subscribers: Sequence[Sequence[int]], members: int) -> list[Sequence[int]]:
    """Deal neighbouring topics with the same subscribers in one go, each member's part of them being a slice.

    Where all subscribe alike that is all there is, and a share stays the range it is.
    """
    if (
        all(circle is subscribers[0] for circle in subscribers)
        and len(subscribers[0] if subscribers else ()) == members
    ):
        return [range(turn, layout.total, members) for turn in range(members)]
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
        from_cursor = [*circle[first:], *circle[:first]]
        if end - start <= FEW_ROUNDS * len(circle):
            for member, number in zip(cycle(from_cursor), range(start, end), strict=False):
                shares[member].append(number)
        else:
            for turn, member in enumerate(from_cursor):
                shares[member] += range(start + turn, end, len(circle))
        cursor = from_cursor[(end - start - 1) % len(circle)] + 1
    return list(shares)
