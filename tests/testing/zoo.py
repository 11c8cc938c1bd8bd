"""The zoo: assignors with one bug each, and the property that has to find it. Most are a line away from a good one.

Start at   BUGS, at the end; test_zoo.py asks that each is caught by the property named in `caught_by`
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from itertools import cycle, pairwise
from typing import Any

from tests.testing.good import Shares, as_shares, blocks, holders, levelled, readers

BUGS: list[type] = []


def bug(caught_by: str, promises: tuple[str, ...] = (), **more: Any) -> Callable[[type], type]:
    """`small=False` where the bug does not show in 3 members and 4 partitions at all."""

    def add(cls: type) -> type:
        described = {"name": cls.__name__, "caught_by": caught_by, "promises": promises, "small": True} | more
        for key, value in described.items():
            setattr(cls, key, value)
        BUGS.append(cls)
        return cls

    return add


# What is given, and to whom


@bug("valid")
class OffByOne:
    def assign(self, group: Any) -> Shares:
        shares = blocks(group)
        for share in shares.values():
            for partitions in share.values():
                partitions[-1] += 1
        return shares


@bug("valid")
class ForgetsTheLastPartition:
    def assign(self, group: Any) -> Shares:
        shares = blocks(group)
        for name, topic in group.topics.items():
            for share in shares.values():
                share[name] = [p for p in share.get(name, []) if p != topic.partitions - 1]
        return shares


@bug("valid")
class ForgetsTheRemainder:
    def assign(self, group: Any) -> Shares:
        shares: Shares = {member_id: {} for member_id in group.members}
        for name, topic in group.topics.items():
            who = readers(group, name)
            size = topic.partitions // len(who) if who else 0
            for i, member_id in enumerate(who):
                shares[member_id][name] = list(range(i * size, (i + 1) * size))
        return shares


@bug("valid")
class GivesEverythingToEverybody:
    def assign(self, group: Any) -> Shares:
        return {
            i: {name: list(range(group.topics[name].partitions)) for name in m.topics if name in group.topics}
            for i, m in group.members.items()
        }


@bug("valid")
class IgnoresSubscriptions:
    def assign(self, group: Any) -> Shares:
        shares: Shares = {member_id: {} for member_id in group.members}
        turn = cycle(sorted(group.members))
        for name, topic in sorted(group.topics.items()):
            for partition in range(topic.partitions) if group.members else ():
                shares[next(turn)].setdefault(name, []).append(partition)
        return shares


@bug("valid")
class GivesTopicsThatNobodyReads:
    def assign(self, group: Any) -> Shares:
        shares = blocks(group)
        for name, topic in group.topics.items():
            if topic.partitions and group.members and not readers(group, name):
                shares[min(group.members)][name] = list(range(topic.partitions))
        return shares


@bug("valid")
class CountsPartitionsFromMinusOne:
    def assign(self, group: Any) -> Shares:
        return {m: {t: [p - 1 for p in ps] for t, ps in share.items()} for m, share in blocks(group).items()}


@bug("valid")
class AnswersForAMemberThatIsNotThere:
    def assign(self, group: Any) -> Shares:
        shares = blocks(group)
        if len(shares) > 1:
            shares["leader"] = shares.pop(min(shares))
        return shares


@bug("valid")
class TrustsConflictingClaims:
    """Gives a partition to everybody who says it is theirs."""

    def assign(self, group: Any) -> Shares:
        shares = {i: {t: list(ps) for t, ps in m.owned.items()} for i, m in group.members.items()}
        kept = {(t, p) for share in shares.values() for t, ps in share.items() for p in ps}
        for member_id, share in blocks(group).items():
            for topic, partitions in share.items():
                shares[member_id].setdefault(topic, []).extend(p for p in partitions if (topic, p) not in kept)
        for member_id, share in shares.items():
            for topic in list(share):
                if topic not in group.topics or topic not in group.members[member_id].topics:
                    del share[topic]
        return shares


@bug("valid")
class KeepsPartitionsOfADeletedTopic:
    def assign(self, group: Any) -> Shares:
        shares = as_shares(group, levelled(group))
        for member_id, member in group.members.items():
            for topic, partitions in member.owned.items():
                if topic not in group.topics:
                    shares[member_id][topic] = list(partitions)
        return shares


@bug("valid")
class LosesEverythingWhenATopicIsDeleted:
    def assign(self, group: Any) -> Shares:
        named = {topic for member in group.members.values() for topic in (*member.topics, *member.owned)}
        return blocks(group) if named <= group.topics.keys() else {}


@bug("valid")
class KeepsWhatItNoLongerSubscribesTo:
    def assign(self, group: Any) -> Shares:
        shares = as_shares(group, levelled(group))
        for member_id, member in group.members.items():
            for topic, partitions in member.owned.items():
                if topic in group.topics and topic not in member.topics and not readers(group, topic):
                    shares[member_id][topic] = [p for p in partitions if p < group.topics[topic].partitions]
        return shares


@bug("valid")
class KeepsPartitionsThatAreGone:
    """A topic was created again with fewer partitions."""

    def assign(self, group: Any) -> Shares:
        shares = blocks(group)
        for member_id, member in group.members.items():
            for topic, partitions in member.owned.items():
                if topic in shares[member_id]:
                    shares[member_id][topic] += [p for p in partitions if p >= group.topics[topic].partitions]
        return shares


@bug("valid")
class CountsATopicTwiceWhenNamedTwice:
    def assign(self, group: Any) -> Shares:
        shares: Shares = {member_id: {} for member_id in group.members}
        for name, topic in group.topics.items():
            who = sorted(i for i, m in group.members.items() for t in m.topics if t == name)
            for i, member_id in enumerate(who):
                shares[member_id][name] = list(range(i, topic.partitions, len(who)))
        return shares


@bug("valid", small=False)
class StopsAtSixteenMembers:
    def assign(self, group: Any) -> Shares:
        return dict(list(blocks(group).items())[:16])


@bug("valid", small=False)
class ReadsPartitionNumbersAsOneDigit:
    def assign(self, group: Any) -> Shares:
        return {m: {t: [int(str(p)[-1]) for p in ps] for t, ps in s.items()} for m, s in blocks(group).items()}


@bug("valid")
class FailsWithoutPartitions:
    def assign(self, group: Any) -> Shares:
        for topic in group.topics.values():
            _ = 1 // topic.partitions
        return blocks(group)


@bug("valid")
class FailsOnTopicsThatDoNotExist:
    def assign(self, group: Any) -> Shares:
        for member in group.members.values():
            for topic in member.topics:
                _ = group.topics[topic].partitions
        return blocks(group)


@bug("valid")
class SpeaksOnlyAscii:
    def assign(self, group: Any) -> Shares:
        for member_id in group.members:
            member_id.encode("ascii")
        return blocks(group)


@bug("valid")
class FailsOnItsSecondGroup:
    """Not quite a bug of state: it shows with any instance that has lived."""

    def assign(self, group: Any) -> Shares:
        if any(m.generation == 0 for m in group.members.values()):
            raise KeyError("generation")
        return blocks(group)


# What the answer is made of


@bug("valid")
class ReturnsNothing:
    def assign(self, group: Any) -> None:
        blocks(group)


@bug("valid")
class ReturnsGenerators:
    def assign(self, group: Any) -> Any:
        return {m: {t: (p for p in ps) for t, ps in s.items()} for m, s in blocks(group).items()}


@bug("valid")
class ReturnsPartitionsAsText:
    def assign(self, group: Any) -> Any:
        return {m: {t: [str(p) for p in ps] for t, ps in s.items()} for m, s in blocks(group).items()}


@bug("valid")
class TakesNoGroup:
    def assign(self) -> Shares:  # the wrong signature
        return {}


@bug("valid")
class EndsTheProcess:
    def assign(self, group: Any) -> Shares:
        if len(group.members) > 1:
            os._exit(3)
        return blocks(group)


@bug("valid")
class EatsMemory:
    def assign(self, group: Any) -> Shares:
        if any(topic.partitions == 3 for topic in group.topics.values()):
            _ = bytearray(1 << 40)
        return blocks(group)


# Same input, same answer


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
        shares: Shares = {member_id: {} for member_id in group.members}
        for name, topic in group.topics.items():
            who = list(set(readers(group, name)))
            for partition in range(topic.partitions) if who else ():
                shares[who[partition % len(who)]].setdefault(name, []).append(partition)
        return shares


@bug("deterministic")
class StartsWhereItStopped:
    """The turn goes on from call to call, in the instance."""

    def __init__(self) -> None:
        self.turn = 0

    def assign(self, group: Any) -> Shares:
        shares: Shares = {member_id: {} for member_id in group.members}
        for name, topic in sorted(group.topics.items()):
            who = readers(group, name)
            for partition in range(topic.partitions) if who else ():
                shares[who[self.turn % len(who)]].setdefault(name, []).append(partition)
                self.turn += 1
        return shares


@bug("deterministic")
class CountsCallsInTheClass:
    calls = 0

    def assign(self, group: Any) -> Shares:
        CountsCallsInTheClass.calls += 1
        shares: Shares = {member_id: {} for member_id in group.members}
        for name, topic in group.topics.items():
            who = readers(group, name)
            for partition in range(topic.partitions) if who else ():
                shares[who[(partition + self.calls // 50) % len(who)]].setdefault(name, []).append(partition)
        return shares


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


@bug("order-independent")
class DoesNotSortMembers:
    def assign(self, group: Any) -> Shares:
        shares: Shares = {member_id: {} for member_id in group.members}
        for name, topic in group.topics.items():
            who = [i for i, m in group.members.items() if name in m.topics]
            for partition in range(topic.partitions) if who else ():
                shares[who[partition % len(who)]].setdefault(name, []).append(partition)
        return shares


@bug("order-independent")
class DependsOnTheOrderOfTopics:
    def assign(self, group: Any) -> Shares:
        shares: Shares = {member_id: {} for member_id in group.members}
        turn = 0
        for name, topic in group.topics.items():
            who = readers(group, name)
            for partition in range(topic.partitions) if who else ():
                shares[who[turn % len(who)]].setdefault(name, []).append(partition)
                turn += 1
        return shares


# Balance


@bug("balanced", ("balanced",))
class RangeThatPromisesBalance:
    def assign(self, group: Any) -> Shares:
        return blocks(group)


@bug("per-topic-balanced", ("per-topic-balanced",))
class GivesThePlainShareAndTheRestToOne:
    def assign(self, group: Any) -> Shares:
        shares = {i: {name: [] for name in m.topics if name in group.topics} for i, m in group.members.items()}
        for name, topic in group.topics.items():
            who = readers(group, name)
            size = topic.partitions // len(who) if who else 0
            for partition in range(topic.partitions) if who else ():
                shares[who[min(partition // size, len(who) - 1) if size else 0]][name].append(partition)
        return shares


@bug("load-balanced", ("load-balanced",))
class IgnoresLoad:
    def assign(self, group: Any) -> Shares:
        return as_shares(group, levelled(group))


@bug("load-balanced", ("load-balanced",))
class IgnoresCapacity:
    def assign(self, group: Any) -> Any:
        from dataclasses import replace

        from assignors.load_aware import LoadAwareAssignor

        alike = {i: replace(m, capacity=1.0, owned={}, generation=None) for i, m in group.members.items()}
        return LoadAwareAssignor().assign(group.with_members(alike))


@bug("balanced", ("balanced", "sticky"))
class OverSticky:
    """Keeps everything, so that a new member waits for somebody to leave."""

    def assign(self, group: Any) -> Shares:
        owner = holders(group)
        count = dict.fromkeys(sorted(group.members), 0)
        for member_id in owner.values():
            count[member_id] += 1
        for name, topic in sorted(group.topics.items()):
            who = readers(group, name)
            for partition in range(topic.partitions) if who else ():
                if (name, partition) not in owner:
                    lightest = min(who, key=lambda m: (count[m], m))
                    owner[name, partition] = lightest
                    count[lightest] += 1
        return as_shares(group, owner)


# Moves


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


# Time: a short limit keeps the tests short


@bug("bounded-time", call_limit_s=1.5)
class NeverEnds:
    """Swaps until all hold the same number, which they never do when it does not divide."""

    def assign(self, group: Any) -> Shares:
        shares = blocks(group)
        while len({sum(map(len, share.values())) for share in shares.values()}) > 1:
            pass
        return shares


@bug("bounded-time", call_limit_s=1.5)
class SleepsOnIt:
    def assign(self, group: Any) -> Shares:
        if any(m.instance_id for m in group.members.values()):
            time.sleep(3600)
        return blocks(group)


@bug("bounded-time", call_limit_s=1.5)
class CannotBeInterrupted:
    """One long operation in C: no signal handler of Python's runs until it is over."""

    def assign(self, group: Any) -> Shares:
        if any(topic.racks for topic in group.topics.values()):
            _ = sum(range(10**12))
        return blocks(group)


@bug("bounded-time", small=False, call_limit_s=1.5)
class TriesEverySubset:
    def assign(self, group: Any) -> Shares:
        best = None
        for chosen in range(2 ** len(group.members)):
            best = chosen
        assert best is not None
        return blocks(group)


@bug("bounded-time", call_limit_s=1.5)
class CatchesEverything:
    def assign(self, group: Any) -> Shares:
        while len(group.members) == 2:
            try:
                time.sleep(0.01)
            except BaseException:  # noqa: BLE001 - that is the bug
                continue
        return blocks(group)
