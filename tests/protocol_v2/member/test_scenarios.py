"""The canonical scenarios of the specification: real members, a real coordinator, messages and callbacks in order.

Kafka's defaults, but no auto-commits of the interval, and targets are computed at once. A story leaves out heartbeats
that say nothing and hear nothing new; `-> Heartbeat 2 own {..}` says what is owned, `<- Heartbeat 3 {..}` what is given
"""

from __future__ import annotations

from typing import Any

import pytest

from rebalance_lab.harness.conversation.conversations import MixedConversation, consumer_group
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    Callback,
    Cause,
    CloseOption,
    Commit,
    Left,
    Poll,
    RejoinNeeded,
    Subscribe,
    Unsubscribe,
)
from rebalance_lab.protocol_v2.common.messages import ConsumerGroupHeartbeatRequest
from rebalance_lab.protocol_v2.coordinator.state.states import GroupState
from rebalance_lab.protocol_v2.member.states import MemberState

JOIN = "-> Heartbeat 0 full [t] own {}; "
COMMIT = "-> OffsetCommit; <- OffsetCommit 0; "
FULL = "t-0 t-1 t-2 t-3"


def given(epoch: int, partitions: str) -> str:
    return f"<- Heartbeat {epoch} {{{partitions}}}; "


def taken(epoch: int, added: str, owned: str) -> str:
    """Assigned, looked up and acknowledged."""
    fetch, fetched = ("-> OffsetFetch; ", "; <- OffsetFetch 0") if added else ("", "")
    return f"onPartitionsAssigned({added}); {fetch}-> Heartbeat {epoch} own {{{owned}}}{fetched}; <- Heartbeat {epoch}"


def given_up(epoch: int, revoked: str, owned: str, then: int) -> str:
    call = f"onPartitionsRevoked({revoked}); onPartitionsAssigned(); "
    return f"{COMMIT}{call}-> Heartbeat {epoch} own {{{owned}}}; <- Heartbeat {then}"


def group_of(*names: str, size: int = 4, **settings: Any) -> MixedConversation:
    group = consumer_group({"t": size}, **{"auto_commit_interval_ms": 600_000, **settings})
    for name in names:
        group.join(name).settle()
    return group.run(20)


def story(group: MixedConversation, name: str) -> str:
    return "; ".join(group.story(name))


def moves(group: MixedConversation) -> list[tuple[str, str]]:
    return [(state, event) for _, state, event in group.states]


def share(group: MixedConversation, name: str) -> str:
    return " ".join(f"{topic}-{index}" for topic, index in sorted(group.clients[name].owned))


def test_5_1_the_first_member_joins():
    group = group_of("A")
    assert story(group, "A") == JOIN + given(2, FULL) + taken(2, FULL, FULL)
    assert moves(group) == [("Stable", "heartbeat")]
    assert group.clients["A"].facts == [RejoinNeeded(cause=Cause.JOIN, reason="polled with a new subscription")]


def test_5_2_a_second_member_joins():
    group = group_of("A").forget()
    group.join("B").settle().run(20)
    assert story(group, "A") == given(2, "t-0 t-1") + given_up(2, "t-2 t-3", "t-0 t-1", 3)
    assert story(group, "B") == (
        JOIN + given(3, "") + taken(3, "", "") + "; " + given(3, "t-2 t-3") + taken(3, "t-2 t-3", "t-2 t-3")
    )
    assert moves(group)[1:] == [("Reconciling", "heartbeat"), ("Stable", "heartbeat")]


def test_5_3_three_join_at_once():
    group = consumer_group({"t": 6}, auto_commit_interval_ms=600_000)
    group.join("A").join("B").join("C").settle().run(20)
    everything = "t-0 t-1 t-2 t-3 t-4 t-5"
    assert story(group, "A") == (
        JOIN
        + given(2, everything)
        + f"onPartitionsAssigned({everything}); -> OffsetFetch; -> Heartbeat 2 own {{{everything}}}; <- OffsetFetch 0; "
        + given(2, "t-0 t-1")
        + "onPartitionsRevoked(t-2 t-3 t-4 t-5); onPartitionsAssigned(); -> Heartbeat 2 own {t-0 t-1}; <- Heartbeat 4"
    )  # it had consumed nothing yet, so there was nothing to commit
    joined = JOIN + given(3, "") + "onPartitionsAssigned(); -> Heartbeat 3 own {}; <- Heartbeat 4; "
    assert story(group, "B") == joined + given(4, "t-3 t-4") + taken(4, "t-3 t-4", "t-3 t-4")
    assert share(group, "C") == "t-2 t-5"
    assert group.group is not None
    assert (group.group.group_epoch, group.group.assignment_epoch) == (4, 4)


