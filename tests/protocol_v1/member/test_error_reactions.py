"""Every error code on every answer: what the Java consumer does, as one table, and the rules around the table."""

from __future__ import annotations

import pytest

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    Close,
    Closed,
    Commit,
    CommitOutcome,
    Committed,
    Disconnect,
    Disconnected,
    Poll,
    PollReturned,
    Responded,
)
from rebalance_lab.protocol_v1.common.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from rebalance_lab.protocol_v1.member.error_reactions import Reaction, java_name, reaction
from rebalance_lab.protocol_v1.member.states import MemberState
from tests.members.alone import called, of, raised, sent
from tests.protocol_v1.member.alone import Alone

ERRORS = [error for error in Error if error is not Error.NONE]
UNJOINED, PREPARING, STABLE = MemberState.UNJOINED, MemberState.PREPARING_REBALANCE, MemberState.STABLE


@pytest.mark.parametrize("error", ERRORS)
def test_join_group(error):
    alone = Alone().joining()
    effects = alone.join_error(error, "handed-out")
    match reaction(JoinGroupRequest, error):
        case Reaction.RETRY:
            assert sent(effects) == raised(effects) == []
            assert sent(alone.run(100)) == ["JoinGroup"]
            assert alone.pending(JoinGroupRequest).member_id == "me"
        case Reaction.COORDINATOR_UNKNOWN:
            assert len(of(Disconnect, effects)) == 1
            assert sent(effects) == ["FindCoordinator"]
            alone.find()
            alone.run(100)
            assert alone.pending(JoinGroupRequest).member_id == "me"
        case Reaction.FULL_RESET:
            assert sent(effects) == ["JoinGroup"]
            assert alone.pending(JoinGroupRequest).member_id == ""
        case Reaction.REJOIN:
            assert alone.pending(JoinGroupRequest).member_id == "me"
            assert alone.pending(JoinGroupRequest).reason == f"rebalance failed due to {java_name(error)}"
        case Reaction.ADOPT_ID:
            assert alone.pending(JoinGroupRequest).member_id == "handed-out"
        case how:
            assert how is Reaction.RAISE
            assert raised(effects) == [error]
            assert sent(alone.tell(Poll())) == ["JoinGroup"]  # a later poll tries again
            assert alone.pending(JoinGroupRequest).member_id == "me"


@pytest.mark.parametrize("error", ERRORS)
def test_sync_group(error):
    alone = Alone().syncing()
    effects = alone.synced(error=error)
    match reaction(SyncGroupRequest, error):
        case Reaction.COORDINATOR_UNKNOWN:
            assert sent(effects) == ["FindCoordinator"]
            alone.find()
            alone.run(100)
            assert alone.pending(JoinGroupRequest).member_id == "me"
        case Reaction.FULL_RESET:
            assert alone.pending(JoinGroupRequest).member_id == ""
        case Reaction.SOFT_RESET | Reaction.REJOIN:
            assert sent(effects) == ["JoinGroup"]
            assert alone.pending(JoinGroupRequest).member_id == "me"
            kept = 1 if error is Error.REBALANCE_IN_PROGRESS else -1
            assert alone.member.generation.generation_id == kept
        case how:
            assert how is Reaction.RAISE
            assert raised(effects) == [error]
            assert sent(alone.tell(Poll())) == ["JoinGroup"]
    assert called(effects) == []


@pytest.mark.parametrize("error", ERRORS)
def test_heartbeat(error):
    alone = Alone().stable()
    alone.tell(PollReturned())
    alone.run(3_000)
    effects = alone.heartbeat(error)
    how = reaction(HeartbeatRequest, error)
    assert raised(effects) == []
    match how:
        case Reaction.COORDINATOR_UNKNOWN:
            assert sent(effects) == ["FindCoordinator"]
            assert alone.member.state is STABLE
        case Reaction.REJOIN:
            assert alone.memory.rejoin_needed
            assert alone.member.state is STABLE
        case Reaction.SOFT_RESET:
            assert (alone.member.state, alone.member.generation[:2]) == (UNJOINED, (-1, "me"))
        case Reaction.FULL_RESET | Reaction.FENCED:
            assert (alone.member.state, alone.member.generation[:2]) == (UNJOINED, (-1, ""))
        case _:
            assert how is Reaction.FAILED
            assert alone.member.state is STABLE
            assert sent(alone.run(100)) == ["Heartbeat"]  # again after a back-off, not after an interval
    later = alone.tell(Poll())
    assert raised(later) == ([error] if how is Reaction.FENCED else [])
    if how in (Reaction.SOFT_RESET, Reaction.FULL_RESET):
        assert called(later) == [("LOST", [0, 1])]


