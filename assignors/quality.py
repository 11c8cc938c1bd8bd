"""Measure how good an assignment is, as one flat row: balance, moves, racks, load, and the gap to the optimum.

Given      a group, the answer for it (an Assignment or any mapping), and the optimum where it was computed
Returns    Quality; a field that does not apply to this group is None
Cost       linear in members and partitions, over the compact form; networkx is never imported from here
Start at   quality; optimal.py and classic/load_aware.py share previous_owners, known_loads and subscription_classes
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import fsum, isfinite
from typing import TYPE_CHECKING

from rebalance_lab.assignors.model import NOBODY, Assignment, Group, Layout, Member, Share, owned_numbers

if TYPE_CHECKING:
    from rebalance_lab.assignors.optimum import Optimum


@dataclass(frozen=True, slots=True)
class Quality:
    members: int
    partitions: int
    """Of topics that somebody subscribes to; the others have nobody to go to."""
    assigned: int
    unassigned: int
    """Withheld for a cooperative hand-over, or forgotten."""
    min: int
    max: int
    spread: int
    jain: float | None
    """Jain's fairness index of the counts: 1 when all are equal, 1/members when one member has everything."""
    kept: int
    moved: int
    """Another member owned it before and is still in the group."""
    revoked: int
    """Somebody owned it before and nobody does now: on its way to another member, if the answer is cooperative."""
    new: int
    """Nobody owned it before."""
    needlessly_moved: int
    """Summed over members, the smaller of two counts: partitions it lost of topics it still subscribes to, and
    partitions it was given that it did not own. With equal subscriptions and no racks or loads such an exchange
    serves nothing; otherwise balance, racks or load may have asked for it, so read it as an upper bound."""
    topic_spread_max: int
    """The largest difference, in any one topic, between what two of its subscribers hold of it."""
    rack_local: float | None
    """Share of partitions read from the member's own rack, where both racks are known."""
    load_skew: float | None
    """The most utilised member (load over capacity) over the mean: 1 is even, 2 is twice what it should carry."""
    load_spread: float | None
    """The most utilised member less the least utilised, in units of load over capacity."""
    gap_balance: int | None
    """Partitions that stand on members heavier than the best balance has them; 0 when balance is the best there is."""
    gap_moves: int | None
    """Moved and revoked, less the fewest moves to the best balance; negative when balance was given up for it."""
    gap_racks: int | None
    """Rack matches of the optimum less those here; negative when balance or moves were given up for them."""

    def as_row(self) -> dict[str, float | int | None]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def quality(
    group: Group, assignment: Mapping[str, Mapping[str, Sequence[int]]], optimum: Optimum | None = None
) -> Quality:
    layout = group.layout
    subscribers = _subscriber_counts(group)
    shares = [share_numbers(layout, assignment, member_id) for member_id in group.members]
    owner = [NOBODY] * layout.total
    for index, share in enumerate(shares):
        for number in share:
            owner[number] = index
    for start, count, readers in zip(layout.starts, layout.counts, subscribers, strict=True):
        if not readers:
            owner[start : start + count] = [NOBODY] * count
    counts = [len(share) for share in shares]
    partitions = sum(count for count, readers in zip(layout.counts, subscribers, strict=True) if readers)
    assigned = layout.total - owner.count(NOBODY)
    moves = _moves(group, owner, subscribers)
    matches, known_racks = _rack_matches(group, owner)
    low, high = min(counts, default=0), max(counts, default=0)
    load_skew, load_spread = skew_and_spread(group, shares)
    return Quality(
        members=len(shares),
        partitions=partitions,
        assigned=assigned,
        unassigned=partitions - assigned,
        min=low,
        max=high,
        spread=high - low,
        jain=jain(counts),
        kept=moves.kept,
        moved=moves.moved,
        revoked=moves.revoked,
        new=moves.new,
        needlessly_moved=moves.needless,
        topic_spread_max=_topic_spread_max(layout, owner, subscribers),
        rack_local=matches / known_racks if known_racks else None,
        load_skew=load_skew,
        load_spread=load_spread,
        gap_balance=None if optimum is None else excess(counts, optimum.counts),
        gap_moves=None if optimum is None else moves.moved + moves.revoked - optimum.moves,
        gap_racks=None if optimum is None or optimum.rack_matches is None else optimum.rack_matches - matches,
    )


