"""What a heartbeat says, and when it goes out; deadlines of the poll, of requests, of the connection."""

from __future__ import annotations

from dataclasses import fields

import pytest

from rebalance_lab.assignors.model import Topic
from rebalance_lab.protocol_v1.common.errors import Error, InvariantBroken
from rebalance_lab.protocol_v1.common.member_effects import (
    Cause,
    Commit,
    Disconnect,
    Disconnected,
    EnforceRebalance,
    FindCoordinatorRequest,
    Left,
    MetadataChanged,
    Poll,
    PollReturned,
    Raise,
    RejoinNeeded,
    Responded,
    Subscribe,
)
from rebalance_lab.protocol_v2.common.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from rebalance_lab.protocol_v2.member.config import MemberConfig
from rebalance_lab.protocol_v2.member.member import Member
from rebalance_lab.protocol_v2.member.states import MEMBER_TRANSITIONS, MemberEvent, MemberState, next_member_state
from tests.members.alone import called, of, sent
from tests.protocol_v2.member.alone import INTERVAL_MS, Alone, moves, owns, share

QUIET = {"auto_commit_interval_ms": 600_000}
HEADER = {"version", "correlation_id", "client_id", "client_host", "group_id", "member_id", "member_epoch"}
BEAT = "ConsumerGroupHeartbeat"


def said(request: ConsumerGroupHeartbeatRequest) -> dict[str, object]:
    """The fields that do not say "as before"."""
    values = {field.name: getattr(request, field.name) for field in fields(request) if field.name not in HEADER}
    return {name: value for name, value in values.items() if value is not None and value != -1}


# The table


def test_every_state_can_be_reached_and_every_event_moves_some_member():
    assert set(MEMBER_TRANSITIONS.values()) == set(MemberState)
    assert {event for _, event in MEMBER_TRANSITIONS} == set(MemberEvent)


def test_nothing_follows_a_fatal_error():
    assert not [event for state, event in MEMBER_TRANSITIONS if state is MemberState.FATAL]


@pytest.mark.parametrize("state", MemberState)
def test_a_pair_that_the_table_lacks_is_a_bug(state):
    for event in MemberEvent:
        if (state, event) not in MEMBER_TRANSITIONS:
            with pytest.raises(InvariantBroken):
                next_member_state(state, event)


JAVA = {
    "STABLE": "JOINING ACKNOWLEDGING RECONCILING",
    "RECONCILING": "STABLE JOINING ACKNOWLEDGING RECONCILING",
    "ACKNOWLEDGING": "RECONCILING",
    "FATAL": "JOINING STABLE RECONCILING ACKNOWLEDGING PREPARE_LEAVING LEAVING UNSUBSCRIBED",
    "FENCED": "JOINING STABLE RECONCILING ACKNOWLEDGING PREPARE_LEAVING LEAVING",
    "JOINING": "FENCED UNSUBSCRIBED STALE",
    "PREPARE_LEAVING": "JOINING STABLE RECONCILING ACKNOWLEDGING UNSUBSCRIBED",
    "LEAVING": "PREPARE_LEAVING",
    "UNSUBSCRIBED": "PREPARE_LEAVING LEAVING FENCED",
    "STALE": "LEAVING",
}


def test_every_transition_is_one_that_java_allows():
    for (state, _), target in MEMBER_TRANSITIONS.items():
        assert state.name in JAVA[target.name].split()


# What it says


def test_a_join_says_everything():
    settings = {"group_instance_id": "i", "client_rack": "r1", "group_remote_assignor": "range"}
    join = Alone(**settings).joining().heartbeat
    assert (join.member_id, join.member_epoch) == ("me", 0)
    assert said(join) == {
        "instance_id": "i",
        "rack_id": "r1",
        "rebalance_timeout_ms": 300_000,
        "subscribed_topic_names": ("t",),
        "server_assignor": "range",
        "topic_partitions": (),
    }


def test_a_plain_heartbeat_says_nothing_but_who_it_is():
    member = Alone(group_instance_id="i", client_rack="r1", group_remote_assignor="range").stable()
    member.due()
    assert said(member.heartbeat) == {"instance_id": "i"}


