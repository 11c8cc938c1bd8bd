"""Read a comparison back from its JSON, to rank its runs by other weights or to draw them without another run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError, at, expect_list, expect_object
from rebalance_lab.harness.evaluate.comparison import Comparison
from rebalance_lab.harness.evaluate.runs import Sample
from rebalance_lab.harness.measure.cost_weights import NAMES, checked, checked_whole, default_weights
from rebalance_lab.harness.scenario.model import Scenario
from rebalance_lab.harness.scenario.reader import parse_scenario
from rebalance_lab.harness.scenario.units import quoted

MOST = 1e18
"""No run costs so much, and sums of such costs are still numbers."""


def is_comparison(data: object) -> bool:
    return isinstance(data, Mapping) and "runs" in data and "ranking" in data


def read_comparison(data: Any) -> Comparison:
    """Read only what was measured; the ranking is made anew."""
    value = expect_object(data, "comparison")
    scenario = described(value)
    samples = [read_run(run, at("runs", i)) for i, run in enumerate(expect_list(value["runs"], "runs"))]
    strategies = tuple(dict.fromkeys(one.strategy for one in samples))
    seeds = tuple(dict.fromkeys(one.seed for one in samples))
    pairs = {(one.strategy, one.seed) for one in samples}
    if not samples or len(pairs) != len(samples) or len(pairs) != len(strategies) * len(seeds):
        raise ContractError("runs", "there must be one run for each strategy and seed")
    weights = default_weights()
    for name, weight in expect_object(value.get("weights", {}), "weights").items():
        weights[name] = checked(name, weight, at("weights", name))
    notes = expect_list(value.get("notes", []), "notes")
    return Comparison(
        scenario=scenario,
        strategies=strategies,
        seeds=seeds,
        weights=checked_whole(weights, "weights"),
        samples=tuple(samples),
        notes=tuple(str(note) for note in notes),
    )


def described(value: Mapping[str, Any]) -> Scenario:
    """Read the scenario; an error names its place in the whole document."""
    try:
        return parse_scenario(value.get("description"))
    except ContractError as error:
        path = f"description.{error.path}" if error.path else "description"
        raise ContractError(path, error.message) from None


def read_run(data: Any, path: str) -> Sample:
    row = expect_object(data, path)
    strategy, seed = row.get("strategy"), row.get("seed")
    if not isinstance(strategy, str) or type(seed) is not int:
        raise ContractError(path, "needs a strategy and a seed")
    if row.get("broken") is not None:
        at_ms = row.get("broken_at_ms")
        return Sample(
            strategy=strategy, seed=seed, broken=str(row["broken"]), broken_at_ms=at_ms if type(at_ms) is int else None
        )
    costs = {name: number(row.get(name), at(path, name)) for name in NAMES}
    cpu_ms = row.get("assignment_cpu_ms")
    measured = None if cpu_ms is None else number(cpu_ms, at(path, "assignment_cpu_ms"))
    return Sample(strategy=strategy, seed=seed, costs=costs, assignment_cpu_ms=measured)


def number(value: Any, path: str) -> float:
    if type(value) not in (int, float):
        raise ContractError(path, f"expected a number, got {quoted(value)}")
    if not 0 <= value <= MOST:
        raise ContractError(path, f"must be between 0 and {MOST:g}, got {quoted(value)}")
    return float(value) if type(value) is float else value
