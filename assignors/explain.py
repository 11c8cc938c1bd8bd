"""Explain in words why each partition went to its member.

Given      an assignor's name, the group it saw and what it answered
Returns    one Reason a partition, in order of topic and partition
Honest     a Reason rests on facts of the answer that a reader can check: the previous owner, the subscribers, how much
           each member has. The assignor's rule stands beside them; a Reason is not a log of the algorithm
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_lab.assignors.model import Group
from rebalance_lab.assignors.quality import previous_owners
from rebalance_lab.assignors.subscribers import static_members_first, subscribers_by_topic

Shares = Mapping[str, Mapping[str, Sequence[int]]]


@dataclass(frozen=True, slots=True)
class Reason:
    topic: str
    partition: int
    member: str | None
    why: str

    def to_json(self) -> dict[str, Any]:
        return {"topic": self.topic, "partition": self.partition, "member": self.member, "why": self.why}


@dataclass(frozen=True, slots=True)
class Facts:
    """Hold the facts that an explanation may draw on, computed once."""

    group: Group
    totals: Mapping[str, int]
    in_order: Sequence[str]
    subscribers: Sequence[Sequence[int]]
    """Per topic of the layout: positions in `in_order`."""
    owner_before: Mapping[int, str]
    racks_known: bool

    def subscribed(self, topic: int) -> list[str]:
        return [self.in_order[position] for position in self.subscribers[topic]]


def explain(assignor: str, group: Group, assignment: Shares) -> Iterator[Reason]:
    layout = group.layout
    owner_now = {
        (topic, partition): member
        for member, share in assignment.items()
        for topic, partitions in share.items()
        for partition in partitions
    }
    in_order = static_members_first(group.members)
    ids = list(group.members)
    before = previous_owners(layout, group.members.values())
    facts = Facts(
        group=group,
        totals={member: sum(map(len, share.values())) for member, share in assignment.items()},
        in_order=in_order,
        subscribers=subscribers_by_topic(layout, [group.members[member].topics for member in in_order]),
        owner_before={number: ids[owner] for number, owner in enumerate(before) if owner >= 0},
        racks_known=any(member.rack for member in group.members.values())
        and any(topic.racks for topic in group.topics.values()),
    )
    tell = RULES.get(assignor, told_by_stickiness)
    for topic, name in enumerate(layout.names):
        if not facts.subscribers[topic]:
            continue
        for partition in range(layout.counts[topic]):
            member = owner_now.get((name, partition))
            yield Reason(name, partition, member, tell(facts, topic, partition, member))


def told_by_block(facts: Facts, topic: int, partition: int, member: str | None) -> str:
    """Explain range: everything follows from the member's place among the topic's subscribers."""
    count = facts.group.layout.counts[topic]
    subscribers = facts.subscribed(topic)
    size, larger = divmod(count, len(subscribers))
    if member is None or member not in subscribers:
        return told_by_stickiness(facts, topic, partition, member)
    place = subscribers.index(member)
    block = f"{size + 1} for each of the first {larger}, {size} for the others" if larger else f"{size} each"
    begin = size * place + min(place, larger)
    where = f"{member} is number {place + 1} of {len(subscribers)} subscribers ({block})"
    if begin <= partition < begin + size + (place < larger):
        return f"{where}, so its block starts at partition {begin}"
    return f"{where}; {rack_words(facts, topic, partition, member) or 'racks shifted the blocks'}"


def told_by_circle(facts: Facts, topic: int, partition: int, member: str | None) -> str:
    """Explain roundrobin: the circle goes on from topic to topic."""
    if member is None:
        return told_by_stickiness(facts, topic, partition, member)
    subscribers = facts.subscribed(topic)
    skipped = len(facts.in_order) - len(subscribers)
    note = f", {skipped} members that do not subscribe to it being passed over" if skipped else ""
    before = "the first partition dealt" if (topic, partition) == (0, 0) else "the circle goes on from the one before"
    return f"{member}'s turn in the circle of {len(subscribers)} members: {before}{note}"


def told_by_stickiness(facts: Facts, topic: int, partition: int, member: str | None) -> str:
    """Explain the sticky family, uniform, load-aware and custom assignors: what was owned, what moved, which member had
    room.
    """
    layout = facts.group.layout
    name = layout.names[topic]
    before = facts.owner_before.get(layout.starts[topic] + partition)
    rack = rack_words(facts, topic, partition, member)
    rack = f"; {rack}" if rack else ""
    if member is None:
        if before is not None:
            return f"withheld: {before} still owns it and must give it up first; the next round hands it on"
        return "withheld: more than one member claims it; it is free in the next round"
    total = facts.totals[member]
    if before == member:
        return f"{member} keeps what it owned ({total} in all){rack}"
    room = f"{member} had room for it and ends with {total}"
    if before is None:
        return f"nobody owned it; {room}{rack}"
    if name not in facts.group.members[before].topics:
        return f"{before}, who owned it, no longer subscribes to {name}; {room}{rack}"
    return f"taken from {before}, who ends with {facts.totals.get(before, 0)}; {room}{rack}"


def rack_words(facts: Facts, topic: int, partition: int, member: str | None) -> str:
    if not facts.racks_known or member is None:
        return ""
    racks = facts.group.topics[facts.group.layout.names[topic]].racks
    rack = facts.group.members[member].rack if member in facts.group.members else None
    if racks is None or rack is None:
        return ""
    if rack in racks[partition]:
        return f"rack {rack} has a replica of it"
    return (
        f"rack {rack} has no replica of it (they are on {', '.join(sorted(set(racks[partition]))) or 'no known rack'})"
    )


RULES = {"range": told_by_block, "roundrobin": told_by_circle}