def test_after_a_failure_everything_is_said_again_except_the_rack():
    member = Alone(client_rack="r1", group_remote_assignor="range", **QUIET).stable()
    member.due()
    member.refuse(Error.COORDINATOR_LOAD_IN_PROGRESS)
    member.run(100)
    assert set(said(member.heartbeat)) == {
        "rebalance_timeout_ms",
        "subscribed_topic_names",
        "server_assignor",
        "topic_partitions",
    }
    member.beat(2, share(0, 1))
    member.due()
    assert said(member.heartbeat) == {}


def test_an_expression_is_passed_on_and_names_are_not():
    member = Alone(regex="t.*", **QUIET)
    join = member.joining().heartbeat
    assert (join.subscribed_topic_names, join.subscribed_topic_regex) == ((), "t.*")
    member.beat(2, share(0))
    member.done()
    member.beat(2)
    member.tell(Subscribe(frozenset({"t"})))
    member.due()
    assert said(member.heartbeat) == {"subscribed_topic_names": ("t",), "subscribed_topic_regex": ""}
    member.beat(3)
    member.tell(Subscribe(regex="u"))
    member.due()
    assert said(member.heartbeat) == {"subscribed_topic_names": (), "subscribed_topic_regex": "u"}
    assert member.member.fetchable == {("t", 0)}  # an expression cannot tell what it matches


@pytest.mark.parametrize(("java", "says"), [(True, None), (False, "")])
def test_only_java_forgets_that_an_expression_was_to_be_cleared(java, says):
    member = Alone(regex="t.*", quirks_of_java=java, **QUIET).joining()
    member.beat(2, share(0))
    member.done()
    member.beat(2)
    member.tell(Subscribe(frozenset({"t"})))
    member.due()
    assert member.heartbeat.subscribed_topic_regex == ""
    member.refuse(Error.COORDINATOR_LOAD_IN_PROGRESS)
    member.run(100)
    assert member.heartbeat.subscribed_topic_regex == says


@pytest.mark.parametrize(("java", "says"), [(True, None), (False, "")])
def test_only_java_inherits_the_expression_of_an_earlier_process_with_its_instance_id(java, says):
    join = Alone(group_instance_id="i", quirks_of_java=java).joining().heartbeat
    assert join.subscribed_topic_regex == says


def test_a_pattern_is_matched_here_whenever_poll_finds_new_metadata():
    member = Alone(pattern="t|__.*|u", **QUIET)
    assert member.joining().heartbeat.subscribed_topic_names == ("t",)
    member.beat(2, share(0))
    member.done()
    member.beat(2)
    member.tell(PollReturned())
    member.tell(MetadataChanged({"t": Topic(4), "u": Topic(1), "__consumer_offsets": Topic(50)}))
    member.due()
    assert said(member.heartbeat) == {}  # the application has not looked yet
    member.beat(2)
    member.tell(Poll())
    member.due()
    assert said(member.heartbeat) == {"subscribed_topic_names": ("t", "u")}


def test_a_member_joins_with_a_pattern_that_matches_nothing_yet():
    join = Alone(pattern="nothing.*").joining().heartbeat
    assert (join.member_epoch, join.subscribed_topic_names) == (0, ())


# When it goes out


def test_the_interval_is_the_brokers_and_counts_from_the_request():
    member = Alone(**QUIET).stable()
    assert BEAT not in sent(member.run(INTERVAL_MS - 1))
    assert BEAT in sent(member.run(1))
    member.run(500)
    member.beat(2)
    assert BEAT in sent(member.run(INTERVAL_MS - 500))


def test_a_changed_interval_starts_anew_when_it_is_heard_of():
    member = Alone(**QUIET).stable()
    member.due()
    member.run(500)
    member.beat(2, heartbeat_interval_ms=700)
    assert BEAT not in sent(member.run(699))
    assert BEAT in sent(member.run(1))
    member.beat(2, heartbeat_interval_ms=0)  # no interval at all is not one
    assert member.memory.heartbeats.interval_ms == 700