@pytest.mark.parametrize("error", ERRORS)
def test_a_heartbeat_error_of_an_old_generation_is_ignored(error):
    alone = Alone(enable_auto_commit=False).stable()
    alone.run(3_000)
    old = alone.pending(HeartbeatRequest)
    alone.memory.generation = alone.memory.generation._replace(generation_id=2)
    alone.heartbeat(error)
    if reaction(HeartbeatRequest, error) in (Reaction.SOFT_RESET, Reaction.FULL_RESET, Reaction.FENCED):
        assert alone.member.state is STABLE
        assert alone.member.generation.generation_id == 2
    assert old.generation_id == 1


@pytest.mark.parametrize("error", ERRORS)
def test_offset_commit(error):
    alone = Alone().stable()
    alone.tell(PollReturned())
    alone.tell(Commit({("t", 0): 9}))
    effects = alone.committed(Error.NONE, error)
    outcomes = [effect.outcome for effect in of(Committed, effects)]
    match reaction(OffsetCommitRequest, error):
        case Reaction.RETRY:
            assert outcomes == []
            assert "OffsetCommit" in sent(alone.run(100))  # commitSync tries again
        case Reaction.COORDINATOR_UNKNOWN:
            assert outcomes == []
            assert sent(effects) == ["FindCoordinator"]
            alone.find()
            assert "OffsetCommit" in sent(alone.run(100))
        case Reaction.REJOIN:
            assert outcomes == [CommitOutcome.REBALANCE_IN_PROGRESS]
            assert (alone.memory.rejoin_needed, alone.member.state) == (True, STABLE)
        case Reaction.SOFT_RESET:
            assert outcomes == [CommitOutcome.COMMIT_FAILED]
            assert alone.member.generation[:2] == (-1, "me")
        case Reaction.FULL_RESET:
            assert outcomes == [CommitOutcome.COMMIT_FAILED]
            assert alone.member.generation[:2] == (-1, "")
        case Reaction.FENCED:
            assert outcomes == [CommitOutcome.FENCED]
            assert raised(alone.tell(Poll())) == []  # the blocking call has told it already
        case _:
            assert outcomes == [CommitOutcome.FAILED]
            assert alone.member.state is STABLE


@pytest.mark.parametrize("error", [Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID])
def test_a_commit_of_an_old_generation_during_a_rejoin_only_says_so(error):
    alone = Alone(enable_auto_commit=False).stable()
    alone.tell(Commit({("t", 0): 9}, sync=False))
    alone.memory.generation = alone.memory.generation._replace(generation_id=2)
    alone.memory.state = PREPARING
    assert of(Committed, alone.committed(error))[0].outcome is CommitOutcome.REBALANCE_IN_PROGRESS
    assert alone.member.generation.generation_id == 2


def test_fenced_with_another_generation_and_no_rejoin_is_a_failed_commit():
    alone = Alone(enable_auto_commit=False).stable()
    alone.tell(Commit({("t", 0): 9}, sync=False))
    alone.memory.generation = alone.memory.generation._replace(generation_id=2)
    assert of(Committed, alone.committed(Error.FENCED_INSTANCE_ID))[0].outcome is CommitOutcome.COMMIT_FAILED


def test_a_fenced_async_commit_is_raised_by_every_later_poll():
    alone = Alone().stable()
    alone.tell(Commit({("t", 0): 9}, sync=False))
    assert raised(alone.committed(Error.FENCED_INSTANCE_ID)) == [Error.FENCED_INSTANCE_ID]
    assert raised(alone.tell(Poll())) == [Error.FENCED_INSTANCE_ID]


@pytest.mark.parametrize("error", ERRORS)
def test_offset_fetch(error):
    alone = Alone().syncing()
    alone.synced()
    alone.done()
    effects = alone.fetched({0: 1, 1: 1}, error=error)
    match reaction(OffsetFetchRequest, error):
        case Reaction.COORDINATOR_UNKNOWN:
            assert sent(effects) == ["FindCoordinator"]
            alone.find()
            assert "OffsetFetch" in sent(alone.run(100))
        case Reaction.RETRY:
            assert "OffsetFetch" in sent(alone.run(100))
        case _:
            assert raised(effects) == [error]


