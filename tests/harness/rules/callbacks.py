"""What an application is called with: it is given what it does not have, and gives up what it has.

ConsumerRebalanceListener promises it, and state stores, caches and transactions of applications rest on it.

assigned   only what the process does not have
revoked    only what it has. What it was called to revoke just before may be among it where the rebalance did not go on
           to onPartitionsAssigned, because the member was fenced or closed: Java forgets it only then
lost       likewise, and all that it has: who is no longer a member is so of everything
reads      only what it was called with, and not what it has given up: at the latest when it gives up more

Given      facts about processes; of one whose start is not among them nothing is known, and nothing asked
Start at   Callbacks.feed
"""

from __future__ import annotations

from rebalance_lab.harness.measure.broken_invariant import Broken
from rebalance_lab.harness.measure.trace import Fact, flat
from rebalance_lab.protocol_v1.common.member_effects import Callback, TopicPartition

INVARIANT = "callbacks"


class Callbacks:
    def __init__(self) -> None:
        self.held: dict[str, set[TopicPartition]] = {}
        """By process: what onPartitionsAssigned has brought, and nothing has taken yet."""
        self.read: dict[str, set[TopicPartition]] = {}
        self.giving: dict[str, tuple[int, set[TopicPartition]]] = {}
        """What the last callback gives up, and until when it takes: meanwhile its member may hear where to begin."""

    def feed(self, fact: Fact) -> None:
        name = fact["member"]
        if fact["fact"] == "process":
            if fact["is"] == "started":
                self.held[name], self.read[name] = set(), set()
            return
        held = self.held.get(name)
        if held is None:
            return
        partitions = set(flat(fact["partitions"]))
        match fact["fact"]:
            case "reads":
                until_ms, giving = self.giving.get(name, (-1, set()))
                unknown = partitions - held if until_ms < fact["t"] else partitions - held - giving
                hold(not unknown, fact, "reads what it was not called with", unknown)
                self.read[name] |= partitions
            case "stops":
                self.read[name] -= partitions
            case "callback":
                if fact["callback"] == Callback.ASSIGNED.value:
                    hold(held.isdisjoint(partitions), fact, "is given what it has", held & partitions)
                    held |= partitions
                    self.giving.pop(name, None)
                else:
                    hold(self.read[name] <= held, fact, "still reads what it gave up before", self.read[name] - held)
                    lost = fact["callback"] == Callback.LOST.value
                    known = held | self.giving.get(name, (0, set()))[1]
                    hold(partitions <= known, fact, "gives up what it does not have", partitions - known)
                    hold(not lost or held <= partitions, fact, "loses only a part, and keeps", held - partitions)
                    held -= partitions
                    self.giving[name] = fact["t"] + fact.get("ms", 0), partitions


def hold(holds: bool, fact: Fact, message: str, partitions: set[TopicPartition]) -> None:
    if not holds:
        shown = ", ".join(f"{topic}-{index}" for topic, index in sorted(partitions)[:5])
        raise Broken(INVARIANT, f"{fact['member']} {message}: {shown}", fact["t"])
