"""An answer, checked once and then compact: per partition, who got it. Every property reads this form.

Given      a group, and whatever an assignor returned for it
Returns    Placed, or Broken: the one exception that stands for a finding, with the group and the answer it is about
Cost       one pass over the answer; a property that compares two answers compares two lists of ints
Start at   View.place
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assignors.model import Assignment, Group
from assignors.quality import NOBODY

Answer = Mapping[str, Mapping[str, Sequence[int]]]


class Broken(Exception):
    """A property does not hold. `badness` ranks two violations of one property: the report card shows the worst."""

    def __init__(
        self,
        message: str,
        group: Group | None = None,
        answer: object = None,
        *,
        badness: float = 1.0,
        blames: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.group = group
        self.answer = answer
        self.badness = badness
        self.blames = blames
        """The property to hold responsible where it is not the one that was being checked: an answer that is not even
        valid is a finding about `valid`, whoever asked for it."""


class NotApplicable(Exception):
    """The property says nothing about this group."""


class Placed:
    """A valid answer: `owner[number]` is the position of the member that holds the partition, or NOBODY."""

    __slots__ = ("answer", "counts", "owner", "view", "withheld")

    def __init__(self, view: View, owner: list[int], answer: Answer, withheld: list[int]) -> None:
        self.view = view
        self.owner = owner
        self.answer = answer
        self.withheld = withheld
        """Partitions of subscribed topics that nobody was given."""
        counts = [0] * len(view.ids)
        for position in owner:
            if position >= 0:
                counts[position] += 1
        self.counts = counts

    def shares(self) -> dict[str, dict[str, list[int]]]:
        """As plain mappings, every member present, partitions ascending: what the members own afterwards."""
        shares: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in self.view.ids}
        ids, owner = self.view.ids, self.owner
        for name, start, count in self.view.spans:
            for number in range(start, start + count):
                position = owner[number]
                if position >= 0:
                    shares[ids[position]].setdefault(name, []).append(number - start)
        return shares

    def differences(self, other: Placed) -> list[int]:
        return [n for n, (a, b) in enumerate(zip(self.owner, other.owner, strict=True)) if a != b]


class View:
    """A group as the checks read it; made once per group."""

    __slots__ = ("group", "ids", "position", "readable", "readers", "spans", "topics_of", "total")

    def __init__(self, group: Group) -> None:
        self.group = group
        layout = group.layout
        self.ids = list(group.members)
        self.position = {member_id: index for index, member_id in enumerate(self.ids)}
        self.spans = list(zip(layout.names, layout.starts, layout.counts, strict=True))
        self.total = layout.total
        by_name = {name: (start, count) for name, start, count in self.spans}
        known: dict[tuple[str, ...], dict[str, tuple[int, int]]] = {}
        self.topics_of: list[dict[str, tuple[int, int]]] = []
        """Per member, the existing topics that it subscribes to, each with its first number and its partitions."""
        for member in group.members.values():
            topics = known.get(member.topics)
            if topics is None:
                topics = known[member.topics] = {name: by_name[name] for name in member.topics if name in by_name}
            self.topics_of.append(topics)
        self.readers = {name for topics in known.values() for name in topics}
        self.readable = sum(by_name[name][1] for name in self.readers)

    def subscribers(self, topic: str) -> list[int]:
        return [position for position, topics in enumerate(self.topics_of) if topic in topics]

    def same_subscriptions(self) -> bool:
        """Everybody reads the same existing topics."""
        return all(topics.keys() == self.topics_of[0].keys() for topics in self.topics_of)

    def named(self, number: int) -> str:
        topic, partition = self.group.layout.partition_of(number)
        return f"{topic}-{partition}"

    def place(self, answer: Any, *, may_withhold: bool) -> Placed:
        """Raises Broken(blames="valid") with one line on the first thing that is wrong."""
        if not isinstance(answer, Mapping):
            self._wrong(answer, f"returned a {type(answer).__name__}, not a mapping of member to topics")
        owner = [NOBODY] * self.total
        placed = 0
        for member_id, share in answer.items():
            position = self.position.get(member_id) if isinstance(member_id, str) else None
            if position is None:
                if isinstance(member_id, str) and isinstance(share, Mapping) and not any(map(len, share.values())):
                    continue
                raise self._broken(answer, f"gives something to {member_id!r}, who is not a member")
            if not isinstance(share, Mapping):
                kind = type(share).__name__
                self._wrong(answer, f"gives {member_id!r} a {kind}, not a mapping of topic to partitions")
            placed += self._place_share(answer, owner, position, share)
        withheld = [] if placed == self.readable else self._withheld(owner)
        if withheld:
            self._check_withheld(answer, withheld, may_withhold=may_withhold)
        return Placed(self, owner, answer, withheld)

    def _place_share(self, answer: Answer, owner: list[int], position: int, share: Mapping[Any, Any]) -> int:
        topics, placed = self.topics_of[position], 0
        for topic, partitions in share.items():
            if type(partitions) is not list:
                self._check_sequence(answer, position, topic, partitions)
            span = topics.get(topic)
            if span is None:
                if partitions:
                    self._wrong_topic(answer, position, topic, partitions[0])
                continue
            start, count = span
            for partition in partitions:
                if type(partition) is not int:
                    kind = type(partition).__name__
                    self._wrong(answer, f"gives {self.ids[position]!r} partition {partition!r} of {topic!r}: a {kind}")
                if not 0 <= partition < count:
                    has = f"which has {count} partition{'s' * (count != 1)}"
                    self._wrong(answer, f"gives {self.ids[position]!r} {topic}-{partition} of a topic {has}")
                number = start + partition
                if owner[number] != NOBODY:
                    self._wrong_twice(answer, number, owner[number], position)
                owner[number] = position
            placed += len(partitions)
        return placed

    def _check_sequence(self, answer: Answer, position: int, topic: object, partitions: object) -> None:
        member_id = self.ids[position]
        if not isinstance(topic, str):
            self._wrong(answer, f"gives {member_id!r} partitions of {topic!r}: a {type(topic).__name__}, not a topic")
        if isinstance(partitions, str | bytes) or not isinstance(partitions, Sequence):
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

    def _wrong_twice(self, answer: Answer, number: int, first: int, second: int) -> None:
        whom = f"to {self.ids[first]!r} and to {self.ids[second]!r}"
        if first == second:
            whom = f"twice to {self.ids[first]!r}"
        self._wrong(answer, f"{self.named(number)} is given {whom}")

    def _wrong(self, answer: object, message: str, badness: float = 1.0) -> None:
        raise self._broken(answer, message, badness)

    def _broken(self, answer: object, message: str, badness: float = 1.0) -> Broken:
        return Broken(message, self.group, answer, badness=badness, blames="valid")


def plain(answer: object) -> object:
    """An answer as JSON can show it, whatever it is: sequences as lists, the rest as Python would print it."""
    if isinstance(answer, Mapping):
        return {str(key): plain(value) for key, value in list(answer.items())[:1000]}
    if isinstance(answer, list | tuple):
        return [plain(item) for item in answer[:1000]]
    if answer is None or type(answer) in (str, int, bool):
        return answer
    return repr(answer)[:200]


def materialised(answer: Any) -> Any:
    """Our own compact answers as plain mappings; that work is part of giving an answer, so it counts as such."""
    if isinstance(answer, Assignment):
        return {member_id: dict(share) for member_id, share in answer.items()}
    return answer