def test_only_one_heartbeat_at_a_time():
    member = Alone(**QUIET).stable()
    member.due()
    assert BEAT not in sent(member.run(3 * INTERVAL_MS))
    assert BEAT in sent(member.beat(2))  # overdue


def test_heartbeats_go_on_while_the_application_is_busy_or_in_a_callback():
    member = Alone(**QUIET).stable()
    member.tell(PollReturned())
    assert BEAT in sent(member.due())
    member.beat(2, share(0))
    member.tell(Poll())
    member.committed(Error.NONE, Error.NONE)
    assert called(member.effects) == [("REVOKED", [1])]
    assert BEAT in sent(member.due())


def test_nothing_is_sent_without_a_subscription():
    member = Member(MemberConfig(), member_id="me")
    effects = member.handle(Poll(), 0)
    assert sent(effects) == ["FindCoordinator"]
    assert member.state is MemberState.UNSUBSCRIBED


def test_a_rebalance_cannot_be_enforced():
    member = Alone().stable()
    assert member.tell(EnforceRebalance()) == []


def test_poll_inside_a_callback_is_a_drivers_bug():
    member = Alone().joining()
    member.beat(2, share(0))
    with pytest.raises(InvariantBroken):
        member.tell(Poll())
    with pytest.raises(InvariantBroken):
        Alone().done()


# max.poll.interval


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_who_does_not_poll_leaves_at_once_and_comes_back_with_the_next_poll(instance, epoch):
    member = Alone(max_poll_interval_ms=7_000, group_instance_id=instance, **QUIET).stable()
    member.tell(PollReturned())
    effects = member.run(7_000)
    assert moves(effects) == ["PrepareLeaving", "Leaving", "Stale"]
    assert of(Left, effects)[0].cause is Cause.POLL_INTERVAL
    leave = [request for request in member.open if isinstance(request, ConsumerGroupHeartbeatRequest)][-1]
    assert (leave.member_epoch, owns(leave)) == (epoch, [])
    assert member.member.fetchable == frozenset()
    assert sent(member.run(20_000)) == []
    effects = member.tell(Poll())
    assert called(effects) == [("LOST", [0, 1])]
    assert BEAT not in sent(effects)
    effects = member.done()
    assert moves(effects) == ["Joining"]
    join = [request for request in member.open if isinstance(request, ConsumerGroupHeartbeatRequest)][-1]
    assert (join.member_epoch, owns(join), join.subscribed_topic_names) == (0, [], ("t",))
    assert of(RejoinNeeded, effects)[0].cause is Cause.POLL_INTERVAL


def test_a_stale_member_that_owns_nothing_joins_with_the_poll():
    member = Alone(max_poll_interval_ms=7_000, **QUIET).joining()
    member.beat(2, share())
    member.done()
    member.tell(PollReturned())
    member.run(7_000)
    assert moves(member.tell(Poll())) == ["Joining"]


def test_nobody_expires_inside_poll_but_inside_a_callback_or_a_blocking_commit():
    member = Alone(max_poll_interval_ms=7_000, **QUIET).stable()
    member.run(30_000)
    assert member.member.state is MemberState.STABLE
    member = Alone(max_poll_interval_ms=7_000, **QUIET).joining()
    member.beat(2, share(0))
    member.run(7_000)
    assert member.member.state is MemberState.STALE
    member = Alone(max_poll_interval_ms=7_000, **QUIET).stable()
    member.tell(Commit({("t", 0): 6}))
    member.run(7_000)
    assert member.member.state is MemberState.STALE


def test_without_a_coordinator_nobody_expires():
    member = Alone(max_poll_interval_ms=7_000, **QUIET).stable()
    member.tell(PollReturned())
    member.tell(Disconnected())
    member.run(10_000)
    assert member.member.state is MemberState.STABLE
    assert moves(member.find()) == ["PrepareLeaving", "Leaving", "Stale"]


def test_an_answer_to_an_earlier_life_is_not_taken_for_one_to_the_join():
    member = Alone(max_poll_interval_ms=7_000, **QUIET).stable()
    member.tell(PollReturned())
    member.due()
    old = member.heartbeat
    member.run(2_000)
    member.tell(Poll())
    member.done()
    assert member.member.state is MemberState.JOINING
    effects = member.tell(Responded(old, ConsumerGroupHeartbeatResponse(member_epoch=9, assignment=share(3))))
    assert moves(effects) == []
    assert member.member.member_epoch == 0
    assert moves(member.tell(Disconnected())) == []


