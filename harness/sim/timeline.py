"""The timeline done: what each kind of event does to the world, and when it goes on by itself.

Given      a world that has been prepared: a simulated one (world.py), or a live one (harness/live/world.py)
Each       event is a fact of the trace when it begins, and so is every step of one that has steps
Start at   schedule, the table ACTIONS
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from assignors.model import Topic
from harness.scenario.model import (
    AddPartitions,
    Autoscale,
    Crash,
    CreateTopic,
    DeleteTopic,
    Event,
    FailOver,
    Isolate,
    MemberSpec,
    Pause,
    Restart,
    Resubscribe,
    RollingRestart,
    Scale,
    Scenario,
    Slow,
    Start,
    Stop,
    TopicSpec,
)
from harness.scenario.timeline import late_starters
from harness.sim.trace import Trace

if TYPE_CHECKING:
    from harness.sim.places import Places
    from harness.sim.wishes import Wishes

GRACE_MS = 30_000
"""How long a process may take to close before it is killed, as Kubernetes does it."""
RETRY_MS = 100


class Clock(Protocol):
    @property
    def now_ms(self) -> int: ...
    def at(self, at_ms: int, action: Callable[..., None], *given: Any) -> None: ...
    def after(self, delay_ms: int, action: Callable[..., None], *given: Any) -> None: ...


class Process(Protocol):
    """A member's, as far as anything is done to it."""

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
    places: Places

    @property
    def kernel(self) -> Clock: ...
    @property
    def processes(self) -> Mapping[str, Process]: ...
    @property
    def topics(self) -> Mapping[str, Topic]: ...
    @property
    def wishes(self) -> Wishes: ...
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


def schedule(world: World) -> None:
    later = late_starters(world.scenario.timeline)
    for spec in world.scenario.members:
        if spec.name not in later:
            start_soon(world, spec.name, world.start_delay_ms(), spec)
    for event in world.scenario.timeline:
        world.kernel.at(event.at_ms, begin, world, event)


def begin(world: World, event: Event) -> None:
    world.disturbed()
    ACTIONS[type(event)](world, event)


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
    """One that was not there when the others were migrated."""
    if name not in world.processes and world.places.family(name) in world.deployed:
        world.strategies[name] = world.deployed[world.places.family(name)]
    start_soon(world, name, delay_ms, spec)


def start_now(world: World, name: str, at_ms: int, old: Process | None) -> None:
    """Unless it was stopped before it came up; and not before the old process is gone."""
    if world.starting.get(name) != at_ms:
        return
    if old is not None and old.alive:
        come_up(world, name, world.kernel.now_ms + RETRY_MS, old)
        return
    del world.starting[name]
    if name not in world.processes:
        world.start(name)


def to_each(world: World, names: Sequence[str], action: Callable[[str, Process], None]) -> None:
    """To those who live; who is about to start is waited for."""
    for name in names:
        if name in world.starting:
            world.kernel.at(world.starting[name], to_each, world, [name], action)
        elif name in world.processes:
            action(name, world.processes[name])


def on_start(world: World, event: Start) -> None:
    tell(world, event, event.members)
    in_their_places = set(all_present(world, event.members))
    for name in event.members:
        if name not in in_their_places:
            continue  # a successor is there
        begins = start_soon if name in world.strategies else start_new
        begins(world, name, world.start_delay_ms(), world.members[name])


def on_stop(world: World, event: Stop) -> None:
    names = all_present(world, event.members)
    tell(world, event, names)
    for name in names:
        end_it(world, name, kill=False)


def on_crash(world: World, event: Crash) -> None:
    names = all_present(world, event.members)
    tell(world, event, names)
    for name in names:
        end_it(world, name, kill=True)


def on_restart(world: World, event: Restart, round_: int = 1) -> None:
    """Who is stopped between two rounds is not there to be restarted any more."""
    names = [name for name in all_present(world, event.members) if round_ == 1 or is_up(world, name)]
    tell(world, event, names)
    for name in names:
        take_down(world, name, event.kill, event.downtime_ms)
    if round_ < event.times:
        world.kernel.after(event.every_ms, on_restart, world, event, round_ + 1)


def take_down(world: World, name: str, kill: bool, downtime_ms: int) -> None:
    """And up again after the downtime. Meanwhile it is about to start, and not missing: others reach and count it."""
    old = world.processes.get(name)
    end_it(world, name, kill)
    come_up(world, name, world.kernel.now_ms + downtime_ms + world.start_delay_ms(), old)


