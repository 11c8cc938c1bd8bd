"""Assign as the broker's uniform does where subscriptions differ: fill the lightest subscribers, then level each topic.

Given      a Group and its members in the order in which the broker numbers them
Returns    an Assignment; within each topic no owner is heavier by two than the lightest subscriber, unless sixteen
           sweeps over the topics were not enough
Reference  UniformHeterogeneousAssignmentBuilder in Apache Kafka
Start at   assign_heterogeneous; Levels is the shared cursor over members from both ends
"""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.broker.group_view import Uuid, known_numbers, topic_ids
from rebalance_lab.assignors.model import Assignment, Group, Layout, Member
from rebalance_lab.assignors.subscribers import subscribers_by_topic

MAX_SWEEPS = 16
NOBODY = -1
Move = tuple[int, int, int]
"""A partition, its giver and its receiver: members by their place in the order."""


class State:
    """Hold owners by partition number and totals by member number, and apart the other holders of partitions claimed
    twice.
    """

    __slots__ = ("moves", "owner", "sizes")

    def __init__(self, partitions: int, members: int) -> None:
        self.owner = [NOBODY] * partitions
        self.sizes = [0] * members
        self.moves: list[Move] | None = None
        """In order; recorded only when members claim partitions twice, or when the caller asks."""

    def give(self, number: int, to: int) -> None:
        before = self.owner[number]
        if before != NOBODY:
            self.sizes[before] -= 1
        self.owner[number] = to
        self.sizes[to] += 1
        if self.moves is not None:
            self.moves.append((number, before, to))


def assign_heterogeneous(group: Group, order: Sequence[str], moves: list[Move] | None = None) -> Assignment:
    """Assign where subscriptions differ; `moves`, where it is given, is told every step."""
    layout = group.layout
    subscribers = subscribers_by_topic(layout, [group.members[member_id].topics for member_id in order])
    kept = kept_shares(group, order)
    if not any(subscribers):
        return Assignment(layout, dict.fromkeys(group.members, ()))
    state = State(layout.total, len(order))
    for member, numbers in enumerate(kept):
        state.sizes[member] = len(numbers)
        for number in numbers:
            state.owner[number] = member
    held_once = layout.total - state.owner.count(NOBODY)
    if moves is not None or held_once != sum(state.sizes):
        state.moves = [] if moves is None else moves
    topics = in_topic_order(layout, topic_ids(group), subscribers)
    fill(layout, topics, subscribers, state)
    level_topics(layout, [topic for topic in topics if len(subscribers[topic]) >= 2], subscribers, state)
    shares = dict(zip(order, shares_after(state, kept), strict=True))
    everything_subscribed = all(map(bool, subscribers))
    return Assignment(
        layout,
        shares,
        complete=state.moves is None and everything_subscribed,
    )


def kept_shares(group: Group, order: Sequence[str]) -> list[Sequence[int]]:
    """Return what each member holds of topics that it still subscribes to; an untouched share stays the object it
    was.
    """
    layout = group.layout
    topic_of: list[int] = []
    for topic, count in enumerate(layout.counts):
        topic_of += [topic] * count
    subscribed: dict[tuple[str, ...], frozenset[int | None]] = {}
    shares: list[Sequence[int]] = []
    for member_id in order:
        member = group.members[member_id]
        if not member.owned:
            shares.append(())
            continue
        wanted = subscribed.get(member.topics)
        if wanted is None:
            wanted = subscribed[member.topics] = frozenset(map(layout.index.get, member.topics))
        numbers = known_numbers(layout, member)
        if numbers is None:
            numbers = numbers_of_existing(layout, member_id, member)
        if not wanted.issuperset(map(topic_of.__getitem__, numbers)):
            numbers = [number for number in numbers if topic_of[number] in wanted]
        shares.append(numbers)
    return shares


def numbers_of_existing(layout: Layout, member_id: str, member: Member) -> list[int]:
    """Return the numbers of subscribed topics only: there Java's builder fails on a partition that does not exist."""
    numbers = layout.numbers_of({n: ps for n, ps in member.owned.items() if n in layout.index and n in member.topics})
    if numbers is None:
        raise AssignorError(
            "holds a partition that does not exist, on which the broker's assignor fails",
            path=f"group.members.{member_id}.owned",
            java_exception="ArrayIndexOutOfBoundsException",
        )
    return numbers


def in_topic_order(layout: Layout, ids: Sequence[Uuid], subscribers: Sequence[Sequence[int]]) -> list[int]:
    """Put the topics hardest to spread first: most partitions for each subscriber, then fewest subscribers, then id."""
    topics = [topic for topic in range(len(layout.names)) if subscribers[topic]]
    return sorted(
        topics,
        key=lambda topic: (
            -(layout.counts[topic] / len(subscribers[topic])),
            len(subscribers[topic]),
            ids[topic],
        ),
    )


