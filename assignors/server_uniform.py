"""uniform, where all members subscribe alike: everybody keeps what it has up to its quota, the rest is dealt in chunks.

Given      a Group; `owned` is each member's current target assignment
Returns    an Assignment in which member totals differ by at most one; racks are not looked at
Cost       grows with members and with what changes: a share that stays is handed on as the object it was, and free
           partitions are found from who left when all shares come from one complete assignment
Reference  UniformHomogeneousAssignmentBuilder in Apache Kafka; different subscriptions: server_uniform_mixed.py
Start at   UniformAssignor.assign
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from assignors.interface import AssignorError
from assignors.java_order import capacity_of_set_copy, integer_hash, put_order, string_order, uuid_hash
from assignors.model import Assignment, Group, Layout, Member, Share
from assignors.server_groups import (
    Uuid,
    is_homogeneous,
    known_numbers,
    subscribed_in_java_order,
    topic_ids,
    widened,
)

Shares = dict[str, Sequence[int]]


class UniformAssignor:
    """The broker's default. Exactly P mod M members hold one partition more than the others."""

    name = "uniform"
    promises = ("balanced", "sticky")

    def assign(self, group: Group) -> Assignment:
        if not group.members:
            return Assignment(group.layout, {})
        order = string_order(group.members)
        if is_homogeneous(group.members):
            return assign_homogeneous(group, order)
        from assignors.server_uniform_mixed import assign_heterogeneous

        return assign_heterogeneous(group, order)


def assign_homogeneous(group: Group, order: Sequence[str]) -> Assignment:
    members = group.members
    ids = topic_ids(group)
    topics = subscribed_in_java_order(group, members[order[0]].topics, ids)
    layout = group.layout
    held = held_shares(layout, order, members)
    if held is None:
        layout = widened(group)
        held = held_shares(layout, order, members)
        assert held is not None
    if len(topics) < len(layout.names):
        held = only_topics(layout, topics, held)
    spans = [(layout.starts[topic], layout.starts[topic] + group.layout.counts[topic]) for topic in topics]
    free, disjoint = free_partitions(layout, spans, members, held)

    total = sum(end - start for start, end in spans)

    def split_share(member_id: str, quota: int) -> tuple[list[int], list[int]]:
        # An answer of ours lists partitions ascending, whatever order they were given in; a caller's own mapping is
        # taken as it stands.
        share = held[member_id]
        in_order = sorted(share) if isinstance(members[member_id].owned, Share) else share
        return split(layout, ids, in_order, quota)

    numbers, dropped, unfilled = keep_up_to_quota(held, total, split_share)
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
    return Assignment(layout, {member_id: numbers[member_id] for member_id in members}, complete=complete)


def held_shares(layout: Layout, order: Sequence[str], members: Mapping[str, Member]) -> Shares | None:
    held: Shares = {}
    for member_id in order:
        numbers = known_numbers(layout, members[member_id])
        if numbers is None:
            return None
        held[member_id] = numbers
    return held


def only_topics(layout: Layout, topics: Sequence[int], held: Shares) -> Shares:
    """Without what members hold of topics that they no longer subscribe to; untouched shares stay the same object."""
    wanted = bytearray(layout.total)
    for topic in topics:
        wanted[layout.starts[topic] : layout.starts[topic] + layout.counts[topic]] = b"\1" * layout.counts[topic]
    result: Shares = {}
    for member_id, numbers in held.items():
        kept = [number for number in numbers if wanted[number]]
        result[member_id] = numbers if len(kept) == len(numbers) else kept
    return result


def free_partitions(
    layout: Layout, spans: Sequence[tuple[int, int]], members: Mapping[str, Member], held: Shares
) -> tuple[Sequence[int], bool]:
    """What nobody holds, topic by topic, and whether what is held is held once."""
    if not any(held.values()):
        if all(end == start for (_, end), (start, _) in pairwise(spans)):
            return range(spans[0][0], spans[-1][1]) if spans else (), True
        return [number for span in spans for number in range(*span)], True
    left = left_behind(layout, members, held)
    if left is not None:
        return in_spans(left, spans), True
    claimed: set[int] = set().union(*held.values())
    free = [number for span in spans for number in range(*span) if number not in claimed]
    return free, len(claimed) == sum(map(len, held.values()))


