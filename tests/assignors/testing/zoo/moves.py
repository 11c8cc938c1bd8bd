"""Bugs in what moves, in which steps, and to which rack."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.assignors.testing.good import Shares, as_shares, blocks, holders, levelled, readers
from tests.assignors.testing.zoo.registry import bug


@bug("sticky", ("sticky",))
class SwapsNeedlessly:
    """The first two who hold the same number exchange one partition."""

    def assign(self, group: Any) -> Shares:
        shares = as_shares(group, levelled(group))
        who = sorted(i for i in shares if any(m.owned for m in group.members.values()))
        for a, b in pairwise(who):
            for topic in group.members[a].topics:
                if shares[a].get(topic) and shares[b].get(topic):
                    shares[a][topic][0], shares[b][topic][0] = shares[b][topic][0], shares[a][topic][0]
                    return shares
        return shares


@bug("sticky", ("sticky",))
class RotatesEveryGeneration:
    def assign(self, group: Any) -> Shares:
        generation = max([m.generation or 0 for m in group.members.values()], default=0)
        shares: Shares = {member_id: {} for member_id in group.members}
        for name, topic in group.topics.items():
            who = readers(group, name)
            for partition in range(topic.partitions) if who else ():
                shares[who[(partition + generation) % len(who)]].setdefault(name, []).append(partition)
        return shares


@bug("sticky-leave", ("sticky",))
class StartsAnewWhenSomebodyLeaves:
    """Keeps claims only as long as they cover everything."""

    def assign(self, group: Any) -> Shares:
        claimed = sum(len(ps) for m in group.members.values() for ps in m.owned.values())
        if claimed < sum(topic.partitions for name, topic in group.topics.items() if readers(group, name)):
            return blocks(group)
        return as_shares(group, levelled(group))


@bug("sticky-join", ("sticky",))
class StartsAnewWhenSomebodyJoins:
    def assign(self, group: Any) -> Shares:
        if any(not m.owned for m in group.members.values()):
            return blocks(group)
        return as_shares(group, levelled(group))


@bug("sticky-join", ("sticky",))
class GivesTheNewcomerEverything:
    def assign(self, group: Any) -> Shares:
        new = sorted(i for i, m in group.members.items() if not m.owned)
        shares = as_shares(group, levelled(group))
        if len(new) == 1 and len(group.members) > 1:
            mine = set(group.members[new[0]].topics)
            for name in sorted(mine & group.topics.keys()):
                for share in shares.values():
                    share.pop(name, None)
                shares[new[0]][name] = list(range(group.topics[name].partitions))
        return shares


@bug("minimal-moves", ("balanced", "minimal-moves"))
class BalancesWithoutLookingAtClaims:
    def assign(self, group: Any) -> Shares:
        from dataclasses import replace

        fresh = group.with_members({i: replace(m, owned={}) for i, m in group.members.items()})
        return as_shares(group, levelled(fresh))


@bug("cooperative", ("cooperative",))
class SkipsTheCooperativeStep:
    def assign(self, group: Any) -> Shares:
        return as_shares(group, levelled(group))


@bug("cooperative-rounds", ("cooperative",))
class RevokesOneByOne:
    """Safe, but each rebalance hands over a single partition, and the last one never."""

    def assign(self, group: Any) -> Shares:
        held = {(t, p) for m in group.members.values() for t, ps in m.owned.items() for p in ps if t in group.topics}
        owner, right = levelled(group), holders(group)
        given = {}
        patience = 1
        for place, member_id in sorted(owner.items()):
            if place not in held or right.get(place) == member_id:
                given[place] = member_id
            elif place in right and patience <= 0:
                given[place] = right[place]
            else:
                patience -= 1
        return as_shares(group, given)


@bug("cooperative-rounds", ("cooperative",))
class TakesBackWhatItRevoked:
    """Withholds whatever anybody claims, also from the one who has it."""

    def assign(self, group: Any) -> Shares:
        first = min((i for i, m in group.members.items() if m.owned), default=None)
        owner = levelled(group)
        if first is not None and len(group.members) > 1:
            owner = {place: m for place, m in owner.items() if m != first or place not in holders(group)}
        return as_shares(group, owner)


@bug("rack-aware", ("rack-aware",))
class IgnoresRacks:
    def assign(self, group: Any) -> Shares:
        return blocks(group)


@bug("rack-aware", ("rack-aware",))
class LooksAtTheLeadersRackOnly:
    def assign(self, group: Any) -> Shares:
        shares: Shares = {member_id: {} for member_id in group.members}
        for name, topic in sorted(group.topics.items()):
            who = readers(group, name)
            left = list(range(topic.partitions)) if who else []
            for member_id in who:
                rack = group.members[member_id].rack
                near = [p for p in left if topic.racks and topic.racks[p] and topic.racks[p][0] == rack]
                shares[member_id][name] = near[: topic.partitions // len(who)]
                left = [p for p in left if p not in shares[member_id][name]]
            for partition in left:
                least = min(who, key=lambda m: (len(shares[m][name]), m))
                shares[least][name].append(partition)
        return shares
