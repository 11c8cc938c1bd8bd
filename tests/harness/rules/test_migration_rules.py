"""The rules about groups that change their protocol, broken on purpose by a handful of facts; and put right."""

from __future__ import annotations

import pytest

from rebalance_lab.protocol_v1.common.consumer_protocol import (
    Assignment,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    Protocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tests.harness.rules.rule_facts import Group, breaks

IN_PROGRESS = Error.REBALANCE_IN_PROGRESS


class Migrating(Group):
    """A classic group of a, which has o-0 and o-1, and c, which has nothing; and b, which upgrades it."""

    def __init__(self) -> None:
        super().__init__()
        self.join(3, "a", "c")
        given = {"a": given_bytes(0, 1), "c": given_bytes()}
        sent = tuple(SyncGroupRequestAssignment(member_id=one, assignment=data) for one, data in given.items())
        for one, data in given.items():
            assignments = sent if one == "a" else ()
            request = SyncGroupRequest(group_id="g", generation_id=3, member_id=one, assignments=assignments)
            self.exchange(request, SyncGroupResponse(assignment=data))
        self.stable(3)

    def upgrade(self, epoch: int = 4, given: tuple[int, ...] = ()) -> None:
        self.state("Reconciling", epoch, "classic group upgraded")
        self.beat("b", 0, epoch, given=given, owns=())

    def downgrade(self, epoch: int, *, rebalances: bool = True) -> None:
        self.state("Dead", epoch, "downgraded to a classic group")
        self.state("Stable", epoch, "loaded with members")
        if rebalances:
            self.state("PreparingRebalance", epoch, "member left")

    def rejoin(self, member: str, told: int, error: Error = Error.NONE, owns: tuple[int, ...] = ()) -> None:
        subscription = Subscription(topics=("o",), owned_partitions={"o": owns} if owns else {})
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id=member,
            protocol_type="consumer",
            protocols=(Protocol(name="range", metadata=encode_subscription(subscription)),),
            client_id=member,
        )
        self.exchange(request, JoinGroupResponse(error_code=error, generation_id=told, member_id=member))

    def sync(self, member: str, generation: int, *given: int, error: Error = Error.NONE) -> None:
        request = SyncGroupRequest(group_id="g", generation_id=generation, member_id=member)
        self.exchange(request, SyncGroupResponse(error_code=error, assignment=given_bytes(*given)))


def given_bytes(*partitions: int) -> bytes:
    return encode_assignment(Assignment(assigned_partitions={"o": partitions} if partitions else {}))


def test_a_migration_in_good_order_breaks_nothing() -> None:
    group = Migrating()
    group.upgrade()
    group.heartbeat("a", 3, IN_PROGRESS)
    group.rejoin("a", 4)
    group.sync("a", 4, 0)
    group.beat("b", 4, 4, given=(1,), owns=())
    group.rejoin("c", 4)
    group.sync("c", 4)
    group.heartbeat("c", 4)
    group.commit("a", 4)
    group.beat("b", -1, -1)
    group.downgrade(5)
    group.heartbeat("a", 4, Error.ILLEGAL_GENERATION)
    group.join(6, "a", "c")
    group.heartbeat("a", 6)
    group.upgrade(7)


@pytest.mark.parametrize("epoch", [2, 3])
def test_an_upgrade_does_not_start_over(epoch: int) -> None:
    with breaks(epoch < 3, "epochs go up"):
        Migrating().upgrade(epoch)


@pytest.mark.parametrize("epoch", [3, 4])
def test_a_downgrade_does_not_start_over(epoch: int) -> None:
    group = Migrating()
    group.upgrade(4)
    with breaks(epoch < 4, "epochs go up"):
        group.downgrade(epoch)


@pytest.mark.parametrize("partition", [1, 2])
def test_a_consumer_is_not_given_what_a_classic_member_has(partition: int) -> None:
    with breaks(partition == 1, "released first"):
        Migrating().upgrade(given=(partition,))


@pytest.mark.parametrize("claims", [True, False])
def test_what_a_classic_member_claims_it_still_has(claims: bool) -> None:
    group = Migrating()
    group.upgrade()
    told = 3 if claims else 4
    group.rejoin("a", told, owns=(0, 1) if claims else ())
    group.sync("a", told, 0)
    with breaks(claims, "released first"):
        group.beat("b", 4, 4, given=(1,), owns=())


@pytest.mark.parametrize("partition", [2, 3])
def test_a_classic_member_is_not_given_what_a_consumer_has(partition: int) -> None:
    group = Migrating()
    group.upgrade(given=(2,))
    group.rejoin("a", 4)
    with breaks(partition == 2, "released first"):
        group.sync("a", 4, partition)


@pytest.mark.parametrize("error", [Error.NONE, IN_PROGRESS, Error.UNKNOWN_MEMBER_ID])
def test_who_is_behind_is_told_so_and_not_refused(error: Error) -> None:
    group = Migrating()
    group.upgrade()
    with breaks(error is not IN_PROGRESS, "members heard"):
        group.heartbeat("a", 3, error)


