"""Run a scenario many times on all cores, and return one flat row for each run.

Given      a scenario, strategies and seeds: every strategy meets the same seeds, so that runs come in pairs
Returns    a Sample for each pair, in that order however the work was spread
Ends       a run that breaks an invariant or fails is a Sample that says so. Ctrl-C ends the workers; they also end when
           their parent is killed
Start at   run_all
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.user_code import observed
from rebalance_lab.harness.evaluate.call_timeout import NoAnswer, patience
from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.measure.costs import Costs, Meter, Row
from rebalance_lab.harness.measure.invariants import Broken, Checker
from rebalance_lab.harness.measure.known_violations import deployed, known_violation
from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.harness.scenario.model import Scenario
from rebalance_lab.harness.scenario.strategy_lists import parse_strategies

T = TypeVar("T")
Progress = Callable[[int], None]
"""Told how many runs are done."""

NOT_KEPT = "durable"
"""The one kind of fact that is only whispered: a trace does not hold it, unless it broke an invariant."""

ENDED_BY_ITSELF = "a run's process ended before the run did: an assignor that calls os._exit(), or no memory left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Hold one run, as far as a comparison needs it."""

    strategy: str
    seed: int
    costs: Row | None = None
    """None where the run did not get to its end."""
    broken: str | None = None
    """Which invariant, or what was raised."""
    broken_at_ms: int | None = None
    assignment_cpu_ms: float | None = field(default=None, compare=False)
    """Of the leaders' assignments, where there are leaders: measured on this machine, and so the one figure that is not
    the same each time."""
    notes: str = field(default="", compare=False)
    """What custom code raised, in the frames of the user's files, and what it printed in such a run."""

    def to_json(self, *, measured: bool = True) -> dict[str, Any]:
        """Return a flat row. Without what is measured it is the same each time."""
        row: dict[str, Any] = {"strategy": self.strategy, "seed": self.seed}
        if self.broken is not None:
            return {**row, "broken": self.broken, "broken_at_ms": self.broken_at_ms}
        cpu = {"assignment_cpu_ms": self.assignment_cpu_ms} if measured and self.assignment_cpu_ms is not None else {}
        return {**row, **(self.costs or {}), **cpu}


@dataclass(frozen=True, slots=True)
class Watched:
    """Hold a run with its facts, up to where it broke if it did."""

    facts: list[Fact]
    costs: Costs
    broken: Broken | None
    known_violation: str | None = None
    """Why it may have broken in Kafka, too."""
    assignment_cpu_ms: float | None = None


def watched_run(
    scenario: Scenario,
    strategy: str,
    seed: int,
    until_ms: int | None = None,
    *,
    watch: Callable[[Fact], None] | None = None,
) -> Watched:
    """Run once. `watch` sees every fact first; what it raises ends the run."""
    facts: list[Fact] = []
    checker, meter = Checker(), Meter()
    told = watch or (lambda fact: None)

    def take(fact: Fact) -> None:
        told(fact)
        if fact["fact"] != NOT_KEPT:
            facts.append(fact)
        meter.feed(fact)
        try:
            checker.feed(fact)
        except Broken:
            if fact["fact"] == NOT_KEPT:
                facts.append(fact)
            raise

    offered = [one for text in deployed(scenario, strategy) for one in parse_strategies(text)]
    try:
        with patience(offered):
            run = simulate(scenario, strategy, seed, until_ms=until_ms, watch=take)
    except Broken as error:
        return Watched(facts, meter.finish(), error, known_violation(scenario, strategy, error))
    except NoAnswer as error:
        return Watched(facts, meter.finish(), Broken("an answer", str(error), facts[-1]["t"] if facts else 0))
    cpu_ms = round(run.assignment_cpu_s * 1_000, 1) if run.assignment_cpu_s else None
    return Watched(facts, meter.finish(), None, assignment_cpu_ms=cpu_ms)


def sample(scenario: Scenario, strategy: str, seed: int) -> Sample:
    """Run once, and never raise for what the run does: one bad strategy must not take the others' results with it."""
    with observed() as notes:
        made = sample_of(scenario, strategy, seed)
    if made.broken is not None or notes.tracebacks:
        return replace(made, notes=notes.text())
    sys.stdout.write(notes.printed)
    return made


