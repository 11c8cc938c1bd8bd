"""Commits and fetches: what they carry, when they go out, how they end; test_error_reactions.py has the error codes."""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    Commit,
    Disconnected,
    Fetched,
    Poll,
    PollReturned,
)
from rebalance_lab.protocol_v1.common.messages import OffsetCommitRequest, OffsetFetchRequest
from rebalance_lab.protocol_v2.common.messages import ConsumerGroupHeartbeatRequest
from tests.members.alone import of, raised, sent
from tests.protocol_v2.member.alone import Alone, outcomes, share

QUIET = {"auto_commit_interval_ms": 600_000}
NO_COMMITS = {"enable_auto_commit": False}
BEAT = "ConsumerGroupHeartbeat"


# Commits


def test_a_commit_carries_the_epoch_of_the_moment_it_is_sent():
    member = Alone(**QUIET).stable()
    member.tell(Commit({("t", 0): 6}))
    member.run(5_000)
    member.beat(3)
    member.committed(Error.COORDINATOR_LOAD_IN_PROGRESS)
    member.run(100)
    again = member.pending(OffsetCommitRequest)
    assert (again.member_id, again.generation_id_or_member_epoch) == ("me", 3)
    assert outcomes(member.committed(Error.NONE)) == [("commitSync", "DONE")]


def test_outside_the_group_a_commit_carries_no_epoch():
    member = Alone(**QUIET)
    member.find()
    member.tell(Commit({("t", 0): 6}))
    commit = member.pending(OffsetCommitRequest)
    assert (commit.member_id, commit.generation_id_or_member_epoch) == ("", -1)


def test_a_commit_of_nothing_is_done():
    member = Alone(**QUIET).stable()
    assert outcomes(member.tell(Commit({}))) == [("commitSync", "DONE")]
    assert outcomes(member.tell(Commit({}, sync=False))) == [("commitAsync", "DONE")]


def test_a_blocking_commit_gives_up_after_the_default_api_timeout():
    member = Alone(default_api_timeout_ms=3_000, **QUIET).stable()
    member.tell(Disconnected())
    member.tell(Commit({("t", 0): 6}))
    assert outcomes(member.run(3_000)) == [("commitSync", "TIMED_OUT")]
    member = Alone(default_api_timeout_ms=3_000, **QUIET).stable()
    member.tell(Commit({("t", 0): 6}))
    assert outcomes(member.run(3_000)) == [("commitSync", "TIMED_OUT")]
    assert outcomes(member.committed(Error.COORDINATOR_LOAD_IN_PROGRESS)) == []  # nobody waits any more
    member.tell(Commit({("t", 0): 7}))
    assert outcomes(member.committed(Error.NONE)) == [("commitSync", "DONE")]


def test_a_late_answer_to_a_commit_that_timed_out_is_not_told():
    member = Alone(default_api_timeout_ms=3_000, **QUIET).stable()
    member.tell(Commit({("t", 0): 6}))
    member.run(3_000)
    assert outcomes(member.committed(Error.NONE)) == []


def test_commits_wait_for_the_coordinator_and_fail_with_the_connection():
    member = Alone(**QUIET).stable()
    member.tell(Commit({("t", 0): 6}, sync=False))
    effects = member.tell(Disconnected())
    assert outcomes(effects) == [("commitAsync", "RETRIABLE")]
    member.open.clear()
    member.tell(Commit({("t", 0): 6}))
    assert not member.asked(OffsetCommitRequest)
    member.run(100)
    member.find()
    assert member.asked(OffsetCommitRequest)


def test_auto_commits_go_out_by_the_interval_and_only_inside_poll():
    member = Alone(auto_commit_interval_ms=1_000).stable()
    assert sent(member.run(1_000)) == ["OffsetCommit"]
    assert sent(member.run(1_500)) == []  # one at a time
    member.committed(Error.NONE, Error.NONE)
    assert member.asked(OffsetCommitRequest)  # overdue
    member.committed(Error.NONE, Error.NONE)
    member.tell(PollReturned())
    assert sent(member.run(1_500)) == []
    assert sent(member.tell(Poll({("t", 0): 8}))) == ["OffsetCommit"]


