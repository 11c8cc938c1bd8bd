"""Draw groups that have broken real assignors: the same random source gives the same group in every process.

Sizes      most have at most 6 members, where corners are close to each other. Some have 17 to 40, because an assignor
           that counts to sixteen, or tries every subset, only shows it there
Ids        c9 before c10, uuids, all of unicode, words with one Java hash code; static members among dynamic ones
Topics     no partitions, one, many; topics without a subscriber, subscribed topics that do not exist, duplicates
Claims     none; a clean share-out with leavers and joiners; at random; from an older generation; two members claiming
           one partition; on topics that were left, deleted, or created anew with fewer partitions
Racks      at random, or so that every partition could be read from its reader's rack at no cost of balance
Loads      idle, alike, and one giant; capacities that differ
Start at   draw_group; every group prints as JSON that `rebalance-lab assign` accepts
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.assignors.model import EMPTY, Group, Member, Topic
from rebalance_lab.assignors.testing.sampling.random_source import RandomSource

UNICODE = "aZ09-_é\u07ff\u4e2d\ud7ff\ue000\ufffd\U00010000\U0001f600"
RACKS = ("a", "b", "c")
LOADS = (0.0, 1.0, 1.0, 1.0, 2.0, 5.0, 40.0)


@dataclass(frozen=True, slots=True)
class Knobs:
    """Limit what may be drawn. The defaults are what `check` draws."""

    max_members: int = 40
    max_topics: int = 6
    max_partitions: int = 60
    """Of one topic."""
    claims: bool = True
    bad_claims: bool = True
    """Conflicting, stale, and on what is not there or not subscribed any more."""
    racks: bool = True
    loads: bool = True
    odd_names: bool = True
    """Beyond c0 and t0; also subscriptions with duplicates and to topics that do not exist."""


DEFAULT = Knobs()


def draw_group(draws: RandomSource, knobs: Knobs = DEFAULT) -> Group:
    if knobs.racks and draws.chance(0.2):
        return rack_friendly_group(draws, knobs)
    members = draw_size(draws, knobs.max_members)
    counts = draw_counts(draws, knobs, crowded=members > 8)
    ids = draw_names(draws, members, "c", knobs)
    subscriptions = draw_subscriptions(draws, list(counts), members, knobs)
    owned: list[Mapping[str, Sequence[int]]] = [EMPTY] * members
    generations: list[int | None] = [None] * members
    if knobs.claims and members and draws.chance(0.7):
        owned, generations = draw_claims(draws, counts, subscriptions, knobs)
    racks: list[str | None] = [None] * members
    topics = {name: Topic(count) for name, count in counts.items()}
    if knobs.racks and draws.chance(0.25):
        topics, racks = draw_racks(draws, topics, members)
    capacities = [1.0] * members
    if knobs.loads and draws.chance(0.25):
        topics = draw_loads(draws, topics)
        if draws.chance(0.3):
            capacities = draws.choices((1.0, 1.0, 2.0, 0.5), members)
    instances: list[str | None] = [None] * members
    if draws.chance(0.15):
        instances = [f"i{draws.integer(0, 1)}{place}" if draws.chance(0.5) else None for place in range(members)]
    return Group(
        topics,
        {
            member_id: Member(subscription, claimed, generation, instance, rack, capacity)
            for member_id, subscription, claimed, generation, instance, rack, capacity in zip(
                ids, subscriptions, owned, generations, instances, racks, capacities, strict=True
            )
        },
    )


def draw_size(draws: RandomSource, largest: int) -> int:
    """Draw a size: one group of fifty has no members, and one of twelve has more than sixteen."""
    if draws.chance(0.02):
        return 0
    if largest > 6 and draws.chance(0.2):
        return draws.integer(17, largest) if largest > 17 and draws.chance(0.4) else draws.integer(7, min(largest, 16))
    return draws.integer(1, max(1, min(largest, 6)))


def draw_counts(draws: RandomSource, knobs: Knobs, *, crowded: bool) -> dict[str, int]:
    """Draw topics and their partitions. Many members read many partitions, or most of them would idle."""
    few = draws.integer(1, min(3, knobs.max_topics)) if draws.chance(0.97) else 0
    topics = few if knobs.max_topics <= 3 or draws.chance(0.9) else draws.integer(3, knobs.max_topics)
    usual = min(knobs.max_partitions, 60 if crowded and draws.chance(0.5) else 7)
    alike = draws.chance(0.3)
    size = draws.integer(1, max(1, usual))
    counts = []
    for _ in range(topics):
        if not alike:
            size = draws.integer(0, knobs.max_partitions if draws.chance(0.04) else usual)
        counts.append(size)
    return dict(zip(draw_names(draws, topics, "t", knobs), counts, strict=True))


def draw_names(draws: RandomSource, count: int, prefix: str, knobs: Knobs) -> list[str]:
    style = draws.integer(0, 9) if knobs.odd_names else 0
    if style < 5:
        # from c0 or from c8 on, so that c10 comes after c9 in number and before it in the alphabet
        first = 8 if style == 4 else 0
        names = [f"{prefix}{first + i}" for i in range(count)]
        return draws.sample(names, count) if style > 1 else names
    names = []
    taken = set()
    while len(names) < count:
        if style < 7:
            name = f"{prefix}onsumer-{draws.integer(1, 9)}-{draws.integer(0, 2**32):08x}"
        elif style == 7:
            name = "".join(draws.choices(("Aa", "BB"), 6))
        else:
            name = "".join(draws.choices(UNICODE, draws.integer(1, 4)))
        if name not in taken:
            taken.add(name)
            names.append(name)
    return names


def draw_subscriptions(draws: RandomSource, names: list[str], members: int, knobs: Knobs) -> list[tuple[str, ...]]:
    style = draws.integer(0, 9)
    if knobs.odd_names and draws.chance(0.06):
        names = [*names, "unknown"]
    everything = tuple(names)
    if style < 5 or not names:
        chosen = [everything] * members
    elif style == 5:  # the same topics, each member in its own order
        chosen = [tuple(draws.sample(names, len(names))) for _ in range(members)]
    elif style == 6:  # each topic has its own readers
        chosen = [everything[place % len(names) :: 3] for place in range(members)]
    elif style == 7:  # one topic that no member reads
        chosen = [everything[1:]] * members
    else:
        least = 0 if draws.chance(0.2) else 1
        chosen = [tuple(draws.sample(names, draws.integer(least, len(names)))) for _ in range(members)]
    if knobs.odd_names and draws.chance(0.05):
        chosen = [(*topics, topics[0]) if topics and draws.chance(0.5) else topics for topics in chosen]
    return chosen


def draw_claims(
    draws: RandomSource, counts: Mapping[str, int], subscriptions: list[tuple[str, ...]], knobs: Knobs
) -> tuple[list[Mapping[str, Sequence[int]]], list[int | None]]:
    """Draw what members own and since when: dealt in turn or at random, less what leavers had, then spoiled."""
    members = len(subscriptions)
    owned: list[dict[str, list[int]]] = [{} for _ in range(members)]
    holders = members if draws.chance(0.6) else draws.integer(1, members)  # the others have just joined
    in_turn, turn = draws.chance(0.6), 0
    coverage = 1.0 if draws.chance(0.6) else 0.7
    everywhere = knobs.bad_claims and draws.chance(0.08)  # also on topics that the holder no longer reads
    for name, count in counts.items():
        takers = [place for place in range(holders) if everywhere or name in subscriptions[place]]
        for partition in range(count) if takers else ():
            if coverage == 1.0 or draws.chance(coverage):
                taker = takers[turn % len(takers)] if in_turn else draws.choice(takers)
                owned[taker].setdefault(name, []).append(partition)
            turn += 1
    generation = draws.integer(1, 9)
    generations: list[int | None] = [generation if mine or draws.chance(0.3) else None for mine in owned]
    if knobs.bad_claims and draws.chance(0.3):
        spoil_claims(draws, counts, owned, generations, generation)
    return list(owned), generations


def spoil_claims(
    draws: RandomSource,
    counts: Mapping[str, int],
    owned: list[dict[str, list[int]]],
    generations: list[int | None],
    generation: int,
) -> None:
    kind = draws.integer(0, 5)
    if kind <= 2:  # a member was away, or is one of two that hold the same
        for place, mine in enumerate(owned):
            if kind != 1 and draws.chance(0.4):
                generations[place] = draws.choice((generation - 1, generation + 1, 0, None))
            if kind != 0 and draws.chance(0.5):
                for topic, partitions in draws.choice(owned).items():
                    known = mine.get(topic, [])
                    mine[topic] = known + [p for p in partitions if p not in known and draws.chance(0.6)]
                    if not mine[topic]:
                        del mine[topic]
    elif kind == 3:  # a topic was deleted
        draws.choice(owned)["gone"] = list(range(draws.integer(1, 3)))
    elif kind == 4 and counts:  # a topic was deleted and created again, smaller
        name = draws.choice(list(counts))
        mine = draws.choice(owned)
        mine[name] = [*mine.get(name, []), counts[name] + draws.integer(0, 2)]
    else:  # clients that send no generation
        generations[:] = [None] * len(generations)


def draw_racks(
    draws: RandomSource, topics: dict[str, Topic], members: int
) -> tuple[dict[str, Topic], list[str | None]]:
    racks = RACKS[: draws.integer(2, 3)]
    replicas = draws.integer(1, 2)
    placed: dict[str, Topic] = {}
    for name, topic in topics.items():
        if draws.chance(0.1):
            placed[name] = topic
            continue
        drawn = [tuple(draws.sample(racks, replicas)) for _ in range(topic.partitions)]
        if draws.chance(0.1):
            drawn = [() if draws.chance(0.3) else one for one in drawn]
        placed[name] = Topic(topic.partitions, tuple(drawn))
    among: tuple[str | None, ...] = racks if draws.chance(0.7) else (*racks, None, "elsewhere")
    return placed, draws.choices(among, members)


def rack_friendly_group(draws: RandomSource, knobs: Knobs) -> Group:
    """Draw a group whose racks each have exactly as many partitions of each topic as their members should have."""
    racks = RACKS[: draws.integer(2, 3)]
    on_rack = [draws.integer(1, 2) for _ in racks]
    ids = draw_names(draws, sum(on_rack), "c", knobs)
    topics = {}
    names = draw_names(draws, draws.integer(1, min(2, knobs.max_topics)), "t", knobs)
    # of different sizes: range keeps topics of one size aligned, whatever that costs in racks
    for name, each in zip(names, draws.sample((1, 2, 3), len(names)), strict=True):
        homes = [rack for rack, members in zip(racks, on_rack, strict=True) for _ in range(members * each)]
        placed = [(rack, "elsewhere") if draws.chance(0.2) else (rack,) for rack in draws.sample(homes, len(homes))]
        placed = [replicas[::-1] if draws.chance(0.5) else replicas for replicas in placed]
        topics[name] = Topic(len(homes), tuple(placed))
    homes = [rack for rack, members in zip(racks, on_rack, strict=True) for _ in range(members)]
    everything = tuple(topics)
    return Group(
        topics, {i: Member(everything, rack=rack) for i, rack in zip(ids, draws.sample(homes, len(ids)), strict=True)}
    )


def draw_loads(draws: RandomSource, topics: dict[str, Topic]) -> dict[str, Topic]:
    alike = draws.chance(0.2)
    loaded: dict[str, Topic] = {}
    for name, topic in topics.items():
        if draws.chance(0.85):
            loads = (3.0,) * topic.partitions if alike else tuple(draws.choices(LOADS, topic.partitions))
            topic = Topic(topic.partitions, topic.racks, loads)
        loaded[name] = topic
    return loaded
