"""The search: case after case through the contract, until the examples are used up.

Given      a Subject, how many examples, a seed
Returns    Tally: per property how often it was looked at, how often it held, its worst case, its first counterexample
Order      a case goes through the properties as the contract lists them. An answer that is not valid ends the case:
           nothing else can be said of it
Start at   search
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from assignors.testing.answers import Broken, NotApplicable
from assignors.testing.cases import Case, draw_case, growing_groups
from assignors.testing.contract import BY_NAME, PROPERTIES, Property
from assignors.testing.rounds import DriverFactory, Rounds
from assignors.testing.subject import Subject
from assignors.testing.trial import Trial

REMEMBERED = 250
"""Answers kept, as digests, to be compared with those of another process."""
STOPS_CASE = ("valid", "bounded-time", "pure")


@dataclass(slots=True)
class Count:
    """What the search has seen of one property. Plain values: it travels from the child process to its parent."""

    examples: int = 0
    broken: int = 0
    worst: str = ""
    badness: float = 0.0
    found: dict[str, Any] | None = None
    """The first case that broke it, as JSON; looked for only where the property is held."""


@dataclass(slots=True)
class Tally:
    counts: dict[str, Count] = field(default_factory=lambda: {each.name: Count() for each in PROPERTIES})
    examples: int = 0
    calls: int = 0
    assignor_s: float = 0.0
    slowest: str = ""
    digests: list[str] = field(default_factory=list)


def search(
    subject: Subject,
    examples: int,
    seed: int,
    *,
    driver: DriverFactory = Rounds,
    progress: Callable[[int], None] | None = None,
    only: Sequence[str] = (),
) -> Tally:
    tally = Tally()
    subject.held = frozenset(each.name for each in PROPERTIES if each.held_by(subject))
    contract = [each for each in PROPERTIES if not only or each.name in only]
    with subject.watched():
        for number in range(examples):
            if progress is not None:
                progress(number)
            look_at(subject, draw_case(seed, number), contract, tally, number, driver, seed)
            if tally.counts["bounded-time"].found:
                break
        else:
            for number, case in enumerate(growing_groups(), examples):
                look_at(subject, case, [BY_NAME["bounded-time"], BY_NAME["valid"]], tally, number, driver)
    tally.calls, tally.assignor_s = subject.calls, subject.spent_s
    if subject.slowest is not None:
        members, partitions = len(subject.slowest.members), subject.slowest.layout.total
        tally.slowest = f"slowest call {subject.slowest_s * 1000:.1f} ms ({members} members, {partitions} partitions)"
    return tally


def look_at(
    subject: Subject,
    case: Case,
    contract: Sequence[Property],
    tally: Tally,
    number: int,
    driver: DriverFactory,
    seed: int | None = None,
) -> None:
    """One case through all properties that still matter. With a seed it can be drawn again, should it be spoiled."""
    trial = Trial(subject, case, driver=driver)
    tally.examples += 1
    for each in contract:
        count = tally.counts[each.name]
        if count.found or (number % each.every and each.name not in subject.held):
            continue
        if subject.waivers and each.waived_on(trial):
            continue
        try:
            each.check(trial)
        except NotApplicable:
            continue
        except Broken as broken:
            if each.name == "pure" and seed is not None:
                case = draw_case(seed, number)
            if not note(subject, tally, each, case, broken):
                return
            continue
        count.examples += 1
    if seed is not None and number < REMEMBERED and "first" in vars(trial):
        tally.digests.append(f"{number}:{digest(trial.first.owner)}")


def note(subject: Subject, tally: Tally, each: Property, case: Case, broken: Broken) -> bool:
    """Put a violation down to the property it is about; False when the case can go no further."""
    guilty = BY_NAME[broken.blames or each.name]
    if guilty is not each:
        case = Case(broken.group or case.group)
    count = tally.counts[guilty.name]
    count.examples += 1
    count.broken += 1
    if broken.badness >= count.badness and (count.badness == 0 or broken.badness > count.badness):
        count.badness, count.worst = broken.badness, broken.message
    if guilty.held_by(subject) and count.found is None:
        count.found = case.to_json()
    return guilty.name not in STOPS_CASE


def digest(owner: Sequence[int]) -> str:
    return blake2b(repr(owner).encode(), digest_size=6).hexdigest()
