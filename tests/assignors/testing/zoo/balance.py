"""Bugs in how evenly, and for what load, partitions are spread."""

from __future__ import annotations

from typing import Any

from tests.assignors.testing.good import Shares, as_shares, blocks, holders, levelled, readers
from tests.assignors.testing.zoo.registry import bug


@bug("balanced", ("balanced",))
class RangeThatPromisesBalance:
    def assign(self, group: Any) -> Shares:
        return blocks(group)


@bug("per-topic-balanced", ("per-topic-balanced",))
class GivesThePlainShareAndTheRestToOne:
    def assign(self, group: Any) -> Shares:
        shares = {i: {name: [] for name in m.topics if name in group.topics} for i, m in group.members.items()}
        for name, topic in group.topics.items():
            who = readers(group, name)
            size = topic.partitions // len(who) if who else 0
            for partition in range(topic.partitions) if who else ():
                shares[who[min(partition // size, len(who) - 1) if size else 0]][name].append(partition)
        return shares


@bug("load-balanced", ("load-balanced",))
class IgnoresLoad:
    def assign(self, group: Any) -> Shares:
        return as_shares(group, levelled(group))


@bug("load-balanced", ("load-balanced",))
class IgnoresCapacity:
    def assign(self, group: Any) -> Any:
        from dataclasses import replace

        from rebalance_lab.assignors.classic.load_aware import LoadAwareAssignor

        alike = {i: replace(m, capacity=1.0, owned={}, generation=None) for i, m in group.members.items()}
        return LoadAwareAssignor().assign(group.with_members(alike))


@bug("balanced", ("balanced", "sticky"))
class OverSticky:
    """Keeps everything, so that a new member waits for somebody to leave."""

    def assign(self, group: Any) -> Shares:
        owner = holders(group)
        count = dict.fromkeys(sorted(group.members), 0)
        for member_id in owner.values():
            count[member_id] += 1
        for name, topic in sorted(group.topics.items()):
            who = readers(group, name)
            for partition in range(topic.partitions) if who else ():
                if (name, partition) not in owner:
                    lightest = min(who, key=lambda m: (count[m], m))
                    owner[name, partition] = lightest
                    count[lightest] += 1
        return as_shares(group, owner)
