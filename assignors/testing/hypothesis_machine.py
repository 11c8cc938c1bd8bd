"""Run churn as a Hypothesis state machine: its rules change a group, its invariants are what every rebalance must keep.

    TestMine = churn_machine(Mine).TestCase         # pytest collects it

Given      an assignor (class, instance or `package.module:Class`); `machines` if the churn should run through more than
           rebalance rounds: ProtocolChurn (rebalance_lab.harness.conversation.protocol_churn) runs real members and
           a real coordinator
Returns    a RuleBasedStateMachine; a failure is printed by Hypothesis as the shortest program of rules that shows it
"""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from rebalance_lab.assignors.model import Group, Member, Topic
from rebalance_lab.assignors.testing.properties.churn import handing_over
from rebalance_lab.assignors.testing.sampling.group_events import (
    Crash,
    Delete,
    DuplicateClaim,
    Event,
    Grow,
    Join,
    Leave,
    MoveRack,
    Resubscribe,
)
from rebalance_lab.assignors.testing.subject.answers import NotApplicable
from rebalance_lab.assignors.testing.subject.rounds import ChurnDriver, DriverFactory, MachineFactory, Rounds
from rebalance_lab.assignors.testing.subject.targets import target_of

IDS = ("a", "b", "c", "d", "e")
TOPICS = ("t", "u")
RACKS = ("r1", "r2")


def churn_machine(
    assignor: object,
    *,
    promises: Collection[str] = (),
    driver: DriverFactory = Rounds,
    machines: MachineFactory | None = None,
) -> type[RuleBasedStateMachine]:
    target = target_of(assignor, promises)

    class ChurnMachine(RuleBasedStateMachine):
        """Run members a to e and topics t and u. Every event is followed by rebalances until nothing is withheld."""

        def __init__(self) -> None:
            super().__init__()
            self.subject = target.subject()
            self.present: set[str] = set()
            self.driver: ChurnDriver | None = None

        @initialize(
            partitions=st.tuples(st.integers(0, 4), st.integers(0, 3)),
            first=st.sampled_from(IDS),
            racks=st.booleans(),
        )
        def start(self, partitions: tuple[int, int], first: str, racks: bool) -> None:
            topics = {
                name: Topic(count, tuple((RACKS[p % 2],) for p in range(count)) if racks else None)
                for name, count in zip(TOPICS, partitions, strict=True)
            }
            group = Group(topics, {first: Member(TOPICS)})
            if machines is not None:
                self.driver = machines(self.subject, group)
            else:
                self.driver = driver(handing_over(self.subject), group)
            self.present = {first}
            self.settle()

        def happens(self, event: Event) -> None:
            assert self.driver is not None
            self.driver.apply(event)
            self.settle()

        def settle(self) -> None:
            assert self.driver is not None
            try:
                with self.subject.watched():
                    self.driver.settle()
            except NotApplicable:  # no member is left, or the class waives this kind of group
                return

        @rule(member=st.sampled_from(IDS), topics=st.sets(st.sampled_from(TOPICS), min_size=1))
        def join(self, member: str, topics: set[str]) -> None:
            self.present.add(member)
            self.happens(Join(member, tuple(sorted(topics))))

        @precondition(lambda self: len(self.present) > 1)
        @rule(data=st.data())
        def leave(self, data: st.DataObject) -> None:
            member = data.draw(st.sampled_from(sorted(self.present)))
            self.present.discard(member)
            self.happens(Leave(member))

        @precondition(lambda self: len(self.present) > 1)
        @rule(data=st.data())
        def crash(self, data: st.DataObject) -> None:
            self.happens(Crash(data.draw(st.sampled_from(sorted(self.present)))))

        @rule(member=st.sampled_from(IDS), topics=st.sets(st.sampled_from(TOPICS), min_size=1))
        def resubscribe(self, member: str, topics: set[str]) -> None:
            self.happens(Resubscribe(member, tuple(sorted(topics))))

        @rule(topic=st.sampled_from(TOPICS), by=st.integers(1, 3))
        def grow(self, topic: str, by: int) -> None:
            self.happens(Grow(topic, by))

        @rule(topic=st.sampled_from(TOPICS))
        def delete(self, topic: str) -> None:
            self.happens(Delete(topic))

        @rule(member=st.sampled_from(IDS), rack=st.sampled_from(RACKS))
        def move_rack(self, member: str, rack: str) -> None:
            self.happens(MoveRack(member, rack))

        @rule(member=st.sampled_from(IDS), of=st.sampled_from(IDS))
        def duplicate_claim(self, member: str, of: str) -> None:
            self.happens(DuplicateClaim(member, of))

    ChurnMachine.__name__ = ChurnMachine.__qualname__ = f"Churn of {target.name}"
    return ChurnMachine
