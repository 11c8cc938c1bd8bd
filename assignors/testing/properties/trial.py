"""Take one case through the contract, and keep each answer so that no property has to ask again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rebalance_lab.assignors.model import Group, Member, Topic
from rebalance_lab.assignors.testing.sampling.cases import Case
from rebalance_lab.assignors.testing.sampling.fingerprints import claims, fingerprint
from rebalance_lab.assignors.testing.sampling.group_events import MoveRack, happen
from rebalance_lab.assignors.testing.sampling.group_shapes import Shapes
from rebalance_lab.assignors.testing.subject.answers import Placed, View
from rebalance_lab.assignors.testing.subject.rounds import IN_ROUNDS, Churns, Settled, settle
from rebalance_lab.assignors.testing.subject.subject import Subject

T = TypeVar("T")


class once(Generic[T]):
    """Cache a property as functools.cached_property does, without its lock, which costs more than most of what is kept
    here.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.make = make

    def __get__(self, trial: Any, _: object) -> T:
        value = vars(trial)[self.make.__name__] = self.make(trial)
        return value


class Trial:
    def __init__(
        self,
        subject: Subject,
        case: Case,
        *,
        thorough: bool = False,
        closely: bool = True,
        churns: Churns = IN_ROUNDS,
    ) -> None:
        self.subject = subject
        self.case = case
        self.group = case.group
        self.thorough = thorough
        """Ask a few times more where a bug needs luck to show: on a counterexample's way to its smallest form."""
        self.closely = closely
        """Look also for what is rarely wrong, and then in every group: changes of what is frozen, or an answer that
        goes by the order in which one member names its topics."""
        self.churns = churns
        self.before = self.fingerprint()

    @once
    def shapes(self) -> Shapes:
        shapes = Shapes(self.group)
        if any(isinstance(event, MoveRack) for event in self.case.events):
            shapes.known["racks"] = any(topic.racks for topic in self.group.topics.values())
        return shapes

    @property
    def waived(self) -> bool:
        """Tell whether the subject openly gives no answer for such groups, or a wrong one."""
        return any(waiver.covers(self.shapes) for waiver in self.subject.everywhere)

    @property
    def changed(self) -> bool:
        """Tell whether the assignor changed the group that it was handed."""
        return self.fingerprint() != self.before

    def fingerprint(self) -> object:
        return fingerprint(self.group) if self.closely else claims(self.group)

    @once
    def plain(self) -> bool:
        """Tell whether the group has no racks and no loads: what has to move is beyond argument then."""
        return "racks" not in self.shapes and "loads" not in self.shapes

    @once
    def first(self) -> Placed:
        """Return a fresh instance's answer, as it came. The group is as new to it as to a leader: nothing is computed
        yet.
        """
        return self.subject.ask(self.group)

    @property
    def view(self) -> View:
        return self.first.view

    @once
    def settled(self) -> Settled:
        """Return the end of the hand-over: for most assignors the first answer, for cooperative ones a round or two
        later.
        """
        return settle(self.subject.ask, self.group, self.first)

    @once
    def settled_plain(self) -> tuple[Settled, Group]:
        """Return the settled group without racks and loads, and how the group rejoins then."""
        if self.plain:
            return self.settled, self.rejoined
        topics = {name: Topic(topic.partitions, id=topic.id) for name, topic in self.group.topics.items()}
        members = {
            i: Member(m.topics, m.owned, m.generation, instance_id=m.instance_id) for i, m in self.group.members.items()
        }
        group = Group(topics, members, self.group.layout)
        settled = settle(self.subject.ask, group, view=self.view.rejoined(group))
        return settled, settled.rejoined()

    @once
    def rejoined(self) -> Group:
        """Return the group in which each member owns what it was given, and nothing else has happened."""
        return self.settled.rejoined()

    @once
    def repeated(self) -> Placed:
        """Return the answer for a group in which each member owns what it was given."""
        settled = self.settled.placed
        return self.subject.ask(self.rejoined, settled.view.rejoined(self.rejoined), settled)

    @once
    def after_event(self) -> Placed:
        """Return the first answer after the case's first event, with members that own what they were given."""
        return self.subject.ask(happen(self.rejoined, self.case.events[0]))
