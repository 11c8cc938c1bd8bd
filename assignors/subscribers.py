"""List each topic's subscribers, in the order in which range and round robin serve members.

Given      the members of a group
Returns    member ids in serving order; per topic the positions of its subscribers in that order
Compact    members with the same topics form one class, and topics with the same classes share one list of positions.
           So a group whose members all subscribe alike costs no more than one list
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from rebalance_lab.assignors.java.hash_order import string_order
from rebalance_lab.assignors.java.string_order import in_java_order, java_string_order
from rebalance_lab.assignors.model import Layout, Member


def static_members_first(members: Mapping[str, Member]) -> list[str]:
    """Order members: those with an instance id by that id, then the others by member id."""
    instances = {member_id: m.instance_id for member_id, m in members.items() if m.instance_id is not None}
    if not instances:
        return in_java_order(members)
    static: Iterable[str] = instances
    if len(set(instances.values())) < len(instances):
        # Two members with one instance id cannot be in a real group; Java's stable sort leaves them in hash order.
        static = (member_id for member_id in string_order(members) if member_id in instances)
    in_order = sorted(static, key=lambda member_id: java_string_order(instances[member_id]))
    return in_order + in_java_order(member_id for member_id in members if member_id not in instances)


def subscription_classes(subscriptions: Iterable[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], list[list[int]]]:
    """Return the distinct subscriptions, and for each the positions that have it. Order and duplicates count."""
    distinct: list[tuple[str, ...]] = []
    positions: list[list[int]] = []
    by_value: dict[tuple[str, ...], list[int]] = {}
    # A tuple's hash is computed anew each time, so one object that many members share is looked up by identity.
    by_identity: dict[int, list[int]] = {}
    for position, topics in enumerate(subscriptions):
        same = by_identity.get(id(topics))
        if same is None:
            same = by_value.get(topics)
            if same is None:
                same = by_value[topics] = []
                distinct.append(topics)
                positions.append(same)
            by_identity[id(topics)] = same
        same.append(position)
    return distinct, positions


def subscribers_by_topic(layout: Layout, subscriptions: Sequence[tuple[str, ...]]) -> list[Sequence[int]]:
    """Return per topic of the layout the ascending positions of the subscriptions that name it."""
    distinct, positions = subscription_classes(subscriptions)
    classes_of: list[list[int]] = [[] for _ in layout.names]
    find_topic = layout.index.get
    for number, topics in enumerate(distinct):
        for topic in set(map(find_topic, topics)):
            if topic is not None:
                classes_of[topic].append(number)
    merged: dict[tuple[int, ...], Sequence[int]] = {}
    by_topic: list[Sequence[int]] = []
    all_differ = len(distinct) == len(subscriptions)
    for classes in map(tuple, classes_of):
        subscribers = merged.get(classes)
        if subscribers is None:
            # Where every member is a class of its own, a class's number is its only member's position.
            members = classes if all_differ else chain.from_iterable([positions[number] for number in classes])
            subscribers = merged[classes] = sorted(members)
        by_topic.append(subscribers)
    return by_topic