def left_behind(layout: Layout, members: Mapping[str, Member], held: Shares) -> list[int] | None:
    """When all shares come from one complete assignment, what is free is what its other members had; else None."""
    origin: Assignment | None = None
    in_use: set[int] = set()
    shares = 0
    for member_id, numbers in held.items():
        if not numbers:
            continue
        owned = members[member_id].owned
        if not isinstance(owned, Share) or owned.numbers is not numbers or owned.origin is None:
            return None
        if origin is None:
            origin = owned.origin
        elif owned.origin is not origin:
            return None
        in_use.add(id(numbers))
        shares += 1
    if origin is None or not origin.complete or origin.layout is not layout or len(in_use) < shares:
        return None
    return [number for numbers in origin.numbers.values() if id(numbers) not in in_use for number in numbers]


def in_spans(numbers: Sequence[int], spans: Sequence[tuple[int, int]]) -> list[int]:
    ordered = sorted(numbers)
    result: list[int] = []
    if ordered:
        for start, end in spans:
            result += ordered[bisect_left(ordered, start) : bisect_left(ordered, end)]
    return result


def keep_up_to_quota(
    held: Shares, total: int, split_share: Callable[[str, int], tuple[list[int], list[int]]]
) -> tuple[Shares, list[int], list[tuple[str, int]]]:
    """Each member's kept share, what had to be given up (in order), and who still has room for how many.

    Whoever holds more than the minimum keeps one extra while there are any; what is left of the extras falls to the
    last members.
    """
    minimum, extra = divmod(total, len(held))
    numbers: Shares = {}
    dropped: list[int] = []
    unfilled: list[tuple[str, int]] = []
    members_left = len(held)
    for member_id, share in held.items():
        room = minimum + 1 if extra else minimum
        if len(share) <= room:
            room -= len(share)
        else:
            share, given_up = split_share(member_id, room)
            dropped += given_up
            room = 0
        numbers[member_id] = share
        if extra:
            if room and members_left > extra:
                room -= 1  # another one may hold an extra partition already; the last ones must take theirs
            else:
                extra -= 1
        if room:
            unfilled.append((member_id, room))
        members_left -= 1
    return numbers, dropped, unfilled


def split(layout: Layout, ids: Sequence[Uuid], in_order: Sequence[int], quota: int) -> tuple[list[int], list[int]]:
    """The first `quota` partitions of a share as Java walks it, and the others: topics by id, then partitions."""
    runs = runs_by_topic(layout, in_order)
    kept: list[int] = []
    given_up: list[int] = []
    for i in put_order([uuid_hash(*ids[topic]) for topic, _ in runs]) if len(runs) > 1 else (0,):
        topic, run = runs[i]
        if len(run) > quota:
            run = set_order(run, layout.starts[topic])
        kept += run[:quota]
        given_up += run[quota:]
        quota -= min(quota, len(run))
    return kept, given_up


def runs_by_topic(layout: Layout, numbers: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Cut where the topic changes; a share lists topic after topic."""
    runs: list[tuple[int, list[int]]] = []
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
    """One topic's partitions as a HashSet of them, copied from a list, iterates."""
    capacity = capacity_of_set_copy(len(run))
    first, last = run[0] - start, run[-1] - start
    if first <= last < min(first + capacity, 1 << 16) and all(map(int.__lt__, run, run[1:])):
        # Ascending and narrower than the table: every partition has a bucket of its own, so the order is the
        # ascending one, turned to where the buckets start again.
        turn = bisect_left(run, start + last - last % capacity)
        return run[turn:] + run[:turn]
    order = put_order([integer_hash(number - start) for number in run], capacity)
    return [run[i] for i in order]
