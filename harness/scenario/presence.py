"""Read from a timeline which members start late, and which members are of one kind."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rebalance_lab.harness.scenario.model import Crash, Event, Start, Stop

NUMBERED = re.compile(r"(.+)-(?:0|[1-9][0-9]*)")
"""From 0 as in a StatefulSet, or from 1."""


def late_starters(timeline: Iterable[Event]) -> frozenset[str]:
    """Return members that do not run from the beginning: the first start, stop or crash that names them is a start."""
    late: set[str] = set()
    seen: set[str] = set()
    for event in timeline:
        if isinstance(event, Start | Stop | Crash):
            new = set(event.members) - seen
            seen |= new
            if isinstance(event, Start):
                late |= new
    return frozenset(late)


def kind_of(name: str) -> str:
    """Return the kind: `consumer-3` is one of the kind `consumer`; a name without a number is a kind of its own."""
    found = NUMBERED.fullmatch(name)
    return found[1] if found else name
