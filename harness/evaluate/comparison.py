"""Compare strategies on one scenario: the same seeds for all, medians with intervals, ranked by a cost function.

Given      a scenario, strategies, seeds and weights
Returns    a Comparison: every run's row, and from those the ranking; other weights rank the same runs anew
Paired     differences are taken seed by seed before the median, so that what a seed does to all strategies cancels out
Not hidden a strategy that broke an invariant in any run has no rank and stands last, with the run that shows it
Start at   compare, Comparison.ranking
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from signal import Signals
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.evaluate.call_timeout import time_limit
from rebalance_lab.harness.evaluate.intervals import Interval, confidence_of, median_interval
from rebalance_lab.harness.evaluate.runs import Progress, RunsInterrupted, Sample, run_all
from rebalance_lab.harness.measure.cost_weights import NAMES, Weights, default_weights, score
from rebalance_lab.harness.scenario.model import RollingRestart, Scenario
from rebalance_lab.harness.scenario.strategy_lists import (
    check_broker_lists,
    is_served,
    load_strategies,
    normal_strategy,
    parse_strategies,
)
from rebalance_lab.harness.scenario.units import duration_text

DEFAULT_STRATEGIES = (
    "classic/range",
    "classic/roundrobin",
    "classic/sticky",
    "classic/cooperative-sticky",
    "classic/cooperative-sticky+static",
    "consumer/uniform",
    "consumer/uniform+static",
)
MOST_SEEDS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    strategy: str
    rank: int | None
    """None: an invariant was broken."""
    score: Interval | None
    """In partition-seconds, if the weights are the usual ones; None where no run got to its end."""
    costs: Mapping[str, Interval]
    against: Interval | None
    """Its score less the reference's, in pairs; below zero is better. None for the reference itself."""
    wins: float
    """The share of seeds in which no strategy was better; strategies that are equal share a seed."""
    failed_processes: int
    """In all runs together."""
    broken: tuple[Sample, ...]
    assignment_cpu_ms: Interval | None = None
    """Of the leaders' assignments, where it was measured."""

    def to_json(self, *, measured: bool = True) -> dict[str, Any]:
        cpu = {"assignment_cpu_ms": self.assignment_cpu_ms.to_json()} if measured and self.assignment_cpu_ms else {}
        return {
            "strategy": self.strategy,
            "rank": self.rank,
            "score": self.score and self.score.to_json(),
            "against": self.against and self.against.to_json(),
            "wins": self.wins,
            "failed_processes": self.failed_processes,
            "broken": [sample.to_json() for sample in self.broken],
            "costs": {name: interval.to_json() for name, interval in self.costs.items()},
            **cpu,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """Say how much of a comparison was finished when a signal ended it."""

    number: int
    """The signal's."""
    runs_finished: int
    runs_asked: int
    seeds_by_strategy: Mapping[str, int]
    """How many seeds each strategy has finished."""
    seeds_ranked: int
    """How many of them every strategy of the ranking has finished."""

    def words(self) -> str:
        listed = ", ".join(f"{strategy} {count}" for strategy, count in self.seeds_by_strategy.items())
        return (
            f"stopped by {Signals(self.number).name}: {self.runs_finished:,} of {self.runs_asked:,} runs are finished; "
            f"ranked by the {self.seeds_ranked:,} seeds that all strategies shown have; seeds finished: {listed}"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "signal": Signals(self.number).name,
            "runs_finished": self.runs_finished,
            "runs_asked": self.runs_asked,
            "seeds_by_strategy": dict(self.seeds_by_strategy),
            "seeds_ranked": self.seeds_ranked,
        }


@dataclass(frozen=True, kw_only=True)
class Comparison:
    scenario: Scenario
    strategies: tuple[str, ...]
    seeds: tuple[int, ...]
    weights: Weights
    samples: tuple[Sample, ...]
    notes: tuple[str, ...] = ()
    partial: Partial | None = None
    """None where every run that was asked for is here."""

    def weighted(self, weights: Weights) -> Comparison:
        return replace(self, weights=weights)

    @cached_property
    def by_strategy(self) -> dict[str, dict[int, Sample]]:
        found: dict[str, dict[int, Sample]] = {strategy: {} for strategy in self.strategies}
        for one in self.samples:
            found[one.strategy][one.seed] = one
        return found

    @cached_property
    def scores(self) -> dict[str, dict[int, float]]:
        """Return the scores of the runs that got to their end."""
        return {
            strategy: {seed: score(one.costs, self.weights) for seed, one in samples.items() if one.costs is not None}
            for strategy, samples in self.by_strategy.items()
        }

    @cached_property
    def sound(self) -> tuple[str, ...]:
        """Return the strategies that got through every run."""
        return tuple(one for one in self.strategies if len(self.scores[one]) == len(self.seeds))

    @cached_property
    def present(self) -> str | None:
        """Return the strategy that the group runs now, if it is one of those compared."""
        now = self.scenario.strategy and normal_strategy(self.scenario.strategy)
        return now if now in self.strategies else None

    @cached_property
    def reference(self) -> str | None:
        """Return the strategy that differences are against: what runs now, else the best."""
        if self.present in self.sound:
            return self.present
        return min(self.sound, key=self.order, default=None)

    def order(self, strategy: str) -> tuple[float, int]:
        """Equal medians keep the order in which they were asked for."""
        return median_interval(list(self.scores[strategy].values())).median, self.strategies.index(strategy)

    def difference(self, strategy: str, other: str) -> Interval:
        return median_interval([round(self.scores[strategy][s] - self.scores[other][s], 3) for s in self.seeds])

    def wins(self, strategy: str) -> float:
        total = 0.0
        for seed in self.seeds:
            best = min(self.scores[one][seed] for one in self.sound)
            winners = [one for one in self.sound if self.scores[one][seed] == best]
            total += 1 / len(winners) if strategy in winners else 0.0
        return round(total / len(self.seeds), 4)

    @cached_property
    def ranking(self) -> tuple[Ranked, ...]:
        best_first = sorted(self.sound, key=self.order)
        ranked = [self.ranked(strategy, rank) for rank, strategy in enumerate(best_first, start=1)]
        return (*ranked, *(self.ranked(one, None) for one in self.strategies if one not in self.sound))

    def ranked(self, strategy: str, rank: int | None) -> Ranked:
        samples = self.by_strategy[strategy].values()
        rows = [one.costs for one in samples if one.costs is not None]
        scores = list(self.scores[strategy].values())
        cpu_ms = [one.assignment_cpu_ms for one in samples if one.assignment_cpu_ms is not None]
        against = None
        if rank is not None and self.reference is not None and strategy != self.reference:
            against = self.difference(strategy, self.reference)
        return Ranked(
            strategy=strategy,
            rank=rank,
            score=median_interval(scores) if scores else None,
            costs={name: median_interval([row[name] for row in rows]) for name in NAMES} if rows else {},
            against=against,
            wins=self.wins(strategy) if rank is not None else 0.0,
            failed_processes=sum(row["failed_processes"] for row in rows),
            broken=tuple(one for one in samples if one.broken is not None),
            assignment_cpu_ms=median_interval(cpu_ms) if cpu_ms else None,
        )

    @cached_property
    def broken(self) -> tuple[Sample, ...]:
        return tuple(one for one in self.samples if one.broken is not None)

    @cached_property
    def typical_seed(self) -> int:
        """Return the seed to look at, in which the strategies together are nearest to the middle of their ranks."""
        distance = dict.fromkeys(self.seeds, 0)
        for scores in self.scores.values():
            ordered = sorted(scores, key=lambda seed: (scores[seed], seed))
            for place, seed in enumerate(ordered):
                distance[seed] += abs(2 * place - len(ordered) + 1)
        return min(self.seeds, key=lambda seed: (distance[seed], seed))

    def to_json(self, *, measured: bool = True) -> dict[str, Any]:
        """Return everything, so that a reader can rank it anew (saved_runs.py)."""
        from rebalance_lab.harness.scenario.writer import scenario_json

        return {
            "scenario": self.scenario.name,
            **({"partial": self.partial.to_json()} if self.partial is not None else {}),
            "seeds": list(self.seeds),
            "confidence": confidence_of(len(self.seeds)),
            "weights": dict(self.weights),
            "reference": self.reference,
            "typical_seed": self.typical_seed,
            "notes": list(self.notes),
            "ranking": [one.to_json(measured=measured) for one in self.ranking],
            "runs": [sample.to_json(measured=measured) for sample in self.samples],
            "description": scenario_json(self.scenario),
        }


def compare(
    scenario: Scenario,
    strategies: Sequence[str] | None = None,
    seeds: Sequence[int] = range(1, 21),
    *,
    weights: Weights | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    keep_finished: bool = False,
) -> Comparison:
    """Compare strategies; None stands for those that make sense for the scenario.

    `keep_finished`: compare what is finished when a signal ends the runs, unless nothing is.
    """
    chosen, notes = usual_strategies(scenario) if strategies is None else (tuple(strategies), ())
    chosen = checked_strategies(chosen, "strategy" if strategies is None else "--strategies")
    check_migrations(scenario)
    for text in chosen:
        check_broker_lists(text, scenario.broker)
    if not seeds:
        raise ContractError("seeds", "there must be at least one")
    partial = None
    try:
        samples = run_all(scenario, chosen, seeds, jobs=jobs, progress=progress)
    except RunsInterrupted as interrupted:
        if not keep_finished or not interrupted.finished:
            raise
        chosen, seeds, samples, partial = finished_part(interrupted, chosen, seeds)
        notes = (partial.words(), *notes)
    return Comparison(
        scenario=scenario,
        strategies=chosen,
        seeds=tuple(seeds),
        weights=weights or default_weights(),
        samples=tuple(samples),
        notes=notes,
        partial=partial,
    )


def finished_part(
    interrupted: RunsInterrupted, strategies: Sequence[str], seeds: Sequence[int]
) -> tuple[tuple[str, ...], tuple[int, ...], list[Sample], Partial]:
    """Return the strategies that have a run, and the runs with the seeds that all of them have: these come in pairs."""
    finished: Mapping[tuple[str, int], Sample] = interrupted.finished
    counts = Counter(strategy for strategy, _ in finished)
    first = next(seed for seed in seeds if any(pair[1] == seed for pair in finished))
    kept = tuple(one for one in strategies if (one, first) in finished)
    ranked = tuple(seed for seed in seeds if all((one, seed) in finished for one in kept))
    return (
        kept,
        ranked,
        [finished[strategy, seed] for strategy in kept for seed in ranked],
        Partial(
            number=interrupted.number,
            runs_finished=len(finished),
            runs_asked=len(strategies) * len(seeds),
            seeds_by_strategy={one: counts[one] for one in strategies},
            seeds_ranked=len(ranked),
        ),
    )


def usual_strategies(scenario: Scenario) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the strategies to compare by default, and a word on why they are not the usual list."""
    now = scenario.strategy and normal_strategy(scenario.strategy)
    if any(getattr(event, "strategy", None) for event in scenario.timeline):
        # A migration leads from one strategy to another; begun elsewhere, members could not agree on an assignor.
        if now is None:
            raise ContractError("strategy", "is missing: a timeline with a migration says where it starts from")
        return (now,), (f"the timeline migrates away from {now}: only that is run; --strategies names others",)
    names = DEFAULT_STRATEGIES if now is None or now in DEFAULT_STRATEGIES else (now, *DEFAULT_STRATEGIES)
    served = tuple(name for name in names if name == now or is_served(parse_strategies(name)[0], scenario.broker))
    left_out = [name for name in names if name not in served]
    note = f"the scenario's broker does not serve {', '.join(left_out)}: left out"
    return served, (note,) if left_out else ()


def split_strategies(text: str) -> list[str]:
    """Split at commas; at semicolons where a strategy is itself a list: `classic/range,cooperative-sticky;uniform`."""
    return [one.strip() for one in text.split(";" if ";" in text else ",")]


def checked_strategies(strategies: Sequence[str], path: str = "--strategies") -> tuple[str, ...]:
    """Return strategies in full, each once, after loading their assignors: a typo should not cost twenty runs."""
    found: list[str] = []
    for text in strategies:
        load_in_time(text, path)
        name = normal_strategy(text, path)
        if name in found:
            raise ContractError(path, f"{name} stands twice")
        found.append(name)
    return tuple(found)


def load_in_time(text: str, path: str = "strategy") -> None:
    """Load a strategy's assignors, and refuse a custom class that hangs when it is imported or made."""
    with time_limit(parse_strategies(text, path), path, "cannot be loaded: it is not done"):
        load_strategies(text, path)


def check_migrations(scenario: Scenario) -> None:
    """Check that the timeline's migrations can be loaded as well. It is in order of time here, and may not be so in its
    file.
    """
    for event in scenario.timeline:
        if isinstance(event, RollingRestart) and event.strategy is not None:
            try:
                load_in_time(event.strategy)
            except ContractError as error:
                message = f"the {event.KIND} at {duration_text(event.at_ms)}: {error.message}"
                raise ContractError("timeline", message) from error
