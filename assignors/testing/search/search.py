"""Search case after case through the contract, until the examples are used up.

Given      a Subject, how many examples, a seed
Returns    Tally: per property how often it was looked at, how often it held, its worst case, its first counterexample
Order      a case goes through the properties as the contract lists them. An answer that is not valid ends the case
Start at   search
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import lcm
from typing import Any

from rebalance_lab.assignors.testing.properties.contract import BY_NAME, PROPERTIES, Property
from rebalance_lab.assignors.testing.properties.trial import Trial
from rebalance_lab.assignors.testing.sampling.cases import Case, draw_case, growing_groups
from rebalance_lab.assignors.testing.sampling.example_families import Draws
from rebalance_lab.assignors.testing.sampling.group_shapes import Shapes, Waiver
from rebalance_lab.assignors.testing.subject.answers import Broken, NotApplicable
from rebalance_lab.assignors.testing.subject.rounds import IN_ROUNDS, Churns
from rebalance_lab.assignors.testing.subject.subject import Subject
from rebalance_lab.assignors.testing.subprocess_oracle.line_format import digest, pack

REMEMBERED = 250
"""Groups kept, and their answers as digests, to be compared with those of another process."""
REMEMBER_EVERY = 4
"""More than a family has members: each of these answers is about another family."""
CLOSELY_EVERY = 4
"""One example of so many is looked at more closely (properties/trial.py)."""
PURE = BY_NAME["pure"]
STOPS_CASE = ("valid", "bounded-time", "pure")


@dataclass(slots=True)
class Count:
    """Count what the search has seen of one property. Its values are plain, to travel from the child process to its
    parent.
    """

    examples: int = 0
    broken: int = 0
    worst: str = ""
    badness: float = 0.0
    found: dict[str, Any] | None = None
    """The first case that broke it, as JSON; looked for only where the property is held."""
    number: int = 0
    """Of that example."""


@dataclass(slots=True)
class Tally:
    counts: dict[str, Count] = field(default_factory=lambda: {each.name: Count() for each in PROPERTIES})
    found_any: bool = False
    examples: int = 0
    calls: int = 0
    assignor_s: float = 0.0
    machine_s: float = 0.0
    busy: float = 1.0
    slowest: str = ""
    remembered: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    """Some of the groups (subprocess_oracle/line_format.py) and digests of their answers, by the example's number."""


class Course:
    """Choose what each example goes through: the properties that the subject is held to always, the others in turn."""

    def __init__(self, subject: Subject, contract: Sequence[Property] = PROPERTIES) -> None:
        due = [
            (each, each.waivers_of(subject), each.rarely if each.held_by(subject) else each.every)
            for each in sorted(contract, key=turn_of)
        ]
        self.length = lcm(*[every for _, _, every in due])
        self.turns = [
            [(each, waivers) for each, waivers, every in due if number % every == 0] for number in range(self.length)
        ]

    def of(self, number: int) -> list[tuple[Property, tuple[Waiver, ...]]]:
        return self.turns[number % self.length]


def turn_of(each: Property) -> float:
    """Order properties as the contract lists them, except that `pure` waits for those that ask about the group
    repeatedly. A class may change its input only at the second call.
    """
    return PROPERTIES.index(BY_NAME["order-independent"]) + 0.5 if each.name == "pure" else PROPERTIES.index(each)


def search(
    subject: Subject,
    examples: int,
    seed: int,
    *,
    churns: Churns = IN_ROUNDS,
    progress: Callable[[int], None] | None = None,
) -> Tally:
    tally = Tally()
    course, draws = Course(subject), Draws(seed)
    started, cpu = time.perf_counter(), time.process_time()
    with subject.watched():
        for number in range(examples):
            if progress is not None:
                progress(number)
            look_at(subject, Case(*draws.example(number)), course, tally, number, churns, seed)
            if tally.counts["bounded-time"].found:
                break
        else:
            course = Course(subject, [BY_NAME["bounded-time"], BY_NAME["valid"]])
            for number, case in enumerate(growing_groups(), examples):
                look_at(subject, case, course, tally, number, churns)
    tally.calls, tally.assignor_s, tally.machine_s = subject.calls, subject.spent_s, subject.machine_s
    tally.busy = min(1.0, (time.process_time() - cpu) / (time.perf_counter() - started))
    if subject.slowest is not None:
        members, partitions = len(subject.slowest.members), subject.slowest.layout.total
        tally.slowest = f"slowest call {subject.slowest_s * 1000:.1f} ms ({members} members, {partitions} partitions)"
    return tally


def look_at(
    subject: Subject,
    case: Case,
    course: Course,
    tally: Tally,
    number: int,
    churns: Churns,
    seed: int | None = None,
) -> None:
    """Take one case through all properties that still matter. With a seed it can be drawn again, should it be
    spoiled.
    """
    trial = Trial(subject, case, closely=number % CLOSELY_EVERY == 0, churns=churns)
    tally.examples += 1
    counts = tally.counts
    if subject.everywhere and trial.waived:
        return
    for each, waivers in course.of(number):
        count = counts[each.name]
        if count.found or (each.last and tally.found_any):
            continue
        if waivers and any(waiver.covers(trial.shapes) for waiver in waivers):
            continue
        try:
            each.check(trial)
        except NotApplicable:
            continue
        except Broken as broken:
            if broken.blames is None and trial.changed and PURE.held_by(subject):
                each, broken = (
                    PURE,
                    broken if each is PURE else Broken(f"it changes the group, and then {broken.message}"),
                )
                case = draw_case(seed, number) if seed is not None else case
            if not note(subject, tally, each, case, broken, number):
                return
            continue
        count.examples += 1
    remembers = seed is not None and number % REMEMBER_EVERY == 0 and len(tally.remembered) < REMEMBERED
    if remembers and "first" in vars(trial):
        tally.remembered[number] = pack(trial.group), digest(trial.first.owner)


def note(subject: Subject, tally: Tally, each: Property, case: Case, broken: Broken, number: int) -> bool:
    """Put a violation down to the property it is about; False when the case can go no further."""
    guilty = BY_NAME[broken.blames or each.name]
    if guilty is not each:
        started_from, case = case, Case(broken.group or case.group)
        shapes = [Shapes(one.group) for one in (started_from, case)]
        if any(waiver.covers(one) for waiver in guilty.waivers_of(subject) for one in shapes):
            return True  # it is met on the way to another property, and as little promised there
    count = tally.counts[guilty.name]
    count.examples += 1
    count.broken += 1
    if broken.badness >= count.badness and (count.badness == 0 or broken.badness > count.badness):
        count.badness, count.worst = broken.badness, broken.message
    if guilty.held_by(subject) and count.found is None:
        count.found, count.number = case.to_json(), number
        tally.found_any = True
    return guilty.name not in STOPS_CASE
