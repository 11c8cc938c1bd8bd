"""Bugs in what is given, to whom, and what the answer is made of."""

from __future__ import annotations

import os
from itertools import cycle
from typing import Any

from tests.assignors.testing.good import Shares, as_shares, blocks, levelled, readers
from tests.assignors.testing.zoo.registry import bug


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
