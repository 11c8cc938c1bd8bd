"""Assign as the broker's uniform does where all members subscribe alike: each keeps what it has up to its quota.

Given      a Group; `owned` is each member's current target assignment
Returns    an Assignment in which member totals differ by at most one; the rest is dealt in chunks, and racks do not
           count
Cost       grows with members and with what changes: a share that stays is handed on as the same object. When all
           shares come from one complete assignment, free partitions are those of the members that left
Reference  UniformHomogeneousAssignmentBuilder in Apache Kafka; different subscriptions: uniform_mixed.py
Start at   UniformAssignor.assign
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.broker.group_view import (
    Uuid,
    ids_order,
    is_homogeneous,
    known_numbers,
    subscribed_in_java_order,
    topic_ids,
    widened,
)
from rebalance_lab.assignors.java.hash_order import capacity_of_set_copy, integer_hash, put_order
from rebalance_lab.assignors.model import Assignment, Group, Layout, Member, Share

Shares = dict[str, Sequence[int]]
Spans = Sequence[tuple[int, int]]
MAX_KNOWN = 64
"""Subscriptions whose order of topics is kept."""


class Held(NamedTuple):
    shares: Shares
    """In the order in which the broker walks its members."""
    origin: Assignment | None
    """The one assignment that all of them come from, if there is one."""


class UniformAssignor:
    """Assign by uniform, the broker's default. Exactly P mod M members hold one partition more than the others."""

    name = "uniform"
    promises = ("balanced", "sticky")

    def assign(self, group: Group) -> Assignment:
        if not group.members:
            return Assignment(group.layout, {})
        order = group.hash_order
        if is_homogeneous(group.members):
            return assign_homogeneous(group, order)
        from rebalance_lab.assignors.broker.uniform_mixed import assign_heterogeneous

        return assign_heterogeneous(group, order)


def assign_homogeneous(group: Group, order: Sequence[str]) -> Assignment:
    members = group.members
    walk = walk_over_topics(group, members[order[0]].topics)
    ids, topics, spans, total = walk.ids, walk.topics, walk.spans, walk.total
    layout = group.layout
    held = held_shares(layout, order, members)
    if held is None:
        layout = widened(group)
        spans = spans_of(layout, group.layout.counts, topics)
        held = held_shares(layout, order, members)
        if held is None:
            raise AssignorError("a member claims a partition with a negative number", path="group.members")
    if len(topics) < len(layout.names):
        held = Held(only_topics(layout, topics, held.shares), origin=None)
    shares = held.shares
    free, disjoint = free_partitions(spans, shares, held.origin)

    def split_share(member_id: str, quota: int) -> tuple[list[int], list[int]]:
        # An answer of ours lists partitions ascending, whatever order they were given in; a caller's own mapping is
        # taken as it stands.
        ascending = isinstance(members[member_id].owned, Share)
        runs = (
            ascending_runs(layout, sorted(shares[member_id])) if ascending else runs_by_topic(layout, shares[member_id])
        )
        return split(layout, ids, runs, quota)

    numbers, dropped, unfilled = keep_up_to_quota(shares, total, split_share)
    if dropped:
        free = [*free, *dropped]
    taken = 0
    for member_id, quota in unfilled:
        chunk = free[taken : taken + quota]
        taken += len(chunk)
        kept = numbers[member_id]
        numbers[member_id] = [*kept, *chunk] if kept else chunk
    if taken < len(free):
        raise AssignorError(
            "partitions were left unassigned: members claim partitions twice or ones that do not exist",
            java_exception="PartitionAssignorException",
        )
    if not disjoint:  # a partition may come back to a member that holds it already
        numbers = {member_id: sorted(set(share)) for member_id, share in numbers.items()}
    complete = disjoint and layout is group.layout and total == layout.total
    return Assignment(layout, numbers, complete=complete)


class Walk(NamedTuple):
    """Keep what stays while topics and subscriptions do. With a thousand topics it would be most of the work."""

    ids: list[Uuid]
    """Of all topics."""
    topics: list[int]
    """Those subscribed to, in the order in which the broker walks them."""
    spans: Spans
    total: int


def walk_over_topics(group: Group, subscription: tuple[str, ...]) -> Walk:
    layout = group.layout
    walk: Walk | None = layout.known.get(subscription)
    if walk is None:
        if len(layout.known) >= MAX_KNOWN:
            layout.known.clear()
        ids = topic_ids(group)
        topics = subscribed_in_java_order(group, subscription, ids)
        total = sum([layout.counts[topic] for topic in topics])
        walk = layout.known[subscription] = Walk(ids, topics, spans_of(layout, layout.counts, topics), total)
    return walk


def spans_of(layout: Layout, counts: Sequence[int], topics: Sequence[int]) -> Spans:
    """Return the numbers of each topic's partitions that exist: from, and up to."""
    return [(layout.starts[topic], layout.starts[topic] + counts[topic]) for topic in topics]


def held_shares(layout: Layout, order: Sequence[str], members: Mapping[str, Member]) -> Held | None:
    """Return what members hold of topics that exist; None when one of them holds a partition that does not."""
    shares: Shares = {}
    origin: Assignment | None = None
    one_origin = True
    for member_id in order:
        owned = members[member_id].owned
        if type(owned) is Share and owned.layout is layout:
            shares[member_id] = owned.numbers
            if owned.origin is not origin and owned.numbers:
                one_origin = one_origin and origin is None
                origin = owned.origin
        elif not owned:
            shares[member_id] = ()
        else:
            numbers = known_numbers(layout, members[member_id])
            if numbers is None:
                return None
            shares[member_id] = numbers
            one_origin = False
    return Held(shares, origin if one_origin else None)


