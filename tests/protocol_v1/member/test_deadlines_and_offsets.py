"""Heartbeats, sessions, time-outs and lookups; commits, and where new partitions go on."""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    Commit,
    CommitOutcome,
    Committed,
    Disconnect,
    Disconnected,
    EnforceRebalance,
    Fetched,
    FindCoordinatorRequest,
    Poll,
    PollReturned,
    Responded,
)
from rebalance_lab.protocol_v1.common.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    OffsetCommitRequest,
)
from rebalance_lab.protocol_v1.member.config import MemberConfig
from rebalance_lab.protocol_v1.member.states import MemberState
from tests.members.alone import called, of, raised, sent
from tests.protocol_v1.member.alone import Alone, causes, share

COOPERATIVE = "cooperative-sticky"


# Deadlines


def test_heartbeats_come_at_the_interval_and_several_may_be_in_flight():
    alone = Alone(enable_auto_commit=False).stable()
    assert sent(alone.run(9_000)) == ["Heartbeat"] * 3


def test_a_session_without_answers_is_a_lookup_not_a_reset():
    alone = Alone(enable_auto_commit=False, request_timeout_ms=600_000).stable()
    effects = alone.run(45_000)
    assert [effect.reason for effect in of(Disconnect, effects)] == [
        "session timed out without receiving a heartbeat response"
    ]
    assert alone.member.state is MemberState.STABLE
    assert called(effects) == []
    assert sent(effects)[-1] == "FindCoordinator"


def test_a_lookup_that_is_stuck_is_asked_again_by_the_heartbeats():
    alone = Alone(enable_auto_commit=False).stable()
    alone.tell(PollReturned())
    alone.tell(Disconnected())
    assert sent(alone.run(1_000)).count("FindCoordinator") == 5


def test_an_answer_to_a_forgotten_lookup_counts_if_it_is_good():
    alone = Alone(enable_auto_commit=False).stable()
    alone.tell(PollReturned())
    alone.tell(Disconnected())
    alone.run(100)
    assert alone.memory.lookup is None
    assert raised(alone.find(Error.GROUP_AUTHORIZATION_FAILED)) == []  # nobody waits for it
    alone.run(100)
    alone.find()
    assert alone.memory.coordinator_known


def test_a_request_without_an_answer_costs_the_connection():
    alone = Alone(enable_auto_commit=False).syncing()
    effects = alone.run(30_000)
    assert [effect.reason for effect in of(Disconnect, effects)] == ["a request was not answered in time"]
    alone.open = [request for request in alone.open if isinstance(request, FindCoordinatorRequest)]
    alone.find()
    alone.run(100)
    assert alone.pending(JoinGroupRequest).member_id == "me"


def test_a_lookup_without_an_answer_is_tried_again():
    alone = Alone()
    alone.tell(Poll())
    assert sent(alone.run(30_100)) == ["FindCoordinator"]


def test_join_group_is_given_more_time_than_other_requests():
    alone = Alone().joining()
    assert of(Disconnect, alone.run(304_999)) == []
    assert len(of(Disconnect, alone.run(1))) == 1


def test_the_answer_to_join_group_waits_for_the_next_poll():
    alone = Alone().joining()
    alone.tell(PollReturned())
    assert sent(alone.joined()) == []
    assert sent(alone.tell(Poll())) == ["SyncGroup"]


def test_the_answer_to_sync_group_is_read_by_the_heartbeats_but_applied_by_poll():
    alone = Alone().syncing()
    alone.tell(PollReturned())
    assert called(alone.synced()) == []
    assert alone.member.state is MemberState.STABLE
    assert called(alone.tell(Poll())) == [("ASSIGNED", [0, 1])]


def test_an_answer_that_comes_twice_is_heard_once():
    alone = Alone().stable()
    alone.run(3_000)
    beat = alone.pending(HeartbeatRequest)
    alone.heartbeat()
    alone.tell(Responded(beat, HeartbeatResponse(error_code=Error.UNKNOWN_MEMBER_ID)))
    assert alone.member.state is MemberState.STABLE


def test_heartbeat_27_while_completing_means_nothing():
    alone = Alone().syncing()
    alone.run(3_000)
    assert causes(alone.heartbeat(Error.REBALANCE_IN_PROGRESS)) == []


def test_jitter_spreads_the_back_off_but_not_above_its_maximum():
    config = MemberConfig()
    assert [config.backoff_ms(attempts, 1.2) for attempts in range(5)] == [120, 240, 480, 960, 1_000]


# Commits and offsets


