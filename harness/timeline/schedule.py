"""Schedule a timeline: what each kind of event does to the world, and when it goes on by itself.

Given      a world that has been prepared: a simulated one (harness/simulator/world.py), or a live one
           (harness/kafka/live/live_world.py)
Facts      each event is a fact of the trace when it begins, and so is each of its steps
Start at   schedule, the table ACTIONS
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rebalance_lab.harness.scenario.model import (
    AddPartitions,
    Autoscale,
    Crash,
    CreateTopic,
    DeleteTopic,
    Event,
    FailOver,
    Isolate,
    Pause,
    Restart,
    Resubscribe,
    RollingRestart,
    Scale,
    Slow,
    Start,
    Stop,
)
from rebalance_lab.harness.scenario.presence import late_starters
from rebalance_lab.harness.timeline.lifecycle import (
    Process,
    Trouble,
    World,
    all_present,
    end_it,
    is_up,
    start_new,
    start_soon,
    take_down,
    tell,
    to_each,
)
from rebalance_lab.harness.timeline.rollouts import on_rolling_restart
from rebalance_lab.harness.timeline.scaling import on_autoscale, on_scale


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
    """Restart processes. One that is stopped between two rounds is not restarted any more."""
    names = [name for name in all_present(world, event.members) if round_ == 1 or is_up(world, name)]
    tell(world, event, names)
    for name in names:
        take_down(world, name, event.kill, event.downtime_ms)
    if round_ < event.times:
        world.kernel.after(event.every_ms, on_restart, world, event, round_ + 1)


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
    """Begin trouble for a while. Where several of a kind overlap, the last to begin counts, then those that are
    left.
    """
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
