"""Choose the strategy to take, in words that rest on figures.

Clear      the next best costs more in every part of the interval of the paired differences, and at least a twentieth
Otherwise  it is a small difference or too close to call. The current strategy stays if it is among the best, else the
           simpler one is taken
Start at   recommend
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.evaluate.comparison import Comparison, Ranked
from rebalance_lab.harness.evaluate.intervals import CONFIDENCE, Interval, confidence_of
from rebalance_lab.harness.evaluate.recommend.cautions import cautions
from rebalance_lab.harness.evaluate.recommend.migration_steps import Step, migration
from rebalance_lab.harness.evaluate.recommend.properties_to_paste import Properties, properties
from rebalance_lab.harness.measure.cost_descriptions import COST_DESCRIPTIONS, number
from rebalance_lab.harness.scenario.strategy_lists import normal_strategy

WORTH = 0.05
"""A difference below a twentieth of the cost is not worth a migration, however certain it is."""
REASONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    strategy: str
    now: str | None
    verdict: str
    """clear, a small difference, too close to call, too few seeds, or nothing to compare with."""
    summary: str
    reasons: tuple[str, ...]
    wins: float
    compared_with: str | None
    """The next best; None where only one strategy got through."""
    difference: Interval | None
    """What that one costs more, seed by seed."""
    equals: tuple[str, ...]
    """Those that cannot be told from the best."""
    cautions: tuple[str, ...]
    properties: Properties
    steps: tuple[Step, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "strategy": self.strategy,
            "now": self.now,
            "verdict": self.verdict,
            "summary": self.summary,
            "reasons": list(self.reasons),
            "wins": self.wins,
            "compared_with": self.compared_with,
            "difference": self.difference and self.difference.to_json(),
            "equals": list(self.equals),
            "warnings": list(self.cautions),
            "properties": self.properties.to_json(),
            "migration": [step.to_json() for step in self.steps],
        }


class NothingSound(ContractError):
    """Report that no strategy got through every run, which is an answer, too: its runs say what broke."""

    comparison: Comparison


def recommend(comparison: Comparison, *, now: str | None = None) -> Advice:
    """Choose a strategy. `now` wins over the scenario's own strategy; it need not be one of those compared."""
    if not comparison.sound:
        nothing = NothingSound("strategies", "none got through every run: there is nothing to recommend")
        nothing.comparison = comparison
        raise nothing
    if now is None:
        now = comparison.scenario.strategy
    now = now and normal_strategy(now)
    ranked = {one.strategy: one for one in comparison.ranking}
    best = comparison.ranking[0].strategy
    equals = tuple(one for one in comparison.sound if one == best or not clearly(comparison, best, one))
    chosen = choose(comparison, equals, now)
    rival = next((one.strategy for one in comparison.ranking if one.rank and one.strategy != chosen), None)
    difference = comparison.difference(rival, chosen) if rival is not None else None
    other = now if now in comparison.sound and now != chosen else rival
    return Advice(
        strategy=chosen,
        now=now,
        verdict=verdict(comparison, best, equals),
        summary=summary(comparison, chosen, now, equals),
        reasons=tuple(reasons(comparison, ranked[chosen], ranked[other])) if other is not None else (),
        wins=ranked[chosen].wins,
        compared_with=rival,
        difference=difference,
        equals=equals,
        cautions=tuple(cautions(comparison, chosen)),
        properties=properties(chosen, comparison.scenario),
        steps=tuple(migration(now, chosen, comparison.scenario)),
    )


def clearly(comparison: Comparison, best: str, other: str) -> bool:
    """Tell whether `other` costs more, beyond chance and by enough to matter."""
    more = comparison.difference(other, best)
    cost = comparison.order(other)[0]
    return more.low > 0 and more.median >= WORTH * cost


def verdict(comparison: Comparison, best: str, equals: Sequence[str]) -> str:
    if len(comparison.strategies) == 1:
        return "nothing to compare with"
    if confidence_of(len(comparison.seeds)) < CONFIDENCE:
        return "too few seeds"
    if len(equals) == 1:
        return "clear"
    certain = all(comparison.difference(one, best).low > 0 for one in equals if one != best)
    return "a small difference" if certain else "too close to call"


def choose(comparison: Comparison, equals: Sequence[str], now: str | None) -> str:
    """Choose among equals the one that asks least of users: what runs, then what needs no ids, then the cheapest."""
    return min(equals, key=lambda one: (one != now, one.endswith("+static"), comparison.order(one)))


def summary(comparison: Comparison, chosen: str, now: str | None, equals: Sequence[str]) -> str:
    if len(comparison.strategies) == 1:
        return f"Only {chosen} was run: there is nothing to compare it with."
    others = [one for one in equals if one != chosen]
    if chosen == now:
        return f"Stay with {chosen}: {alike(comparison, chosen, others) if others else 'nothing else costs less here'}."
    start = f"Take {chosen}"
    if others:
        return f"{start}; {alike(comparison, chosen, others)}."
    if now in comparison.sound:
        saved = comparison.difference(now, chosen).median / comparison.order(now)[0]
        # What costs a little is not for nothing.
        share = "over 99%" if 0.995 <= saved < 1 else f"{saved:.0%}"
        return f"{start}: it costs {share} less than {now}, which runs now."
    return f"{start}: it costs least here."


def alike(comparison: Comparison, chosen: str, others: Sequence[str]) -> str:
    """Name the strategies that cost about as much, and those that these seeds cannot tell apart."""

    def is_near(one: str) -> bool:
        cost = max(comparison.order(one)[0], comparison.order(chosen)[0])
        return abs(comparison.order(one)[0] - comparison.order(chosen)[0]) <= WORTH * cost

    near, unsure = [one for one in others if is_near(one)], [one for one in others if not is_near(one)]
    seeds = len(comparison.seeds)
    parts = [
        f"{listed(near)} cost{'s' if len(near) == 1 else ''} about the same here" if near else "",
        f"{listed(unsure)} cannot be told from it with {seeds} seed{'s' if seeds > 1 else ''}" if unsure else "",
    ]
    return "; ".join(part for part in parts if part)


def listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def reasons(comparison: Comparison, chosen: Ranked, other: Ranked) -> list[str]:
    """List the figures that make most of the difference: those in favour first, then what the choice costs more."""
    parts = {
        name: weight * (other.costs[name].median - chosen.costs[name].median)
        for name, weight in comparison.weights.items()
        if weight
    }
    told = sorted((name for name in parts if abs(parts[name]) >= 0.05), key=lambda name: -abs(parts[name]))[:REASONS]
    found = []
    for name in sorted(told, key=lambda name: -parts[name]):
        said = COST_DESCRIPTIONS[name].said(chosen.costs[name].median, other.costs[name].median)
        against = "" if parts[name] > 0 else "against it: "
        found.append(f"{against}{said} with {other.strategy}")
    return found


def sureness(advice: Advice, comparison: Comparison) -> str:
    """Say how sure the advice is, in one sentence."""
    if len(comparison.strategies) == 1:
        return "--strategies names others to compare it with."
    runs = len(comparison.seeds)
    seeds = f"{advice.strategy} is best in {advice.wins:.0%} of {runs} seed{'s' * (runs != 1)}"
    if advice.compared_with is None or advice.difference is None:
        return f"{seeds}; nothing else got through every run."
    more = advice.difference
    range_ = f"({number(more.low)} to {number(more.high)})"
    word = "more" if more.median >= 0 else "less"
    return f"{seeds}; {advice.compared_with} costs {number(abs(more.median))} {word} {range_}."
