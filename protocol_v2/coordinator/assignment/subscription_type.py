"""Decide whether Kafka treats a group's subscriptions as alike: its assignors have one algorithm for either case.

Given      counts over the group: members by name, members by expression, expressions by matched topic
Returns    homogeneous or not, and what the assignor answers then
Counts     are not sets. Expressions that match the same topics differ for Kafka. A member that joined without moving
           the group epoch is not counted yet, so it can be given topics that it never asked for
Reference  ConsumerGroup.subscriptionType, UniformAssignor, RangeAssignor in Apache Kafka
Start at   is_homogeneous, assigned
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from rebalance_lab.assignors.broker.group_view import is_homogeneous as are_alike
from rebalance_lab.assignors.broker.range import ServerRangeAssignor
from rebalance_lab.assignors.broker.uniform import UniformAssignor, assign_homogeneous
from rebalance_lab.assignors.broker.uniform_mixed import Move, assign_heterogeneous
from rebalance_lab.assignors.model import Group
from rebalance_lab.assignors.strategies import run_assignor
from rebalance_lab.assignors.subscribers import static_members_first
from rebalance_lab.protocol_v1.common.fast_dataclass import fast_dataclass


@fast_dataclass()
class Subscriptions:
    names: Counter[str]
    regexes: Counter[str]
    regex_topics: Counter[str]
    """By how many resolved expressions, not members, a topic is matched."""

    def topics(self) -> set[str]:
        return {*self.names, *self.regex_topics}

    def is_homogeneous(self, members: int) -> bool:
        """Tell whether all members name the same topics, or all have one and the same expression and nothing else."""
        if self.regexes:
            everybody = members in self.regexes.values()
            return everybody and not self.names and self.regex_topics.total() == len(self.regex_topics)
        return self.names.total() == members * len(self.names) and self.regex_topics.keys() <= self.names.keys()


def assigned(assignor: Any, group: Group, *, homogeneous: bool, moves: list[Move] | None = None) -> Any:
    """Return the assignor's answer; a custom assignor decides for itself. `moves` is told what the heterogeneous
    builder does.
    """
    if type(assignor) is UniformAssignor and group.members:
        if homogeneous:
            return assign_homogeneous(group, group.hash_order)
        return assign_heterogeneous(group, group.hash_order, moves)
    if type(assignor) is ServerRangeAssignor and homogeneous and not are_alike(group.members):
        first = group.members[static_members_first(group.members)[0]]
        group = group.with_members(
            {each: replace(member, topics=first.topics) for each, member in group.members.items()}
        )
    return run_assignor(assignor, group)
