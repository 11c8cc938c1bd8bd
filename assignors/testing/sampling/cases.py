"""Represent one example: a group, and the events that follow. A counterexample is such a case, as JSON.

Start at   draw_case: the case of a seed and a number, the same in every process
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from rebalance_lab.assignors.json_contract import (
    ContractError,
    at,
    expect_object,
    group_from_json,
    group_to_json,
    refuse_unknown,
    shown,
)
from rebalance_lab.assignors.model import Group, Member, Topic
from rebalance_lab.assignors.testing.sampling.example_families import Draws
from rebalance_lab.assignors.testing.sampling.group_events import KINDS, Event, draw_events
from rebalance_lab.assignors.testing.sampling.random_groups import Knobs, draw_group
from rebalance_lab.assignors.testing.sampling.random_source import SeededSource


@dataclass(frozen=True, slots=True)
class Case:
    group: Group
    events: tuple[Event, ...] = ()
    before: Group | None = None
    """A group that has to be asked about first, in the same process: the trace that a forgotten state leaves."""

    def size(self) -> tuple[int, int]:
        """Return the number of members and of partitions."""
        return len(self.group.members), self.group.layout.total

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


def draw_case(seed: int, number: int) -> Case:
    return Case(*Draws(seed).example(number))


def small_cases() -> Iterator[Case]:
    """Return the same small cases each time: at most three members, and three partitions of a topic."""
    draws, knobs = SeededSource(), Knobs(max_members=3, max_topics=2, max_partitions=3, odd_names=False)
    while True:
        group = draw_group(draws, knobs)
        yield Case(group, draw_events(draws, group, draws.integer(1, 3)) if group.members else ())


def growing_groups() -> list[Case]:
    """Return groups that double in size, with equal subscriptions and mixed; exponential time does not reach the
    last.
    """
    cases = []
    for members, topics, partitions in ((6, 2, 8), (12, 3, 10), (24, 4, 12), (40, 6, 24)):
        names = tuple(f"t{i}" for i in range(topics))
        counts = {name: Topic(partitions) for name in names}
        ids = [f"c{i}" for i in range(members)]
        cases.append(Case(Group(counts, dict.fromkeys(ids, Member(names)))))
        mixed = {member_id: Member(names[i % topics :: 2] or names) for i, member_id in enumerate(ids)}
        cases.append(Case(Group(counts, mixed)))
    return cases


def events_to_json(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [
        {"event": event.kind} | {field.name: getattr(event, field.name) for field in fields(event)} for event in events
    ]


def events_from_json(value: Any, path: str = "events") -> tuple[Event, ...]:
    events = []
    for i, item in enumerate(value or ()):
        described = dict(expect_object(item, at(path, i)))
        kind = KINDS.get(str(described.pop("event", None)))
        if kind is None:
            raise ContractError(at(path, i), f"expected an event, one of {', '.join(KINDS)}, got {shown(item)}")
        if "topics" in described:
            described["topics"] = tuple(described["topics"])
        try:
            events.append(kind(**described))
        except TypeError as error:
            raise ContractError(at(path, i), str(error).partition("() ")[2] or str(error)) from None
    return tuple(events)
