"""Simulate one run of a scenario, and return what it shows as data.

Given      a scenario, and the strategy, seed and moment that the caller asks for
Returns    Simulated; ContractError where the options do not fit the scenario
Start at   simulate_once
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rebalance_lab.assignors.json_contract import ContractError

if TYPE_CHECKING:
    from rebalance_lab.harness.evaluate.runs import Watched
    from rebalance_lab.harness.measure.ownership import Timelines
    from rebalance_lab.harness.measure.trace import Fact
    from rebalance_lab.harness.scenario.model import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    scenario: Scenario
    strategy: str
    seed: int
    run: Watched
    drawn: Timelines

    def to_json(self, views: Sequence[str] = ()) -> dict[str, Any]:
        """Return the views that are named; without names, all but cpu, which is measured and never the same twice."""
        run, drawn = self.run, self.drawn
        broken = run.broken
        data: dict[str, Any] = {
            "scenario": self.scenario.name,
            "strategy": self.strategy,
            "seed": self.seed,
            "until_ms": drawn.end_ms,
            "broken": broken and {"invariant": broken.invariant, "at_ms": broken.now_ms, "what": str(broken)},
        }
        if not views or "costs" in views:
            data["costs"] = run.costs.row()
        if not views or "ownership" in views:
            owners = drawn.owners_at(drawn.end_ms)
            data["ownership"] = {
                member: {"is": drawn.what_at(member, drawn.end_ms), "partitions": share}
                for member, share in owners.items()
            }
            data["unowned"] = drawn.unowned_at(drawn.end_ms)
        if not views or "events" in views:
            data["events"] = [{"at_ms": one.at_ms, "kind": one.kind, "what": one.text} for one in drawn.happenings]
        if "cpu" in views:
            data["assignment_cpu_ms"] = run.assignment_cpu_ms
        return data


def simulate_once(
    scenario: Scenario,
    *,
    strategy: str | None = None,
    seed: int = 1,
    until: str | None = None,
    watch: Callable[[Fact], None] | None = None,
) -> Simulated:
    """Simulate one run; `watch` is shown every fact when it happens: for progress, and to stop a run that gets too
    long.
    """
    from rebalance_lab.harness.evaluate.runs import watched_run
    from rebalance_lab.harness.measure.ownership import timelines

    chosen, until_ms = checked_options(scenario, strategy=strategy, seed=seed, until=until)
    run = watched_run(scenario, chosen, seed, until_ms, watch=watch)
    return Simulated(scenario=scenario, strategy=chosen, seed=seed, run=run, drawn=timelines(run.facts))


def checked_options(
    scenario: Scenario, *, strategy: str | None = None, seed: int = 1, until: str | None = None
) -> tuple[str, int | None]:
    """Return the strategy in full, and the moment to stop at."""
    from rebalance_lab.harness.evaluate.comparison import check_migrations, checked_strategies
    from rebalance_lab.harness.scenario.strategy_lists import check_broker_lists

    chosen = scenario.strategy if strategy is None else strategy
    if chosen is None:
        raise ContractError("--strategy", "is missing, and the scenario names none")
    (chosen,) = checked_strategies([chosen], "strategy" if strategy is None else "--strategy")
    check_migrations(scenario)
    check_broker_lists(chosen, scenario.broker)
    if seed < 0:
        raise ContractError("--seed", f"must not be negative, got {seed}")
    return chosen, until_of(until, scenario)


def until_of(text: str | None, scenario: Scenario) -> int | None:
    from rebalance_lab.harness.scenario.units import duration_ms, duration_text

    if text is None:
        return None
    try:
        until_ms = duration_ms(text)
    except ValueError as error:
        raise ContractError("--until", str(error)) from None
    if until_ms > scenario.duration_ms:
        raise ContractError("--until", f"{text} is after the scenario's end, {duration_text(scenario.duration_ms)}")
    return until_ms
