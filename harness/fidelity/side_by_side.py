"""Compare simulation and live run, scenario by scenario, to prove that what the lab predicts is what happens.

Given      scenarios, strategies, a cluster; the simulator's constants are calibrated, the same for all (calibration.py)
Returns    for each pair: measures with simulated median and range over seeds, the live value, their ratio, and in words
           why they differ where that is by more than TOLERANCE
Counted    rebalances and moves: a live count that no simulated seed has is a difference, however small
Start at   fidelity
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from rebalance_lab.harness.evaluate.intervals import median
from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.fidelity.calibration import calibrated
from rebalance_lab.harness.fidelity.explanations import Case, explanation
from rebalance_lab.harness.kafka.brokers import Cluster
from rebalance_lab.harness.kafka.live.librdkafka_settings import check_live
from rebalance_lab.harness.kafka.live.live_run import LiveRun, live_run
from rebalance_lab.harness.measure.costs import Row, costs
from rebalance_lab.harness.scenario.model import Scenario

TOLERANCE = 0.15
ANY_MOMENT_MS = 5_000
"""As long as the longest of a member's rhythms by default, the auto-commit's."""
COUNTS = ("rebalances", "moved")
TIMES = ("unowned_s", "settle_mean_s")
MEASURES = (*COUNTS, *TIMES, "read_twice")
SMALL: Mapping[str, float] = {"unowned_s": 0.25, "settle_mean_s": 0.25, "read_twice": 10}
"""Below so much, a ratio says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    name: str
    simulated: float
    low: float
    high: float
    live: float
    why: str
    """Empty where they agree."""

    @property
    def ratio(self) -> float | None:
        return round(self.live / self.simulated, 3) if self.simulated else None

    @property
    def explained(self) -> bool:
        return not self.why.startswith(UNEXPLAINED)

    def to_json(self) -> dict[str, Any]:
        fields = ("name", "simulated", "low", "high", "live", "ratio", "why", "explained")
        return {field: getattr(self, field) for field in fields}


UNEXPLAINED = "not explained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    scenario: str
    strategy: str
    measures: Sequence[Measure]
    verdict: Mapping[str, Any]
    troubles: Sequence[str]

    @property
    def good(self) -> bool:
        return all(measure.explained for measure in self.measures) and self.verdict["good"] and not self.troubles

    def to_json(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario,
            "strategy": self.strategy,
            "good": self.good,
            "measures": [measure.to_json() for measure in self.measures],
            "oracle": dict(self.verdict),
            "troubles": list(self.troubles),
        }


def fidelity(
    scenarios: Sequence[Scenario],
    strategies: Sequence[str],
    cluster: Cluster,
    *,
    seeds: int = 20,
    at_once: int = 2,
    progress: Callable[[int], None] | None = None,
) -> list[Pair]:
    asked = [(scenario, strategy) for scenario in scenarios for strategy in strategies]
    for scenario, strategy in asked:
        check_live(scenario, strategy)
    runs = asyncio.run(live_runs(asked, cluster, at_once, progress))
    return [pair_of(run, simulated_rows(run.scenario, run.strategy, seeds)) for run in runs]


async def live_runs(
    asked: Sequence[tuple[Scenario, str]], cluster: Cluster, at_once: int, progress: Callable[[int], None] | None
) -> list[LiveRun]:
    """Run a few at a time: more would wait for processors, and no longer for Kafka."""
    gate, done = asyncio.Semaphore(at_once), 0

    async def one(scenario: Scenario, strategy: str) -> LiveRun:
        nonlocal done
        async with gate:
            run = await live_run(scenario, strategy, cluster)
        done += 1
        if progress is not None:
            progress(done)
        return run

    return await asyncio.gather(*(one(scenario, strategy) for scenario, strategy in asked))


def simulated_rows(scenario: Scenario, strategy: str, seeds: int) -> list[Row]:
    on_this_network, constants = calibrated(scenario)
    rows = []
    for seed in range(1, seeds + 1):
        moved = later(on_this_network, Random(seed).randrange(ANY_MOMENT_MS))
        rows.append(costs(simulate(moved, strategy, seed, constants=constants).facts).row())
    return rows


def later(scenario: Scenario, by_ms: int) -> Scenario:
    """Move the timeline, which is not tied to the members' heartbeats and commits: every seed has it begin at another
    moment.
    """
    timeline = tuple(replace(event, at_ms=event.at_ms + by_ms) for event in scenario.timeline)
    return replace(scenario, timeline=timeline, duration_ms=scenario.duration_ms + by_ms)


def pair_of(run: LiveRun, rows: Sequence[Row]) -> Pair:
    found = run.costs.row()
    return Pair(
        scenario=run.scenario.name,
        strategy=run.strategy,
        measures=[measure(run, name, [row[name] for row in rows], found[name]) for name in MEASURES],
        verdict=run.verdict.to_json(),
        troubles=run.troubles,
    )


def measure(run: LiveRun, name: str, simulated: Sequence[float], live: float) -> Measure:
    middle, low, high = median(simulated), min(simulated), max(simulated)
    case = Case(scenario=run.scenario, strategy=run.strategy, measure=name, low=low, high=high, live=live)
    return Measure(name=name, simulated=middle, low=low, high=high, live=live, why=why(case, middle, simulated))


def why(case: Case, middle: float, simulated: Sequence[float]) -> str:
    """Return why they differ; empty where they agree."""
    name, live = case.measure, case.live
    agree = live == middle if name in COUNTS else abs(live - middle) <= max(TOLERANCE * middle, SMALL[name])
    if agree:
        return ""
    if name in COUNTS and live in simulated:
        share = sum(value == live for value in simulated) / len(simulated)
        return f"so in {share:.0%} of the simulated seeds: it depends on the moment between two heartbeats"
    if name not in COUNTS and case.low <= live <= case.high:
        return f"simulated seeds have {case.low:g} to {case.high:g}: it depends on the moment between two heartbeats"
    return explanation(case) or f"{UNEXPLAINED}: simulated seeds have {case.low:g} to {case.high:g}"