@pytest.mark.parametrize("error", [Error.NONE, IN_PROGRESS])
def test_who_is_behind_and_has_nothing_to_give_up_is_given_nothing(error: Error) -> None:
    group = Migrating()
    group.upgrade()
    with breaks(error is Error.NONE, "members heard"):
        group.sync("a", 3, error=error)


@pytest.mark.parametrize("leaves", [True, False])
def test_a_group_without_consumers_is_a_classic_one(leaves: bool) -> None:
    group = Migrating()
    group.upgrade()
    if leaves:
        group.beat("b", -1, -1)
    with breaks(leaves, "migrations"):
        group.heartbeat("a", 3, IN_PROGRESS)


def test_a_group_without_anybody_may_stay_a_consumer_group() -> None:
    group = Migrating()
    group.upgrade()
    group.leave("a")
    group.beat("b", -1, -1)
    group.heartbeat("a", 3, Error.UNKNOWN_MEMBER_ID)


@pytest.mark.parametrize("error", [Error.NONE, Error.UNKNOWN_MEMBER_ID])
def test_a_classic_member_may_join_again_and_commit(error: Error) -> None:
    for asks in (lambda group: group.rejoin("a", 4, error), lambda group: group.commit("a", 3, error)):
        group = Migrating()
        group.upgrade()
        with breaks(error is not Error.NONE, "members heard"):
            asks(group)


def test_who_waits_is_answered_when_its_group_is_upgraded() -> None:
    group = Migrating()
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=60_000, member_id="a", protocol_type="consumer",
        protocols=(), client_id="a",
    )  # fmt: skip
    group.t += 1
    group.feed("asks", request=request)
    with breaks(True, "members heard"):
        group.upgrade()


@pytest.mark.parametrize("generation", [3, 4])
def test_only_the_last_generation_of_a_classic_member_is_accepted(generation: int) -> None:
    group = Migrating()
    group.upgrade()
    group.rejoin("a", 4)
    with breaks(generation == 3, "members only"):
        group.sync("a", generation)


def test_a_classic_members_generation_does_not_go_back() -> None:
    group = Migrating()
    group.upgrade()
    with breaks(True, "epochs go up"):
        group.rejoin("a", 2)


def test_a_classic_member_that_has_left_a_consumer_group_has_no_session() -> None:
    group = Migrating()
    group.upgrade()
    group.leave("a")
    with breaks(True, "members only"):
        group.feed("timer", of="consumer-session", member="a")


@pytest.mark.parametrize("silent_ms", [9_000, 10_000])
def test_a_classic_members_session_is_its_own(silent_ms: int) -> None:
    group = Migrating()
    group.upgrade()
    group.t += silent_ms
    with breaks(silent_ms < 10_000, "sessions"):
        group.feed("timer", of="consumer-session", member="a")


@pytest.mark.parametrize(("told", "waits_ms"), [(False, 60_000), (True, 1_000), (True, 60_000)])
def test_nobody_is_removed_that_was_not_told_to_join(told: bool, waits_ms: int) -> None:
    group = Migrating()
    group.upgrade()
    if told:
        group.heartbeat("a", 3, IN_PROGRESS)
    group.t += waits_ms
    with breaks(not told or waits_ms < 60_000, "sessions"):
        group.feed("timer", of="consumer-join", member="a")


@pytest.mark.parametrize("expires", [True, False])
def test_a_classic_member_that_was_killed_is_out_when_its_session_is_over(expires: bool) -> None:
    group = Migrating()
    group.upgrade()
    group.rejoin("a", 4)
    group.feed("process", member="a", **{"is": "killed"})
    group.t += 10_000
    if expires:
        group.feed("timer", of="consumer-session", member="a")
    group.t += 6_000
    with breaks(not expires, "sessions"):
        group.feed("lag", records=0)


@pytest.mark.parametrize("rebalances", [True, False])
def test_who_is_left_by_a_downgrade_rebalances(rebalances: bool) -> None:
    group = Migrating()
    group.upgrade()
    group.beat("b", -1, -1)
    group.downgrade(5, rebalances=rebalances)
    request = HeartbeatRequest(group_id="g", generation_id=4, member_id="a")
    with breaks(not rebalances, "time to rejoin"):
        group.exchange(request, HeartbeatResponse(error_code=Error.ILLEGAL_GENERATION))


@pytest.mark.parametrize("answered", [True, False])
def test_sync_group_is_answered_in_a_consumer_group(answered: bool) -> None:
    group = Migrating()
    group.upgrade()
    request = SyncGroupRequest(group_id="g", generation_id=3, member_id="a")
    group.feed("asks", request=request)
    if answered:
        group.feed("answers", request=request, response=SyncGroupResponse(error_code=IN_PROGRESS))
    group.t += 6_000
    with breaks(not answered, "members heard"):
        group.feed("end")
