"""Every error code on every answer, as the Java consumer takes it."""

from __future__ import annotations

import pytest

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    Commit,
    Disconnect,
    FindCoordinatorRequest,
    Poll,
    PollReturned,
    Unsubscribe,
)
from rebalance_lab.protocol_v1.common.messages import OffsetCommitRequest, OffsetFetchRequest
from rebalance_lab.protocol_v2.common.messages import ConsumerGroupHeartbeatRequest
from rebalance_lab.protocol_v2.member.error_reactions import REACTIONS, RETRIABLE
from rebalance_lab.protocol_v2.member.states import MemberState
from tests.members.alone import called, of, raised, sent
from tests.protocol_v2.member.alone import Alone, moves, outcomes, owns, share

ERRORS = [error for error in Error if error is not Error.NONE]
UNKNOWN = (Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR)
FENCES = (Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID)
PASSES = (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.TOPIC_AUTHORIZATION_FAILED)
FATAL = [error for error in ERRORS if error not in (*UNKNOWN, *FENCES, *PASSES)]
POSITIONS = {("t", 0): 7, ("t", 1): 7}


def heartbeating() -> Alone:
    """Stable, with a heartbeat of the interval on its way."""
    member = Alone().stable()
    member.due()
    return member


def test_the_tables_name_no_code_that_is_not_an_error():
    assert all(Error.NONE not in codes for codes in REACTIONS.values())


# ConsumerGroupHeartbeat


@pytest.mark.parametrize("error", FATAL)
def test_a_fatal_heartbeat_error_gives_everything_up_and_is_raised(error):
    member = heartbeating()
    effects = member.refuse(error, "why")
    assert moves(effects) == ["Fatal"]
    assert called(effects) == [("LOST", [0, 1])]
    effects = member.done()
    assert raised(effects) == [error]
    assert member.member.owned == frozenset()
    member.tell(Poll())
    assert "ConsumerGroupHeartbeat" not in sent(member.run(100_000))


@pytest.mark.parametrize("error", FATAL)
def test_a_fatal_error_on_joining_is_raised_at_once(error):
    member = Alone().joining()
    assert raised(member.refuse(error)) == [error]
    assert member.member.state is MemberState.FATAL


@pytest.mark.parametrize("error", FENCES)
def test_a_fenced_member_loses_everything_and_joins_again_with_the_same_id(error):
    member = heartbeating()
    effects = member.refuse(error)
    assert moves(effects) == ["Fenced"]
    assert called(effects) == [("LOST", [0, 1])]
    assert sent(effects) == []  # no heartbeat before the callback is done
    assert member.member.member_epoch == 0
    assert member.member.fetchable == frozenset()
    effects = member.done()
    assert moves(effects) == ["Joining"]
    join = member.heartbeat
    assert (join.member_id, join.member_epoch, owns(join), join.subscribed_topic_names) == ("me", 0, [], ("t",))
    assert raised(member.effects) == []


@pytest.mark.parametrize("error", FENCES)
def test_a_fenced_member_that_owns_nothing_joins_at_once(error):
    member = Alone().joining()
    assert moves(member.refuse(error)) == ["Fenced", "Joining"]
    assert member.heartbeat.member_epoch == 0


def test_lost_waits_for_the_applications_poll():
    member = Alone().stable()
    member.tell(PollReturned())
    member.due()
    assert called(member.refuse(Error.UNKNOWN_MEMBER_ID)) == []
    assert member.member.fetchable == frozenset()
    assert called(member.tell(Poll())) == [("LOST", [0, 1])]


@pytest.mark.parametrize("error", UNKNOWN)
def test_the_coordinator_is_looked_for_and_told_everything_without_a_back_off(error):
    member = heartbeating()
    assert sent(member.refuse(error)) == ["FindCoordinator"]
    assert of(Disconnect, member.effects) == []  # others' requests may still be answered on that connection
    assert member.run(10_000) == []
    member.find()
    full = member.heartbeat
    assert (full.member_epoch, full.rebalance_timeout_ms, owns(full)) == (2, 300_000, [0, 1])
    assert full.subscribed_topic_names == ("t",)
    assert member.member.state is MemberState.STABLE