def test_5_4_a_member_leaves():
    group = group_of("A", "B").forget()
    group.close("B").settle().run(20)
    assert story(group, "B") == COMMIT + "onPartitionsRevoked(t-2 t-3); -> Heartbeat -1 [] own {}; <- Heartbeat -1"
    assert story(group, "A") == given(4, FULL) + COMMIT + taken(4, "t-2 t-3", FULL)
    assert moves(group)[-2:] == [("Assigning", "member left"), ("Stable", "heartbeat")]
    assert group.clients["B"].facts[-1] == Left(cause=Cause.LEAVE, reason="close", sent=True)


def test_5_5_a_member_crashes():
    group = group_of("A", "B").forget()
    at_ms = group.now_ms
    group.crash("B").settle().run(20)
    assert 40_000 < group.now_ms - at_ms < 51_000
    assert story(group, "B") == ""  # it gets no callback
    assert story(group, "A") == given(4, FULL) + COMMIT + taken(4, "t-2 t-3", FULL)
    assert moves(group)[-2:] == [("Assigning", "session timeout"), ("Stable", "heartbeat")]


def test_5_6_a_slow_revoker_is_removed_and_comes_back():
    group = group_of("A", max_poll_interval_ms=8_000).forget()
    group.clients["A"].callback_ms = 20_000
    group.join("B").run(15_000)
    assert group.clients["A"].member.state is MemberState.STALE  # its own poll deadline is the same one
    assert story(group, "A") == (
        given(2, "t-0 t-1") + COMMIT + "onPartitionsRevoked(t-2 t-3); -> Heartbeat -1 own {}; "
        "<- Heartbeat UNKNOWN_MEMBER_ID"
    )
    assert moves(group)[-1] == ("Assigning", "partitions not revoked within the rebalance timeout")
    group.clients["A"].callback_ms = 0
    group.settle().run(20)
    assert story(group, "A").startswith(f"onPartitionsLost({FULL}); {JOIN}")
    assert (share(group, "A"), share(group, "B")) == ("t-2 t-3", "t-0 t-1")


def static_group(**settings: Any) -> MixedConversation:
    group = consumer_group({"t": 4}, auto_commit_interval_ms=600_000, **settings)
    for name in ("A", "B"):
        group.join(name, group_instance_id=name).settle()
    return group.run(20).forget()


def test_5_7_a_static_member_restarts_in_time_and_nobody_else_notices():
    group = static_group()
    group.close("A").run(10_000)
    assert story(group, "A") == COMMIT + "onPartitionsRevoked(t-0 t-1); -> Heartbeat -2 [] own {}; <- Heartbeat -2"
    assert group.group is not None
    assert group.group.state is GroupState.RECONCILING
    group.join("A", group_instance_id="A").settle().run(20)
    assert story(group, "A") == JOIN + given(3, "t-0 t-1") + taken(3, "t-0 t-1", "t-0 t-1")
    assert story(group, "B") == ""
    assert group.group.group_epoch == 3


def test_5_7_a_static_member_that_is_too_late_finds_its_partitions_gone():
    group = static_group()
    group.close("A").run(60_000).settle().run(20)
    assert share(group, "B") == FULL
    group.join("A", group_instance_id="A").settle()
    assert (share(group, "A"), share(group, "B")) == ("t-2 t-3", "t-0 t-1")


def test_5_8_an_instance_id_that_is_in_use_is_refused_for_good():
    group = static_group()
    group.join("X", group_instance_id="A").run(20)
    refused = "<- Heartbeat UNRELEASED_INSTANCE_ID; raised UNRELEASED_INSTANCE_ID"
    assert story(group, "X") == JOIN + refused
    assert group.clients["X"].member.state is MemberState.FATAL
    group.run(60_000)
    assert [story(group, name) for name in ("A", "B", "X")] == ["", "", ""]


def test_5_8_who_lost_its_instance_id_while_away_is_fenced_for_good():
    group = static_group(request_timeout_ms=300_000)
    group.clients["A"].latency_ms = 100_000
    group.run(60_000)  # its session ends
    group.join("X", group_instance_id="A").run(200_000)
    fenced = "<- Heartbeat FENCED_INSTANCE_ID; onPartitionsLost(t-0 t-1); raised FENCED_INSTANCE_ID"
    assert story(group, "A").endswith(fenced)
    assert group.clients["A"].member.state is MemberState.FATAL
    assert share(group, "X") == "t-2 t-3"


