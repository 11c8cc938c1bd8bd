"""Check an answer once, and make it compact: the member that got each partition. Every property reads this form.

Given      a group, and whatever an assignor returned for it
Returns    Placed, or Broken: the one exception that stands for a finding, with the group and the answer it is about
Cost       one pass over the answer; a property that compares two answers compares two lists of ints
Start at   View.place
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from rebalance_lab.assignors.model import NOBODY, Group, Layout

Answer = Mapping[str, Mapping[str, Sequence[int]]]


class Broken(Exception):
    """Report that a property does not hold. `badness` ranks two violations of one property: the report card shows the
    worst.
    """

    def __init__(
        self,
        message: str,
        group: Group | None = None,
        answer: object = None,
        *,
        badness: float = 1.0,
        blames: str | None = None,
    ) -> None:
        self.message = printable(message)
        super().__init__(self.message)
        self.group = group
        self.answer = answer
        self.badness = badness
        self.blames = blames
        """The property to hold responsible where it is not the one that was being checked: an answer that is not even
        valid is a finding about `valid`, whichever property asked for it."""


class NotApplicable(Exception):
    """Report that the property says nothing about this group."""


class Placed:
    """Hold a valid answer: `owner[number]` is the position of the member that holds the partition, or NOBODY."""

    __slots__ = ("answer", "counts", "owner", "view", "withheld")

    def __init__(self, view: View, owner: list[int], counts: list[int], answer: Answer, withheld: list[int]) -> None:
        self.view = view
        self.owner = owner
        self.counts = counts
        """How many partitions each member was given."""
        self.answer = answer
        self.withheld = withheld
        """Partitions of subscribed topics that no member was given."""

    def shares(self) -> dict[str, dict[str, list[int]]]:
        """Return plain mappings, every member present, partitions ascending: what the members own afterwards."""
        shares: list[dict[str, list[int]]] = [{} for _ in self.view.ids]
        owner = self.owner  # rather than the answer itself, which a class may keep and change
        for name, start, count in self.view.spans:
            for partition, position in enumerate(owner[start : start + count]):
                if position >= 0:
                    share = shares[position]
                    if name in share:
                        share[name].append(partition)
                    else:
                        share[name] = [partition]
        return dict(zip(self.view.ids, shares, strict=True))

    def differences(self, other: Placed) -> list[int]:
        return [n for n, (a, b) in enumerate(zip(self.owner, other.owner, strict=True)) if a != b]


class Ground:
    """Share what groups over the same topics have in common: where each topic's numbers begin, and its subscribers."""

    __slots__ = ("by_name", "layout", "reads", "spans")

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.spans = list(zip(layout.names, layout.starts, layout.counts, strict=True))
        self.by_name = {name: (start, count) for name, start, count in self.spans}
        self.reads: dict[tuple[str, ...], dict[str, tuple[int, int]]] = {}
        """Per subscription, the existing topics in it, each with its first number and its partitions."""

    def subscription(self, topics: tuple[str, ...]) -> dict[str, tuple[int, int]]:
        by_name = self.by_name
        found = self.reads[topics] = {name: by_name[name] for name in topics if name in by_name}
        return found