def present(world: World, name: str) -> str:
    return all_present(world, [name])[0]


def all_present(world: World, names: Sequence[str]) -> list[str]:
    """Who has their places now: after a surge, the newest of their successors that is up."""
    places = world.places
    heirs: dict[str, str] = {}
    for other in everybody(world):
        place = places.of(other)
        heirs[place] = max(other, heirs.get(place, other), key=places.attempt)
    return list(dict.fromkeys(heirs.get(places.of(name), name) for name in names))


def is_up(world: World, name: str) -> bool:
    """Or about to be."""
    return name in world.starting or (name in world.processes and not world.processes[name].stopping)


def everybody(world: World) -> list[str]:
    """Who is up first, then who is about to be."""
    up = [name for name, process in world.processes.items() if not process.stopping]
    return list(dict.fromkeys([*up, *world.starting]))


def on_rolling_restart(world: World, event: RollingRestart) -> None:
    names = all_present(world, event.members) if event.members else everybody(world)
    if event.strategy is not None:
        for kin in dict.fromkeys(map(world.places.family, names)):
            if set(running(world, kin)) <= set(names):
                deploy(world, kin, event.strategy)
    roll(world, event, names)


def deploy(world: World, kin: str, strategy: str) -> None:
    """To the family: also to its members that are down, whatever they had."""
    world.deployed[kin] = strategy
    for name in [name for name in world.strategies if world.places.family(name) == kin and not is_up(world, name)]:
        del world.strategies[name]


def roll(world: World, event: RollingRestart, names: list[str]) -> None:
    """Who was stopped before its turn came stays down, and has what was deployed once it is started."""
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
        for kin in dict.fromkeys(
            map(world.places.family, now)
        ):  # perhaps the last of those that earlier events have begun with
            if all(world.strategies.get(name) == event.strategy for name in running(world, kin)):
                deploy(world, kin, event.strategy)
    world.kernel.after(event.downtime_ms + event.gap_ms, roll, world, event, rest)


def replace_by_new(world: World, event: RollingRestart, name: str) -> None:
    """A second process beside the first, which stops once the new one has had its start-up time: also one that its
    supervisor has started again meanwhile, since with the same group.instance.id the second one fences it."""
    world.starting.pop(name, None)
    successor = world.places.succeed(name, {*world.processes, *world.starting})
    if event.strategy is not None:
        world.strategies |= {successor: event.strategy, world.places.of(name): event.strategy}
    world.start(successor, world.members[name])
    if name in world.processes:
        world.kernel.after(event.downtime_ms, end_it, world, name, event.kill)


def end_it(world: World, name: str, kill: bool) -> None:
    """Or see to it that it does not begin."""
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


def on_scale(world: World, event: Scale) -> None:
    note_who_could_be(world, event.template, event.to)
    tell(world, event, running(world, world.places.family(event.template)), to=event.to)
    scale(world, event.template, event.to, event.every_ms)


def note_who_could_be(world: World, template: str, most: int) -> None:
    """The timeline may name them from now on, whether or not they have ever run."""
    kin, spec = world.places.family(template), world.members[template]
    for number in range(1, most + 1):
        world.members.setdefault(f"{kin}-{number}", spec)


def running(world: World, kin: str) -> list[str]:
    """Of a family. Or about to."""
    return [name for name in everybody(world) if world.places.family(name) == kin]


def scale(world: World, template: str, to: int, every_ms: int) -> None:
    kin = world.places.family(template)
    names = running(world, kin)
    world.scalings[kin] += 1
    for i, name in enumerate(reversed(names[to:])):
        world.kernel.after(i * every_ms, scale_in, world, name, world.scalings[kin])
    fresh = new_names(world, template, to - len(names))
    for i, name in enumerate(fresh):
        start_new(world, name, i * every_ms + world.start_delay_ms(), world.members[template])


def scale_in(world: World, name: str, order: int) -> None:
    """Unless the family has been told another size since."""
    if world.scalings[world.places.family(name)] == order:
        end_it(world, present(world, name), kill=False)


def new_names(world: World, template: str, how_many: int) -> list[str]:
    """Of places that nobody has."""
    kin, taken = world.places.family(template), {world.places.of(name) for name in (*world.processes, *world.starting)}
    found, number = list[str](), 0
    while len(found) < how_many:
        number += 1
        name = f"{kin}-{number}"
        if name not in taken:
            found.append(name)
    return found