def test_5_9_a_topic_grows():
    group = group_of("A", "B").forget()
    group.grow({"t": 6}).run(6_000).settle().run(20)
    assert story(group, "A") == given(4, "t-0 t-1 t-4") + COMMIT + taken(4, "t-4", "t-0 t-1 t-4")
    assert story(group, "B") == given(4, "t-2 t-3 t-5") + COMMIT + taken(4, "t-5", "t-2 t-3 t-5")


def test_5_9_a_topic_is_deleted():
    group = consumer_group({"t": 2, "u": 2}, auto_commit_interval_ms=600_000)
    group.join("A").settle().run(20).forget()
    del group.topics["u"]
    group.grow({}).run(6_000).settle().run(20)
    assert story(group, "A") == given(2, "t-0 t-1") + given_up(2, "u-0 u-1", "t-0 t-1", 3).replace(
        "OffsetCommit 0; ", "OffsetCommit 3; prepare: failed; "
    )  # u cannot be committed any more, and that hinders nothing


def test_5_10_an_expression_matches_a_new_topic():
    group = consumer_group({"ta": 2}, auto_commit_interval_ms=600_000)
    group.join("A", regex="t.*").settle().run(20)
    assert story(group, "A") == (
        "-> Heartbeat 0 full [] regex 't.*' own {}; "
        + given(1, "")
        + "onPartitionsAssigned(); -> Heartbeat 1 own {}; "
        + given(2, "ta-0 ta-1")
        + taken(2, "ta-0 ta-1", "ta-0 ta-1")
    )
    group.run(3_000).grow({"tb": 2, "u": 2}).run(20_000).settle().run(20)
    assert share(group, "A") == "ta-0 ta-1 tb-0 tb-1"
    assert moves(group)[-2:] == [("Assigning", "regular expressions resolved"), ("Stable", "heartbeat")]


@pytest.mark.parametrize("lost", ["a join", "an order to revoke", "an epoch"])
def test_5_11_one_lost_answer_fences_nobody(lost):
    """Quirks off: Java may leave out what it is about to take (2.4), and a repeated heartbeat must not say less."""
    settings = {"auto_commit_interval_ms": 600_000, "request_timeout_ms": 1_000, "quirks_of_java": False}
    group = consumer_group({"t": 4}, **settings)
    client = None
    if lost != "a join":
        group.join("A").settle().run(20)
        group.join("B").run(20)
        client = group.clients["A"]
        want = "own {t-0 t-1}" if lost == "an epoch" else None
        group.until(group.now_ms + 20_000, lambda: about_to_hear(group, want))
        client.connection += 1  # its answer goes nowhere
    else:
        group.join("A").run(2)
        group.clients["A"].connection += 1
    group.run(3_000).settle().run(20)
    told = story(group, "A")
    assert "full" in told
    assert "FENCED" not in told
    assert "onPartitionsLost" not in told
    if lost != "a join":
        assert (share(group, "A"), share(group, "B")) == ("t-0 t-1", "t-2 t-3")


def about_to_hear(group: MixedConversation, said: str | None) -> bool:
    """A's heartbeat has arrived, and the answer is under way."""
    assert group.group is not None
    member = group.group.members[group.clients["A"].member.member_id]  # type: ignore[union-attr]
    if said is not None:
        return member.current.member_epoch == 3
    return bool(member.current.revoking)


class Deaf:
    """From now on the answers to that client's heartbeats get lost, the first so many of them."""

    def __init__(self, group: MixedConversation, name: str, answers: int = 1_000) -> None:
        self.hear, self.name, self.answers = group.hear, name, answers
        group.hear = self.instead  # type: ignore[method-assign]

    def instead(self, client: Any, connection: Any, request: Any, response: Any) -> None:
        if client.name == self.name and self.answers and isinstance(request, ConsumerGroupHeartbeatRequest):
            self.answers -= 1
        else:
            self.hear(client, connection, request, response)


@pytest.mark.parametrize(("lost", "fenced"), [(1, False), (2, True)])
def test_5_11_two_lost_answers_in_a_row_while_waiting_for_others_fence_a_member(lost, fenced):
    group = group_of("A", request_timeout_ms=1_000)
    group.clients["A"].callback_ms = 60_000  # it does not let go
    group.join("B").run(4_000)
    group.join("C").run(10).forget()
    Deaf(group, "B", lost)
    group.run(12_000)
    assert ("FENCED_MEMBER_EPOCH" in story(group, "B")) is fenced
    assert group.clients["B"].member.member_epoch == 4  # type: ignore[union-attr]


