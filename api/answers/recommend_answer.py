"""Choose a strategy for a scenario, a group or a saved comparison: why, how sure, what to paste, how to migrate.

Given      a decoded document and what is asked beside it; `run` runs the comparison where none was saved. So the
           command line can show a bar and the service can hold it to limits
Returns    Advised; `to_json` is what --json prints and what HTTP answers
Start at   advise
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from rebalance_lab.assignors.json_contract import ContractError

if TYPE_CHECKING:
    from rebalance_lab.harness.evaluate.comparison import Comparison
    from rebalance_lab.harness.evaluate.recommend.advice import Advice
    from rebalance_lab.harness.evaluate.recommend.evidence import Evidence
    from rebalance_lab.harness.scenario.model import Scenario

MOST_BROKERS = 10_000


class Runs(Protocol):
    def __call__(
        self, scenario: Scenario, *, strategies: str | None, seeds: int, weights: Mapping[str, float]
    ) -> Comparison: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceAsked:
    now: str | None = None
    """What runs now; wins over the scenario's own."""
    strategies: str | None = None
    seeds: int = 20
    weights: str | None = None
    brokers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    advice: Advice
    sureness: str
    notes: list[str]
    comparison: Comparison
    evidence: Evidence | None
    """What the published decision table says of scenarios like this one; None where there is no table."""

    def to_json(self) -> dict[str, Any]:
        return {
            **self.advice.to_json(),
            "sureness": self.sureness,
            "notes": self.notes,
            **({"partial": partial.to_json()} if (partial := self.comparison.partial) is not None else {}),
            "evidence": self.evidence and self.evidence.to_json(),
            "comparison": self.comparison.to_json(measured=False),
        }


def advise(data: Any, asked: AdviceAsked, run: Runs) -> Advised:
    from rebalance_lab.harness.evaluate.recommend.advice import recommend, sureness
    from rebalance_lab.harness.evaluate.recommend.cautions import fetch_session_caution
    from rebalance_lab.harness.evaluate.recommend.evidence import evidence
    from rebalance_lab.harness.scenario.strategy_lists import normal_strategy
    from rebalance_lab.spark_eval.default_table import default_table

    now = None if asked.now is None else normal_strategy(asked.now, "--from")
    brokers = asked.brokers
    if brokers is not None and not 1 <= brokers <= MOST_BROKERS:
        raise ContractError("--brokers", f"must be between 1 and {MOST_BROKERS:,}, got {brokers}")
    comparison, notes = comparison_for(data, now, asked, run)
    advice = recommend(comparison, now=now)
    if brokers is not None:
        slots = fetch_session_caution(comparison.scenario, brokers, advice.strategy)
        advice = replace(advice, cautions=(*advice.cautions, *([slots] if slots else [])))
    table = default_table()
    return Advised(
        advice=advice,
        sureness=sureness(advice, comparison),
        notes=notes,
        comparison=comparison,
        evidence=None if table is None else evidence(comparison.scenario, table),
    )


def comparison_for(data: Any, now: str | None, asked: AdviceAsked, run: Runs) -> tuple[Comparison, list[str]]:
    """Make a comparison of a scenario, a saved comparison, or a group of which only the present is known."""
    from rebalance_lab.harness.evaluate.saved_runs import is_comparison, read_comparison
    from rebalance_lab.harness.measure.cost_weights import parse_weights

    chosen = parse_weights(asked.weights)
    if is_comparison(data):
        if asked.strategies is not None:
            raise ContractError("--strategies", "a saved comparison has its own; name a scenario to run others")
        saved = read_comparison(data)
        return (saved if asked.weights is None else saved.weighted(chosen)), list(saved.notes)
    scenario, assumed = scenario_from(data, now)
    comparison = run(scenario, strategies=asked.strategies, seeds=asked.seeds, weights=chosen)
    return comparison, [*comparison.notes, *assumed]


def scenario_from(data: Any, now: str | None = None) -> tuple[Scenario, Sequence[str]]:
    """Return the scenario itself, or the life that is assumed for a group, with a word on that."""
    from rebalance_lab.assignors.json_contract import group_from_json, parse_request
    from rebalance_lab.harness.evaluate.recommend.group_life import ASSUMED, life_of_group
    from rebalance_lab.harness.scenario.reader import parse_scenario
    from rebalance_lab.harness.scenario.strategy_lists import normal_strategy

    if not isinstance(data, Mapping) or "duration" in data or not {"group", "members"} & data.keys():
        scenario = parse_scenario(data)
        return (scenario if now is None else replace(scenario, strategy=now)), ()
    if "group" in data:
        named, group = parse_request(data)
        named = named and normal_strategy(named)
    else:
        named, group = None, group_from_json(data, "")
    return life_of_group(group, strategy=now or named, path="group" if "group" in data else ""), (ASSUMED,)
