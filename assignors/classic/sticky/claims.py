"""Read what members say they own, before either sticky assignor decides anything.

Given      a group, and where a member's generation is read from (the one thing in which the two assignors differ)
Returns    Claims: each member's owned partitions, with at most one owner each, and whether all subscriptions are equal
Numbers    a partition is its number in the group's layout. A claim on a partition that does not exist, which Java
           accepts, gets a number above all others
Order      Java goes through the members in hash order. That matters only where claims collide or topic lists are odd
           (empty, or with duplicates), so hash order is worked out only then
Reference  AbstractStickyAssignor.allSubscriptionsEqual of Apache Kafka 4.3.1
Start at   read_claims
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from rebalance_lab.assignors.java.hash_order import string_order
from rebalance_lab.assignors.model import Assignment, Group, Layout, Member, Share, owned_numbers

NO_GENERATION = -1


class Generations(NamedTuple):
    claim: int
    """Of the owned partitions."""
    subscription: int
    """Of the subscription itself. Java holds a later claim against this one of the earlier claimer."""


GenerationsOf = Callable[[Member], Generations]


@dataclass(slots=True)
class Claims:
    group: Group
    generations_of: GenerationsOf
    subscribed: set[str]
    """All topics that some member names, whether they exist or not."""
    everything: Sequence[int]
    """The partitions of the subscribed topics, by (topic, partition)."""
    equal: bool
    raw: dict[str, Sequence[int]]
    """As claimed, subscribed topics only, members in order of arrival."""
    owned: dict[str, Sequence[int]]
    """As claimed, without what another member has the better claim to."""
    contested: set[int]
    """Claimed twice in one generation: no member owns these, unless a later claimer had a higher generation."""
    unclaimed: Sequence[int]
    beyond: Sequence[tuple[int, int]]
    """Topic and partition of the claims that no partition answers to; the first has the number `layout.total`."""

    @property
    def layout(self) -> Layout:
        return self.group.layout

    @property
    def members(self) -> Mapping[str, Member]:
        return self.group.members

    def assignment(self, numbers: dict[str, Sequence[int]], *, withheld: bool = False) -> Assignment:
        """Return the claims as an assignment; shares with a partition that does not exist cannot stay compact."""
        layout = self.layout
        beyond: dict[str, dict[str, list[int]]] = {}
        if self.beyond:
            for member_id, share in numbers.items():
                if share and max(share) >= layout.total:
                    by_topic = beyond[member_id] = {}
                    for topic, partition in sorted(map(self.place_of, share)):
                        by_topic.setdefault(layout.names[topic], []).append(partition)
            numbers = {member_id: share for member_id, share in numbers.items() if member_id not in beyond}
        complete = not withheld and not self.beyond and len(self.everything) == layout.total
        return Assignment(layout, numbers, beyond, complete=complete)

    def place_of(self, number: int) -> tuple[int, int]:
        """Return topic and partition, also of a partition that does not exist."""
        layout = self.layout
        if number >= layout.total:
            return self.beyond[number - layout.total]
        topic = layout.topic_of(number)
        return topic, number - layout.starts[topic]


def read_claims(group: Group, generations_of: GenerationsOf) -> Claims:
    members = group.members
    subscriptions = [member.topics for member in members.values()]
    equal = subscriptions_equal(members, subscriptions)
    subscribed = set(chain.from_iterable(set(subscriptions)))
    everything = numbers_of_topics(group.layout, subscribed)
    claims = Claims(group, generations_of, subscribed, everything, equal, {}, {}, set(), everything, ())
    if not any(member.owned for member in members.values()):
        claims.raw = claims.owned = dict.fromkeys(members, ())
        return claims
    left_behind = left_behind_by_leavers(claims)
    if left_behind is not None:
        claims.unclaimed = sorted(left_behind)
        return claims
    read_numbers(claims)
    unclaimed = set(everything).difference(*claims.raw.values())
    claims.unclaimed = sorted(unclaimed)
    if claims.beyond or len(everything) - len(unclaimed) != sum(map(len, claims.raw.values())):
        settle_collisions(claims)
    else:
        claims.owned = claims.raw
    return claims


def subscriptions_equal(members: Mapping[str, Member], subscriptions: Sequence[tuple[str, ...]]) -> bool:
    """Compare subscriptions as Java does. The first topics it meets become a set, and from then on every list must have
    as many entries and name nothing else. An empty list is overlooked as long as it is met first; so is a duplicate
    that makes up for a missing topic.
    """
    if not subscriptions:
        return True
    first = subscriptions[0]
    if subscriptions.count(first) == len(subscriptions):
        return len(set(first)) == len(first) or len(subscriptions) == 1
    distinct = set(subscriptions)
    if all(topics and len(set(topics)) == len(topics) for topics in distinct):
        return len(set(map(frozenset, distinct))) == 1
    subscribed: set[str] = set()
    for member_id in string_order(members):
        topics = members[member_id].topics
        if not subscribed:
            subscribed.update(topics)
        elif len(topics) != len(subscribed) or not subscribed.issuperset(topics):
            return False
    return True


def numbers_of_topics(layout: Layout, names: Iterable[str]) -> Sequence[int]:
    topics = sorted(layout.index[name] for name in names if name in layout.index)
    spans = [range(layout.starts[topic], layout.starts[topic] + layout.counts[topic]) for topic in topics]
    if sum(map(len, spans)) == layout.total:
        return range(layout.total)
    return list(chain.from_iterable(spans))


def left_behind_by_leavers(claims: Claims) -> list[int] | None:
    """Handle the common case without looking at a claim: each member owns its own share of one and the same complete
    assignment. Then nothing collides, and the shares of members that left are free.
    """
    layout = claims.layout
    shares: dict[str, Sequence[int]] = {}
    origin = None
    for member_id, member in claims.members.items():
        owned = member.owned
        if isinstance(owned, Share) and owned.origin is not None:
            if origin is None:
                origin = owned.origin
                numbers = origin.numbers
            if owned.origin is not origin or numbers.get(member_id) is not owned.numbers:
                return None
            shares[member_id] = owned.numbers
        elif owned:
            return None
        else:
            shares[member_id] = ()
    if origin is None or not origin.complete or origin.layout is not layout:
        return None
    if len(claims.everything) != layout.total:
        return None
    claims.raw = claims.owned = shares
    return [number for member_id, share in numbers.items() if not shares.get(member_id) for number in share]


def read_numbers(claims: Claims) -> None:
    """Read every member's claims as numbers; topics without subscribers are passed over."""
    layout, subscribed = claims.layout, claims.subscribed
    all_topics = len(claims.everything) == layout.total
    beyond: dict[tuple[int, int], int] = {}
    for member_id, member in claims.members.items():
        numbers = owned_numbers(layout, member) if member.owned else ()
        if numbers is None or not (all_topics or subscribed.issuperset(member.owned)):
            numbers = []
            for name, partitions in member.owned.items():
                topic = layout.index.get(name)
                if topic is None or name not in subscribed or not layout.counts[topic]:
                    continue
                start, count = layout.starts[topic], layout.counts[topic]
                numbers += [
                    start + partition
                    if 0 <= partition < count
                    else beyond.setdefault((topic, partition), layout.total + len(beyond))
                    for partition in partitions
                ]
        claims.raw[member_id] = numbers
    claims.beyond = list(beyond)


def settle_collisions(claims: Claims) -> None:
    """Settle collisions claim by claim, as Java does. The higher generation has the better claim, and of equals neither
    does.
    """
    members, generations_of = claims.members, claims.generations_of
    owned: dict[str, dict[int, None]] = {}
    last_claimer: dict[int, str] = {}
    for member_id in string_order(members):
        generation = generations_of(members[member_id]).claim
        mine = owned[member_id] = {}
        for number in claims.raw[member_id]:
            other = last_claimer.get(number)
            if other is not None:
                # Not the generation of the other one's claim: clients that send none in their subscription lose to
                # a member that comes later, instead of both losing.
                generation_of_other = generations_of(members[other]).subscription
                if generation < generation_of_other:
                    continue
                last_claimer[number] = member_id
                if generation == generation_of_other:
                    claims.contested.add(number)
                    owned[other].pop(number, None)
                    continue
                if other == member_id:
                    continue  # said twice: Java adds it a second time and then removes one, whether it had one or not
                owned[other].pop(number, None)
            mine[number] = None
            last_claimer[number] = member_id
    claims.owned = {member_id: list(owned[member_id]) for member_id in members}
