"""Rules of the protocols, for tests that look for bugs in the machines: what every run holds to, beyond invariants.py.

callbacks       applications are given what they do not have, give up what they have, and read nothing else
                (callbacks.py)
members only    a coordinator accepts heartbeats, SyncGroup and commits of present members in the present generation or
                epoch, and has no sessions of others
as assigned     members of a classic group are given what their leader has sent for them
epochs go up    generations and member epochs do, and a member's not before it has given up what it must
released first  KIP-848: nobody is given what another has
time to rejoin  a classic rebalance waits for who was in the group, and not longer than it may
sessions        nobody is removed who is heard; who is killed is, in time (these six: classic.py, consumer.py)

Given      facts, and the messages of the coordinator's broker (`simulate(..., messages=True)`)
Raises     Broken, as the invariants do
Start at   ProtocolChecker.feed
"""

from __future__ import annotations

from harness.sim.trace import Fact
from tests.harness.rules.callbacks import Callbacks
from tests.harness.rules.group import GroupRules

OF_THE_GROUP = frozenset(("asks", "answers", "timer", "group", "coordinator", "topic", "process", "lag", "end"))
OF_CALLBACKS = frozenset(("process", "callback", "reads", "stops"))


class ProtocolChecker:
    def __init__(self) -> None:
        self.callbacks = Callbacks()
        self.group = GroupRules()

    def feed(self, fact: Fact) -> None:
        if fact["fact"] in OF_THE_GROUP:
            self.group.feed(fact)
        if fact["fact"] in OF_CALLBACKS:
            self.callbacks.feed(fact)