# The connection


def test_a_lost_connection_fails_what_is_on_it_and_the_coordinator_is_looked_for():
    member = Alone(**QUIET).stable()
    member.due()
    assert sent(member.tell(Disconnected())) == ["FindCoordinator"]
    member.find()
    assert BEAT not in sent(member.effects[-3:])
    member.run(100)
    assert member.open[-1].member_epoch == 2  # type: ignore[attr-defined]
    assert owns(member.open[-1]) == [0, 1]  # type: ignore[arg-type]


def test_a_request_that_is_not_answered_in_time_costs_the_connection():
    member = Alone(request_timeout_ms=2_000, **QUIET).stable()
    member.due()
    effects = member.run(2_000)
    assert len(of(Disconnect, effects)) == 1
    assert "FindCoordinator" in sent(effects)


def test_a_lookup_that_is_not_answered_is_repeated():
    member = Alone(request_timeout_ms=2_000)
    effects = member.run(2_100)
    assert of(Disconnect, effects) == []
    assert sent(effects) == ["FindCoordinator"]


def test_lookups_back_off():
    member = Alone()
    at = []
    for _ in range(6):
        member.find(Error.COORDINATOR_NOT_AVAILABLE)
        begun = member.now_ms
        while not member.asked(FindCoordinatorRequest):
            member.run(50)
        at.append(member.now_ms - begun)
    assert at == [100, 200, 400, 800, 1_000, 1_000]


def test_what_was_in_flight_to_a_coordinator_that_moved_may_still_be_answered():
    member = Alone(**QUIET).stable()
    member.tell(Commit({("t", 0): 6}, sync=False))
    member.due()
    member.refuse(Error.NOT_COORDINATOR)
    assert member.committed(Error.NONE)


def test_an_answer_that_is_said_twice_counts_once():
    member = Alone(**QUIET).stable()
    member.due()
    request = member.heartbeat
    member.beat(2)
    assert member.tell(Responded(request, ConsumerGroupHeartbeatResponse(error_code=Error.UNKNOWN_MEMBER_ID))) == []


def test_jitter_is_the_callers():
    member = Member(MemberConfig(), member_id="me", topics=["t"], jitter=lambda: 0.8)
    member.handle(Poll(), 0)
    assert member.memory.config.backoff_ms(1, member.memory.jitter()) == 160


def test_an_exception_ends_poll():
    member = Alone().joining()
    assert of(Raise, member.refuse(Error.UNSUPPORTED_ASSIGNOR, "no such assignor"))[0].message == "no such assignor"
    assert member.memory.polling is False


# What a driver may ask and do


def test_what_a_driver_may_ask_of_a_member():
    member = Alone(**QUIET)
    assert member.member.heartbeat_interval_ms == 5_000  # the coordinator's default, before it is heard
    assert not member.member.settled
    member.stable()
    assert member.member.settled
    assert member.member.in_poll
    assert member.member.epoch == member.member.member_epoch == 2
    assert member.member.subscribed_topics == {"t"}
    assert member.member.auto_commit_at_ms == 600_000
    assert Alone(enable_auto_commit=False).stable().member.auto_commit_at_ms is None


@pytest.mark.parametrize("settings", [QUIET, {"enable_auto_commit": False}])
def test_a_settled_member_goes_on_after_a_leap_as_if_no_time_had_passed(settings):
    member = Alone(**settings).stable()
    member.run(1_000)
    member.member.leap(86_400_000, 86_400_000)
    member.now_ms += 86_400_000
    member.timers = {key: at_ms + 86_400_000 for key, at_ms in member.timers.items()}
    assert sent(member.run(3_999)) == []
    assert sent(member.run(1)) == [BEAT]
    member.member.leap(1_000, 1_000)
    member.now_ms += 1_000
    assert member.memory.in_flight[member.heartbeat.correlation_id].deadline_ms == member.now_ms + 30_000