@pytest.mark.parametrize(("java", "both"), [(True, [("t", 2), ("t", 3)]), (False, [])])
def test_only_javas_members_read_one_partition_twice_after_lost_answers(java, both):
    """C8: a full heartbeat that leaves out what is being taken over counts as giving it up."""
    group = consumer_group({"t": 4}, enable_auto_commit=False, request_timeout_ms=1_000, quirks_of_java=java)
    group.join("A", callback_ms=9_000).run(10)  # onPartitionsAssigned takes its time
    group.join("B").run(10)
    Deaf(group, "A")
    group.run(11_000)
    readers = [group.clients[name].member.fetchable for name in "AB"]
    assert sorted(readers[0] & readers[1]) == both


# 5.12: classic members, and the way from one protocol to the other and back


def test_5_12_a_group_is_upgraded_and_downgraded_one_restart_at_a_time():
    group = consumer_group({"t": 4}, auto_commit_interval_ms=600_000)
    group.join("c", protocol="classic").join("d", protocol="classic").settle().run(20).forget()
    assert str(group) == "generation 1  c: t-0 t-1  d: t-2 t-3"
    group.states.clear()
    group.join("A").settle().run(20)
    assert moves(group)[0] == ("Reconciling", "classic group upgraded")
    assert str(group) == "epoch 2  c: t-0 t-1  d: t-2  A: t-3"
    assert story(group, "d").startswith(
        "<- Heartbeat 27; " + COMMIT + "onPartitionsRevoked(t-2 t-3); -> JoinGroup(d-2)"
    )
    group.close("c").settle()
    group.close("d").settle().run(20)
    assert str(group) == f"epoch 4  A: {FULL}"
    group.join("e", protocol="classic").settle().run(20)
    assert str(group) == "epoch 5  A: t-0 t-1  e: t-2 t-3"
    group.states.clear()
    group.close("A").settle().run(20)
    assert moves(group)[0] == ("Dead", "downgraded to a classic group")
    assert str(group) == f"generation 6  e: {FULL}"


def test_5_12_without_leave_a_consumer_cannot_enter_a_classic_group():
    group = consumer_group({"t": 4}, properties={"group.consumer.migration.policy": "disabled"})
    group.join("c", protocol="classic").settle().forget()
    group.join("A").run(20)
    assert story(group, "A") == JOIN + "<- Heartbeat GROUP_ID_NOT_FOUND; raised GROUP_ID_NOT_FOUND"
    assert group.clients["A"].member.state is MemberState.FATAL


# More of the member's side


def test_a_poll_that_comes_too_late():
    group = group_of("A", "B", max_poll_interval_ms=10_000).forget()
    group.busy("A").run(12_000)
    assert story(group, "A") == ""  # its thread sleeps until a heartbeat is due
    group.run(3_000)
    assert story(group, "A") == "-> Heartbeat -1 own {}; <- Heartbeat -1"
    assert group.clients["A"].owned  # not called lost before it polls
    assert group.clients["A"].member.fetchable == frozenset()
    group.run(5_000)
    assert share(group, "B") == FULL
    group.poll("A").settle().run(20)
    assert story(group, "A").startswith("onPartitionsLost(t-0 t-1); " + JOIN + given(5, ""))
    assert group.clients["A"].facts[-2:] == [
        Left(cause=Cause.POLL_INTERVAL, reason="max.poll.interval exceeded", sent=True),
        RejoinNeeded(cause=Cause.POLL_INTERVAL, reason="polled again"),
    ]


def test_removed_by_the_coordinator_a_member_hears_of_it_with_its_next_heartbeat():
    group = group_of("A", "B").forget()
    group.clients["B"].latency_ms = 50_000  # a network that does not deliver for a while
    group.run(60_000)
    group.clients["B"].latency_ms = None
    group.settle().run(20)
    told = story(group, "B")
    assert "UNKNOWN_MEMBER_ID; onPartitionsLost(t-2 t-3); " + JOIN in told
    assert [call.callback for call in group.clients["B"].calls].count(Callback.LOST) == 1