def on_autoscale(world: World, event: Autoscale) -> None:
    """It looks at the lag of what its members read, also where it lets none of them begin."""
    note_who_could_be(world, event.template, event.most)
    tell(world, event)
    if not event.least and not world.wishes.has(event.template):
        template = world.members[event.template]
        world.wants(event.template, template.topics, template.pattern)
    autoscale(world, event, world.kernel.now_ms)


def autoscale(world: World, event: Autoscale, last_high_ms: int) -> None:
    """Up at once, down only after a while without need: what a lag-based autoscaler does."""
    now_ms = world.kernel.now_ms
    lag = world.lag_records()
    have = len(running(world, world.places.family(event.template)))
    enough = event.most * event.lag_per_member
    want = event.most if lag >= enough else max(-int(-lag // event.lag_per_member), event.least)
    if want >= have:
        last_high_ms = now_ms
    if want > have or (want < have and now_ms - last_high_ms >= event.cooldown_ms):
        world.disturbed()
        tell(world, event, running(world, world.places.family(event.template)), to=want)
        scale(world, event.template, want, 0)
        last_high_ms = now_ms
    world.kernel.after(event.every_ms, autoscale, world, event, last_high_ms)


def on_slow(world: World, event: Slow) -> None:
    names = all_present(world, event.members)
    tell(world, event, names, factor=event.factor)
    to_each(world, names, lambda name, process: get_into(world, event, name, process))


def on_pause(world: World, event: Pause) -> None:
    names = all_present(world, event.members)
    tell(world, event, names)
    to_each(world, names, lambda name, process: get_into(world, event, name, process))


def on_isolate(world: World, event: Isolate) -> None:
    names = all_present(world, event.members)
    tell(world, event, names)
    to_each(world, names, lambda name, process: get_into(world, event, name, process))


def get_into(world: World, event: Trouble, name: str, process: Process) -> None:
    """Trouble for a while. Where several of a kind overlap, the last to begin counts, then those that are left."""
    lasting = world.lasting.setdefault((event.KIND, process), [])
    lasting.append(event)
    suffer(world, name, process, event)
    if event.for_ms is not None:
        world.timeline_over_ms = max(world.timeline_over_ms, world.kernel.now_ms + event.for_ms)
        world.kernel.after(event.for_ms, get_out_of, world, event, name, process)


def get_out_of(world: World, event: Trouble, name: str, process: Process) -> None:
    lasting = world.lasting[event.KIND, process]
    counted = lasting[-1]
    lasting.remove(event)
    if not process.alive:
        return
    if not lasting:
        recover(world, name, process, event)
    elif lasting[-1] is not counted:
        suffer(world, name, process, lasting[-1])


def suffer(world: World, name: str, process: Process, event: Trouble) -> None:
    match event:
        case Slow():
            process.slow_down(event.factor)
        case Pause():
            process.pause()
        case Isolate():
            world.cut_off(name)


def recover(world: World, name: str, process: Process, event: Trouble) -> None:
    match event:
        case Slow():
            process.slow_down(1.0)
        case Pause():
            process.resume()
        case Isolate():
            world.reconnect(name)


def on_fail_over(world: World, event: FailOver) -> None:
    tell(world, event)
    world.fail_over(event.down_ms)


def on_add_partitions(world: World, event: AddPartitions) -> None:
    tell(world, event, topic=event.topic, to=event.to)
    if event.topic in world.topics and event.to > world.topics[event.topic].partitions:
        world.grow_topic(event.topic, event.to)


def on_create_topic(world: World, event: CreateTopic) -> None:
    tell(world, event, topic=event.topic.name)
    if event.topic.name not in world.topics:
        world.create_topic(event.topic)


def on_delete_topic(world: World, event: DeleteTopic) -> None:
    tell(world, event, topic=event.topic)
    if event.topic in world.topics:
        world.delete_topic(event.topic)


def on_resubscribe(world: World, event: Resubscribe) -> None:
    names = all_present(world, event.members)
    tell(world, event, names)
    to_each(world, names, lambda name, process: process.subscribe(event.topics, event.pattern))


ACTIONS: Mapping[type[Event], Callable[[World, Any], None]] = {
    Start: on_start,
    Stop: on_stop,
    Crash: on_crash,
    Restart: on_restart,
    RollingRestart: on_rolling_restart,
    Scale: on_scale,
    Autoscale: on_autoscale,
    Slow: on_slow,
    Pause: on_pause,
    Isolate: on_isolate,
    FailOver: on_fail_over,
    AddPartitions: on_add_partitions,
    CreateTopic: on_create_topic,
    DeleteTopic: on_delete_topic,
    Resubscribe: on_resubscribe,
}
