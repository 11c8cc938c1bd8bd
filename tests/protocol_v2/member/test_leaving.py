"""The ways out: unsubscribe and close."""

from __future__ import annotations

import pytest

from rebalance_lab.protocol_v1.common.errors import Error, InvariantBroken
from rebalance_lab.protocol_v1.common.member_effects import (
    Close,
    Closed,
    CloseOption,
    Commit,
    Disconnected,
    Left,
    Poll,
    PollReturned,
    Subscribe,
    Unsubscribe,
)
from rebalance_lab.protocol_v1.common.messages import OffsetCommitRequest
from rebalance_lab.protocol_v2.member.states import MemberState
from tests.members.alone import called, of, raised, sent
from tests.protocol_v2.member.alone import Alone, moves, outcomes, owns, share

QUIET = {"auto_commit_interval_ms": 600_000}
NO_COMMITS = {"enable_auto_commit": False}
BEAT = "ConsumerGroupHeartbeat"


# unsubscribe()


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_unsubscribe_revokes_then_leaves_without_a_commit(instance, epoch):
    member = Alone(group_instance_id=instance, **QUIET).stable()
    effects = member.tell(Unsubscribe())
    assert moves(effects) == ["PrepareLeaving"]
    assert called(effects) == [("REVOKED", [0, 1])]
    assert sent(effects) == []
    assert member.member.fetchable == frozenset()
    effects = member.done()
    assert moves(effects) == ["Leaving", "Unsubscribed"]
    leave = member.heartbeat
    assert (leave.member_epoch, owns(leave), leave.subscribed_topic_names) == (epoch, [], ())
    assert of(Left, effects)[0].sent
    assert member.member.owned == frozenset()


def test_a_member_that_owns_nothing_leaves_without_a_callback():
    member = Alone().joining()
    effects = member.tell(Unsubscribe())
    assert moves(effects) == ["PrepareLeaving", "Leaving", "Unsubscribed"]  # although the join is still on its way
    assert member.open[-1].member_epoch == -1  # type: ignore[attr-defined]


def test_heartbeats_go_on_at_the_old_epoch_until_the_callback_is_done():
    member = Alone(**QUIET).stable()
    member.tell(Unsubscribe())
    assert sent(member.due()) == [BEAT]
    assert member.heartbeat.member_epoch == 2
    effects = member.beat(3, share(0))
    assert moves(effects) == []  # no assignment is taken any more
    assert member.member.member_epoch == 3


def test_fenced_while_it_prepares_to_leave_it_has_left():
    member = Alone(**QUIET).stable()
    member.tell(Unsubscribe())
    member.due()
    assert moves(member.refuse(Error.UNKNOWN_MEMBER_ID)) == ["Unsubscribed"]
    effects = member.done()
    assert sent(effects) == []
    assert member.member.owned == frozenset()
    assert moves(member.tell(Subscribe(frozenset({"t"})))) == ["Joining"]  # poll() is still open


def test_a_fatal_error_while_it_prepares_to_leave_calls_nothing_lost():
    member = Alone(**QUIET).stable()
    member.tell(Unsubscribe())
    member.due()
    assert moves(member.refuse(Error.INVALID_REQUEST)) == ["Fatal"]
    effects = member.done()
    assert called(effects) == []
    assert raised(effects) == [Error.INVALID_REQUEST]
    assert sent(effects) == []


def test_unsubscribe_forgives_what_is_forbidden():
    member = Alone(**QUIET).stable()
    member.tell(Unsubscribe())
    member.due()
    member.refuse(Error.TOPIC_AUTHORIZATION_FAILED)
    assert raised(member.done()) == []


def test_who_subscribes_anew_joins_only_after_the_leave_was_answered():
    member = Alone(**QUIET).stable()
    member.tell(Unsubscribe())
    member.done()
    member.tell(Subscribe(frozenset({"t"})))
    assert moves(member.tell(Poll())) == []
    effects = member.beat(-1, heartbeat_interval_ms=0)
    assert moves(effects) == ["Joining"]
    assert member.heartbeat.member_epoch == 0


def test_a_leave_is_over_when_its_connection_breaks_and_is_not_repeated():
    member = Alone(**QUIET).stable()
    member.tell(Unsubscribe())
    member.done()
    member.tell(Disconnected())
    assert member.memory.leaving is False
    member.run(100)
    member.find()
    assert BEAT not in sent(member.run(60_000))


def test_without_a_coordinator_nobody_is_told():
    member = Alone(**QUIET).stable()
    member.tell(Disconnected())
    effects = member.tell(Unsubscribe())
    effects = member.done()
    assert moves(effects) == ["Leaving", "Unsubscribed"]
    assert [left.sent for left in of(Left, effects)] == [False]
    assert sent(effects) == []


def test_unsubscribing_a_fenced_member_needs_no_leave():
    member = Alone(**QUIET).stable()
    member.tell(PollReturned())
    member.due()
    member.refuse(Error.UNKNOWN_MEMBER_ID)
    effects = member.tell(Unsubscribe())
    assert moves(effects) == ["Unsubscribed"]
    assert called(effects) == [("LOST", [0, 1])]  # it had waited for the application's thread
    assert sent(member.done()) == []
    assert member.member.owned == frozenset()


def test_unsubscribing_a_stale_member_clears_its_subscription_and_the_next_poll_brings_it_back():
    member = Alone(max_poll_interval_ms=7_000, **QUIET).stable()
    member.tell(PollReturned())
    member.run(7_000)
    assert called(member.tell(Unsubscribe())) == [("LOST", [0, 1])]
    member.done()
    assert member.member.state is MemberState.STALE
    member.tell(Subscribe(frozenset({"t"})))
    assert moves(member.tell(Poll())) == ["Joining"]


