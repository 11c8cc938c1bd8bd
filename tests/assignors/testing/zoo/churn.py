"""More of the zoo: assignors that answer every single group rightly. Only a life inside a consumer shows the bug.

The hooks are called by real members only: what these classes remember is not there when a group is asked about alone.
"""

from __future__ import annotations

import json
from typing import Any

from tests.assignors.testing.good import GoodHandOver, GoodKeeper, Shares, as_shares, blocks, levelled
from tests.assignors.testing.zoo.registry import bug


@bug("survives-churn")
class TrustsWhatAReturnerRemembers(GoodKeeper):
    """Who was cut off comes back and tells what it had. It has been somebody else's for a while."""

    def __init__(self) -> None:
        self.had = b"{}"

    def subscription_user_data(self, topics: Any) -> bytes:
        return self.had

    def on_assignment(self, assignment: Any, generation: int) -> None:
        self.had = json.dumps(assignment).encode()

    def assign(self, group: Any) -> Shares:
        told = {i: json.loads(m.user_data or b"{}") for i, m in group.members.items()}
        kept = {
            (topic, partition): member_id
            for member_id, share in sorted(told.items())
            for topic, partitions in share.items()
            for partition in partitions
            if topic in group.members[member_id].topics and partition < group.topics[topic].partitions
        }
        shares = as_shares(group, levelled(group) | kept)
        for member_id, share in told.items():
            for topic, partitions in share.items():
                if topic in shares[member_id]:
                    shares[member_id][topic] = sorted({*shares[member_id][topic], *partitions})
        return shares


@bug("survives-churn")
class FailsAfterALostGeneration(GoodKeeper):
    """Every generation comes after the last one, until somebody misses one."""

    def __init__(self) -> None:
        self.last: int | None = None

    def on_assignment(self, assignment: Any, generation: int) -> None:
        if self.last is not None and generation > self.last + 1:
            raise KeyError(self.last + 1)
        self.last = generation


@bug("survives-churn", ("cooperative",))
class RotatesWithItsOwnClock(GoodHandOver):
    """What it is told moves it on, so the second round of a hand-over starts another one, and so on for ever."""

    def __init__(self) -> None:
        self.turn = 0

    def on_assignment(self, assignment: Any, generation: int) -> None:
        self.turn = generation

    def assign(self, group: Any) -> Shares:
        if not self.turn:
            return super().assign(group)
        held = {(t, p): i for i, m in group.members.items() for t, ps in m.owned.items() for p in ps}
        shares: Shares = {member_id: {} for member_id in group.members}
        for name, topic in group.topics.items():
            who = sorted(i for i, m in group.members.items() if name in m.topics)
            for partition in range(topic.partitions) if who else ():
                wanted = who[(partition + self.turn) % len(who)]
                if held.get((name, partition), wanted) == wanted:
                    shares[wanted].setdefault(name, []).append(partition)
        return shares


@bug("survives-churn", ("cooperative",))
class TheNextLeaderKnowsNothing(GoodHandOver):
    """The leader keeps its own books. Nobody inherits them when it goes, and the others still hold what is in them."""

    def __init__(self) -> None:
        self.joined = False
        self.books: set[tuple[str, int]] = set()

    def on_assignment(self, assignment: Any, generation: int) -> None:
        self.joined = True

    def assign(self, group: Any) -> Shares:
        if self.joined and not self.books:
            return blocks(group)
        shares = super().assign(group)
        self.books = {(t, p) for share in shares.values() for t, ps in share.items() for p in ps}
        return shares
