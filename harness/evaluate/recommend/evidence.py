"""Look up scenarios like this one in a published decision table: the nearest cells, the winners, the number of runs.

Given      a Scenario and a DecisionTable
Returns    Evidence: the nearest cells with their counts, or why the table has nothing to say of it
Near       by features.py, each on a scale of factors: twice as many members is as far as half as many
Inside     every number lies within what the table has seen, by a factor of EDGE, and nothing else happens
Start at   evidence
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from rebalance_lab.harness.evaluate.recommend.decision_table import Cell, DecisionTable
from rebalance_lab.harness.evaluate.recommend.features import Features, features_of
from rebalance_lab.harness.measure.cost_descriptions import number
from rebalance_lab.harness.scenario.model import Scenario

NEAREST = 3
EDGE = 1.5
"""Beyond the largest and below the smallest value seen."""
FLOOR = {"restarts": 0.25, "crashes": 0.25, "scaled": 0.25, "callbacks_s": 0.1, "busy": 0.1}
"""What is so small counts as nothing."""
COST_DESCRIPTIONS = {
    "members": "members",
    "partitions": "partitions",
    "restarts": "of the changes are restarts",
    "crashes": "of the changes are crashes",
    "scaled": "of the changes are members more or fewer",
    "downtime_s": "s that a restart takes",
    "session_s": "s of session timeout",
    "callbacks_s": "s in callbacks",
    "busy": "of the members' time busy",
    "surge": "new processes before old ones stop",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    table: str
    runs: int
    """In the whole table."""
    near: tuple[tuple[Cell, float], ...]
    """Cells and how far they are, nearest first; none where the scenario lies outside."""
    outside: str | None

    @property
    def summary(self) -> str:
        whole = f"the published table ({self.table}: {self.runs:,} runs)"
        if self.outside is not None:
            return f"outside {whole}: {self.outside}; the answer is from live simulation alone"
        won = Counter(cell.winner for cell, _ in self.near)
        told = ", ".join(f"{winner or 'nobody'} in {count}" for winner, count in won.most_common())
        runs = sum(cell.runs for cell, _ in self.near)
        return f"{whole}: of the {len(self.near)} nearest cells, {runs:,} runs, cheapest is {told}"

    def to_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "runs": self.runs,
            "outside": self.outside,
            "summary": self.summary,
            "nearest": [cell_json(cell, distance) for cell, distance in self.near],
        }


def cell_json(cell: Cell, distance: float) -> dict[str, Any]:
    return {
        "parameters": dict(cell.parameters),
        "distance": round(distance, 3),
        "runs": cell.runs,
        "winner": cell.winner,
        "clear": cell.is_clear,
        "wins": cell.of(cell.winner)["wins"] if cell.winner else None,
        "next": cell.data["next"],
        "margin": cell.data["margin"],
    }


def evidence(scenario: Scenario, table: DecisionTable) -> Evidence:
    features = features_of(scenario)
    outside = why_outside(features, table)
    near: tuple[tuple[Cell, float], ...] = ()
    if outside is None:
        far = [(cell, distance(features.numbers(), cell.features)) for cell in table.cells]
        near = tuple(sorted(far, key=lambda pair: pair[1])[:NEAREST])
    known = table.data["provenance"]
    return Evidence(table=table.data["name"], runs=known["runs"], near=near, outside=outside)


def why_outside(features: Features, table: DecisionTable) -> str | None:
    if features.other:
        return f"it has no {', '.join(features.other)}"
    for name, value in features.numbers().items():
        seen = [cell.features[name] for cell in table.cells]
        floor = FLOOR.get(name, 0.0)
        if not min(seen) / EDGE - floor <= value <= max(seen) * EDGE + floor:
            return f"{number(value)} {COST_DESCRIPTIONS[name]}, and it has {number(min(seen))} to {number(max(seen))}"
    return None


def distance(one: dict[str, float], other: Any) -> float:
    """Compute the distance of the logarithms, so that factors count; a value near nothing is as good as nothing."""
    return math.sqrt(sum(gap(value, other[name], FLOOR.get(name, 0.5)) ** 2 for name, value in one.items()))


def gap(one: float, other: float, floor: float) -> float:
    return math.log((one + floor) / (other + floor))
