"""Define what an assignor is given and what it answers: topics, members, a group, an assignment.

Given      topics with partition counts, members with subscriptions and what they own
Returns    nothing by itself; these are values, frozen, compared and printed by what they hold
Compact    inside, a partition is one int (`Layout`): a share is a sequence of ints, and sorting by (topic, partition)
           is sorting ints. What a caller sees looks like a mapping of lists, and is built only when it is looked at.
           One small list per topic and member is what costs most in a large answer.
Start at   Group, then Assignment
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import Any, Self

from rebalance_lab.assignors.java.string_order import in_java_order

EMPTY: Mapping[str, Sequence[int]] = MappingProxyType({})
NOBODY = -1
"""Stands for no holder, where a list gives each partition's holder."""


@dataclass(frozen=True, slots=True)
class Topic:
    """Describe a topic: its partition count, and for each partition the replicas' racks and the load, where they are
    known.
    """

    partitions: int
    racks: tuple[tuple[str, ...], ...] | None = None
    """Per partition, the racks of all its replicas, in sync or not."""
    load: tuple[float, ...] | None = None
    """Per partition, whatever the user balances by: lag, or records a second."""
    id: str | None = None
    """Kafka's base64 topic id; the answer of the server's uniform assignor depends on it."""


@dataclass(frozen=True, slots=True, init=False)
class Member:
    """Describe a member: what it subscribes to, what it says it owns, and what else is known of it."""

    topics: tuple[str, ...] = ()
    """As subscribed: order and duplicates kept, because Java's sticky assignors see both."""
    owned: Mapping[str, Sequence[int]] = field(default_factory=lambda: EMPTY)
    generation: int | None = None
    """The generation in which `owned` was given; absent counts as -1."""
    instance_id: str | None = None
    rack: str | None = None
    capacity: float = 1.0
    claim_generation: int | None = None
    """The generation in the assignor's own user data where it differs from `generation`: clients that speak
    subscription versions below 2 send only that one."""
    user_data: bytes | None = None
    """What the member's assignor sent along, for a custom assignor that leads. Not a part of the JSON contract."""

    def __new__(
        cls,
        topics: tuple[str, ...] = (),
        owned: Mapping[str, Sequence[int]] = EMPTY,
        generation: int | None = None,
        instance_id: str | None = None,
        rack: str | None = None,
        capacity: float = 1.0,
        claim_generation: int | None = None,
        user_data: bytes | None = None,
    ) -> Self:
        """Set the fields before the object is frozen: setting fields of a frozen object takes four times as long. Code
        that changes groups, such as the simulator and the property kit, makes members more than anything else.
        """
        self: Any = _MemberToBe()
        self.topics = topics
        self.owned = owned
        self.generation = generation
        self.instance_id = instance_id
        self.rack = rack
        self.capacity = capacity
        self.claim_generation = claim_generation
        self.user_data = user_data
        self.__class__ = cls
        return self  # type: ignore[no-any-return]


class _MemberToBe:
    """Hold the same fields, with nothing that keeps them from being set."""

    __slots__ = Member.__slots__


class Layout:
    """Give the partitions of a set of topics numbers: partition p of topic i is `starts[i] + p`, topics in Java's
    order.
    """

    __slots__ = ("counts", "index", "known", "names", "starts", "total")

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.names = in_java_order(counts)
        self.counts = [counts[name] for name in self.names]
        self.starts: list[int] = []
        total = 0
        for count in self.counts:
            self.starts.append(total)
            total += count
        self.total = total
        self.index = {name: i for i, name in enumerate(self.names)}
        self.known: dict[object, Any] = {}
        """What an assignor has worked out about these topics alone, for the next rebalance of a group that has them."""

    def topic_of(self, number: int) -> int:
        return bisect_right(self.starts, number) - 1

    def partition_of(self, number: int) -> tuple[str, int]:
        topic = self.topic_of(number)
        return self.names[topic], number - self.starts[topic]

    def partition_key(self) -> Callable[[int], int]:
        """Sort key: a number's partition. Topics of one size, the usual case, need no table for it."""
        sizes = set(self.counts) - {0}
        if len(sizes) == 1:
            return sizes.pop().__rmod__
        return list(chain.from_iterable(map(range, self.counts))).__getitem__

    def by_topic(self, numbers: Iterable[int]) -> dict[str, list[int]]:
        """Return topics in Java's order, each with its partitions ascending; topics without any are left out."""
        found: dict[str, list[int]] = {}
        names, starts, counts = self.names, self.starts, self.counts
        end = -1
        for number in sorted(numbers):
            if number >= end:
                topic = bisect_right(starts, number) - 1
                # bisect lands on the last of several topics that start here: the only one that is not empty
                start = starts[topic]
                end = start + counts[topic]
                partitions = found[names[topic]] = []
            partitions.append(number - start)
        return found

    def numbers_of(self, owned: Mapping[str, Sequence[int]]) -> list[int] | None:
        """Return the numbers of these partitions in their order, or None when one of them does not exist here."""
        numbers: list[int] = []
        for name, partitions in owned.items():
            topic = self.index.get(name)
            if topic is None:
                return None
            if partitions:
                if min(partitions) < 0 or max(partitions) >= self.counts[topic]:
                    return None
                start = self.starts[topic]
                numbers += [start + partition for partition in partitions] if start else partitions
        return numbers