@pytest.mark.parametrize("error", ERRORS)
def test_find_coordinator(error):
    alone = Alone()
    alone.tell(Poll())
    effects = alone.find(error)
    retriable = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.REQUEST_TIMED_OUT, *COORDINATOR_TROUBLE)
    if error in retriable:
        assert raised(effects) == []
        assert sent(alone.run(100)) == ["FindCoordinator"]
        alone.find(error)
        assert sent(alone.run(199)) == []  # the back-off doubles
        assert sent(alone.run(1)) == ["FindCoordinator"]
    else:
        assert raised(effects) == [error]


COORDINATOR_TROUBLE = (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR)


@pytest.mark.parametrize("error", ERRORS)
def test_leave_group_errors_change_nothing(error):
    alone = Alone(enable_auto_commit=False).stable()
    alone.tell(Close())
    alone.done()
    effects = alone.answer(LeaveGroupRequest, LeaveGroupResponse(error_code=error))
    assert of(Closed, effects) == [Closed()]
    assert sent(alone.run(60_000)) == []


# Foreign protocols and late answers


@pytest.mark.parametrize("phase", ["join", "sync", "name"])
def test_a_foreign_protocol_type_or_name_is_raised(phase):
    alone = Alone().joining()
    if phase == "join":
        effects = alone.joined(protocol_type="connect")
    else:
        alone.joined()
        effects = alone.synced(protocol_type="connect" if phase == "sync" else "consumer", protocol_name="other")
    assert raised(effects) == [Error.INCONSISTENT_GROUP_PROTOCOL]


def test_a_join_answer_after_a_reset_is_discarded_and_joined_anew():
    alone = Alone(enable_auto_commit=False).stable()
    alone.run(3_000)
    beat = alone.pending(HeartbeatRequest)
    alone.memory.rejoin_needed = True
    alone.tell(Poll())
    alone.done()
    assert alone.member.state is PREPARING
    alone.tell(Responded(beat, HeartbeatResponse(error_code=Error.UNKNOWN_MEMBER_ID)))
    assert alone.member.state is UNJOINED
    effects = alone.joined(generation=2)
    assert sent(effects) == []
    assert sent(alone.run(100)) == ["JoinGroup"]
    assert alone.pending(JoinGroupRequest).member_id == ""


def test_a_sync_answer_after_a_reset_is_a_rejoin_at_once():
    alone = Alone().syncing()
    alone.run(3_000)
    alone.heartbeat(Error.UNKNOWN_MEMBER_ID)
    assert alone.member.state is UNJOINED
    effects = alone.synced()
    assert sent(effects) == ["JoinGroup"]
    assert called(effects) == []


def test_a_reset_between_sync_and_the_next_poll_calls_nothing_for_that_assignment():
    alone = Alone().syncing()
    alone.tell(PollReturned())
    alone.synced()
    assert alone.member.state is STABLE
    alone.run(3_000)
    alone.heartbeat(Error.ILLEGAL_GENERATION)
    effects = alone.tell(Poll())
    assert called(effects) == []
    assert alone.pending(JoinGroupRequest).member_id == ""  # Kafka's client makes it a full reset here


def test_join_25_of_another_generation_resets_nothing():
    alone = Alone(enable_auto_commit=False).joining()
    alone.memory.generation = alone.memory.generation._replace(member_id="newer")
    alone.join_error(Error.UNKNOWN_MEMBER_ID)
    assert alone.pending(JoinGroupRequest).member_id == "newer"


@pytest.mark.parametrize("phase", ["join", "sync", "stable"])
def test_a_lost_connection_is_a_lookup_and_then_the_same_id_again(phase):
    alone = {"join": Alone().joining, "sync": Alone().syncing, "stable": Alone().stable}[phase]()
    alone.open.clear()
    effects = alone.tell(Disconnected())
    assert sent(effects) == ["FindCoordinator"]
    assert sent(alone.tell(Disconnected())) == []  # said twice
    alone.find()
    alone.run(100)
    if phase == "stable":
        assert alone.member.state is STABLE
        assert called(alone.effects) == []
    else:
        assert alone.pending(JoinGroupRequest).member_id == "me"