def test_the_interval_commits_positions_and_comes_back_sooner_after_a_retriable_error():
    alone = Alone().stable()
    alone.tell(Poll({("t", 0): 8, ("u", 1): 3}))
    assert "OffsetCommit" in sent(alone.run(5_000))
    (topic,) = alone.pending(OffsetCommitRequest).topics
    assert [(part.partition_index, part.committed_offset) for part in topic.partitions] == [(0, 8), (1, 5)]
    alone.committed(Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert "OffsetCommit" in sent(alone.run(100))


def test_commits_outside_stable_fail_without_being_sent():
    alone = Alone().joining()
    outcomes = [of(Committed, alone.tell(Commit({("t", 0): 1}, sync=sync)))[0].outcome for sync in (True, False)]
    assert outcomes == [CommitOutcome.REBALANCE_IN_PROGRESS] * 2
    out = Alone()
    out.tell(Poll())
    out.find(Error.COORDINATOR_NOT_AVAILABLE)
    out.run(100)
    out.find()
    out.memory.state = MemberState.UNJOINED
    assert of(Committed, out.tell(Commit({("t", 0): 1})))[0].outcome is CommitOutcome.COMMIT_FAILED


def test_an_async_commit_without_a_coordinator_waits_for_the_lookup():
    alone = Alone(enable_auto_commit=False).stable()
    alone.tell(Disconnected())
    alone.tell(Commit({("t", 0): 1}, sync=False))
    assert not alone.asked(OffsetCommitRequest)
    alone.find()
    assert alone.asked(OffsetCommitRequest)
    alone.tell(Disconnected())
    alone.tell(Commit({("t", 0): 2}, sync=False))
    effects = alone.find(Error.COORDINATOR_NOT_AVAILABLE)
    assert [effect.outcome for effect in of(Committed, effects)] == [CommitOutcome.RETRIABLE]


def test_an_empty_commit_is_done_at_once():
    alone = Alone().stable()
    assert sent(alone.tell(Commit({}, sync=False))) == []


def test_commit_sync_gives_up_in_time():
    alone = Alone(enable_auto_commit=False, default_api_timeout_ms=1_000).stable()
    alone.tell(PollReturned())
    alone.tell(Disconnected())
    alone.tell(Commit({("t", 0): 1}))
    assert [effect.outcome for effect in of(Committed, alone.run(1_000))] == [CommitOutcome.TIMED_OUT]


def test_a_fatal_lookup_error_ends_a_blocking_commit():
    alone = Alone(enable_auto_commit=False).stable()
    alone.tell(PollReturned())
    alone.tell(Disconnected())
    alone.tell(Commit({("t", 0): 1}))
    effects = alone.find(Error.GROUP_AUTHORIZATION_FAILED)
    assert [effect.outcome for effect in of(Committed, effects)] == [CommitOutcome.TIMED_OUT]


def test_positions_come_from_committed_offsets_and_survive_a_cooperative_rebalance():
    alone = Alone(COOPERATIVE, enable_auto_commit=False).syncing()
    alone.synced()
    alone.done()
    assert of(Fetched, alone.fetched({0: 7, 1: -1})) == [Fetched(offsets={("t", 0): 7, ("t", 1): -1})]
    assert alone.memory.positions == {("t", 0): 7}
    alone.tell(Poll({("t", 0): 9}))
    alone.tell(EnforceRebalance())
    alone.joined(generation=2)
    alone.synced(share(0, 2))
    alone.done()
    alone.done()
    assert alone.memory.positions == {("t", 0): 9}


def test_a_fetch_that_is_overtaken_by_a_rebalance_is_forgotten():
    alone = Alone(enable_auto_commit=False).syncing()
    alone.synced(share(0))
    alone.done()
    alone.tell(EnforceRebalance())
    alone.done()
    alone.joined(generation=2)
    alone.synced(share(1))
    alone.done()
    assert of(Fetched, alone.fetched({0: 3})) == []
    assert alone.memory.positions == {}
    assert of(Fetched, alone.fetched({1: 4}))[0].offsets == {("t", 1): 4}


def test_a_partition_error_in_a_fetch_is_raised():
    alone = Alone().syncing()
    alone.synced()
    alone.done()
    effects = alone.fetched({0: -1, 1: -1}, partition=Error.UNKNOWN_TOPIC_OR_PARTITION)
    assert raised(effects) == [Error.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_lost_connection_loses_the_fetch_too():
    alone = Alone(enable_auto_commit=False).syncing()
    alone.synced()
    alone.done()
    alone.tell(Disconnected())
    alone.open.clear()
    alone.tell(Poll())
    alone.run(200)
    alone.tell(Disconnected())
    assert alone.memory.fetching is None


def test_an_error_from_a_coordinator_that_is_given_up_already_is_no_second_loss():
    alone = Alone(enable_auto_commit=False).stable()
    alone.run(3_000)
    alone.memory.coordinator_known = False
    assert of(Disconnect, alone.heartbeat(Error.NOT_COORDINATOR)) == []


def test_a_forgotten_lookup_may_time_out_unnoticed():
    alone = Alone(enable_auto_commit=False, request_timeout_ms=150).stable()
    alone.tell(PollReturned())
    alone.tell(Disconnected())
    alone.run(100)
    assert alone.memory.lookup is None
    attempts = alone.memory.lookup_attempts
    alone.run(60)
    assert alone.memory.lookup_attempts == attempts
