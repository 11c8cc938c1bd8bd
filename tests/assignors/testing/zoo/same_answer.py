"""Bugs of assignors that do not give the same answer to the same group."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from typing import Any

from tests.assignors.testing.good import Shares, blocks, readers
from tests.assignors.testing.zoo.registry import bug


def dealt(group: Any, who: Callable[[list[str]], list[str]]) -> Shares:
    """Each topic by itself, to its readers in the order that `who` puts them in."""
    shares: Shares = {member_id: {} for member_id in group.members}
    for name, topic in group.topics.items():
        takers = who(readers(group, name))
        for partition in range(topic.partitions) if takers else ():
            shares[takers[partition % len(takers)]].setdefault(name, []).append(partition)
    return shares


def beginning_at(who: list[str], place: int) -> list[str]:
    return [*who[place % len(who) :], *who[: place % len(who)]] if who else []


def dealt_in_turn(group: Any, names: Iterable[str], turn: int = 0) -> Shares:
    """One topic after the other, each going on where the last one stopped."""
    shares: Shares = {member_id: {} for member_id in group.members}
    for name in names:
        who = readers(group, name)
        for partition in range(group.topics[name].partitions) if who and name in group.topics else ():
            shares[who[turn % len(who)]].setdefault(name, []).append(partition)
            turn += 1
    return shares


@bug("pure")
class SortsItsInput:
    def assign(self, group: Any) -> Shares:
        for member in group.members.values():
            for partitions in member.owned.values():
                partitions.sort(reverse=True)
        return blocks(group)


@bug("pure")
class DropsMembersFromItsInput:
    def assign(self, group: Any) -> Shares:
        shares = blocks(group)
        for member_id, member in group.members.items():
            if not member.topics:
                group.members.pop(member_id)
        return shares


@bug("pure")
class SortsItsInputTheSecondTime:
    """And a new instance would never show it."""

    def __init__(self) -> None:
        self.asked = 0

    def assign(self, group: Any) -> Shares:
        self.asked += 1
        for member in group.members.values() if self.asked > 1 else ():
            for partitions in member.owned.values():
                partitions.sort(reverse=True)
        return blocks(group)


@bug("pure")
class GoesBehindWhatIsFrozen:
    def assign(self, group: Any) -> Shares:
        shares = blocks(group)
        for member in group.members.values():
            object.__setattr__(member, "topics", tuple(sorted(member.topics)))
        return shares


@bug("order-independent")
class GoesByTheOrderOfASubscription:
    def assign(self, group: Any) -> Shares:
        named = [name for _, member in sorted(group.members.items()) for name in member.topics]
        return dealt_in_turn(group, dict.fromkeys(named))


@bug("deterministic")
class UsesRandomness:
    def assign(self, group: Any) -> Shares:
        who = sorted(group.members)
        random.shuffle(who)
        names = dict(zip(sorted(group.members), who, strict=True))
        if any(set(m.topics) != set(group.members[names[i]].topics) for i, m in group.members.items()):
            return blocks(group)
        shares = blocks(group)
        return {names[member_id]: share for member_id, share in shares.items()}


@bug("deterministic")
class WalksASet:
    """In the order of string hashes, which differ from process to process."""

    def assign(self, group: Any) -> Shares:
        return dealt(group, lambda who: list(set(who)))


@bug("deterministic")
class StartsWhereItStopped:
    """The turn goes on from call to call, in the instance."""

    def __init__(self) -> None:
        self.turn = 0

    def assign(self, group: Any) -> Shares:
        shares = dealt_in_turn(group, sorted(group.topics), self.turn)
        self.turn += sum(len(partitions) for share in shares.values() for partitions in share.values())
        return shares


@bug("deterministic")
class CountsCallsInTheClass:
    calls = 0

    def assign(self, group: Any) -> Shares:
        CountsCallsInTheClass.calls += 1
        return dealt(group, lambda who: beginning_at(who, self.calls // 50))


CACHE: dict[Any, Any] = {}


@bug("deterministic")
class CachesByMembersOnly:
    """Right for the first group of these members, wrong for the next: the cache is the module's."""

    def assign(self, group: Any) -> Shares:
        alike = tuple(sorted((i, m.topics) for i, m in group.members.items()))
        sizes = sum(topic.partitions for topic in group.topics.values())
        first = CACHE.setdefault(alike, sizes)
        shares = blocks(group)
        if first % 2 and len({m.topics for m in group.members.values()}) == 1:
            who = sorted(shares)
            shares = {a: shares[b] for a, b in zip(who, reversed(who), strict=True)}
        return shares


@bug("deterministic")
class KeepsItsAnswerForTheseNames:
    """In the instance: topics that have grown since are answered as they were."""

    def __init__(self) -> None:
        self.answers: dict[Any, Shares] = {}

    def assign(self, group: Any) -> Shares:
        names = tuple(sorted(group.members)), tuple(sorted(group.topics))
        return self.answers.setdefault(names, blocks(group))


@bug("deterministic")
class GoesByAddresses:
    """By where in memory a name happens to lie."""

    def assign(self, group: Any) -> Shares:
        return dealt(group, lambda who: sorted(who, key=id))


@bug("deterministic")
class GoesByTheClock:
    """Fair in the long run, it says."""

    def assign(self, group: Any) -> Shares:
        return dealt(group, lambda who: beginning_at(who, int(time.time() * 3)))


@bug("order-independent")
class DoesNotSortMembers:
    def assign(self, group: Any) -> Shares:
        return dealt(group, lambda who: sorted(who, key=list(group.members).index))


@bug("order-independent")
class DependsOnTheOrderOfTopics:
    def assign(self, group: Any) -> Shares:
        return dealt_in_turn(group, group.topics)