class View:
    """Show a group as the checks read it; made once per group, on the ground of the last one where topics are the
    same.
    """

    __slots__ = ("alike", "ground", "group", "ids", "position", "readable", "readers", "topics_of")

    def __init__(self, group: Group, ground: Ground | None = None) -> None:
        layout, members = group.layout, group.members
        if ground is None or ground.layout is not layout:
            ground = Ground(layout)
        self.group, self.ground = group, ground
        self.ids = ids = list(members)
        self.position = {member_id: position for position, member_id in enumerate(ids)}
        reads, subscription = ground.reads, ground.subscription
        subscriptions = [m.topics for m in members.values()]
        self.topics_of: list[dict[str, tuple[int, int]]]
        """Per member, the existing topics that it subscribes to, each with its first number and its partitions."""
        self.alike = True
        """All members read the same existing topics."""
        if subscriptions and subscriptions.count(subscriptions[0]) == len(subscriptions):
            read = reads.get(subscriptions[0]) or subscription(subscriptions[0])
            self.topics_of = [read] * len(subscriptions)
        else:
            self.topics_of = [reads.get(topics) or subscription(topics) for topics in subscriptions]
            distinct = list({id(topics): topics for topics in self.topics_of}.values())
            read = {name: span for topics in distinct for name, span in topics.items()}
            self.alike = all(topics.keys() == read.keys() for topics in distinct)
        self.readers = read.keys()
        self.readable = sum([count for _, count in read.values()])

    def rejoined(self, group: Group) -> View:
        """Return the view of the same members on the same topics; only what they own differs."""
        view = View.__new__(View)
        view.group, view.ground, view.ids, view.position = group, self.ground, self.ids, self.position
        view.topics_of, view.readers = self.topics_of, self.readers
        view.alike, view.readable = self.alike, self.readable
        return view

    @property
    def spans(self) -> list[tuple[str, int, int]]:
        return self.ground.spans

    def subscribers(self, topic: str) -> Sequence[int]:
        if self.alike:
            return range(len(self.ids)) if topic in self.readers else ()
        return [position for position, topics in enumerate(self.topics_of) if topic in topics]

    def named(self, number: int) -> str:
        topic, partition = self.group.layout.partition_of(number)
        return f"{topic}-{partition}"

    def place(self, answer: Any, *, may_withhold: bool) -> Placed:
        """Check an answer and make it compact, or raise Broken(blames="valid") with one line on the first thing that is
        wrong.
        """
        if type(answer) is not dict and not isinstance(answer, Mapping):
            self._wrong(answer, f"returned a {type(answer).__name__}, not a mapping of member to topics")
        owner = [NOBODY] * self.ground.layout.total
        counts = [0] * len(self.ids)
        position_of, topics_of = self.position, self.topics_of
        for member_id, share in answer.items():
            position = position_of.get(member_id) if isinstance(member_id, str) else None
            if position is None:
                if isinstance(member_id, str) and isinstance(share, Mapping) and not any(share.values()):
                    continue
                raise self._broken(answer, f"gives something to {shown(member_id)}, who is not a member")
            if type(share) is not dict and not isinstance(share, Mapping):
                kind = type(share).__name__
                self._wrong(answer, f"gives {member_id!r} a {kind}, not a mapping of topic to partitions")
            topics = topics_of[position]
            for topic, partitions in share.items():
                if type(partitions) is not list:
                    self._check_sequence(answer, position, topic, partitions)
                span = topics.get(topic)
                if span is None:
                    if type(topic) is not str:
                        self._check_sequence(answer, position, topic, partitions)
                    if partitions:
                        self._wrong_topic(answer, position, topic, partitions[0])
                    continue
                start, count = span
                for partition in partitions:
                    if type(partition) is not int or not 0 <= partition < count:
                        self._wrong_partition(answer, position, topic, partition, count)
                    number = start + partition
                    if owner[number] != NOBODY:
                        self._wrong_twice(answer, number, owner[number], position)
                    owner[number] = position
                counts[position] += len(partitions)
        placed = Placed(self, owner, counts, answer, [])
        if sum(counts) != self.readable:
            placed.withheld = self._withheld(owner)
            self._check_withheld(answer, placed.withheld, may_withhold=may_withhold)
        return placed

    def _check_sequence(self, answer: Answer, position: int, topic: object, partitions: object) -> None:
        member_id = self.ids[position]
        if not isinstance(topic, str):
            kind = type(topic).__name__
            self._wrong(answer, f"gives {member_id!r} partitions of {shown(topic)}: a {kind}, not a topic")
        if isinstance(partitions, str | bytes | bytearray | memoryview) or not isinstance(partitions, Sequence):
            kind = type(partitions).__name__
            self._wrong(answer, f"gives {member_id!r} a {kind} for {topic!r}, not a list of partitions")

    def _withheld(self, owner: list[int]) -> list[int]:
        return [
            number
            for name, start, count in self.spans
            if name in self.readers
            for number in range(start, start + count)
            if owner[number] == NOBODY
        ]

    def _check_withheld(self, answer: Answer, withheld: list[int], *, may_withhold: bool) -> None:
        names = ", ".join(map(self.named, withheld[:3])) + (", ..." if len(withheld) > 3 else "")
        if not may_withhold:
            are = "is" if len(withheld) == 1 else "are"
            self._wrong(answer, f"{names} {are} given to nobody", badness=len(withheld))
        claimed = {
            (topic, partition)
            for member in self.group.members.values()
            for topic, partitions in member.owned.items()
            for partition in partitions
        }
        for number in withheld:
            if self.group.layout.partition_of(number) not in claimed:
                self._wrong(answer, f"{self.named(number)} is given to nobody, although nobody holds it")

    def _wrong_topic(self, answer: Answer, position: int, topic: str, partition: object) -> None:
        exists = topic in self.group.topics
        why = "did not subscribe to" if exists else "cannot read: that topic does not exist"
        self._wrong(answer, f"gives {self.ids[position]!r} {topic}-{partition}, which it {why}")

    def _wrong_partition(self, answer: Answer, position: int, topic: str, partition: object, count: int) -> None:
        whom = repr(self.ids[position])
        if type(partition) is not int:
            kind = type(partition).__name__
            self._wrong(answer, f"gives {whom} partition {shown(partition)} of {topic!r}: a {kind}")
        has = f"which has {count} partition{'s' * (count != 1)}"
        self._wrong(answer, f"gives {whom} {topic}-{shown(partition)} of a topic {has}")

    def _wrong_twice(self, answer: Answer, number: int, first: int, second: int) -> None:
        whom = f"to {self.ids[first]!r} and to {self.ids[second]!r}"
        if first == second:
            whom = f"twice to {self.ids[first]!r}"
        self._wrong(answer, f"{self.named(number)} is given {whom}")

    def _wrong(self, answer: object, message: str, badness: float = 1.0) -> None:
        raise self._broken(answer, message, badness)

    def _broken(self, answer: object, message: str, badness: float = 1.0) -> Broken:
        return Broken(message, self.group, answer, badness=badness, blames="valid")


