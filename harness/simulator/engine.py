"""Run the simulator once: a scenario, a strategy and a seed give a world whose run is over.

Given      those three, when to stop, and whether to take idle leaps (`leaps`)
Start at   run_world; harness/evaluate/simulation.py makes a Run of it
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.harness.scenario.constants import Constants
from rebalance_lab.harness.scenario.model import Scenario
from rebalance_lab.harness.simulator.group_types.build import Strategies
from rebalance_lab.harness.simulator.world import World
from rebalance_lab.harness.timeline.schedule import schedule


def run_world(
    scenario: Scenario,
    strategy: str,
    seed: int,
    until_ms: int | None,
    constants: Constants | None,
    watch: Callable[[Fact], None] | None,
    *,
    messages: bool,
    leaps: bool,
) -> World:
    """Return the world when the run is over: its trace, its counts and its processes."""
    strategies = Strategies(scenario, strategy, Random(seed + 1))
    world = World(scenario, strategies.build(), seed, constants=constants, watch=watch, messages=messages, leaps=leaps)
    world.trace.tell(0, "run", scenario=scenario.name, strategy=strategy, seed=seed)
    world.prepare()
    schedule(world)
    world.run(scenario.duration_ms if until_ms is None else until_ms)
    world.finish()
    return world
