"""Names for the kinds of group in which Kafka's own assignors break a rule, and the waivers that say so.

A class that copies Kafka copies its faults. It may waive a property, or one on groups of some shape, by an attribute:

    waives = {"order-independent": "Java walks members in hash order", "sticky with racks": "a rack mismatch moves it"}

What is waived is measured at most, never held; the report card shows it. Everybody else is held to everything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from assignors.model import Group

SHAPES = {
    "racks": "members and partitions have racks",
    "loads": "partitions have loads, or members different capacities",
    "mixed": "members do not all subscribe to the same topics",
    "stale-claims": "members own partitions since different generations",
    "conflicting-claims": "a partition is owned by two members",
    "unsubscribed-claims": "a member owns a partition of a topic that it does not read",
    "claims-beyond": "a member owns a partition that its topic does not have",
    "no-topics": "a member subscribes to nothing",
    "duplicate-topics": "a member names a topic twice",
    "unknown-topics": "a member names a topic that does not exist",
}


@dataclass(frozen=True, slots=True)
class Waiver:
    property: str
    """A property's name, or * for all of them."""
    shapes: frozenset[str]
    """All of these at once; none means every group."""
    why: str

    def __str__(self) -> str:
        return f"{self.property} with {' and '.join(sorted(self.shapes))}" if self.shapes else self.property


def waivers_from(waives: Mapping[str, str] | Collection[str]) -> tuple[Waiver, ...]:
    """From a class attribute. An unknown shape is refused: a misspelt one would waive nothing and say so nowhere."""
    reasons = waives if isinstance(waives, Mapping) else dict.fromkeys(waives, "")
    waivers = []
    for text, why in reasons.items():
        name, _, among = text.partition(" with ")
        shapes = frozenset(filter(None, (shape.strip() for shape in among.split(" and "))))
        if not shapes <= SHAPES.keys():
            raise ValueError(f"waives {text!r}: no such shape; known: {', '.join(SHAPES)}")
        if name == "*" and not shapes:
            raise ValueError("waives '*': everything cannot be waived")
        waivers.append(Waiver(name, shapes, why))
    return tuple(waivers)


def shapes_of(group: Group) -> frozenset[str]:
    members, topics = group.members, group.topics
    shapes = set()
    if any(member.rack for member in members.values()) and any(topic.racks for topic in topics.values()):
        shapes.add("racks")
    if any(t.load for t in topics.values()) or len({member.capacity for member in members.values()}) > 1:
        shapes.add("loads")
    subscriptions = {frozenset(topics.keys() & set(member.topics)) for member in members.values()}
    if len(subscriptions) > 1:
        shapes.add("mixed")
    for member in members.values():
        if not member.topics:
            shapes.add("no-topics")
        if len(set(member.topics)) < len(member.topics):
            shapes.add("duplicate-topics")
        if any(name not in topics for name in member.topics):
            shapes.add("unknown-topics")
    return frozenset(shapes | _claim_shapes(group))


def _claim_shapes(group: Group) -> set[str]:
    shapes = set()
    claimed: set[tuple[str, int]] = set()
    generations = set()
    for member in group.members.values():
        for name, partitions in member.owned.items():
            if not partitions:
                continue
            generations.add(member.generation)
            topic = group.topics.get(name)
            if topic is None:
                continue
            if name not in member.topics:
                shapes.add("unsubscribed-claims")
            if max(partitions) >= topic.partitions:
                shapes.add("claims-beyond")
            pairs = {(name, partition) for partition in partitions}
            if not claimed.isdisjoint(pairs):
                shapes.add("conflicting-claims")
            claimed |= pairs
    if len(generations) > 1:
        shapes.add("stale-claims")
    return shapes