def only_topics(layout: Layout, topics: Sequence[int], held: Shares) -> Shares:
    """Leave out what members hold of topics that they no longer subscribe to; untouched shares stay the same object."""
    wanted = set(topics)
    result: Shares = {}
    for member_id, numbers in held.items():
        kept = [number for number in numbers if layout.topic_of(number) in wanted]
        result[member_id] = numbers if len(kept) == len(numbers) else kept
    return result


def free_partitions(spans: Spans, held: Shares, origin: Assignment | None) -> tuple[Sequence[int], bool]:
    """Return what no member holds, topic by topic, and whether no partition is held twice."""
    in_use = list(map(id, filter(None, held.values())))
    if not in_use:
        if all(end == start for (_, end), (start, _) in pairwise(spans)):
            return range(spans[0][0], spans[-1][1]) if spans else (), True
        return [number for span in spans for number in range(*span)], True
    if origin is not None and origin.complete and len(set(in_use)) == len(in_use):
        # Then what is free is what its other members had: the cost is that of who left, not of all partitions.
        left = set(map(id, origin.numbers.values())).difference(in_use)
        numbers = [number for share in origin.numbers.values() if id(share) in left for number in share] if left else ()
        return in_spans(numbers, spans), True
    claimed: set[int] = set().union(*held.values())
    free = [number for span in spans for number in range(*span) if number not in claimed]
    return free, len(claimed) == sum(map(len, held.values()))


def in_spans(numbers: Sequence[int], spans: Spans) -> list[int]:
    ordered = sorted(numbers)
    result: list[int] = []
    if ordered:
        for start, end in spans:
            result += ordered[bisect_left(ordered, start) : bisect_left(ordered, end)]
    return result


def keep_up_to_quota(
    held: Shares, total: int, split_share: Callable[[str, int], tuple[list[int], list[int]]]
) -> tuple[Shares, list[int], list[tuple[str, int]]]:
    """Return each member's kept share, what had to be given up (in order), and which members have room for how many.

    A member that holds more than the minimum keeps one extra while there are any; what is left of the extras falls to
    the last members.
    """
    minimum, extra = divmod(total, len(held))
    numbers = dict(held)
    dropped: list[int] = []
    unfilled: list[tuple[str, int]] = []
    for members_left, (member_id, share) in zip(range(len(held), 0, -1), held.items(), strict=True):
        room = minimum - len(share)
        if extra and (room < 0 or members_left <= extra):
            # One of the extras. While there are more members than extras, who holds none leaves it to who may.
            room += 1
            extra -= 1
        if room > 0:
            unfilled.append((member_id, room))
        elif room < 0:
            numbers[member_id], given_up = split_share(member_id, len(share) + room)
            dropped += given_up
    return numbers, dropped, unfilled


Runs = list[tuple[int, list[int]]]
"""Topics with their partitions, in the order in which a share lists them."""


def split(layout: Layout, ids: Sequence[Uuid], runs: Runs, quota: int) -> tuple[list[int], list[int]]:
    """Return the first `quota` partitions of a share as Java walks it, and the others: topics by id, then
    partitions.
    """
    kept: list[int] = []
    given_up: list[int] = []
    for i in ids_order([ids[topic] for topic, _ in runs]) if len(runs) > 1 else (0,):
        topic, run = runs[i]
        if len(run) > quota:
            run = set_order(run, layout.starts[topic])
        kept += run[:quota]
        given_up += run[quota:]
        quota -= min(quota, len(run))
    return kept, given_up


def ascending_runs(layout: Layout, numbers: list[int]) -> Runs:
    runs: Runs = []
    at = 0
    while at < len(numbers):
        topic = layout.topic_of(numbers[at])
        stop = bisect_left(numbers, layout.starts[topic] + layout.counts[topic], at)
        runs.append((topic, numbers[at:stop]))
        at = stop
    return runs


def runs_by_topic(layout: Layout, numbers: Sequence[int]) -> Runs:
    """Return the runs for partitions in any order, topic after topic."""
    runs: Runs = []
    at = 0
    while at < len(numbers):
        topic = layout.topic_of(numbers[at])
        start, end = layout.starts[topic], layout.starts[topic] + layout.counts[topic]
        stop = at + 1
        while stop < len(numbers) and start <= numbers[stop] < end:
            stop += 1
        runs.append((topic, list(numbers[at:stop])))
        at = stop
    return runs


def set_order(run: list[int], start: int) -> list[int]:
    """Order one topic's partitions as a HashSet of them, copied from a list, iterates."""
    capacity = capacity_of_set_copy(len(run))
    first, last = run[0] - start, run[-1] - start
    if first <= last < min(first + capacity, 1 << 16) and run == sorted(run):
        # Ascending and narrower than the table: every partition has a bucket of its own, so the order is the
        # ascending one, turned to where the buckets start again.
        turn = bisect_left(run, start + last - last % capacity)
        return run[turn:] + run[:turn]
    order = put_order([integer_hash(number - start) for number in run], capacity, sort_key=run.__getitem__)
    return [run[i] for i in order]