def share_numbers(
    layout: Layout, assignment: Mapping[str, Mapping[str, Sequence[int]]], member_id: str
) -> Sequence[int]:
    """Return one member's partitions as numbers; nonexistent ones are passed over, a member left out holds nothing."""
    if isinstance(assignment, Assignment) and assignment.layout is layout and member_id not in assignment.beyond:
        return assignment.numbers.get(member_id, ())
    share = assignment.get(member_id)
    if not share:
        return ()
    if isinstance(share, Share) and share.layout is layout:
        return share.numbers
    numbers = layout.numbers_of(share)
    return _existing(layout, share) if numbers is None else numbers


def _existing(layout: Layout, owned: Mapping[str, Sequence[int]]) -> list[int]:
    numbers: list[int] = []
    for name, partitions in owned.items():
        topic = layout.index.get(name)
        if topic is not None:
            start, count = layout.starts[topic], layout.counts[topic]
            numbers += [start + partition for partition in partitions if 0 <= partition < count]
    return numbers


def claimed_numbers(layout: Layout, member: Member) -> Sequence[int]:
    """Return what a member says it owns, of the partitions that exist."""
    numbers = owned_numbers(layout, member)
    return _existing(layout, member.owned) if numbers is None else numbers


def claim_generation(member: Member) -> int:
    generation = member.generation if member.claim_generation is None else member.claim_generation
    return -1 if generation is None else generation


def previous_owners(layout: Layout, members: Iterable[Member]) -> list[int]:
    """Return per partition the index of the member that owned it: of all that claim it the one with the highest
    generation. Where two claim it in that generation there is no owner: one of them is mistaken, and nothing says
    which.
    """
    owner = [NOBODY] * layout.total
    claimed_in = [-2] * layout.total
    for index, member in enumerate(members):
        if member.owned:
            generation = claim_generation(member)
            for number in claimed_numbers(layout, member):
                if generation > claimed_in[number]:
                    claimed_in[number] = generation
                    owner[number] = index
                elif generation == claimed_in[number] and owner[number] != index:
                    owner[number] = NOBODY
    return owner


def known_loads(group: Group) -> tuple[list[float], float] | None:
    """Return a load per partition number, and the mean. Partitions of a topic without loads, or without readers, count
    as the mean of those that have both. Return None when no topic has loads.
    """
    read = {name for topics in distinct_subscriptions(group) for name in topics}
    known = [load for name in read & group.topics.keys() for load in group.topics[name].load or ()]
    if not known:
        return None
    # Divided before it is summed, so that loads near the largest float do not overflow; fsum forgets the order.
    mean = fsum(load / len(known) for load in known)
    loads: list[float] = []
    for name, count in zip(group.layout.names, group.layout.counts, strict=True):
        given = group.topics[name].load if name in read else None
        loads += [mean] * count if given is None else given
    return loads, mean


def distinct_subscriptions(group: Group) -> Iterable[tuple[str, ...]]:
    """Return each subscription once by identity: parsed groups share one tuple among all members that subscribe
    alike.
    """
    return {id(member.topics): member.topics for member in group.members.values()}.values()


def subscription_classes(group: Group, member_ids: Sequence[str]) -> tuple[list[list[int]], list[tuple[int, ...]]]:
    """Members who subscribe to the same existing topics are alike. Returns the members of each class as positions in
    `member_ids`, and for each topic of the layout the classes that subscribe to it."""
    index = group.layout.index
    topics_of = {
        id(topics): frozenset(index[name] for name in topics if name in index)
        for topics in distinct_subscriptions(group)
    }
    classes: dict[frozenset[int], list[int]] = {}
    for position, member_id in enumerate(member_ids):
        classes.setdefault(topics_of[id(group.members[member_id].topics)], []).append(position)
    readers: list[list[int]] = [[] for _ in index]
    for number, topics in enumerate(classes):
        for topic in topics:
            readers[topic].append(number)
    return list(classes.values()), [tuple(numbers) for numbers in readers]


