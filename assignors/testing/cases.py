"""One example: a group, and what happens to it afterwards. A counterexample is one of these, as JSON.

Start at   draw_case: the case of a seed and a number, the same in every process
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assignors.json_contract import expect_object, group_from_json, group_to_json, refuse_unknown
from assignors.model import Group, Member, Topic
from assignors.testing.dice import SeededDice
from assignors.testing.draw import DEFAULT, Knobs, draw_group
from assignors.testing.events import Event, draw_events, events_from_json, events_to_json

CHURN_EVERY = 4
"""A churn asks some twenty times; one example in four has one."""


@dataclass(frozen=True, slots=True)
class Case:
    group: Group
    events: tuple[Event, ...] = ()
    before: Group | None = None
    """A group that has to be asked about first, in the same process: the trace that a forgotten state leaves."""

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {"group": group_to_json(self.group)}
        if self.events:
            value["events"] = events_to_json(self.events)
        if self.before is not None:
            value["before"] = group_to_json(self.before)
        return value


def case_from_json(value: Any, path: str = "") -> Case:
    described = expect_object(value, path or "case")
    if "group" not in described and {"topics", "members"} & described.keys():
        described = {"group": described}
    refuse_unknown(described, ("property", "group", "events", "before"), path)
    before = described.get("before")
    return Case(
        group_from_json(described.get("group"), "group"),
        events_from_json(described.get("events")),
        None if before is None else group_from_json(before, "before"),
    )


def draw_case(seed: int, number: int, knobs: Knobs = DEFAULT) -> Case:
    dice = SeededDice(seed * 1_000_003 + number)
    group = draw_group(dice, knobs)
    events: tuple[Event, ...] = ()
    if number % CHURN_EVERY == 0 and group.members:
        events = draw_events(dice, group, dice.integer(1, 5))
    return Case(group, events)


def growing_groups() -> list[Case]:
    """Doubling in size, equal subscriptions and mixed: what takes exponential time does not reach the end."""
    cases = []
    for members, topics, partitions in ((6, 2, 8), (12, 3, 10), (24, 4, 12), (40, 6, 24)):
        names = tuple(f"t{i}" for i in range(topics))
        counts = {name: Topic(partitions) for name in names}
        ids = [f"c{i}" for i in range(members)]
        cases.append(Case(Group(counts, dict.fromkeys(ids, Member(names)))))
        mixed = {member_id: Member(names[i % topics :: 2] or names) for i, member_id in enumerate(ids)}
        cases.append(Case(Group(counts, mixed)))
    return cases