def test_unsubscribing_twice_leaves_once():
    member = Alone(**NO_COMMITS).joining()
    member.tell(Unsubscribe())
    assert member.tell(Unsubscribe()) == []
    member.run(100)
    assert member.tell(Unsubscribe()) == []


def test_a_callback_that_fails_is_raised_and_the_member_leaves_all_the_same():
    member = Alone(**QUIET).stable()
    member.tell(Unsubscribe())
    effects = member.done("broken")
    assert sent(effects) == [BEAT]
    assert raised(effects) == [None]


def test_subscribing_to_nothing_is_unsubscribing():
    member = Alone(**QUIET).stable()
    assert called(member.tell(Subscribe())) == [("REVOKED", [0, 1])]


def test_before_the_first_epoch_nothing_was_revoked_but_lost():
    """Fenced, joining again, and still waiting for an answer: what is owned was called lost already."""
    member = Alone(**NO_COMMITS).joining()
    member.beat(0, share(0))  # no broker answers so, but nothing hinders it
    member.done()
    assert called(member.tell(Unsubscribe())) == [("LOST", [0])]


# close()


def closed(effects: list) -> bool:  # type: ignore[type-arg]
    return bool(of(Closed, effects))


@pytest.mark.parametrize(
    ("instance", "option", "epoch"),
    [
        (None, CloseOption.DEFAULT, -1),
        ("i", CloseOption.DEFAULT, -2),
        (None, CloseOption.LEAVE_GROUP, -1),
        ("i", CloseOption.LEAVE_GROUP, -1),
        ("i", CloseOption.REMAIN_IN_GROUP, -2),
        (None, CloseOption.REMAIN_IN_GROUP, -1),  # Java 4.3.1 means to send nothing, and sends it
    ],
)
def test_close_commits_revokes_and_leaves(instance, option, epoch):
    member = Alone(group_instance_id=instance, **QUIET).stable()
    effects = member.tell(Close(option, {("t", 0): 9}))
    assert sent(effects) == ["OffsetCommit"]
    assert [one.committed_offset for one in member.pending(OffsetCommitRequest).topics[0].partitions] == [9, 5]
    effects = member.committed(Error.NONE, Error.NONE)
    assert called(effects) == [("REVOKED", [0, 1])]
    effects = member.done()
    assert sent(effects) == [BEAT]
    assert member.heartbeat.member_epoch == epoch
    assert not closed(effects)
    assert closed(member.beat(epoch, heartbeat_interval_ms=0))
    assert member.tell(Poll()) == []


def test_without_javas_quirks_a_dynamic_member_that_remains_says_nothing():
    member = Alone(quirks_of_java=False, **NO_COMMITS).stable()
    member.tell(Close(CloseOption.REMAIN_IN_GROUP))
    effects = member.done()
    assert sent(effects) == []
    assert closed(effects)


def test_java_waits_for_the_heartbeat_in_flight_before_it_leaves_where_it_meant_to_remain():
    member = Alone(**NO_COMMITS).stable()
    member.due()
    member.tell(Close(CloseOption.REMAIN_IN_GROUP))
    assert sent(member.done()) == []
    assert sent(member.beat(2)) == [BEAT]
    assert closed(member.beat(-1, heartbeat_interval_ms=0))


def test_a_commit_that_fails_hinders_no_close():
    member = Alone(**QUIET).stable()
    member.tell(Close())
    assert called(member.committed(Error.STALE_MEMBER_EPOCH)) == [("REVOKED", [0, 1])]


def test_close_takes_no_longer_than_it_may():
    member = Alone(**QUIET).stable()
    member.tell(Close(timeout_ms=2_000))
    effects = member.run(2_000)
    assert outcomes(effects) == [("close", "TIMED_OUT")]
    assert called(effects) == [("REVOKED", [0, 1])]
    effects = member.done()
    assert sent(effects) == [BEAT]  # it is told, but nobody waits for the answer
    assert closed(effects)


def test_close_without_a_coordinator_gives_up_at_once_after_the_commit():
    member = Alone(**QUIET).stable()
    member.tell(Disconnected())
    member.tell(Commit({("t", 0): 6}, sync=False))
    member.tell(Close(timeout_ms=2_000))
    member.run(2_000)
    effects = member.done()
    assert outcomes(effects) == [("commitAsync", "COMMIT_FAILED")]
    assert closed(effects)
    assert [left.sent for left in of(Left, effects)] == [False]


def test_a_callback_that_fails_is_raised_at_the_end_of_close():
    member = Alone(**NO_COMMITS).stable()
    member.tell(Close())
    effects = member.done("broken")
    assert sent(effects) == [BEAT]
    assert raised(effects) == []
    effects = member.beat(-1, heartbeat_interval_ms=0)
    assert raised(effects) == [None]
    assert closed(effects)


def test_a_fenced_member_that_is_closed_before_it_polls_is_told_revoked_and_not_lost():
    """Java goes by the last epoch that the application has seen."""
    member = Alone(**NO_COMMITS).stable()
    member.tell(PollReturned())
    member.due()
    member.refuse(Error.UNKNOWN_MEMBER_ID)
    effects = member.tell(Close())
    assert called(effects) == [("REVOKED", [0, 1])]
    effects = member.done()
    assert BEAT not in sent(effects)
    assert closed(effects)


def test_a_member_that_never_joined_just_closes():
    assert closed(Alone().tell(Close()))


def test_close_from_inside_a_callback_is_a_drivers_bug():
    member = Alone().joining()
    member.beat(2, share(0))
    with pytest.raises(InvariantBroken):
        member.tell(Close())
