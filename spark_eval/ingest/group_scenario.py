"""Make a scenario of one group's comings and goings, to ask what they would have cost with another strategy.

Given      members that joined, left, crashed or restarted, with times, and the topics with their partitions
Returns    a scenario as data; members that are there at the first event were there before, and the run begins a minute
           earlier
Pairs      a departure and the same member's next join are a restart with that downtime, else it is gone for good
Assumed    rates and how fast members work: no log tells; the description says so
Start at   scenario_of_history
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rebalance_lab.harness.evaluate.recommend.group_life import BUSY, RATE_PER_PARTITION
from rebalance_lab.harness.scenario.units import duration_text, fine_text, rate_text

EVENTS = ("join", "leave", "crash", "restart")
BEFORE_MS = 60_000
"""For the group to form."""
TOGETHER_MS = 60_000
"""Who joins so soon after the first event belongs to those who were there from the beginning."""
AFTER_MS = 600_000
RESTART_MS = 10_000
"""Of a restart that the log tells in one word."""
PARTITIONS_EACH = 4
"""Where no topic is known."""


@dataclass(frozen=True, slots=True, order=True)
class Happening:
    time_ms: int
    member: str
    event: str
    topics: tuple[str, ...] = ()


def scenario_of_history(group: str, happenings: Iterable[Happening], partitions: Mapping[str, int]) -> dict[str, Any]:
    ordered = sorted(happenings)
    start_ms = ordered[0].time_ms - BEFORE_MS
    by_member: dict[str, list[Happening]] = {}
    for one in ordered:
        by_member.setdefault(one.member, []).append(one)
    topics = dict(partitions) or {"recorded": PARTITIONS_EACH * len(by_member)}
    timeline = [event for name, events in by_member.items() for event in events_of(name, events, start_ms)]
    total = sum(topics.values())
    record_ms = 1_000 * BUSY * len(by_member) / (RATE_PER_PARTITION * total)
    return {
        "name": group,
        "description": f"As recorded: {len(ordered):,} events of {len(by_member):,} members. Rates are assumed.",
        "duration": duration_text(ordered[-1].time_ms - start_ms + AFTER_MS),
        "topics": {
            name: {"partitions": count, "rate": rate_text(RATE_PER_PARTITION * count)} for name, count in topics.items()
        },
        "members": {
            name: {"topics": topics_of(events, topics), "record": fine_text(record_ms)}
            for name, events in by_member.items()
        },
        "timeline": sorted(timeline, key=at_ms),
    }


def topics_of(events: Iterable[Happening], known: Mapping[str, int]) -> list[str]:
    told = [topic for one in events for topic in one.topics if topic in known]
    return list(dict.fromkeys(told)) or list(known)


def events_of(name: str, events: list[Happening], start_ms: int) -> Iterable[dict[str, Any]]:
    """Return a member's own events; what it repeats (a join while it runs) changes nothing."""
    first = events[0]
    there = first.event != "join" or first.time_ms - start_ms <= BEFORE_MS + TOGETHER_MS
    if not there:
        yield entry(first.time_ms - start_ms, "start", name)
    down: Happening | None = None
    for one in events:
        if one.event == "join" and down is not None:
            yield restart(down, one.time_ms - down.time_ms, start_ms)
            down = None
        elif one.event == "restart" and down is None:
            yield restart(one, RESTART_MS, start_ms)
        elif one.event in ("leave", "crash") and down is None:
            down = one
    if down is not None:
        yield entry(down.time_ms - start_ms, "crash" if down.event == "crash" else "stop", name)


def entry(at_ms: int, kind: str, what: Any) -> dict[str, Any]:
    return {"at": f"{at_ms}ms", kind: what}


def restart(down: Happening, downtime_ms: int, start_ms: int) -> dict[str, Any]:
    what = {"members": down.member, "downtime": f"{max(1, downtime_ms)}ms"}
    if down.event == "crash":
        what["kill"] = True  # type: ignore[assignment]
    return entry(down.time_ms - start_ms, "restart", what)


def at_ms(event: Mapping[str, Any]) -> int:
    return int(event["at"].removesuffix("ms"))
