"""Roll out restarts: some processes at a time, perhaps with another strategy, perhaps with a successor beside each.

Start at   on_rolling_restart
"""

from __future__ import annotations

from rebalance_lab.harness.scenario.model import RollingRestart
from rebalance_lab.harness.timeline.lifecycle import (
    World,
    all_present,
    end_it,
    everybody,
    is_up,
    present,
    running,
    take_down,
    tell,
)


def on_rolling_restart(world: World, event: RollingRestart) -> None:
    names = all_present(world, event.members) if event.members else everybody(world)
    if event.strategy is not None:
        for kin in dict.fromkeys(map(world.replica_names.family, names)):
            if set(running(world, kin)) <= set(names):
                deploy(world, kin, event.strategy)
    roll(world, event, names)


def deploy(world: World, kin: str, strategy: str) -> None:
    """Set the family's strategy: also of its members that are down, whatever they had."""
    world.deployed[kin] = strategy
    for name in [
        name for name in world.strategies if world.replica_names.family(name) == kin and not is_up(world, name)
    ]:
        del world.strategies[name]


def roll(world: World, event: RollingRestart, names: list[str]) -> None:
    """Restart in turn. A process that was stopped before its turn stays down, and has the new strategy once it
    starts.
    """
    if event.strategy is not None:
        gone = [name for name in names if not is_up(world, name)]
        world.strategies |= {name: event.strategy for name in gone if not is_up(world, present(world, name))}
    names = [name for name in all_present(world, names) if is_up(world, name)]
    if not names:
        return
    world.disturbed()
    now, rest = names[: event.parallelism], names[event.parallelism :]
    tell(world, event, now, left=len(rest))
    for name in now:
        if event.strategy is not None:
            world.strategies[name] = event.strategy
        if event.surge:
            replace_by_new(world, event, name)
        else:
            take_down(world, name, event.kill, event.downtime_ms)
    if event.strategy is not None:
        for kin in dict.fromkeys(map(world.replica_names.family, now)):
            # Perhaps it was the last of those that earlier events have begun with.
            if all(world.strategies.get(name) == event.strategy for name in running(world, kin)):
                deploy(world, kin, event.strategy)
    world.kernel.after(event.downtime_ms + event.gap_ms, roll, world, event, rest)


def replace_by_new(world: World, event: RollingRestart, name: str) -> None:
    """Start a second process beside the first, which stops once the new one has had its start-up time. That holds also
    for a process that its supervisor has started again: with the same group.instance.id the second one fences it.
    """
    world.starting.pop(name, None)
    successor = world.replica_names.succeed(name, {*world.processes, *world.starting})
    if event.strategy is not None:
        world.strategies |= {successor: event.strategy, world.replica_names.of(name): event.strategy}
    world.start(successor, world.members[name])
    if name in world.processes:
        world.kernel.after(event.downtime_ms, end_it, world, name, event.kill)
