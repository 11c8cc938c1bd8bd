"""Rules about classic groups and commits, broken on purpose by a handful of facts; and the same facts put right."""

from __future__ import annotations

import pytest

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tests.harness.rules.rule_facts import Group, breaks


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


@pytest.mark.parametrize("error", [Error.NONE, Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION])
def test_who_is_in_the_present_generation_is_heard(error: Error) -> None:
    group = Group()
    group.join(1, "a", "b")
    group.stable(1)
    group.state("PreparingRebalance", 1, "leader rejoined")
    with breaks(error is not Error.NONE, "members heard"):
        group.heartbeat("a", 1, error)
    with breaks(error is not Error.NONE, "members heard"):
        group.commit("b", 1, error)


@pytest.mark.parametrize("leaves", [False, True])
def test_who_waits_is_not_turned_away(leaves: bool) -> None:
    group = Group()
    group.join(1, "a")
    group.stable(1)
    group.state("PreparingRebalance", 1, "member joined")
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=60_000, member_id="b", protocol_type="consumer",
        protocols=(),
    )  # fmt: skip
    group.feed("asks", request=request)
    group.t += 10_000
    if leaves:
        group.leave("b")
    with breaks(not leaves, "members heard"):
        group.feed("answers", request=request, response=JoinGroupResponse(error_code=Error.UNKNOWN_MEMBER_ID))


@pytest.mark.parametrize("answered", [False, True])
def test_who_waits_for_the_leader_is_answered_when_the_group_rebalances_again(answered: bool) -> None:
    group = Group()
    group.join(1, "a", "b")
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id="b")
    group.feed("asks", request=request)
    if answered:
        group.feed("answers", request=request, response=SyncGroupResponse(error_code=Error.REBALANCE_IN_PROGRESS))
    with breaks(not answered, "members heard"):
        group.state("PreparingRebalance", 1, "member joined")


@pytest.mark.parametrize("everybody", [False, True])
def test_a_join_phase_ends_when_everybody_has_joined(everybody: bool) -> None:
    group = Group()
    group.join(1, "a", "b")
    group.stable(1)
    group.t += 1_000
    group.state("PreparingRebalance", 1, "leader rejoined")
    for one in "ab" if everybody else "a":
        request = JoinGroupRequest(
            group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=60_000, member_id=one, client_id=one,
            protocol_type="consumer", protocols=(),
        )  # fmt: skip
        group.feed("asks", request=request)
    group.feed("lag", records=0)
    group.t += 6_000
    with breaks(everybody, "members heard"):
        group.feed("lag", records=0)


@pytest.mark.parametrize("leader", ["a", "c"])
def test_who_leads_has_joined(leader: str) -> None:
    group = Group()
    group.join(1, "a")
    group.checker.group.classic.leader = leader
    with breaks(leader == "c", "as assigned"):
        group.feed("asks", request=SyncGroupRequest(group_id="g", generation_id=1, member_id="a"))


def test_nothing_is_given_before_the_leader_has_sent_it() -> None:
    group = Group()
    group.join(1, "a", "b")
    with breaks(True, "as assigned"):
        group.exchange(SyncGroupRequest(group_id="g", generation_id=1, member_id="b"), SyncGroupResponse())


@pytest.mark.parametrize("state", ["Empty", "Stable"])
def test_a_new_coordinator_knows_that_nobody_was_left(state: str) -> None:
    group = Group()
    group.join(1, "a")
    group.state("Empty", 2, "last member gone")
    group.t += 2_000
    group.feed("coordinator", **{"is": "down"})
    with breaks(state == "Stable", "epochs go up"):
        group.state(state, 2, "loaded with members")


@pytest.mark.parametrize("trouble", ["killed", "paused", "cut off", "closed", None])
def test_who_is_well_or_takes_its_leave_does_not_fall_silent(trouble: str | None) -> None:
    for kind in ("session", "consumer-session"):
        group = Group()
        group.feed("process", member="a", **{"is": "started"})
        if kind == "session":
            group.join(1, "a", "b")
            group.stable(1)
            group.heartbeat("a", 1)
        else:
            group.beat("a", 0, 2, given=(0,), owns=())
        if trouble:
            group.feed("process", member="a", **{"is": trouble})
        group.t += 60_000
        with breaks(trouble in ("closed", None), "sessions"):
            group.feed("timer", of=kind, member="a")


# Commits


@pytest.mark.parametrize("found", [-1, 4, 5])
def test_what_is_committed_is_fetched(found: int) -> None:
    group = Group()
    group.join(1, "a")
    group.stable(1)
    group.commit("a", 1)
    one = OffsetFetchResponsePartition(partition_index=0, committed_offset=found)
    topic = OffsetFetchResponseTopic(name="o", partitions=(one,))
    answer = OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id="g", topics=(topic,)),))
    with breaks(found < 5, "commits kept"):
        group.exchange(OffsetFetchRequest(), answer)


@pytest.mark.parametrize(("committed", "refused"), [(9, False), (8, False), (8, True)])
def test_who_gives_up_in_good_order_has_committed_first(committed: int, refused: bool) -> None:
    group = Group()
    group.feed("process", member="a", **{"is": "started"})
    group.join(1, "a")
    group.stable(1)
    group.t += 10_000
    where = {"member": "a", "partitions": {"o": [0]}}
    group.feed("callback", callback="onPartitionsAssigned", **where)
    group.feed("reads", **where, **{"from": {"o": [0]}})
    group.feed("stops", **where, at={"o": [9]})
    group.feed("durable", **where, offsets={"o": [committed]})
    if refused:
        group.commit("a", 1, Error.UNKNOWN_TOPIC_OR_PARTITION)
    with breaks(committed < 9 and not refused, "committed first"):
        group.feed("callback", callback="onPartitionsRevoked", **where)
