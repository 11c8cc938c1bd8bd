"""Represent the report card as values: one row per property, the counterexamples, and how to see them again.

Start at   Report; to_json is what `rebalance-lab check --json` prints
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from typing import Any

from rebalance_lab.assignors.testing.sampling.cases import Case

HOLDS, BROKEN, MEASURED, NOT_RUN = "holds", "broken", "measured", "not-run"


@dataclass(frozen=True, slots=True)
class Finding:
    """Hold a counterexample: the case that shows it, the group in which it shows, and what was answered there."""

    property: str
    message: str
    case: Case
    group: dict[str, Any]
    answer: Any = None
    notes: str = ""
    """What the class raised, in the frames of the user's files, and what it printed."""

    def size(self) -> tuple[int, int]:
        """Return the number of members and partitions of the case."""
        return self.case.size()

    def to_json(self, target: str, promises: tuple[str, ...] = ()) -> dict[str, Any]:
        return {
            "property": self.property,
            "message": self.message,
            "group": self.group,
            "answer": self.answer,
            "case": self.case.to_json(),
            "replay": replay_command(target, self, promises),
        }


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    title: str
    promise: str
    promised: bool
    verdict: str
    examples: int
    broken: int
    worst: str

    def to_json(self) -> dict[str, Any]:
        holds_in = None if not self.examples else round(1 - self.broken / self.examples, 4)
        return {
            "name": self.name,
            "promise": self.promise,
            "promised": self.promised,
            "verdict": self.verdict,
            "examples": self.examples,
            "holds_in": holds_in,
            "worst": self.worst or None,
        }


@dataclass(frozen=True, slots=True)
class Report:
    target: str
    name: str
    promises: tuple[str, ...]
    added: tuple[str, ...]
    """Those among the promises that the caller made in the class's name."""
    waived: dict[str, str]
    seed: int
    examples: int
    """As asked for."""
    groups: int
    """Looked at: fewer where a class hangs, a few more for the series that doubles in size."""
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    calls: int = 0
    seconds: float = 0.0
    assignor_seconds: float = 0.0
    """In making instances and inside `assign`, by the wall clock, as `seconds` are."""
    machine_seconds: float = 0.0
    """In the protocol that `survives-churn` runs through, the assignor's share of it taken off."""
    cpu_seconds: float = 0.0
    """Of all processes that the check has used."""
    busy: float = 1.0
    """The part of the search's wall time in which it had a processor: assignor_seconds * busy is the assignor's CPU."""
    slowest: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def overhead(self) -> float:
        """Return what the kit costs beyond the assignor's own time, as a part of that time: CPU, without the
        machines'.
        """
        own = self.assignor_seconds * self.busy
        return (self.cpu_seconds - self.machine_seconds * self.busy - own) / own if own else 0.0

    @property
    def holds(self) -> bool:
        return not self.findings

    def row(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)

    def finding(self, name: str) -> Finding | None:
        return next((finding for finding in self.findings if finding.property == name), None)

    def to_json(self) -> dict[str, Any]:
        found = [finding.to_json(self.target, self.added) for finding in self.findings]
        return {
            "assignor": self.target,
            "name": self.name,
            "promises": list(self.promises),
            "waived": self.waived,
            "seed": self.seed,
            "examples": self.examples,
            "groups": self.groups,
            "holds": self.holds,
            "properties": [row.to_json() for row in self.rows],
            "counterexample": found[0] if found else None,
            "counterexamples": found,
            "cost": {
                "calls": self.calls,
                "seconds": round(self.seconds, 3),
                "assignor_seconds": round(self.assignor_seconds, 3),
                "machine_seconds": round(self.machine_seconds, 3),
                "cpu_seconds": round(self.cpu_seconds, 3),
                "overhead": round(self.overhead, 3),
                "slowest": self.slowest,
            },
            "notes": list(self.notes),
        }


def replay_command(target: str, finding: Finding, promises: tuple[str, ...] = ()) -> str:
    case = json.dumps(
        {"property": finding.property} | finding.case.to_json(), ensure_ascii=False, separators=(",", ":")
    )
    options = "".join(f" --promise {promise}" for promise in promises)
    return f"rebalance-lab check {shlex.quote(target)}{options} --replay {shlex.quote(case)}"
