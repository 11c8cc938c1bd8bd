"""One case on its way through the contract: what was asked once is not asked again for the next property."""

from __future__ import annotations

from functools import cached_property

from assignors.model import Group
from assignors.testing.answers import Placed, View
from assignors.testing.cases import Case
from assignors.testing.events import MoveRack
from assignors.testing.rounds import DriverFactory, Rounds, Settled, settle
from assignors.testing.shapes import shapes_of
from assignors.testing.subject import Subject

Fingerprint = tuple[object, ...]


class Trial:
    def __init__(self, subject: Subject, case: Case, *, thorough: bool = False, driver: DriverFactory = Rounds) -> None:
        self.subject = subject
        self.case = case
        self.group = case.group
        self.thorough = thorough
        """Ask a few times more where a bug needs luck to show: on a counterexample's way to its smallest form."""
        self.driver = driver
        self.view = View(case.group)
        self.before = fingerprint(case.group)

    @cached_property
    def shapes(self) -> frozenset[str]:
        shapes = shapes_of(self.group)
        if any(isinstance(event, MoveRack) for event in self.case.events):
            return shapes | ({"racks"} if any(topic.racks for topic in self.group.topics.values()) else frozenset())
        return shapes

    @cached_property
    def first(self) -> Placed:
        """A fresh instance's answer, as it came."""
        return self.subject.ask(self.group, self.view)

    @cached_property
    def settled(self) -> Settled:
        """The end of the hand-over: for most assignors the first answer, for cooperative ones a round or two later."""
        return settle(self.subject.ask, self.group, self.first)

    @cached_property
    def rejoined(self) -> Group:
        """Everybody owns what it was given, and nothing else has happened."""
        return self.settled.rejoined()

    @cached_property
    def repeated(self) -> Placed:
        """The answer for a group in which everybody owns what it was given."""
        return self.subject.ask(self.rejoined, like=self.settled.placed)


def fingerprint(group: Group) -> Fingerprint:
    """Everything that an assignor could change, order included."""
    return (
        tuple(group.topics.items()),
        tuple(
            [
                (i, m.topics, tuple([(t, tuple(p)) for t, p in m.owned.items()]), m.generation, m.rack, m.capacity)
                for i, m in group.members.items()
            ]
        ),
    )
