"""Each rule of tests/harness/rules, broken on purpose by a handful of facts; and the same facts put right."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from harness.sim.broken import Broken
from harness.sim.trace import Fact
from protocol_v1.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeaveGroupResponseMember,
    MemberIdentity,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    Request,
    Response,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from protocol_v2.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
    TopicPartitions,
)
from tests.harness.rules import ProtocolChecker

Raises = AbstractContextManager[Any]


def breaks(wrong: bool, invariant: str) -> Raises:
    return pytest.raises(Broken, match=f"^{invariant}") if wrong else nullcontext()


class Group:
    """What a broker would whisper of one group."""

    def __init__(self) -> None:
        self.checker = ProtocolChecker()
        self.t = 0

    def feed(self, fact: str, **more: Any) -> None:
        self.checker.feed({"t": self.t, "fact": fact, **more})

    def exchange(self, request: Request, response: Response) -> None:
        self.feed("asks", request=request)
        self.feed("answers", request=request, response=response)

    def state(self, state: str, epoch: int, because: str = "") -> None:
        self.feed("group", state=state, epoch=epoch, because=because, member=None)

    # Classic

    def join(self, generation: int, *members: str, lists: tuple[str, ...] | None = None) -> None:
        """A join phase from its beginning to its end; the first leads."""
        self.state("PreparingRebalance", generation - 1, "member joined")
        self.state("CompletingRebalance", generation, "join phase completed")
        listed = tuple(JoinGroupResponseMember(member_id=one, metadata=b"") for one in lists or members)
        for one in members:
            request = JoinGroupRequest(
                group_id="g",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=60_000,
                member_id=one,
                protocol_type="consumer",
                protocols=(),
                client_id=one,
            )
            leads = one == members[0]
            answer = JoinGroupResponse(generation_id=generation, member_id=one, members=listed if leads else ())
            self.exchange(request, answer)

    def stable(self, generation: int) -> None:
        self.state("Stable", generation, "leader's assignment stored")

    def heartbeat(self, member: str, generation: int) -> None:
        self.exchange(HeartbeatRequest(group_id="g", generation_id=generation, member_id=member), HeartbeatResponse())

    def commit(self, member: str, epoch: int) -> None:
        asked = OffsetCommitRequestTopic(name="o", partitions=(OffsetCommitRequestPartition(0, 5),))
        taken = OffsetCommitResponseTopic(name="o", partitions=(OffsetCommitResponsePartition(partition_index=0),))
        self.exchange(
            OffsetCommitRequest(
                group_id="g", generation_id_or_member_epoch=epoch, member_id=member, topics=(asked,), client_id=member
            ),
            OffsetCommitResponse(topics=(taken,)),
        )

    def leave(self, member: str) -> None:
        gone = LeaveGroupResponseMember(member_id=member, group_instance_id=None)
        self.exchange(
            LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id=member),)),
            LeaveGroupResponse(members=(gone,)),
        )

    # KIP-848

    def beat(
        self,
        member: str,
        epoch: int,
        told: int,
        given: tuple[int, ...] | None = None,
        owns: tuple[int, ...] | None = None,
    ) -> None:
        self.exchange(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=member,
                member_epoch=epoch,
                rebalance_timeout_ms=60_000,
                topic_partitions=None if owns is None else (TopicPartitions("o", owns),),
            ),
            ConsumerGroupHeartbeatResponse(
                member_id=member,
                member_epoch=told,
                heartbeat_interval_ms=5_000,
                assignment=None if given is None else HeartbeatAssignment((TopicPartitions("o", given),)),
            ),
        )


@pytest.mark.parametrize("generation", [1, 2])
def test_heartbeats_and_commits_are_of_the_present_generation(generation: int) -> None:
    group = Group()
    group.join(1, "a", "b")
    group.stable(1)
    group.join(2, "a", "b")
    group.stable(2)
    with breaks(generation == 1, "members only"):
        group.heartbeat("a", generation)
    with breaks(generation == 1, "members only"):
        group.commit("a", generation)


@pytest.mark.parametrize("state", ["Stable", "Empty"])
def test_nobodys_member_commits_to_an_empty_group_only(state: str) -> None:
    group = Group()
    group.join(1, "a")
    group.state(state, 1)
    with breaks(state == "Stable", "members only"):
        group.commit("", -1)


def test_what_was_right_when_it_came_may_be_answered_later() -> None:
    group = Group()
    group.join(1, "a")
    group.stable(1)
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="a")
    group.feed("asks", request=request)
    group.join(2, "a")
    group.feed("answers", request=request, response=HeartbeatResponse())


def test_who_has_left_is_not_heard_and_has_no_session() -> None:
    for wrong in (lambda group: group.heartbeat("b", 1), lambda group: group.feed("timer", of="session", member="b")):
        group = Group()
        group.join(1, "a", "b")
        group.stable(1)
        group.leave("b")
        with breaks(True, "members only"):
            wrong(group)


@pytest.mark.parametrize("given", [b"a's", b"b's"])
def test_everybody_is_given_what_the_leader_has_sent_for_it(given: bytes) -> None:
    group = Group()
    group.join(1, "a", "b")
    sent = tuple(SyncGroupRequestAssignment(member_id=one, assignment=f"{one}'s".encode()) for one in "ab")
    leads = SyncGroupRequest(group_id="g", generation_id=1, member_id="a", assignments=sent)
    group.exchange(leads, SyncGroupResponse(assignment=b"a's"))
    follows = SyncGroupRequest(group_id="g", generation_id=1, member_id="b")
    with breaks(given == b"a's", "as assigned"):
        group.exchange(follows, SyncGroupResponse(assignment=given))


@pytest.mark.parametrize("generation", [1, 2])
def test_every_join_phase_ends_in_a_new_generation(generation: int) -> None:
    group = Group()
    group.join(1, "a")
    with breaks(generation == 1, "epochs go up"):
        group.join(generation, "a")


@pytest.mark.parametrize("loaded", [1, 2])
def test_a_new_coordinator_knows_the_generation_that_was_stored(loaded: int) -> None:
    group = Group()
    for generation in (1, 2):
        group.join(generation, "a")
        group.stable(generation)
    group.join(3, "a")  # not stored
    group.feed("coordinator", **{"is": "down"})
    with breaks(loaded == 1, "epochs go up"):
        group.state("Stable", loaded, "loaded with members")


@pytest.mark.parametrize("waits_ms", [100, 60_000])
def test_who_was_in_the_group_is_given_time_to_rejoin(waits_ms: int) -> None:
    group = Group()
    group.join(1, "a", "b")
    group.stable(1)
    group.state("PreparingRebalance", 1, "leader rejoined")
    group.t += waits_ms
    group.state("CompletingRebalance", 2, "join phase completed")
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=60_000, member_id="a", protocol_type="consumer",
        protocols=(),
    )  # fmt: skip
    alone = (JoinGroupResponseMember(member_id="a", metadata=b""),)
    with breaks(waits_ms == 100, "time to rejoin"):
        group.exchange(request, JoinGroupResponse(generation_id=2, member_id="a", members=alone))


@pytest.mark.parametrize("waits_ms", [60_000, 66_000])
def test_a_rebalance_waits_no_longer_than_it_may(waits_ms: int) -> None:
    group = Group()
    group.join(1, "a", "b")
    group.stable(1)
    group.state("PreparingRebalance", 1, "leader rejoined")
    group.t += waits_ms
    with breaks(waits_ms > 65_000, "time to rejoin"):
        group.feed("lag", records=0)


@pytest.mark.parametrize("silent_ms", [9_000, 10_000])
def test_nobodys_session_ends_while_it_is_heard(silent_ms: int) -> None:
    group = Group()
    group.join(1, "a", "b")
    group.stable(1)
    group.heartbeat("b", 1)
    group.t += silent_ms
    with breaks(silent_ms < 10_000, "sessions"):
        group.feed("timer", of="session", member="b")


@pytest.mark.parametrize("expires", [False, True])
def test_who_was_killed_is_out_when_its_session_is_over(expires: bool) -> None:
    group = Group()
    group.join(1, "a", "b")
    group.stable(1)
    group.feed("process", member="b", **{"is": "killed"})
    group.t += 10_000
    if expires:
        group.feed("timer", of="session", member="b")
    group.t += 6_000
    with breaks(not expires, "sessions"):
        group.feed("lag", records=0)


# KIP-848


@pytest.mark.parametrize("epoch", [2, 3])
def test_epochs_that_nobody_was_told_of_are_not_accepted(epoch: int) -> None:
    group = Group()
    group.beat("a", 0, 2, given=(0,), owns=())
    with breaks(epoch == 3, "members only"):
        group.commit("a", epoch)
    with breaks(epoch == 3, "members only"):
        group.beat("a", epoch, epoch)


def test_who_has_left_a_consumer_group_is_not_heard() -> None:
    for wrong in (
        lambda group: group.beat("a", 2, 2),
        lambda group: group.commit("a", 2),
        lambda group: group.feed("timer", of="consumer-session", member="a"),
    ):
        group = Group()
        group.beat("a", 0, 2, given=(0,), owns=())
        group.beat("a", -1, -1)
        with breaks(True, "members only"):
            wrong(group)


@pytest.mark.parametrize("told", [2, 3])
def test_a_members_epoch_does_not_go_back(told: int) -> None:
    group = Group()
    group.beat("a", 0, 3, given=(0,), owns=())
    with breaks(told == 2, "epochs go up"):
        group.beat("a", 3, told)


@pytest.mark.parametrize("says", [True, False])
def test_an_epoch_goes_up_after_the_acknowledgement(says: bool) -> None:
    group = Group()
    group.beat("a", 0, 2, given=(0, 1), owns=())
    group.beat("a", 2, 2, given=(0,))
    with breaks(not says, "epochs go up"):
        group.beat("a", 2, 3, owns=(0,) if says else None)


@pytest.mark.parametrize("released", ["said", "left", "expired", None])
def test_a_partition_is_given_when_it_is_released(released: str | None) -> None:
    group = Group()
    group.beat("a", 0, 2, given=(0, 1), owns=())
    group.beat("a", 2, 2, given=(0,))
    match released:
        case "said":
            group.beat("a", 2, 3, owns=(0,))
        case "left":
            group.beat("a", -1, -1)
        case "expired":
            group.t += 60_000
            group.feed("timer", of="consumer-rebalance", member="a")
    with breaks(released is None, "released first"):
        group.beat("b", 0, 3, given=(1,), owns=())


@pytest.mark.parametrize("kind", ["consumer-session", "consumer-rebalance"])
def test_nobody_expires_too_early(kind: str) -> None:
    group = Group()
    group.beat("a", 0, 2, given=(0, 1), owns=())
    group.beat("a", 2, 2, given=(0,))
    group.t += 1_000
    with breaks(True, "sessions"):
        group.feed("timer", of=kind, member="a")


def test_where_both_protocols_meet_nothing_is_asked() -> None:
    group = Group()
    group.join(1, "a")
    group.beat("b", 0, 2, given=(0,), owns=())
    group.heartbeat("a", 9)
    group.beat("b", 7, 1)


# Callbacks

O0, O1 = {"o": [0]}, {"o": [1]}
LEGAL: list[tuple[str, dict[str, list[int]]]] = [
    ("onPartitionsAssigned", {"o": [0, 1]}),
    ("onPartitionsRevoked", O0),
    ("onPartitionsAssigned", O0),
    ("onPartitionsRevoked", O1),
    ("onPartitionsLost", {"o": [0, 1]}),
]


def called(*calls: tuple[str, dict[str, list[int]]], started: bool = True) -> None:
    checker = ProtocolChecker()
    if started:
        checker.feed({"t": 0, "fact": "process", "member": "a", "is": "started"})
    for t, (callback, partitions) in enumerate(calls):
        checker.feed({"t": t, "fact": "callback", "member": "a", "callback": callback, "partitions": partitions})


def test_callbacks_in_their_order_are_fine() -> None:
    called(*LEGAL)
    called(("onPartitionsRevoked", O0), started=False)  # of this process not everything is known


@pytest.mark.parametrize(
    "wrong", [("onPartitionsAssigned", O0), ("onPartitionsRevoked", {"o": [2]}), ("onPartitionsLost", O0)]
)
def test_callbacks_out_of_order_are_not(wrong: tuple[str, dict[str, list[int]]]) -> None:
    with breaks(True, "callbacks"):
        called(LEGAL[0], wrong)


@pytest.mark.parametrize("partition", [0, 1])
def test_only_what_was_assigned_is_read(partition: int) -> None:
    checker = ProtocolChecker()
    checker.feed({"t": 0, "fact": "process", "member": "a", "is": "started"})
    checker.feed({"t": 1, "fact": "callback", "member": "a", "callback": "onPartitionsAssigned", "partitions": O0})
    with breaks(partition == 1, "callbacks"):
        reads = {"partitions": {"o": [partition]}, "from": {"o": [0]}}
        checker.feed({"t": 2, "fact": "reads", "member": "a", **reads})


@pytest.mark.parametrize("stops", [False, True])
def test_what_was_given_up_is_not_read_on(stops: bool) -> None:
    checker = ProtocolChecker()
    facts: list[Fact] = [
        {"t": 0, "fact": "process", "member": "a", "is": "started"},
        {"t": 1, "fact": "callback", "member": "a", "callback": "onPartitionsAssigned", "partitions": {"o": [0, 1]}},
        {"t": 2, "fact": "reads", "member": "a", "partitions": {"o": [0, 1]}, "from": {"o": [0, 0]}},
        {"t": 3, "fact": "callback", "member": "a", "callback": "onPartitionsRevoked", "partitions": O0},
    ]
    if stops:
        facts.append({"t": 3, "fact": "stops", "member": "a", "partitions": O0, "at": {"o": [5]}})
    for fact in facts:
        checker.feed(fact)
    with breaks(not stops, "callbacks"):
        checker.feed({"t": 9, "fact": "callback", "member": "a", "callback": "onPartitionsRevoked", "partitions": O1})
