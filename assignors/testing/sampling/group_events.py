"""Define the events that change a group between two rebalances, as values that print, travel as JSON and shrink.

Given      a group whose members own what they were last given
Returns    the group after the event, as the next rebalance sees it. An event about a member or topic that is not there
           changes nothing, so that any part of a sequence is a sequence too
Start at   happen, draw_events
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from rebalance_lab.assignors.model import Group, Member, Topic, copied
from rebalance_lab.assignors.testing.sampling.random_source import RandomSource


@dataclass(frozen=True, slots=True)
class Join:
    kind: ClassVar[str] = "join"
    member: str
    topics: tuple[str, ...]
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Leave:
    kind: ClassVar[str] = "leave"
    member: str


@dataclass(frozen=True, slots=True)
class Crash:
    """Take a member away for one rebalance; then it is back, and still believes it owns what it had."""

    kind: ClassVar[str] = "crash"
    member: str


@dataclass(frozen=True, slots=True)
class Resubscribe:
    kind: ClassVar[str] = "resubscribe"
    member: str
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grow:
    kind: ClassVar[str] = "grow"
    topic: str
    by: int


@dataclass(frozen=True, slots=True)
class Delete:
    kind: ClassVar[str] = "delete"
    topic: str


@dataclass(frozen=True, slots=True)
class MoveRack:
    kind: ClassVar[str] = "move-rack"
    member: str
    rack: str


@dataclass(frozen=True, slots=True)
class DuplicateClaim:
    """Let the member say that it owns what another one was given, in the same generation."""

    kind: ClassVar[str] = "duplicate-claim"
    member: str
    of: str


Event = Join | Leave | Crash | Resubscribe | Grow | Delete | MoveRack | DuplicateClaim
KINDS: dict[str, type[Event]] = {
    kind.kind: kind for kind in (Join, Leave, Crash, Resubscribe, Grow, Delete, MoveRack, DuplicateClaim)
}


def happen(group: Group, event: Event) -> Group:
    members = copied(group.members)
    match event:
        case Join():
            members.setdefault(event.member, Member(event.topics, rack=event.rack))
        case Leave() | Crash():
            members.pop(event.member, None)
        case Grow(topic, by):
            if topic in group.topics:
                return Group(copied(group.topics) | {topic: grown(group.topics[topic], by)}, members)
        case Delete(topic):
            if topic in group.topics:
                return Group({name: each for name, each in group.topics.items() if name != topic}, members)
        case Resubscribe(member, subscribed):
            if member in members:
                # As a client does before it rejoins: what it no longer reads it no longer holds.
                kept = {name: held for name, held in members[member].owned.items() if name in subscribed}
                members[member] = replace(members[member], topics=subscribed, owned=kept)
        case MoveRack(member, rack):
            if member in members:
                members[member] = replace(members[member], rack=rack)
        case DuplicateClaim(member, of):
            if member in members and of in members:
                both = (members[member].owned, members[of].owned)
                owned = {
                    name: sorted({p for held in both for p in held.get(name, ())}) for side in both for name in side
                }
                members[member] = replace(members[member], owned=owned, generation=members[of].generation)
    return group.with_members(members)


def grown(topic: Topic, by: int) -> Topic:
    """Add partitions on the racks of the first ones, with their load."""
    count = topic.partitions + by
    racks, load = topic.racks, topic.load
    return replace(
        topic,
        partitions=count,
        racks=None if racks is None else ((racks or ((),)) * count)[:count],
        load=None if load is None else ((load or (1.0,)) * count)[:count],
    )


def rejoins(group: Group, member_id: str, member: Member | None) -> Group:
    """Bring a crashed member back, with an old claim and an old generation."""
    if member is None or member_id in group.members:
        return group
    return group.with_members(copied(group.members) | {member_id: member})


def draw_events(draws: RandomSource, group: Group, count: int) -> tuple[Event, ...]:
    """Draw events; names are those of the group at the start, and of the members that join on the way."""
    members, topics = list(group.members), list(group.topics)
    events: list[Event] = []
    for number in range(count):
        kind = draws.integer(0, 9)
        if kind <= 2 or not members:
            subscribed = tuple(draws.sample(topics, draws.integer(min(1, len(topics)), len(topics))))
            if members and draws.chance(0.6):
                subscribed = group.members[members[0]].topics if members[0] in group.members else tuple(topics)
            members.append(f"{draws.choice('aj')}{number}")
            events.append(Join(members[-1], subscribed))
        elif kind <= 4:
            events.append(Leave(draws.choice(members)))
        elif kind == 5:
            events.append(Crash(draws.choice(members)))
        elif kind == 6 and topics:
            chosen = tuple(draws.sample(topics, draws.integer(1, len(topics))))
            events.append(Resubscribe(draws.choice(members), chosen))
        elif kind == 7 and topics:
            events.append(Grow(draws.choice(topics), draws.integer(1, 3)))
        elif kind == 8:
            events.append(Delete(draws.choice(topics)) if topics and draws.chance(0.5) else MoveRack(members[0], "b"))
        else:
            events.append(DuplicateClaim(draws.choice(members), draws.choice(members)))
    return tuple(events)
