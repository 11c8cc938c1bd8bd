"""Prepare what the page's script draws: for each strategy one run as intervals, small enough to be embedded.

Given      a scenario, a strategy and the seed to show
Returns    plain data; partitions are numbered through all topics, times are milliseconds
Start at   drawing
"""

from __future__ import annotations

from typing import Any

from rebalance_lab.harness.evaluate.runs import Watched, watched_run
from rebalance_lab.harness.measure.ownership import Span, Timelines, timelines
from rebalance_lab.harness.scenario.model import Scenario

MOST_MEMBERS = 60
"""Lanes that one can still tell apart; of more, those are drawn whose partitions changed most often."""
MOST_EVENTS = 300


def drawing(scenario: Scenario, strategy: str, seed: int) -> dict[str, Any]:
    run = watched_run(scenario, strategy, seed)
    drawn = timelines(run.facts)
    return {**drawing_of(strategy, run, drawn), "untold": max(0, len(drawn.happenings) - MOST_EVENTS)}


def drawing_of(strategy: str, run: Watched, drawn: Timelines) -> dict[str, Any]:
    numbers = first_numbers(drawn.topics)
    members = shown_members(drawn)
    places = {member: place for place, member in enumerate(members)}
    return {
        "strategy": strategy,
        "broken": run.broken and str(run.broken),
        "end": drawn.end_ms,
        "topics": list(drawn.topics.items()),
        "members": members,
        "left_out": len(drawn.members) - len(members),
        "reads": [
            [places[span.member], *numbered(span, numbers), span.start_ms, span.end_ms]
            for span in drawn.reads
            if span.member in places
        ],
        "gaps": [[*numbered(span, numbers), span.start_ms, span.end_ms] for span in drawn.gaps],
        "states": [
            [places[state.member], state.what, state.start_ms, state.end_ms]
            for state in drawn.states
            if state.member in places
        ],
        "lag": [list(point) for point in drawn.lags],
        "events": [[one.at_ms, one.text] for one in drawn.happenings if one.kind == "event"],
        "happenings": [[one.at_ms, one.kind, one.text] for one in told(drawn)],
        "costs": run.costs.row(),
    }


def first_numbers(topics: dict[str, int]) -> dict[str, int]:
    numbers, total = {}, 0
    for topic, partitions in topics.items():
        numbers[topic] = total
        total += partitions
    return numbers


def numbered(span: Span, numbers: dict[str, int]) -> tuple[int, int]:
    """Return the first partition's number, and how many there are."""
    return numbers[span.topic] + span.first, len(span.partitions)


def shown_members(drawn: Timelines) -> list[str]:
    if len(drawn.members) <= MOST_MEMBERS:
        return drawn.members
    changes = dict.fromkeys(drawn.members, 0)
    for span in drawn.reads:
        changes[span.member] += 1
    chosen = sorted(drawn.members, key=lambda member: -changes[member])[:MOST_MEMBERS]
    return [member for member in drawn.members if member in chosen]


def told(drawn: Timelines) -> list[Any]:
    """Return the timeline's own events always; of the rest as many as a person reads."""
    own = [one for one in drawn.happenings if one.kind == "event"][:MOST_EVENTS]
    rest = [one for one in drawn.happenings if one.kind != "event"][: MOST_EVENTS - len(own)]
    return sorted([*own, *rest], key=lambda one: one.at_ms)