def test_a_failed_auto_commit_waits_for_the_next_interval():
    member = Alone(auto_commit_interval_ms=1_000).stable()
    member.run(1_000)
    assert outcomes(member.committed(Error.COORDINATOR_LOAD_IN_PROGRESS)) == [("interval", "RETRIABLE")]
    assert sent(member.run(999)) == []
    assert sent(member.run(1)) == ["OffsetCommit"]


def test_positions_of_foreign_partitions_are_not_noted():
    member = Alone(**QUIET).stable()
    member.tell(Poll({("t", 3): 8, ("t", 0): 7}))
    assert member.memory.positions == {("t", 0): 7, ("t", 1): 5}


# Fetches


def test_where_nothing_was_committed_the_application_decides():
    member = Alone(**QUIET).assigned()
    effects = member.fetched({0: 5, 1: -1})
    assert of(Fetched, effects)[0].offsets == {("t", 0): 5, ("t", 1): -1}
    assert member.memory.positions == {("t", 0): 5}
    assert not member.asked(OffsetFetchRequest)
    member.tell(Poll({("t", 1): 0}))
    assert member.memory.positions == {("t", 0): 5, ("t", 1): 0}


def test_an_answer_counts_only_for_what_is_still_wanted():
    member = Alone(**NO_COMMITS).assigned(0, 1)
    member.beat(2)
    member.run(5_000)
    member.beat(2, share(0))
    member.done()
    member.done()
    fetches = [one for one in member.open if isinstance(one, OffsetFetchRequest)]
    assert len(fetches) == 2  # t-0 and t-1, then t-0 alone
    assert of(Fetched, member.fetched({0: 5, 1: 5}))[0].offsets == {("t", 0): 5}
    assert of(Fetched, member.fetched({0: 5})) == []


def test_a_fetch_that_others_replaced_is_not_repeated():
    member = Alone(**NO_COMMITS).assigned(0, 1)
    member.beat(2)
    member.run(5_000)
    member.beat(2, share(0))
    member.done()
    member.done()
    effects = member.fetched({}, Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert "OffsetFetch" not in sent(effects + member.run(1_000))


def test_a_fetch_is_tried_again_until_its_time_is_up_and_then_anew():
    member = Alone(default_api_timeout_ms=1_000, **NO_COMMITS).assigned()
    member.beat(2)
    for _ in range(6):
        member.fetched({}, Error.COORDINATOR_LOAD_IN_PROGRESS)
        member.run(1_000)
    assert member.asked(OffsetFetchRequest)
    assert raised(member.effects) == []


def test_a_partition_that_stays_unknown_counts_as_never_committed():
    member = Alone(default_api_timeout_ms=300, **NO_COMMITS).assigned()
    member.beat(2)
    member.run(250)
    effects = member.fetched({0: 5, 1: 5}, partition=Error.UNKNOWN_TOPIC_OR_PARTITION)
    assert of(Fetched, effects)[0].offsets == {("t", 0): -1, ("t", 1): -1}


def test_a_stale_fetch_of_a_member_without_an_epoch_fails():
    member = Alone(**NO_COMMITS).assigned()
    member.memory.offset_epoch = None  # left, while the fetch was on its way
    assert raised(member.fetched({}, Error.STALE_MEMBER_EPOCH)) == [Error.STALE_MEMBER_EPOCH]


def test_fetches_fail_with_the_connection_and_are_repeated():
    member = Alone(**NO_COMMITS).assigned()
    member.beat(2)
    member.open.clear()
    member.tell(Disconnected())
    member.run(100)
    member.find()
    member.run(200)
    assert member.asked(OffsetFetchRequest)
    assert member.asked(ConsumerGroupHeartbeatRequest) is False