def sample_of(scenario: Scenario, strategy: str, seed: int) -> Sample:
    try:
        run = watched_run(scenario, strategy, seed)
    except AssignorError as error:
        return Sample(strategy=strategy, seed=seed, broken=f"the assignor failed: {error}")
    except Exception as error:  # noqa: BLE001 - shown with its seed, as a broken invariant is
        return Sample(strategy=strategy, seed=seed, broken=f"the run failed: {type(error).__name__}: {error}")
    if run.broken is not None:
        why = f"; Kafka's own, perhaps: {run.known_violation}" if run.known_violation else ""
        return Sample(strategy=strategy, seed=seed, broken=f"{run.broken}{why}", broken_at_ms=run.broken.now_ms)
    return Sample(strategy=strategy, seed=seed, costs=run.costs.row(), assignment_cpu_ms=run.assignment_cpu_ms)


class RunsInterrupted(KeyboardInterrupt):
    """Report that a signal ended the runs, with the results of those that had finished."""

    def __init__(self, finished: Mapping[tuple[str, int], Any], number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.finished = finished
        self.number = number


def run_all(
    scenario: Scenario,
    strategies: Sequence[str],
    seeds: Sequence[int],
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Sample]:
    """Run every strategy with every seed. All strategies have one seed before the next: what an interruption leaves can
    be compared.
    """
    pairs = [(strategy, seed) for seed in seeds for strategy in strategies]
    by_pair = dict(zip(pairs, spread(sample, scenario, pairs, jobs=jobs, progress=progress), strict=True))
    return [by_pair[strategy, seed] for strategy in strategies for seed in seeds]


def spread(
    work: Callable[[Scenario, str, int], T],
    scenario: Scenario,
    pairs: Sequence[tuple[str, int]],
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[T]:
    """Run `work` for each pair of a strategy and a seed; results are in the order of the pairs."""
    told = progress or (lambda done: None)
    workers = min(jobs or cores(), len(pairs))
    if workers <= 1:
        results: list[T] = []
        try:
            for strategy, seed in pairs:
                results.append(work(scenario, strategy, seed))
                told(len(results))
        except KeyboardInterrupt as error:
            raise RunsInterrupted(dict(zip(pairs, results, strict=False)), number_of(error)) from None
        return results
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, mp_context=context(), initializer=settle_in, initargs=(scenario,))
    futures: list[Future[T]] = []
    try:
        futures.extend(submit(pool, work, *pair) for pair in pairs)
        for done, future in enumerate(as_completed(futures), start=1):
            future.result()
            told(done)
    except BaseException as error:
        whole = {pair: one.result() for pair, one in zip(pairs, futures, strict=False) if has_result(one)}
        # Not `with pool`: its end would wait for every run that was asked for.
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
            child.join()
        if isinstance(error, BrokenProcessPool):
            raise AssignorError(ENDED_BY_ITSELF, path="strategies") from None
        if isinstance(error, KeyboardInterrupt):
            raise RunsInterrupted(whole, number_of(error)) from None
        raise
    pool.shutdown()
    return [future.result() for future in futures]


def has_result(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def number_of(error: KeyboardInterrupt) -> int:
    """Return the signal's number; a KeyboardInterrupt without one is Ctrl-C's."""
    return int(getattr(error, "number", signal.SIGINT))


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def submit(pool: ProcessPoolExecutor, work: Callable[[Scenario, str, int], T], strategy: str, seed: int) -> Future[T]:
    return pool.submit(in_worker, work, strategy, seed)


def context() -> multiprocessing.context.BaseContext:
    """Choose how workers start. Forked workers need not import anything again, but a fork copies locks that other
    threads hold.
    """
    alone = sys.platform == "linux" and threading.active_count() == 1
    return multiprocessing.get_context("fork" if alone else "spawn")


# In a worker

_scenario: Scenario | None = None


def settle_in(scenario: Scenario) -> None:
    """Take over the scenario, which travels once. What a run prints goes to standard error: standard output is the
    parent's answer. Ctrl-C is the parent's to handle; a parent that vanishes ends its
    workers.
    """
    global _scenario
    _scenario = scenario
    sys.stdout = sys.stderr
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=end_with_parent, daemon=True).start()


def end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def in_worker(work: Callable[[Scenario, str, int], T], strategy: str, seed: int) -> T:
    assert _scenario is not None
    return work(_scenario, strategy, seed)
