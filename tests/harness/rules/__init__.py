"""Rules of the protocols, for tests that look for bugs in the machines: what every run holds to, beyond invariants.py.

callbacks       applications are given what they do not have, give up what they have, and read nothing else
                (callbacks.py); and of what they keep, cooperative members give up nothing (cooperative.py)
commits         what is committed stays so, and who gives up partitions in good order has committed first (commits.py)
members only    a coordinator accepts heartbeats, SyncGroup and commits of present members in the present generation or
                epoch, and has no sessions of others
members heard   and of those it refuses none, nor leaves them without an answer
as assigned     members of a classic group are given what their leader has sent for them
epochs go up    generations and member epochs do, and a member's not before it has given up what it must
released first  KIP-848: nobody is given what another has
time to rejoin  a classic rebalance waits for who was in the group, and not longer than it may
sessions        nobody is removed who is heard; who is killed is, in time; and who is well, or takes its leave, is heard
                (these seven: classic.py, consumer.py; who is well: health.py)
migrations      and all of these of classic members in consumer groups (mixed.py), across upgrades and downgrades, which
                come when they are due, and after which who is left rebalances (crossing.py, group.py)

Given      facts, and the messages of the coordinator's broker (`simulate(..., messages=True)`)
Raises     Broken, as the invariants do
Start at   ProtocolChecker.feed
"""

from __future__ import annotations

from rebalance_lab.harness.measure.trace import Fact
from tests.harness.rules.callbacks import Callbacks
from tests.harness.rules.commits import Commits
from tests.harness.rules.cooperative import Cooperation
from tests.harness.rules.group import GroupRules
from tests.harness.rules.health import Health

OF_THE_GROUP = frozenset(("asks", "answers", "timer", "group", "coordinator", "topic", "process", "lag", "end"))
OF_CALLBACKS = frozenset(("process", "callback", "reads", "stops"))
OF_COMMITS = OF_CALLBACKS | {"asks", "answers", "durable", "expired", "topic", "group", "coordinator", "event"}


class ProtocolChecker:
    def __init__(self, *, lossy: bool = False, auto_commit: bool = True) -> None:
        self.callbacks = Callbacks()
        self.health = Health(lossy=lossy)
        self.group = GroupRules(self.health)
        self.commits = Commits(self.health, auto_commit=auto_commit)
        self.cooperation = Cooperation()

    def feed(self, fact: Fact) -> None:
        self.health.feed(fact)
        if fact["fact"] in OF_THE_GROUP:
            self.group.feed(fact)
        if fact["fact"] in OF_CALLBACKS:
            self.callbacks.feed(fact)
        if fact["fact"] in OF_COMMITS:
            self.commits.feed(fact)
            self.cooperation.feed(fact)
