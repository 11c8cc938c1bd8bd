"""Name the kinds of group in which Kafka's own assignors break a rule, and the waivers that say so.

A class that copies Kafka copies its faults. It may waive a property, or one on groups of some shape, by an attribute:

    waives = {"order-independent": "Java walks members in hash order", "sticky with racks": "a rack mismatch moves it"}

What is waived is measured at most, never held; the report card shows it. Every other class is held to everything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from rebalance_lab.assignors.model import Group


def racks(group: Group) -> bool:
    """Tell whether members and partitions have racks."""
    return any(t.racks for t in group.topics.values()) and any(m.rack for m in group.members.values())


def loads(group: Group) -> bool:
    """Tell whether partitions have loads, or members different capacities."""
    return any(t.load for t in group.topics.values()) or len({m.capacity for m in group.members.values()}) > 1


def mixed(group: Group) -> bool:
    """Tell whether members do not all subscribe to the same topics."""
    known = group.topics.keys()
    return len({frozenset(known & set(topics)) for topics in {m.topics for m in group.members.values()}}) > 1


def stale_claims(group: Group) -> bool:
    """Tell whether members own partitions since different generations."""
    return len({m.generation for m in group.members.values() if m.owned and any(m.owned.values())}) > 1


def conflicting_claims(group: Group) -> bool:
    """Tell whether two members own one partition."""
    claimed: dict[str, set[int]] = {name: set() for name in group.topics}
    for member in group.members.values():
        for name, partitions in member.owned.items():
            if name in claimed:
                if not claimed[name].isdisjoint(partitions):
                    return True
                claimed[name].update(partitions)
    return False


def unsubscribed_claims(group: Group) -> bool:
    """Tell whether a member owns a partition of a topic that it does not read."""
    for member in group.members.values():
        for name, partitions in member.owned.items():
            if partitions and name not in member.topics and name in group.topics:
                return True
    return False


def claims_beyond(group: Group) -> bool:
    """Tell whether a member owns a partition that its topic does not have."""
    for member in group.members.values():
        for name, partitions in member.owned.items():
            if partitions and name in group.topics and max(partitions) >= group.topics[name].partitions:
                return True
    return False


def no_topics(group: Group) -> bool:
    """Tell whether a member subscribes to nothing."""
    return not all(m.topics for m in group.members.values())


def duplicate_topics(group: Group) -> bool:
    """Tell whether a member names a topic twice."""
    return any(len(set(topics)) < len(topics) for topics in {m.topics for m in group.members.values()})


def unknown_topics(group: Group) -> bool:
    """Tell whether a member names a topic that does not exist."""
    known = group.topics.keys()
    return any(not known >= set(topics) for topics in {m.topics for m in group.members.values()})


SHAPES: dict[str, Callable[[Group], bool]] = {
    "racks": racks,
    "loads": loads,
    "mixed": mixed,
    "stale-claims": stale_claims,
    "conflicting-claims": conflicting_claims,
    "unsubscribed-claims": unsubscribed_claims,
    "claims-beyond": claims_beyond,
    "no-topics": no_topics,
    "duplicate-topics": duplicate_topics,
    "unknown-topics": unknown_topics,
}


class Shapes:
    """Hold the shapes of one group, each computed when first asked for: of most groups one or two are."""

    __slots__ = ("group", "known")

    def __init__(self, group: Group) -> None:
        self.group = group
        self.known: dict[str, bool] = {}

    def __contains__(self, shape: str) -> bool:
        found = self.known.get(shape)
        if found is None:
            found = self.known[shape] = SHAPES[shape](self.group)
        return found


@dataclass(frozen=True, slots=True)
class Waiver:
    property: str
    """A property's name, or * for all of them."""
    shapes: frozenset[str]
    """All of these at once; none means every group."""
    why: str

    def covers(self, shapes: Shapes) -> bool:
        return all(map(shapes.__contains__, self.shapes))

    def __str__(self) -> str:
        return f"{self.property} with {' and '.join(sorted(self.shapes))}" if self.shapes else self.property


def waivers_from(waives: Mapping[str, str] | Collection[str]) -> tuple[Waiver, ...]:
    """Read waivers from a class attribute. An unknown shape is refused: a misspelt one would waive nothing in
    silence.
    """
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