def _subscriber_counts(group: Group) -> list[int]:
    """Per topic of the layout, how many members subscribe to it."""
    index = group.layout.index
    counts = [0] * len(index)
    alike = Counter(id(member.topics) for member in group.members.values())
    for topics in distinct_subscriptions(group):
        for name in set(topics):
            if name in index:
                counts[index[name]] += alike[id(topics)]
    return counts


@dataclass(slots=True)
class _Moves:
    kept: int = 0
    moved: int = 0
    revoked: int = 0
    new: int = 0
    needless: int = 0


def _moves(group: Group, owner: list[int], subscribers: list[int]) -> _Moves:
    layout, members = group.layout, list(group.members.values())
    before = previous_owners(layout, members)
    moves = _Moves()
    lost, gained = [0] * len(members), [0] * len(members)
    subscribed = {id(topics): frozenset(topics) for topics in distinct_subscriptions(group)}
    for name, start, count, readers in zip(layout.names, layout.starts, layout.counts, subscribers, strict=True):
        if not readers:
            continue
        end = start + count
        left: list[int] = []
        for now, was in zip(owner[start:end], before[start:end], strict=True):
            if now == was:
                moves.kept += now != NOBODY
            elif now == NOBODY:
                moves.revoked += 1
                left.append(was)
            else:
                gained[now] += 1
                if was == NOBODY:
                    moves.new += 1
                else:
                    moves.moved += 1
                    left.append(was)
        for was, times in Counter(left).items():
            if name in subscribed[id(members[was].topics)]:
                lost[was] += times
    moves.needless = sum(map(min, lost, gained))
    return moves


def _topic_spread_max(layout: Layout, owner: list[int], subscribers: list[int]) -> int:
    largest = 0
    for start, count, readers in zip(layout.starts, layout.counts, subscribers, strict=True):
        held = Counter(owner[start : start + count])
        held.pop(NOBODY, None)
        if held and readers:
            least = min(held.values()) if len(held) >= readers else 0
            largest = max(largest, max(held.values()) - least)
    return largest


def _rack_matches(group: Group, owner: list[int]) -> tuple[int, int]:
    """Partitions read from the member's own rack, and those for which both racks are known."""
    racks = [member.rack for member in group.members.values()]
    matches = known = 0
    if not any(racks):
        return 0, 0
    for name, start in zip(group.layout.names, group.layout.starts, strict=True):
        for number, replicas in enumerate(group.topics[name].racks or (), start):
            reader = owner[number]
            if replicas and reader != NOBODY and racks[reader]:
                known += 1
                matches += racks[reader] in replicas
    return matches, known


def skew_and_spread(group: Group, shares: Sequence[Sequence[int]]) -> tuple[float | None, float | None]:
    """Compute the load's skew and spread, as in Quality."""
    known = known_loads(group)
    if known is None or not shares:
        return None, None
    loads, _ = known
    capacities = [member.capacity for member in group.members.values()]
    try:
        carried = [fsum([loads[number] for number in share]) for share in shares]
        mean = fsum(carried) / fsum(capacities)
    except OverflowError:  # sums beyond the largest float
        return None, None
    utilised = [load / capacity for load, capacity in zip(carried, capacities, strict=True)]
    skew = max(utilised) / mean if mean else 1.0
    spread = max(utilised) - min(utilised)
    return skew if isfinite(skew) else None, spread if isfinite(spread) else None


def jain(counts: Sequence[int]) -> float | None:
    if not counts:
        return None
    squares = sum(count * count for count in counts)
    return sum(counts) ** 2 / (len(counts) * squares) if squares else 1.0


def excess(counts: Sequence[int], best: Sequence[int]) -> int:
    """Partitions to take from too heavy members until the counts are the best ones. Who is heavy does not matter:
    every best balance has the same counts in sorted order, so rank is compared with rank."""
    ranked = zip(sorted(counts, reverse=True), sorted(best, reverse=True), strict=True)
    return sum(max(0, have - want) for have, want in ranked)
