"""Run churn through rebalance rounds, without a protocol: the property kit's driver unless the caller hands in another.

Given      `ask`, which answers for a group or raises Broken; a group; whether partitions may be withheld
Does       apply(event) changes the members; settle() rebalances until nothing is withheld
Hooks      `churn` and `churn_machine` take any callable with this signature as `driver`. `survives-churn` needs more,
           `machines`: harness/conversation/protocol_churn.py runs real members against a real coordinator. The caller
           hands it in, because assignors/ imports nothing above it
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rebalance_lab.assignors.model import Group, Member
from rebalance_lab.assignors.testing.sampling.group_events import Crash, Event, happen, rejoins
from rebalance_lab.assignors.testing.subject.answers import Broken, Placed, View
from rebalance_lab.assignors.testing.subject.subject import Subject

MAX_ROUNDS = 8
"""A hand-over takes two. Something that needs more than this many is not on its way anywhere."""


class Ask(Protocol):
    """Answer for a group. A caller that has the group's view already hands it in."""

    def __call__(self, group: Group, view: View | None = None, /) -> Placed: ...


class ChurnDriver(Protocol):
    """Drive a churn. An answer that breaks a rule raises Broken, from `ask` or from the driver itself."""

    def apply(self, event: Event) -> None: ...

    def settle(self) -> None: ...


DriverFactory = Callable[[Ask, Group], ChurnDriver]
MachineFactory = Callable[[Subject, Group], ChurnDriver]
"""For a driver that runs whole processes: it makes instances itself, one for each, and asks them."""


class Rounds:
    """Let every member rejoin at once with what it was last given. Eager and cooperative rounds look alike from here,
    except that a cooperative answer may leave partitions to the next round.
    """

    def __init__(self, ask: Ask, group: Group) -> None:
        self.ask = ask
        self.group = group
        self.settled: Settled | None = None
        self.away: dict[str, Member] = {}

    def apply(self, event: Event) -> None:
        if self.settled is not None:  # only now: after a churn's last rebalance no member rejoins
            self.group, self.settled = self.settled.rejoined(), None
        back, self.away = self.away, {}
        for member_id, member in back.items():
            self.group = rejoins(self.group, member_id, member)
        if isinstance(event, Crash) and event.member in self.group.members:
            self.away[event.member] = self.group.members[event.member]
        self.group = happen(self.group, event)

    def settle(self) -> None:
        self.settled = settle(self.ask, self.group)


class Settled:
    """Hold the end of a rebalance: the group that was asked about last, its answer, and how many rounds it took."""

    __slots__ = ("group", "placed", "rounds")

    def __init__(self, group: Group, placed: Placed, rounds: int) -> None:
        self.group, self.placed, self.rounds = group, placed, rounds

    def rejoined(self) -> Group:
        return rejoined(self.group, self.placed)


def settle(ask: Ask, group: Group, first: Placed | None = None, view: View | None = None) -> Settled:
    """Rebalance until nothing is withheld; `first` is the first answer, where there is one already, and `view` as for
    `ask`.
    """
    placed = ask(group, view) if first is None else first
    rounds = 1
    while placed.withheld and rounds < MAX_ROUNDS:
        group = rejoined(group, placed)
        placed = ask(group, placed.view.rejoined(group))
        rounds += 1
    if not placed.withheld:
        return Settled(group, placed, rounds)
    message = f"{placed.view.named(placed.withheld[0])} still has no owner after {MAX_ROUNDS} rebalances of one group"
    raise Broken(message, group, placed.answer, badness=MAX_ROUNDS, blames="cooperative-rounds")


def rejoined(group: Group, placed: Placed) -> Group:
    """Return the group as members rejoin: each with what it was given, in a generation above all others."""
    shares = placed.shares()
    generation = 1 + max([member.generation or 0 for member in group.members.values()], default=0)
    members = {
        member_id: Member(
            member.topics, shares[member_id], generation, member.instance_id, member.rack, member.capacity
        )
        for member_id, member in group.members.items()
    }
    return group.with_members(members)


@dataclass(frozen=True, slots=True)
class Churns:
    """Hold what a churn runs through."""

    rounds: DriverFactory = Rounds
    machines: MachineFactory | None = None
    """Without one, `survives-churn` is not looked at."""


IN_ROUNDS = Churns()