def fill(layout: Layout, topics: Sequence[int], subscribers: Sequence[Sequence[int]], state: State) -> None:
    """Give free partitions, topic by topic, to the subscriber that has least: level after level, each a slice."""
    owner, sizes = state.owner, state.sizes
    for topic in topics:
        start = layout.starts[topic]
        span = owner[start : start + layout.counts[topic]]
        if NOBODY not in span:
            continue
        free = [number for number, holder in enumerate(span, start) if holder == NOBODY]
        lightest = sorted(subscribers[topic], key=sizes.__getitem__)
        level, end, given = sizes[lightest[0]], 0, 0
        while given < len(free):
            while end < len(lightest) and sizes[lightest[end]] == level:
                end += 1
            for number, member in zip(free[given : given + end], lightest, strict=False):
                owner[number] = member
                sizes[member] += 1
            given += end
            level += 1
        if state.moves is not None:
            state.moves += [(number, NOBODY, owner[number]) for number in free]


def level_topics(layout: Layout, topics: Sequence[int], subscribers: Sequence[Sequence[int]], state: State) -> None:
    last = NOBODY
    for _ in range(MAX_SWEEPS):
        level_enough: set[int] = (
            set()
        )  # subscriber lists (equal ones are one object) that are level, while nothing has moved since
        for i, topic in enumerate(topics):
            if i == last:
                return
            members = subscribers[topic]
            moved = 0
            if id(members) not in level_enough:
                levels = Levels(members, state.sizes)
                if levels.imbalance <= 1:
                    level_enough.add(id(members))
                else:
                    moved = level_topic(layout, topic, levels, state)
            if moved:
                level_enough.clear()
            if moved or last == NOBODY:
                last = i


def level_topic(layout: Layout, topic: int, levels: Levels, state: State) -> int:
    """Move partitions of one topic from its heaviest to its lightest subscribers; how many were moved."""
    start = layout.starts[topic]
    to_give: dict[int, list[int]] = {}
    for number in range(start, start + layout.counts[topic]):
        to_give.setdefault(state.owner[number], []).append(number)
    moved = 0
    while not levels.done():
        giver = levels.most()
        while giver is not None and not to_give.get(giver):
            levels.exclude()
            giver = levels.most()
        if giver is None:
            break
        number = to_give[giver].pop()
        taker = levels.least()
        if levels.done():
            break
        state.give(number, taker)
        moved += 1
    return moved


class Levels:
    """Hold one topic's subscribers sorted by total, walked from both ends. A range at the bottom rises and widens, one
    at the top falls and widens. Totals are read live; the order is that of the start.
    """

    __slots__ = ("bottom_end", "bottom_level", "bottom_next", "imbalance", "members", "sizes", "top_end", "top_level",
                 "top_next", "top_start")  # fmt: skip

    def __init__(self, subscribers: Sequence[int], sizes: list[int]) -> None:
        self.sizes = sizes
        self.members = sorted(subscribers, key=sizes.__getitem__)
        count = len(self.members)
        lowest, highest = sizes[self.members[0]], sizes[self.members[-1]]
        self.imbalance = highest - lowest
        self.bottom_end, self.bottom_level, self.bottom_next = 0, lowest - 1, 0
        self.top_start, self.top_end, self.top_level, self.top_next = count, count, highest + 1, count - 1

    def done(self) -> bool:
        return self.top_level - self.bottom_level <= 1

    def least(self) -> int:
        if self.bottom_next >= self.bottom_end:
            self.bottom_level += 1
            members, sizes, end = self.members, self.sizes, self.bottom_end
            while end < len(members) and sizes[members[end]] == self.bottom_level:
                end += 1
            self.bottom_end, self.bottom_next = end, 0
        self.bottom_next += 1
        return self.members[self.bottom_next - 1]

    def most(self) -> int | None:
        if self.top_next < self.top_start:
            members, sizes = self.members, self.sizes
            if self.top_end <= self.top_start and self.top_start > 0:
                self.top_level = sizes[members[self.top_start - 1]]  # all were excluded: start below them
            else:
                self.top_level -= 1
            while self.top_start > 0 and sizes[members[self.top_start - 1]] == self.top_level:
                self.top_start -= 1
            self.top_next = self.top_end - 1
        if self.top_next < 0:
            return None
        self.top_next -= 1
        return self.members[self.top_next + 1]

    def exclude(self) -> None:
        """Take the member that most() gave out of the top range: it has nothing of this topic."""
        members, at, end = self.members, self.top_next + 1, self.top_end - 1
        members[at], members[end] = members[end], members[at]
        self.top_end -= 1


def shares_after(state: State, kept: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    if state.moves is not None:
        sets = [set(numbers) for numbers in kept]
        for number, before, to in state.moves:
            if before != NOBODY:
                sets[before].discard(number)
            sets[to].add(number)
        return [sorted(numbers) for numbers in sets]
    shares: list[list[int]] = [[] for _ in kept]
    shares.append([])  # what stays nobody's (-1) lands in the last entry
    for number, owner in enumerate(state.owner):
        shares[owner].append(number)
    # A share that did not change stays the object it was.
    return [before if before == now else now for before, now in zip(kept, shares, strict=False)]