def plain(answer: object, depth: int = 4) -> object:
    """Return an answer as JSON can show it, whatever it is: sequences as lists, the rest as Python would print it. One
    that holds itself, or raises when it is looked at, is shown as far as that goes.
    """
    try:
        if depth and isinstance(answer, Mapping):
            shown_keys = (
                (key if type(key) is str else shown(key), value) for key, value in islice(answer.items(), 1000)
            )
            return {printable(key): plain(value, depth - 1) for key, value in shown_keys}
        if depth and isinstance(answer, list | tuple):
            return [plain(item, depth - 1) for item in answer[:1000]]
    except Exception:  # noqa: BLE001 - a stranger's mapping may raise anything
        return shown(answer)
    if type(answer) is str:
        return printable(answer)
    if answer is None or type(answer) is bool or (type(answer) is int and answer.bit_length() <= 64):
        return answer
    return shown(answer)


def shown(value: object) -> str:
    """Print a value as Python would, where Python can: not a number of thousands of digits, nor a value that raises."""
    try:
        return printable(repr(value)[:200])
    except Exception:  # noqa: BLE001 - a stranger's __repr__ may raise anything
        return f"a {type(value).__name__} that cannot be printed"


def printable(text: str) -> str:
    """Replace half a character, which Python's strings may hold, but no terminal or file."""
    return text.encode("utf-8", "backslashreplace").decode()
