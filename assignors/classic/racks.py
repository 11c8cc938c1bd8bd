"""Read racks as Kafka's client assignors see them (KIP-881): when racks count, and which racks a partition has.

Reference  AbstractPartitionAssignor.useRackAwareAssignment of Apache Kafka 4.3.1
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rebalance_lab.assignors.model import Topic

RackSet = frozenset[str]
NO_RACKS: RackSet = frozenset()


class RackSets:
    """Keep one frozenset per distinct list of racks: a topic has thousands of partitions and a handful of lists."""

    def __init__(self) -> None:
        self._sets: dict[tuple[str, ...], RackSet] = {}

    def of(self, topic: Topic) -> Sequence[RackSet]:
        if topic.racks is None:
            return [NO_RACKS] * topic.partitions
        sets = self._sets
        for racks in set(topic.racks):
            if racks not in sets:
                sets[racks] = frozenset(racks)
        return list(map(sets.__getitem__, topic.racks))


def racks_matter(member_racks: Collection[str], partition_racks: Collection[RackSet]) -> bool:
    """Tell whether racks matter: not when no member can be on a partition's rack, nor when every partition is on all
    racks.
    """
    everywhere = NO_RACKS.union(*partition_racks)
    if everywhere.isdisjoint(member_racks):
        return False
    return any(racks != everywhere for racks in partition_racks)
