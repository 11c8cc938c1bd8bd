"""Simulate one run: a scenario, a strategy and a seed give a trace.

Given      those three, and when to stop
Returns    Run: the facts, and what the run itself cost
Start at   simulate
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from rebalance_lab.harness.evaluate.fetch_sessions.prediction import predict
from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.harness.scenario.constants import Constants
from rebalance_lab.harness.scenario.model import Scenario
from rebalance_lab.harness.scenario.strategy_lists import parse_strategies
from rebalance_lab.harness.scenario.to_group import group_of
from rebalance_lab.harness.simulator.engine import run_world


@dataclass(frozen=True, slots=True)
class Run:
    scenario: Scenario
    strategy: str
    seed: int
    facts: list[Fact]
    events: int
    """That the kernel worked through."""
    cpu_s: float
    assignment_cpu_s: float
    """Of the leaders' assignments (the coordinator's own are a part of its work)."""


BROKERS = 3


def sessions_lost(scenario: Scenario, strategy: str, starts: int) -> float:
    """Return what a deploy of the whole group would cost, for the part of it that this run has seen."""
    group = group_of(scenario)
    restarts = starts - len(group.members)
    if restarts <= 0 or not group.members:
        return 0.0
    first = parse_strategies(strategy)[0]
    whole = predict([group], brokers=BROKERS, strategy=str(replace(first, static=False)), deploys_per_day=24.0)
    return round(whole.not_found_per_hour * restarts / len(group.members), 1)


@contextmanager
def without_garbage_collector() -> Iterator[None]:
    """Turn off the garbage collector. A run keeps what it makes, or drops it without a cycle: looking for cycles would
    be a tenth of its time. Its world, one large cycle, must be gone by the end, while it still counts as young. Then
    the next young collection takes it away, instead of one of the rare full ones.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def simulate(
    scenario: Scenario,
    strategy: str,
    seed: int = 0,
    *,
    until_ms: int | None = None,
    constants: Constants | None = None,
    watch: Callable[[Fact], None] | None = None,
    messages: bool = False,
    leaps: bool = True,
) -> Run:
    """Simulate a run; `watch` is shown every fact when it happens, and with `messages` what members and coordinator
    say.
    """
    with without_garbage_collector():
        started = time.process_time()
        world = run_world(scenario, strategy, seed, until_ms, constants, watch, messages=messages, leaps=leaps)
        lost = sessions_lost(scenario, strategy, world.starts)
        world.trace.tell(world.kernel.now_ms, "fetch sessions", lost=lost)
        cpu_s = time.process_time() - started
        run = Run(scenario, strategy, seed, world.trace.facts, world.kernel.events, cpu_s, world.assignment_cpu_s)
        del world
    return run
