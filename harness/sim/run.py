"""A run: a scenario, a strategy and a seed give a trace.

Given      those three, and how far to go
Returns    Run: the facts, and what the run itself cost
Start at   simulate
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from harness.scenario.model import Scenario
from harness.sim.build import Strategies
from harness.sim.timeline import schedule
from harness.sim.trace import Fact
from harness.sim.world import Constants, World


@dataclass(frozen=True, slots=True)
class Run:
    scenario: Scenario
    strategy: str
    seed: int
    facts: list[Fact]
    events: int
    """That the kernel worked through."""
    cpu_s: float


def simulate(
    scenario: Scenario,
    strategy: str,
    seed: int = 0,
    *,
    until_ms: int | None = None,
    constants: Constants | None = None,
    watch: Callable[[Fact], None] | None = None,
    leaps: bool = True,
) -> Run:
    started = time.process_time()
    strategies = Strategies(scenario, strategy, Random(seed + 1))
    world = World(scenario, strategies.build(), seed, constants=constants, watch=watch, leaps=leaps)
    world.trace.tell(0, "run", scenario=scenario.name, strategy=strategy, seed=seed)
    world.prepare()
    schedule(world)
    world.run(scenario.duration_ms if until_ms is None else until_ms)
    world.finish()
    return Run(scenario, strategy, seed, world.trace.facts, world.kernel.events, time.process_time() - started)