class Share(Mapping[str, Sequence[int]]):
    """Hold one member's partitions: a mapping of topic to sorted partitions that is built when first looked at."""

    __slots__ = ("_by_topic", "layout", "numbers", "origin")

    def __init__(self, layout: Layout, numbers: Sequence[int], origin: Assignment | None = None) -> None:
        self.layout = layout
        self.numbers = numbers
        self.origin = origin
        """The assignment it comes from: shares of one assignment are known to be disjoint without a look inside."""
        self._by_topic: dict[str, list[int]] | None = None

    def _mapping(self) -> dict[str, list[int]]:
        if self._by_topic is None:
            self._by_topic = self.layout.by_topic(self.numbers)
        return self._by_topic

    def __getitem__(self, topic: str) -> Sequence[int]:
        return self._mapping()[topic]

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping())

    def __len__(self) -> int:
        return len(self._mapping())

    def items(self) -> ItemsView[str, Sequence[int]]:
        return self._mapping().items()

    def __bool__(self) -> bool:
        return bool(self.numbers)

    def __repr__(self) -> str:
        return f"Share({self._mapping()})"


class Assignment(Mapping[str, Mapping[str, Sequence[int]]]):
    """Map each member id to its topics and their sorted partitions.

    `numbers` is the compact form. `complete` says that every partition of the layout is in exactly one share: the next
    rebalance then finds free partitions by looking at members that left, not at every partition. `beyond` holds the
    few members whose share cannot be numbered: Java's sticky assignors let a member keep a claim on a partition that
    does not exist, and so do ours.
    """

    __slots__ = ("_views", "beyond", "complete", "layout", "numbers")

    def __init__(
        self,
        layout: Layout,
        numbers: Mapping[str, Sequence[int]],
        beyond: Mapping[str, Mapping[str, Sequence[int]]] | None = None,
        *,
        complete: bool = False,
    ) -> None:
        self.layout = layout
        self.numbers = numbers
        self.beyond = beyond or {}
        self.complete = complete
        self._views: dict[str, Mapping[str, Sequence[int]]] = {}

    def __getitem__(self, member: str) -> Mapping[str, Sequence[int]]:
        view = self._views.get(member)
        if view is None:
            view = self.beyond.get(member)
            if view is None:
                view = Share(self.layout, self.numbers[member], self)
            self._views[member] = view
        return view

    def __iter__(self) -> Iterator[str]:
        yield from self.numbers
        yield from (member for member in self.beyond if member not in self.numbers)

    def __len__(self) -> int:
        return len(self.numbers) + sum(member not in self.numbers for member in self.beyond)

    def __repr__(self) -> str:
        return f"Assignment({ {member: dict(share) for member, share in self.items()} })"


@dataclass(frozen=True, slots=True, init=False)
class Group:
    """Describe the group that an assignor sees. Members stand in their order of arrival: Java's answers depend on
    it.
    """

    topics: Mapping[str, Topic]
    members: Mapping[str, Member]
    _layout: Layout | None = field(default=None, repr=False, compare=False)
    _hash_order: Sequence[str] | None = field(default=None, init=False, repr=False, compare=False)

    def __new__(cls, topics: Mapping[str, Topic], members: Mapping[str, Member], _layout: Layout | None = None) -> Self:
        """Set the fields as Member's __new__ does."""
        self: Any = _GroupToBe()
        self.topics = MappingProxyType(copied(topics))
        self.members = MappingProxyType(copied(members))
        self._layout = _layout
        self._hash_order = None
        self.__class__ = cls
        return self  # type: ignore[no-any-return]

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return the arguments for copy.copy."""
        return self.topics, self.members, self._layout

    @property
    def layout(self) -> Layout:
        """Return the layout of all listed topics, subscribed or not, so that groups with equal topics share it."""
        if self._layout is None:
            counts = {name: topic.partitions for name, topic in self.topics.items()}
            object.__setattr__(self, "_layout", Layout(counts))
        assert self._layout is not None
        return self._layout

    @property
    def hash_order(self) -> Sequence[str]:
        """Return member ids as Java walks them: its groups are a HashMap, filled in order of arrival."""
        if self._hash_order is None:
            from rebalance_lab.assignors.java.hash_order import string_order

            object.__setattr__(self, "_hash_order", string_order(self.members))
        assert self._hash_order is not None
        return self._hash_order

    def with_members(self, members: Mapping[str, Member]) -> Group:
        """Return the same topics under other members, the layout kept; topics that are frozen already are not copied
        again.
        """
        group: Any = _GroupToBe()
        group.topics = self.topics
        group.members = MappingProxyType(dict(members))
        group._layout = self._layout or self.layout
        group._hash_order = None
        group.__class__ = Group
        return group  # type: ignore[no-any-return]

    def after(self, assignment: Mapping[str, Mapping[str, Sequence[int]]], generation: int) -> Group:
        """Return the group as it rejoins once each member holds what the assignment gave."""
        return self.with_members(
            {
                member_id: replace(
                    member,
                    owned=assignment.get(member_id, EMPTY),
                    generation=generation,
                    claim_generation=None,
                )
                for member_id, member in self.members.items()
            }
        )


class _GroupToBe:
    __slots__ = Group.__slots__


def copied(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a frozen mapping by its own method, six times as fast as dict(), which asks it for key after key."""
    return mapping.copy() if isinstance(mapping, MappingProxyType) else dict(mapping)


def owned_numbers(layout: Layout, member: Member) -> Sequence[int] | None:
    """Return a member's claims as numbers, without work when they came from an assignment over the same layout. Return
    None when a claim is on a partition that does not exist.
    """
    owned = member.owned
    if isinstance(owned, Share) and owned.layout is layout:
        return owned.numbers
    return layout.numbers_of(owned)
