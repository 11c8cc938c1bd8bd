"""A group of one topic, what happens to it, and what that costs: for tests that know the answer."""

from __future__ import annotations

from typing import Any

import pytest

from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.measure.costs import Costs, costs
from rebalance_lab.harness.measure.ownership import timelines
from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.harness.scenario.reader import parse_scenario

FOUR = {"partitions": 4, "rate": "10/s"}


def facts_of(*timeline: dict[str, Any], strategy: str = "classic/range", **changes: Any) -> list[Fact]:
    scenario = {
        "duration": "10m",
        "topics": {"t": FOUR},
        "members": {"c": {"count": 1, "topics": "t"}},
        "timeline": list(timeline),
        **changes,
    }
    return simulate(parse_scenario(scenario), strategy, 1).facts


def cost(*timeline: dict[str, Any], strategy: str = "classic/range", **changes: Any) -> Costs:
    facts = facts_of(*timeline, strategy=strategy, **changes)
    found = costs(facts)
    drawn_ms = sum((gap.end_ms - gap.start_ms) * (gap.last - gap.first + 1) for gap in timelines(facts).gaps)
    assert drawn_ms == pytest.approx(found.unowned_s * 1_000)
    return found