def test_a_loading_coordinator_is_asked_again_after_a_back_off_that_doubles():
    member = heartbeating()
    waits = []
    for _ in range(6):
        member.refuse(Error.COORDINATOR_LOAD_IN_PROGRESS)
        begun = member.now_ms
        while not member.asked(ConsumerGroupHeartbeatRequest):
            member.run(50)
        waits.append(member.now_ms - begun)
    assert waits == [100, 200, 400, 800, 1_000, 1_000]
    assert member.heartbeat.rebalance_timeout_ms == 300_000
    member.beat(2)
    member.due()
    member.refuse(Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert sent(member.run(100)) == ["ConsumerGroupHeartbeat"]  # a success in between forgives


@pytest.mark.parametrize(("java", "at_once"), [(True, True), (False, False)])
def test_only_java_joins_again_without_a_back_off(java, at_once):
    member = Alone(quirks_of_java=java).joining()
    member.refuse(Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert member.asked(ConsumerGroupHeartbeatRequest) is at_once
    member.run(100)
    assert member.asked(ConsumerGroupHeartbeatRequest)


def test_a_forbidden_topic_is_raised_and_asked_for_again():
    member = heartbeating()
    assert raised(member.refuse(Error.TOPIC_AUTHORIZATION_FAILED)) == [Error.TOPIC_AUTHORIZATION_FAILED]
    assert member.member.state is MemberState.STABLE
    member.tell(Poll())
    member.run(100)
    assert member.heartbeat.member_epoch == 2
    assert raised(member.beat(2)) == []


def test_errors_wait_for_poll():
    member = Alone().stable()
    member.tell(PollReturned())
    member.due()
    assert raised(member.refuse(Error.INVALID_REQUEST)) == []
    effects = member.tell(Poll())
    assert called(effects) == [("LOST", [0, 1])]
    assert raised(member.done()) == [Error.INVALID_REQUEST]


# OffsetCommit


def committing(by: str) -> Alone:
    """A commit of that kind is on its way; the member is stable, or in the case of `prepare` reconciling."""
    member = Alone(auto_commit_interval_ms=60_000 if by == "prepare" else 5_000).stable()
    if by == "interval":
        member.run(5_000)
    elif by == "prepare":
        member.due()
        member.beat(2, share(0))
    else:
        member.run(1_000)
        member.tell(Commit(POSITIONS, sync=by == "commitSync"))
    assert member.asked(OffsetCommitRequest)
    member.effects.clear()
    return member


MARKS = (Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR, Error.REQUEST_TIMED_OUT)
AGAIN = (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID, *MARKS)


def outcome_of(by: str, error: Error) -> str:
    """What the application is told; "" if nothing yet, because it is tried again."""
    if error is Error.UNKNOWN_MEMBER_ID:
        return "COMMIT_FAILED"
    if error is Error.STALE_MEMBER_EPOCH:
        return {"prepare": "", "commitSync": "COMMIT_FAILED"}.get(by, "FAILED")
    if error not in AGAIN:
        return "FAILED"
    if by == "prepare" and error is Error.UNKNOWN_TOPIC_OR_PARTITION:
        return "FAILED"
    return "" if by in ("prepare", "commitSync") else "RETRIABLE"


@pytest.mark.parametrize("by", ["commitSync", "commitAsync", "interval", "prepare"])
def test_every_error_of_a_commit(by):
    for error in ERRORS:
        member = committing(by)
        state = member.member.state
        effects = member.committed(error, error)
        expected = outcome_of(by, error)
        assert outcomes(effects) == ([(by, expected)] if expected else []), error
        assert member.asked(FindCoordinatorRequest) is (error in MARKS), error
        assert member.member.state is state, error  # only heartbeats move a member
        member.open = [one for one in member.open if not isinstance(one, FindCoordinatorRequest | OffsetCommitRequest)]
        member.tell(Poll()) if by != "prepare" else None
        again = not expected and error not in MARKS
        assert ("OffsetCommit" in sent(member.run(100))) is again, error


def test_the_first_error_speaks_for_a_commit_unless_a_topic_is_forbidden():
    member = committing("commitSync")
    effects = member.committed(Error.TOPIC_AUTHORIZATION_FAILED, Error.UNKNOWN_MEMBER_ID)
    assert outcomes(effects) == [("commitSync", "COMMIT_FAILED")]
    member = committing("commitSync")
    assert outcomes(member.committed(Error.TOPIC_AUTHORIZATION_FAILED)) == [("commitSync", "FAILED")]


# OffsetFetch


def fetching() -> Alone:
    member = Alone().assigned()
    member.beat(2)
    member.run(100)
    assert member.asked(OffsetFetchRequest)
    member.effects.clear()
    return member


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_of_a_fetch(error):
    member = fetching()
    again = error in RETRIABLE or error is Error.STALE_MEMBER_EPOCH
    assert raised(member.fetched({}, error)) == ([] if again else [error])
    assert member.asked(FindCoordinatorRequest) is (error in UNKNOWN)
    if error in UNKNOWN:
        member.find()
    member.tell(Poll())
    member.run(100)
    assert member.asked(OffsetFetchRequest)
    assert member.member.state is MemberState.STABLE


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_of_one_partition_of_a_fetch(error):
    member = fetching()
    again = error in (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID, Error.UNSTABLE_OFFSET_COMMIT)
    assert raised(member.fetched({0: 5, 1: 5}, partition=error)) == ([] if again else [error])
    member.tell(Poll())
    member.run(100)
    member.fetched({0: 5, 1: 5})
    assert member.memory.positions == {("t", 0): 5, ("t", 1): 5}


# FindCoordinator


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_of_a_lookup(error):
    member = Alone()
    member.tell(Poll())
    assert raised(member.find(error)) == ([] if error in RETRIABLE else [error])
    assert not member.asked(FindCoordinatorRequest)
    member.tell(Poll())
    member.run(100)
    member.find()
    assert member.heartbeat.member_epoch == 0  # neither is the end


def test_a_fatal_lookup_fails_the_commits_that_wait_for_it():
    member = heartbeating()
    member.refuse(Error.NOT_COORDINATOR)
    member.tell(Commit(POSITIONS, sync=False))
    assert outcomes(member.find(Error.GROUP_AUTHORIZATION_FAILED)) == [("commitAsync", "FAILED")]


# The answer to a leave


@pytest.mark.parametrize("error", ERRORS)
def test_whatever_a_leave_hears_it_is_over(error):
    member = Alone().stable()
    member.tell(Unsubscribe())
    member.done()
    assert member.heartbeat.member_epoch == -1
    effects = member.refuse(error)
    harmless = error in (*UNKNOWN, *FENCES, *PASSES, Error.GROUP_ID_NOT_FOUND)
    assert member.member.state is (MemberState.UNSUBSCRIBED if harmless else MemberState.FATAL)
    assert member.memory.leaving is False
    assert called(effects) == []
    assert not member.asked(ConsumerGroupHeartbeatRequest)
