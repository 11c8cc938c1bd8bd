"""Assignors without a bug, as people would write them: the kit must have nothing to say about them."""

from __future__ import annotations

from typing import Any

Shares = dict[str, dict[str, list[int]]]


def readers(group: Any, topic: str) -> list[str]:
    return sorted(member_id for member_id, member in group.members.items() if topic in member.topics)


def blocks(group: Any) -> Shares:
    """Per topic one contiguous block for each reader."""
    shares: Shares = {member_id: {} for member_id in group.members}
    for name, topic in group.topics.items():
        who = readers(group, name)
        start = 0
        for i, member_id in enumerate(who):
            size = topic.partitions // len(who) + (i < topic.partitions % len(who))
            if size:
                shares[member_id][name] = list(range(start, start + size))
            start += size
    return shares


def holders(group: Any) -> dict[tuple[str, int], str]:
    """Who holds what by right: the only claim of the highest generation, on what exists and is still read."""
    best: dict[tuple[str, int], tuple[int, list[str]]] = {}
    for member_id, member in group.members.items():
        generation = -1 if member.generation is None else member.generation
        for name, partitions in member.owned.items():
            for partition in partitions:
                known, who = best.setdefault((name, partition), (generation, []))
                if generation > known:
                    best[name, partition] = generation, [member_id]
                elif generation == known:
                    who.append(member_id)
    return {
        (name, partition): who[0]
        for (name, partition), (_, who) in best.items()
        if len(who) == 1
        and name in group.topics
        and partition < group.topics[name].partitions
        and name in group.members[who[0]].topics
    }


def levelled(group: Any) -> dict[tuple[str, int], str]:
    """Keep, place what is free on the lightest reader, then move from heavy to light while that helps."""
    owner = holders(group)
    count = dict.fromkeys(sorted(group.members), 0)
    for member_id in owner.values():
        count[member_id] += 1
    for name in sorted(group.topics):
        who = readers(group, name)
        for partition in range(group.topics[name].partitions) if who else ():
            if (name, partition) not in owner:
                lightest = min(who, key=lambda member_id: (count[member_id], member_id))
                owner[name, partition] = lightest
                count[lightest] += 1
    moved = True
    while moved:
        moved = False
        for place in sorted(owner):
            heavy = owner[place]
            light = min(readers(group, place[0]), key=lambda member_id: (count[member_id], member_id))
            if count[heavy] >= count[light] + 2 and count[heavy] == max(count[owner[p]] for p in owner):
                owner[place] = light
                count[heavy] -= 1
                count[light] += 1
                moved = True
        if not moved:
            for place in sorted(owner):
                heavy = owner[place]
                light = min(readers(group, place[0]), key=lambda member_id: (count[member_id], member_id))
                if count[heavy] >= count[light] + 2:
                    owner[place] = light
                    count[heavy] -= 1
                    count[light] += 1
                    moved = True
                    break
    return owner


def as_shares(group: Any, owner: dict[tuple[str, int], str]) -> Shares:
    shares: Shares = {member_id: {} for member_id in group.members}
    for (name, partition), member_id in sorted(owner.items()):
        shares[member_id].setdefault(name, []).append(partition)
    return shares


class GoodBlocks:
    name = "good-blocks"
    promises = ("per-topic-balanced",)

    def assign(self, group: Any) -> Shares:
        return blocks(group)


class GoodKeeper:
    name = "good-keeper"
    promises = ("valid", "deterministic", "balanced", "sticky")

    def assign(self, group: Any) -> Shares:
        return as_shares(group, levelled(group))


class GoodHandOver:
    name = "good-hand-over"
    promises = ("balanced", "sticky", "cooperative")

    def assign(self, group: Any) -> Shares:
        held: dict[tuple[str, int], dict[str, int]] = {}
        for member_id, member in group.members.items():
            for name, partitions in member.owned.items():
                for partition in partitions:
                    held.setdefault((name, partition), {})[member_id] = member.generation or 0
        owner = {
            place: member_id
            for place, member_id in levelled(group).items()
            if place not in held or held[place].get(member_id, -1) == max(held[place].values())
        }
        return as_shares(group, owner)


class GoodRacks:
    """Per topic: first who is near and below the share, then whoever is below it."""

    name = "good-racks"
    promises = ("rack-aware", "per-topic-balanced")

    def assign(self, group: Any) -> Shares:
        shares: Shares = {member_id: {} for member_id in group.members}
        for name, topic in sorted(group.topics.items()):
            who = readers(group, name)
            if not who:
                continue
            most = topic.partitions // len(who)
            left = list(range(topic.partitions))
            for member_id in who:
                near = [p for p in left if topic.racks and group.members[member_id].rack in topic.racks[p]][:most]
                shares[member_id][name] = near
                left = [p for p in left if p not in near]
            for partition in left:
                least = min(who, key=lambda m: (len(shares[m][name]), m))
                shares[least][name].append(partition)
        return shares


class GoodLoads:
    """Heaviest partition first, to the member that it makes least busy; equal subscriptions do not matter to it."""

    name = "good-loads"
    promises = ("load-balanced",)
    threshold = 0.5

    def assign(self, group: Any) -> Any:
        from rebalance_lab.assignors.classic.load_aware import LoadAwareAssignor

        return {
            m: {t: tuple(ps) for t, ps in s.items()}
            for m, s in LoadAwareAssignor(0.0).assign(self.eager(group)).items()
        }

    def eager(self, group: Any) -> Any:
        from dataclasses import replace

        return group.with_members({i: replace(m, owned={}, generation=None) for i, m in group.members.items()})


class GoodSparse:
    """Leaves out members without anything, answers with tuples and in no particular order: all of that is allowed."""

    name = "good-sparse"

    def assign(self, group: Any) -> Any:
        return {m: {t: tuple(reversed(ps)) for t, ps in s.items()} for m, s in reversed(blocks(group).items()) if s}


class GoodWithSomebody:
    """Cannot answer for a group of nobody, as Java's round robin cannot: no leader is ever asked about one."""

    name = "good-with-somebody"

    def assign(self, group: Any) -> Any:
        first = min(group.members)
        return blocks(group) | {first: blocks(group)[first]}


class Name(str):
    """As some clients have for topics and members."""

    __slots__ = ()


class GoodNames:
    """Its names are equal to the group's, though of a kind of their own."""

    name = "good-names"
    promises = ("per-topic-balanced",)

    def assign(self, group: Any) -> Shares:
        return {Name(m): {Name(t): partitions for t, partitions in s.items()} for m, s in blocks(group).items()}


GOOD = (GoodBlocks, GoodKeeper, GoodHandOver, GoodRacks, GoodLoads, GoodSparse, GoodWithSomebody, GoodNames)
