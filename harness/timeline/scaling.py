"""Scale a group to a size, and by its lag.

Start at   on_scale, on_autoscale
"""

from __future__ import annotations

from rebalance_lab.harness.scenario.model import Autoscale, Scale
from rebalance_lab.harness.timeline.lifecycle import World, end_it, present, running, start_new, tell


def on_scale(world: World, event: Scale) -> None:
    note_who_could_be(world, event.template, event.to)
    tell(world, event, running(world, world.replica_names.family(event.template)), to=event.to)
    scale(world, event.template, event.to, event.every_ms)


def note_who_could_be(world: World, template: str, most: int) -> None:
    """Note members that the timeline may name from now on, whether or not they have ever run."""
    kin, spec = world.replica_names.family(template), world.members[template]
    for number in range(1, most + 1):
        world.members.setdefault(f"{kin}-{number}", spec)


def scale(world: World, template: str, to: int, every_ms: int) -> None:
    kin = world.replica_names.family(template)
    names = running(world, kin)
    world.scalings[kin] += 1
    for i, name in enumerate(reversed(names[to:])):
        world.kernel.after(i * every_ms, scale_in, world, name, world.scalings[kin])
    fresh = new_names(world, template, to - len(names))
    for i, name in enumerate(fresh):
        start_new(world, name, i * every_ms + world.start_delay_ms(), world.members[template])


def scale_in(world: World, name: str, order: int) -> None:
    """Scale in, unless the family has been told another size since."""
    if world.scalings[world.replica_names.family(name)] == order:
        end_it(world, present(world, name), kill=False)


def new_names(world: World, template: str, how_many: int) -> list[str]:
    """Return replica names that no process has."""
    kin, taken = (
        world.replica_names.family(template),
        {world.replica_names.of(name) for name in (*world.processes, *world.starting)},
    )
    found, number = list[str](), 0
    while len(found) < how_many:
        number += 1
        name = f"{kin}-{number}"
        if name not in taken:
            found.append(name)
    return found


def on_autoscale(world: World, event: Autoscale) -> None:
    """Start an autoscaler. It looks at the lag of what its members read, also where it lets none of them begin."""
    note_who_could_be(world, event.template, event.most)
    tell(world, event)
    if not event.least and not world.wishes.has(event.template):
        template = world.members[event.template]
        world.wants(event.template, template.topics, template.pattern)
    autoscale(world, event, world.kernel.now_ms)


def autoscale(world: World, event: Autoscale, last_high_ms: int) -> None:
    """Scale up at once, down only after a while without need: what a lag-based autoscaler does."""
    now_ms = world.kernel.now_ms
    lag = world.lag_records()
    have = len(running(world, world.replica_names.family(event.template)))
    enough = event.most * event.lag_per_member
    want = event.most if lag >= enough else max(-int(-lag // event.lag_per_member), event.least)
    if want >= have:
        last_high_ms = now_ms
    if want > have or (want < have and now_ms - last_high_ms >= event.cooldown_ms):
        world.disturbed()
        tell(world, event, running(world, world.replica_names.family(event.template)), to=want)
        scale(world, event.template, want, 0)
        last_high_ms = now_ms
    world.kernel.after(event.every_ms, autoscale, world, event, last_high_ms)
