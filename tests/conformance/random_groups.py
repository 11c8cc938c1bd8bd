"""Groups drawn from a seed, chosen to meet every corner of Kafka's assignors: no two runs of a seed differ.

Sizes      0-40 members, 0-12 topics, 0-60 partitions, most of them small, where corners are close to each other
Topics     subscriptions equal, equal but in another order, different, in buckets, with duplicates, unknown or empty
Owned      nothing, a clean share-out, one with stale generations, claims that overlap, that no partition answers to
Other      racks for some or for all, static members, ids in all of unicode and ids whose hash codes collide
Start at   random_group, random_chain, large_group
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

from rebalance_lab.assignors.model import Group, Member, Topic

Answer = Mapping[str, Mapping[str, Sequence[int]]]

UNICODE = "aZ09-_é\u07ff\u0800\u4e2d\ud7ff\ue000\ufffd\U00010000\U0001f600\U0010ffff"
RACKS = ("r0", "r1", "r2", "r3")


def random_group(rng: Random) -> Group:
    topics = random_topics(rng)
    members = dict.fromkeys(random_names(rng, random_size(rng, 40), "c"), Member())
    subscribe(rng, topics, members)
    if rng.random() < 0.75:
        claim(rng, topics, members)
    place(rng, topics, members)
    return Group(topics, members)


def random_size(rng: Random, largest: int) -> int:
    draw = rng.random()
    return rng.randint(0, 5 if draw < 0.6 else max(5, largest // 3) if draw < 0.9 else largest)


def random_names(rng: Random, count: int, prefix: str) -> list[str]:
    style = rng.random()
    names: dict[str, None] = {}
    while len(names) < count:
        if style < 0.45:
            name = f"{prefix}{rng.randrange(2 * count)}"
        elif style < 0.7:
            name = f"{prefix}onsumer-{rng.randrange(count) + 1}-{rng.getrandbits(64):016x}"
        elif style < 0.85:
            name = "".join(rng.choice(UNICODE) for _ in range(rng.randint(1, 5)))
        else:
            # "Aa" and "BB" have one hash code, and so have all words made of as many of them.
            name = "".join(rng.choice(("Aa", "BB")) for _ in range(6)) + rng.choice(("", "", "x", "yz"))
        names[name] = None
    return list(names)


def random_topics(rng: Random) -> dict[str, Topic]:
    names = random_names(rng, random_size(rng, 12), "t")
    one_size = rng.random() < 0.3 and random_size(rng, 60)
    return {name: Topic(one_size or random_size(rng, 60)) for name in names}


def subscribe(rng: Random, topics: Mapping[str, Topic], members: dict[str, Member]) -> None:
    names = list(topics)
    if rng.random() < 0.1:
        names += ["unknown", "unknown too"][: rng.randint(1, 2)]
    style = rng.random()
    everything = tuple(rng.sample(names, len(names)))
    buckets = rng.randint(1, 5)
    for i, member_id in enumerate(members):
        if style < 0.45:
            chosen = everything
        elif style < 0.55:
            chosen = tuple(rng.sample(names, len(names)))
        elif style < 0.65:
            chosen = everything[i % buckets :: buckets]
        else:
            chosen = tuple(rng.sample(names, rng.randint(0 if rng.random() < 0.3 else min(1, len(names)), len(names))))
        if style > 0.9 and chosen and rng.random() < 0.3:
            chosen += tuple(rng.choices(chosen, k=rng.randint(1, 2)))
        if style > 0.97:
            chosen = chosen[: rng.randint(0, 2)]
        members[member_id] = replace(members[member_id], topics=chosen)


def claim(rng: Random, topics: Mapping[str, Topic], members: dict[str, Member]) -> None:
    """Partitions are dealt at random; then claims are spoiled in the way that the draw says."""
    ids = list(members)
    if not ids:
        return
    overlap = rng.choice((0, 0, 0, 0.1, 0.5))
    coverage = rng.choice((0.3, 0.8, 1, 1))
    owned: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in ids}
    few = ids[: rng.randint(1, len(ids))]
    subscribed_only = rng.random() < 0.8
    for name, topic in topics.items():
        candidates = [i for i in few if name in members[i].topics] if subscribed_only else few
        for partition in range(topic.partitions):
            if candidates and rng.random() < coverage:
                owned[rng.choice(candidates)].setdefault(name, []).append(partition)
                while rng.random() < overlap:
                    owned[rng.choice(ids)].setdefault(name, []).append(partition)
    if rng.random() < 0.08:
        claim_what_is_not_there(rng, list(topics), owned)
    generation = rng.randint(0, 5)
    style = rng.random()
    for member_id in ids:
        mine = {
            name: partitions if rng.random() < 0.1 else sorted(set(partitions))
            for name, partitions in owned[member_id].items()
        }
        member = members[member_id] = replace(members[member_id], owned=mine)
        if style < 0.5:
            mine_in: int | None = generation
        else:
            mine_in = rng.choice((generation, generation, generation - 1, generation - 2, None, 0))
        claimed_in = rng.choice((None, generation, generation - 1, 7)) if style > 0.9 else None
        members[member_id] = replace(member, generation=mine_in, claim_generation=claimed_in)


def claim_what_is_not_there(rng: Random, names: list[str], owned: dict[str, dict[str, list[int]]]) -> None:
    for _ in range(rng.randint(1, 3)):
        name = rng.choice([*names, "gone"])
        partition = rng.choice((rng.randint(0, 70), rng.randint(0, 6), 2**30, -1))
        owned[rng.choice(list(owned))].setdefault(name, []).append(partition)


def place(rng: Random, topics: dict[str, Topic], members: dict[str, Member]) -> None:
    """Racks and instance ids."""
    if rng.random() < 0.4:
        racks = RACKS[: rng.randint(1, 4)]
        replicas = rng.randint(1, 3)
        for name, topic in topics.items():
            if rng.random() < 0.85:
                drawn = [rng.sample(racks, min(replicas, len(racks))) for _ in range(topic.partitions)]
                if rng.random() < 0.1:
                    drawn = [[] if rng.random() < 0.3 else one for one in drawn]
                topics[name] = replace(topic, racks=tuple(map(tuple, drawn)))
        among = (*racks, *rng.choice(((), (None,), (None, "elsewhere"), ("",))))
        for member_id, member in members.items():
            members[member_id] = replace(member, rack=rng.choice(among))
    if rng.random() < 0.25:
        static = [member_id for member_id in members if rng.random() < 0.6]
        instances = random_names(rng, len(static), "i")
        if len(static) > 1 and rng.random() < 0.1:
            instances[0] = instances[1]
        for member_id, instance in zip(static, instances, strict=True):
            members[member_id] = replace(members[member_id], instance_id=instance)


def random_chain(rng: Random, group: Group, assign: Callable[[Group], Answer | None], steps: int = 6) -> list[Group]:
    """Rebalances after one another: each group owns what the assignor gave it before, less what happened since."""
    groups = [group]
    next_generation = 1 + max([m.generation or 0 for m in group.members.values()], default=0)
    while len(groups) < steps:
        answer = assign(group)
        if answer is None:
            break
        group = after_some_life(rng, group.after(answer, next_generation), group)
        groups.append(group)
        next_generation += 1
    return groups


def after_some_life(rng: Random, group: Group, before: Group) -> Group:
    """Members leave, join, subscribe anew or miss a generation; topics grow and sometimes shrink."""
    members, topics = dict(group.members), dict(group.topics)
    for member_id, member in list(members.items()):
        draw = rng.random()
        if draw < 0.1:
            del members[member_id]
        elif draw < 0.15:
            members[member_id] = before.members[member_id]  # was away: comes back with what it owned then
        elif draw < 0.2 and topics:
            members[member_id] = replace(member, topics=tuple(rng.sample(list(topics), rng.randint(1, len(topics)))))
    for _ in range(rng.choice((0, 0, 1, 3))):
        like = rng.choice(list(members.values())).topics if members else tuple(topics)
        members.setdefault(rng.choice(random_names(rng, 3, "j")), Member(topics=like))
    if topics and rng.random() < 0.25:
        name = rng.choice(list(topics))
        topic = topics[name]
        count = max(0, topic.partitions + rng.choice((1, 2, 5, 5, -1)))
        racks = (
            topic.racks and (topic.racks * 2 + ((),) * 5)[:count] if topic.racks is None or len(topic.racks) else None
        )
        topics[name] = Topic(count, racks)
        return Group(topics, members)
    return group.with_members(members)


def large_group(rng: Random, members: int = 2_000, partitions: int = 20_000) -> Group:
    """Half of them with different subscriptions, but each to nearly everything: where few members share a topic, Java's
    sticky assignors take minutes for one answer."""
    topic_count = rng.choice((10, 50, 200))
    names = [f"topic-{i}" for i in range(topic_count)]
    racks = rng.random() < 0.3 and [tuple(rng.sample(RACKS, 2)) for _ in range(partitions)]
    size = partitions // topic_count
    topics = {
        name: Topic(size, tuple(racks[i * size : (i + 1) * size]) if racks else None) for i, name in enumerate(names)
    }
    subscriptions = [tuple(names)]
    if rng.random() < 0.5:
        subscriptions += [tuple(rng.sample(names, topic_count - rng.randint(0, 2))) for _ in range(20)]
    ids = [f"consumer-{rng.getrandbits(64):016x}" for _ in range(members)]
    return Group(
        topics,
        {i: Member(topics=rng.choice(subscriptions), rack=rng.choice(RACKS) if racks else None) for i in ids},
    )
