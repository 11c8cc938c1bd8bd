"""Assign as the broker's range does (KIP-848): each subscriber gets one contiguous block per topic.

Given      a group; owned partitions play no part
Returns    an assignment whose counts per topic differ by at most one; unlike the client's range it ignores racks
Reference  org.apache.kafka.coordinator.group.assignor.RangeAssignor of Apache Kafka 4.3.1
"""

from __future__ import annotations

from rebalance_lab.assignors.classic.range import blocks, topics_alike
from rebalance_lab.assignors.model import Assignment, Group
from rebalance_lab.assignors.subscribers import static_members_first, subscribers_by_topic


class ServerRangeAssignor:
    name = "range"
    promises = ("per-topic-balanced",)

    def assign(self, group: Group) -> Assignment:
        ids = static_members_first(group.members)
        layout = group.layout
        subscribers = subscribers_by_topic(layout, [group.members[member_id].topics for member_id in ids])
        shares = blocks(layout, topics_alike(layout, subscribers), subscribers, len(ids))
        return Assignment(layout, dict(zip(ids, shares, strict=True)))
