"""Read from a group what both server-side assignors (KIP-848) need: topic ids, subscription type, current assignments.

Given      a Group; a member's `owned` is its current target assignment
Returns    the views that org.apache.kafka.coordinator.group.modern builds for its assignors
Reference  TargetAssignmentBuilder, TopicIds and SubscriptionType in Apache Kafka
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from operator import attrgetter

from rebalance_lab.assignors.java.hash_order import (
    DEFAULT_CAPACITY,
    capacity_of_set_copy,
    put_order,
    string_hashes,
    uuid_hash,
)
from rebalance_lab.assignors.java.string_order import java_string_order
from rebalance_lab.assignors.model import Group, Layout, Member, owned_numbers

Uuid = tuple[int, int]
"""Most and least significant 64 bits, signed: Java compares them so."""


def topic_ids(group: Group) -> list[Uuid]:
    """Return ids by layout index. A topic without one gets its number among all sorted names: 0 above, 1... below."""
    ids: list[Uuid] = []
    for number, name in enumerate(group.layout.names, start=1):
        text = group.topics[name].id
        ids.append((0, number) if text is None else decode_uuid(text))
    return ids


def decode_uuid(text: str) -> Uuid:
    data = base64.urlsafe_b64decode(text + "==")
    return int.from_bytes(data[:8], signed=True), int.from_bytes(data[8:], signed=True)


def is_homogeneous(members: Mapping[str, Member]) -> bool:
    """Tell whether all members name the same topics, in any order, existing or not."""
    each = list(map(attrgetter("topics"), members.values()))
    distinct = dict(zip(map(id, each), each, strict=True))  # who subscribes alike mostly shares one tuple
    first, *others = distinct.values()
    return all(set(topics) == set(first) for topics in others)


def subscribed_in_java_order(group: Group, topics: Sequence[str], ids: Sequence[Uuid]) -> list[int]:
    """Return the layout indices of these topics as the homogeneous builder walks them: a set of ids copied from one of
    names.

    Names that do not exist are skipped, but have already made both tables larger.
    """
    known = existing_in_java_order(group, topics)
    return [known[i] for i in ids_order([ids[topic] for topic in known], capacity_of_set_copy(len(set(topics))))]


def existing_in_java_order(group: Group, topics: Sequence[str]) -> list[int]:
    """Return the layout indices of these topics as a set of their names lists them."""
    names = list(dict.fromkeys(topics))
    order = put_order(
        string_hashes(names), capacity_of_set_copy(len(topics)), sort_key=lambda i: java_string_order(names[i])
    )
    index = group.layout.index
    return [index[names[i]] for i in order if names[i] in index]


def ids_order(ids: Sequence[Uuid], capacity: int = DEFAULT_CAPACITY) -> list[int]:
    """Return the positions of these ids as a hash table of them, filled in this order, lists them."""
    return put_order([uuid_hash(*one) for one in ids], capacity, sort_key=ids.__getitem__)


def widened(group: Group) -> Layout:
    """Return a layout with room for claims on nonexistent partitions: the homogeneous builder lets members keep
    them.
    """
    counts = {name: topic.partitions for name, topic in group.topics.items()}
    for member in group.members.values():
        for name, partitions in member.owned.items():
            if name in counts and partitions:
                counts[name] = max(counts[name], max(partitions) + 1)
    return Layout(counts)


def known_numbers(layout: Layout, member: Member) -> Sequence[int] | None:
    """Return a member's claims on topics that exist; None when one is on a partition beyond the layout."""
    numbers = owned_numbers(layout, member)
    if numbers is None:
        return layout.numbers_of({name: ps for name, ps in member.owned.items() if name in layout.index})
    return numbers