def test_a_subscription_changes():
    group = consumer_group({"t": 2, "u": 2}, auto_commit_interval_ms=600_000)
    group.join("A", topics=["t"]).settle().run(20).forget()
    group.tell(group.clients["A"], Subscribe(frozenset({"u"})))
    group.run(6_000).settle().run(20)
    assert story(group, "A") == (
        "-> Heartbeat 2 [u]; "
        + given(2, "")
        + given_up(2, "t-0 t-1", "", 3).replace("<- Heartbeat 3", "")
        + given(3, "u-0 u-1")
        + taken(3, "u-0 u-1", "u-0 u-1")
    )


def test_unsubscribe_and_subscribe_again():
    group = group_of("A", "B").forget()
    group.tell(group.clients["A"], Unsubscribe())
    group.run(20)
    assert story(group, "A") == "onPartitionsRevoked(t-0 t-1); -> Heartbeat -1 [] own {}; <- Heartbeat -1"
    group.tell(group.clients["A"], Subscribe(frozenset({"t"})))
    group.settle().run(20)
    assert share(group, "A") == "t-0 t-1"


def test_a_fail_over_fences_nobody():
    group = group_of("A", "B").forget()
    group.fail_over(down_ms=3_000).run(10_000).settle()
    assert story(group, "A") == ""  # no heartbeat was on its way, so none is repeated in full
    assert (share(group, "A"), share(group, "B")) == ("t-0 t-1", "t-2 t-3")


def test_a_commit_in_flight_while_the_epoch_advances_succeeds():
    group = group_of("A").forget()
    group.join("B").settle().run(20)
    group.tell(group.clients["A"], Commit({("t", 0): 3}))
    group.run(10)
    assert group.story("A")[-2:] == ["-> OffsetCommit", "<- OffsetCommit 0"]


@pytest.mark.parametrize(("option", "stays"), [(CloseOption.LEAVE_GROUP, False), (CloseOption.DEFAULT, True)])
def test_a_static_member_leaves_for_good_only_if_it_is_told_to(option, stays):
    group = static_group()
    group.close("A", option).run(20)
    assert group.group is not None
    assert ("A" in group.group.static) is stays


def test_by_the_assignor_that_members_ask_for():
    group = consumer_group({"t": 4, "u": 4}, assignor="range", auto_commit_interval_ms=600_000)
    group.join("A").settle()
    group.join("B").settle()
    assert share(group, "A") == "t-0 t-1 u-0 u-1"  # co-partitioned


def test_an_unknown_assignor_is_fatal():
    group = consumer_group({"t": 4}, assignor="nope")
    group.join("A").run(20)
    raised = group.clients["A"].raised
    assert raised is not None
    assert raised.error is Error.UNSUPPORTED_ASSIGNOR


def test_a_bad_expression_is_fatal():
    group = consumer_group({"t": 4})
    group.join("A", regex="(").run(20)
    raised = group.clients["A"].raised
    assert raised is not None
    assert raised.error is Error.INVALID_REGULAR_EXPRESSION


def work_in_turns(group, every_ms, polls, *, buffered=True):
    """A polls, is given what was fetched before, works on it, and polls again."""
    for _ in range(polls):
        client = group.clients["A"]
        group.tell(client, Poll(group.positions(client), buffered=buffered))
        group.busy("A").run(every_ms)
    return [fact.cause for fact in group.clients["A"].facts if isinstance(fact, Left)]


def test_every_second_poll_is_not_heard_while_records_wait_so_two_batches_are_to_fit_into_max_poll_interval():
    """Kafka 4.3.1, seen with its consumer: batches of 4.5 s and a max.poll.interval.ms of 8 s put it out again and
    again."""
    settings = {"max_poll_interval_ms": 8_000}
    broker = {"group.consumer.heartbeat.interval.ms": 1_000, "group.consumer.min.heartbeat.interval.ms": 1_000}
    assert work_in_turns(group_of("A", "B", properties=broker, **settings), 3_500, 8) == []
    assert work_in_turns(group_of("A", "B", properties=broker, **settings), 4_500, 3) == [Cause.POLL_INTERVAL]
    assert work_in_turns(group_of("A", "B", properties=broker, **settings), 7_500, 8, buffered=False) == []
    assert work_in_turns(group_of("A", "B", properties=broker, quirks_of_java=False, **settings), 7_500, 8) == []


def test_a_poll_in_which_the_application_is_called_goes_round_again_and_is_heard():
    group = group_of("A", "B", max_poll_interval_ms=10_000)
    group.busy("A").run(20_000).forget()
    client = group.clients["A"]
    group.tell(client, Poll(group.positions(client), buffered=True))
    group.settle().run(20)
    assert story(group, "A").startswith("onPartitionsLost(t-0 t-1); " + JOIN)
