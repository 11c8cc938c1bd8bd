"""Start, stop, crash and restart processes: all events of a timeline are made of these steps.

Given      a world that has been prepared: a simulated one (harness/simulator/world.py), or a live one
           (harness/kafka/live/live_world.py)
Start at   start_soon, end_it; all_present for the processes that a name stands for
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from rebalance_lab.assignors.model import Topic
from rebalance_lab.harness.measure.trace import Trace
from rebalance_lab.harness.scenario.model import Event, Isolate, MemberSpec, Pause, Scenario, Slow, TopicSpec

if TYPE_CHECKING:
    from rebalance_lab.harness.timeline.replica_names import ReplicaNames
    from rebalance_lab.harness.timeline.subscription_wishes import SubscriptionWishes

GRACE_MS = 30_000
"""How long a process may take to close before it is killed, as Kubernetes does it."""
RETRY_MS = 100


class Clock(Protocol):
    @property
    def now_ms(self) -> int: ...
    def at(self, at_ms: int, action: Callable[..., None], *given: Any) -> None: ...
    def after(self, delay_ms: int, action: Callable[..., None], *given: Any) -> None: ...


class Process(Protocol):
    """Describe a member's process, as far as events act on it."""

    @property
    def alive(self) -> bool: ...
    @property
    def stopping(self) -> bool: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def slow_down(self, factor: float) -> None: ...
    def subscribe(self, topics: Sequence[str], pattern: str | None) -> None: ...


Trouble: TypeAlias = Slow | Pause | Isolate
Lasting: TypeAlias = dict[tuple[str, Process], list[Trouble]]
"""What a process is in, of each kind of trouble: the last to begin stands last."""


class World(Protocol):
    scenario: Scenario
    trace: Trace
    strategies: dict[str, str]
    deployed: dict[str, str]
    """What a rolling restart of a whole family has brought: newcomers of it come up with that."""
    members: dict[str, MemberSpec]
    scalings: Counter[str]
    """How often each family has been told its size: what is left to do of an earlier order is void."""
    timeline_over_ms: int
    starting: dict[str, int]
    """Who is about to start, and when: a process takes a moment to come up."""
    lasting: Lasting
    replica_names: ReplicaNames

    @property
    def kernel(self) -> Clock: ...
    @property
    def processes(self) -> Mapping[str, Process]: ...
    @property
    def topics(self) -> Mapping[str, Topic]: ...
    @property
    def wishes(self) -> SubscriptionWishes: ...
    def wants(self, name: str, topics: Sequence[str], pattern: str | None) -> None: ...
    def start(self, name: str, spec: MemberSpec | None = None) -> None: ...
    def start_delay_ms(self) -> int: ...
    def disturbed(self) -> None: ...
    def lag_records(self) -> float: ...
    def fail_over(self, down_ms: int) -> None: ...
    def cut_off(self, name: str) -> None: ...
    def reconnect(self, name: str) -> None: ...
    def create_topic(self, spec: TopicSpec) -> None: ...
    def grow_topic(self, name: str, partitions: int) -> None: ...
    def delete_topic(self, name: str) -> None: ...


def tell(world: World, event: Event, members: Sequence[str] = (), **more: Any) -> None:
    lasts_ms = sum(getattr(event, name, None) or 0 for name in ("for_ms", "downtime_ms", "down_ms"))
    world.timeline_over_ms = max(world.timeline_over_ms, world.kernel.now_ms + lasts_ms)
    world.trace.tell(world.kernel.now_ms, "event", what=event.KIND, members=list(members), **more)


def start_soon(world: World, name: str, delay_ms: int, spec: MemberSpec) -> None:
    world.members.setdefault(name, spec)
    process = world.processes.get(name)
    come_up(world, name, world.kernel.now_ms + delay_ms, process if process and process.stopping else None)


def come_up(world: World, name: str, at_ms: int, old: Process | None) -> None:
    world.starting[name] = at_ms
    world.timeline_over_ms = max(world.timeline_over_ms, at_ms)
    world.kernel.at(at_ms, start_now, world, name, at_ms, old)


def start_new(world: World, name: str, delay_ms: int, spec: MemberSpec) -> None:
    """Start a process with the strategy that was deployed while it was not there."""
    if name not in world.processes and world.replica_names.family(name) in world.deployed:
        world.strategies[name] = world.deployed[world.replica_names.family(name)]
    start_soon(world, name, delay_ms, spec)


def start_now(world: World, name: str, at_ms: int, old: Process | None) -> None:
    """Start a process, unless it was stopped before it came up; and not before the old process is gone."""
    if world.starting.get(name) != at_ms:
        return
    if old is not None and old.alive:
        come_up(world, name, world.kernel.now_ms + RETRY_MS, old)
        return
    del world.starting[name]
    if name not in world.processes:
        world.start(name)


def to_each(world: World, names: Sequence[str], action: Callable[[str, Process], None]) -> None:
    """Apply an action to live processes; those about to start are waited for."""
    for name in names:
        if name in world.starting:
            world.kernel.at(world.starting[name], to_each, world, [name], action)
        elif name in world.processes:
            action(name, world.processes[name])


def take_down(world: World, name: str, kill: bool, downtime_ms: int) -> None:
    """Take a process down, and up again after the downtime. Meanwhile it counts as about to start, not as missing."""
    old = world.processes.get(name)
    end_it(world, name, kill)
    come_up(world, name, world.kernel.now_ms + downtime_ms + world.start_delay_ms(), old)


def end_it(world: World, name: str, kill: bool) -> None:
    """End a process, or see to it that it does not begin."""
    world.starting.pop(name, None)
    if name in world.processes:
        end(world, world.processes[name], kill)


def end(world: World, process: Process, kill: bool) -> None:
    if not process.alive:
        return
    if kill:
        process.kill()
    elif not process.stopping:
        process.stop()
        world.kernel.after(GRACE_MS, run_out_of_grace, process)


def run_out_of_grace(process: Process) -> None:
    if process.alive:
        process.kill()


def present(world: World, name: str) -> str:
    return all_present(world, [name])[0]


def all_present(world: World, names: Sequence[str]) -> list[str]:
    """Return the processes that have these replica names now: after a surge, the newest successor that is up."""
    places = world.replica_names
    heirs: dict[str, str] = {}
    for other in everybody(world):
        place = places.of(other)
        heirs[place] = max(other, heirs.get(place, other), key=places.attempt)
    return list(dict.fromkeys(heirs.get(places.of(name), name) for name in names))


def is_up(world: World, name: str) -> bool:
    """Tell whether a process is up or about to be."""
    return name in world.starting or (name in world.processes and not world.processes[name].stopping)


def everybody(world: World) -> list[str]:
    """List the processes that are up, then those that are about to be."""
    up = [name for name, process in world.processes.items() if not process.stopping]
    return list(dict.fromkeys([*up, *world.starting]))


def running(world: World, kin: str) -> list[str]:
    """List the processes of a family that run or are about to."""
    return [name for name in everybody(world) if world.replica_names.family(name) == kin]
