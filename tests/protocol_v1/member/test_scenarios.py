"""The twelve canonical scenarios, with real members on a real coordinator: messages and callbacks in order.

Topic t has six partitions; range (eager), auto-commit on, Kafka's defaults. A story leaves out heartbeats that are
answered with 0 and the auto-commits of the interval.
"""

from __future__ import annotations

from typing import Any

import pytest

from rebalance_lab.harness.conversation.conversations import Conversation, classic_group
from rebalance_lab.protocol_v1.common.member_effects import (
    Cause,
    CloseOption,
    Commit,
    CommitOutcome,
    Left,
    RejoinNeeded,
)
from rebalance_lab.protocol_v1.coordinator.state.states import State
from rebalance_lab.protocol_v1.member.states import MemberState

FIRST_JOIN = "-> JoinGroup(); <- JoinGroup 79; "
FETCH = "; -> OffsetFetch; <- OffsetFetch 0"
COMMIT = "-> OffsetCommit; <- OffsetCommit 0; "


def sync(generation: int, assignments: int = 0) -> str:
    return f"<- JoinGroup 0; -> SyncGroup(generation {generation}, {assignments} assignments); <- SyncGroup 0; "


def story(group: Conversation, name: str) -> str:
    return "; ".join(group.story(name))


def three(**settings: Any) -> Conversation:
    """m1, m2 and m3 come a second apart; m1 leads."""
    group = classic_group({"t": 6}, **settings)
    for name in ("m1", "m2", "m3"):
        group.join(name).run(1_000)
    return group.settle().run(20)


def three_static(**settings: Any) -> Conversation:
    group = classic_group({"t": 6}, **settings)
    for name in ("i1", "i2", "i3"):
        group.join(name, group_instance_id=name).run(1_000)
    return group.settle().run(20).forget()


def leader(group: Conversation) -> str:
    return next(client.name for client in group.live if client.member.memory.is_leader)


def rebalances(group: Conversation) -> int:
    return sum(state == State.COMPLETING_REBALANCE.value for _, state, _ in group.states)


def test_s1_initial_join_of_three_dynamic_members():
    group = three()
    assert [(at_ms // 1_000, state) for at_ms, state, _ in group.states] == [
        (0, "Empty"),
        (0, "PreparingRebalance"),
        (6, "CompletingRebalance"),  # the initial delay, extended once
        (6, "Stable"),
    ]
    join = "-> JoinGroup({0}); "
    assert story(group, "m1") == FIRST_JOIN + join.format("m1-1") + sync(1, 3) + "onPartitionsAssigned(t-0 t-1)" + FETCH
    assert story(group, "m2") == FIRST_JOIN + join.format("m2-2") + sync(1) + "onPartitionsAssigned(t-2 t-3)" + FETCH
    assert story(group, "m3") == FIRST_JOIN + join.format("m3-3") + sync(1) + "onPartitionsAssigned(t-4 t-5)" + FETCH
    assert group.clients["m1"].facts[0] == RejoinNeeded(cause=Cause.JOIN, reason="")


def test_s2_one_member_leaves():
    group = three().forget()
    group.close("m3").settle().run(20)
    assert story(group, "m3") == COMMIT + "onPartitionsRevoked(t-4 t-5); -> LeaveGroup; <- LeaveGroup 0"
    told = "<- Heartbeat 27; " + COMMIT
    assert (
        story(group, "m1")
        == (
            told
            + "onPartitionsRevoked(t-0 t-1); -> JoinGroup(m1-1); "
            + sync(2, 2)
            + "onPartitionsAssigned(t-0 t-1 t-2)"
        )
        + FETCH
    )
    assert (
        story(group, "m2")
        == (told + "onPartitionsRevoked(t-2 t-3); -> JoinGroup(m2-2); " + sync(2) + "onPartitionsAssigned(t-3 t-4 t-5)")
        + FETCH
    )
    assert group.states[-3][1:] == ("PreparingRebalance", "member left")


def test_s2_if_the_leaver_led_a_remaining_member_leads():
    group = three()
    gone = leader(group)
    group.close(gone).settle()
    assert leader(group) != gone


def test_s3_one_member_crashes():
    group = three().forget()
    at_ms = group.now_ms
    group.crash("m3").settle().run(20)
    assert 42_000 <= group.now_ms - at_ms <= 48_100
    assert story(group, "m3") == ""  # it gets no callback
    assert story(group, "m1").endswith("onPartitionsAssigned(t-0 t-1 t-2)" + FETCH)
    assert story(group, "m2").endswith("onPartitionsAssigned(t-3 t-4 t-5)" + FETCH)
    assert group.states[-3][1:] == ("PreparingRebalance", "session timeout")


def test_s4_static_restart_within_the_session_timeout():
    group = three_static()
    follower = next(name for name in ("i1", "i2", "i3") if name != leader(group))
    owned = group.clients[follower].owned
    shown = " ".join(f"t-{index}" for _, index in sorted(owned))
    group.close(follower).run(10_000)
    assert story(group, follower) == COMMIT + f"onPartitionsRevoked({shown})"  # no LeaveGroup
    group.join(follower, group_instance_id=follower).settle().run(20)
    assert story(group, follower) == "-> JoinGroup(); " + sync(1) + f"onPartitionsAssigned({shown})" + FETCH
    assert group.clients[follower].owned == owned
    assert rebalances(group) == 1
    assert [story(group, name) for name in ("i1", "i2", "i3")] == ["", "", ""]


def test_s4_a_returning_leader_keeps_watching_but_does_not_assign():
    group = three_static()
    led = leader(group)
    group.close(led).run(10_000).forget()
    group.join(led, group_instance_id=led).settle()
    assert story(group, led).startswith("-> JoinGroup(); <- JoinGroup 0; -> SyncGroup(generation 1, 0 assignments)")
    assert leader(group) == led
    assert rebalances(group) == 1
    group.grow({"t": 9}).settle().run(20)
    assert rebalances(group) == 2
    assert sum(len(client.owned) for client in group.live) == 9


def test_s5_static_restart_after_the_session_timeout():
    group = three_static()
    group.close("i2").run(50_000).settle().forget()
    assert rebalances(group) == 2
    group.join("i2", group_instance_id="i2").settle().run(20)
    assert story(group, "i2") == "-> JoinGroup(); " + sync(3) + "onPartitionsAssigned(t-2 t-3)" + FETCH
    assert rebalances(group) == 3
    for name in ("i1", "i3"):
        told = story(group, name)
        assert told.startswith("<- Heartbeat 27; " + COMMIT + "onPartitionsRevoked(")
        assert "LeaveGroup" not in told


def test_s6_duplicate_instance_id_heartbeat():
    group = classic_group({"t": 6}).join("X", group_instance_id="i1").settle().run(20)
    group.join("Y", group_instance_id="i1").run(20)
    assert group.clients["X"].owned == group.clients["Y"].owned  # the zombie window
    group.run(4_000)
    assert group.story("X")[-2:] == ["<- Heartbeat 82", "raised FENCED_INSTANCE_ID"]
    group.close("X").run(1_000)
    assert story(group, "X") == "close: no longer in the group; onPartitionsLost(t-0 t-1 t-2 t-3 t-4 t-5)"
    assert not group.clients["X"].alive
    assert group.clients["Y"].member.state is MemberState.STABLE


def test_s6_who_polls_on_fences_the_other_in_turn():
    group = classic_group({"t": 2}).join("X", group_instance_id="i1").settle().run(20)
    group.join("Y", group_instance_id="i1").run(4_000).forget()
    group.poll("X").run(20)
    assert story(group, "X").startswith("prepare: no longer in the group; onPartitionsLost(t-0 t-1); -> JoinGroup()")
    group.run(4_000)
    assert "raised FENCED_INSTANCE_ID" in group.story("Y")


def test_s6_duplicate_instance_id_commit():
    group = classic_group({"t": 2}).join("X", group_instance_id="i1").settle().run(20)
    group.join("Y", group_instance_id="i1").run(20).forget()
    group.tell(group.clients["X"], Commit({("t", 0): 7}))
    group.run(20)
    assert group.story("X")[:3] == [
        "-> OffsetCommit",
        "<- OffsetCommit 82",
        f"commitSync: {CommitOutcome.FENCED.value}",
    ]


def test_s7_slow_poller():
    group = three().forget()
    group.busy("m2").run(299_000)
    assert story(group, "m2") == ""
    group.run(2_000)
    assert story(group, "m2") == "-> LeaveGroup; <- LeaveGroup 0"  # no callback yet
    assert [fact for fact in group.clients["m2"].facts if isinstance(fact, Left)] == [
        Left(cause=Cause.POLL_INTERVAL, reason="consumer poll timeout has expired.", sent=True)
    ]
    group.run(10_000).tell(group.clients["m2"], Commit({("t", 2): 1}))
    assert story(group, "m2") == "commitSync: no longer in the group"
    group.poll("m2").settle().run(20)
    assert story(group, "m2") == (
        "prepare: no longer in the group; onPartitionsLost(t-2 t-3); "
        + FIRST_JOIN
        + "-> JoinGroup(m2-4); "
        + sync(3)
        + "onPartitionsAssigned(t-2 t-3)"
        + FETCH
    )


def test_s7_static_slow_poller_gets_its_partitions_back():
    group = three_static(max_poll_interval_ms=20_000)
    group.busy("i2").run(25_000)
    assert story(group, "i2") == ""  # no LeaveGroup: the group learns nothing before the session ends
    group.poll("i2").settle().run(20)
    lost_and_found = "onPartitionsLost(t-2 t-3); -> JoinGroup(); " + sync(1) + "onPartitionsAssigned(t-2 t-3)"
    assert story(group, "i2") == "prepare: no longer in the group; " + lost_and_found + FETCH
    assert rebalances(group) == 1


def cooperative(**settings: Any) -> Conversation:
    group = classic_group({"t": 6}, "cooperative-sticky", **settings)
    group.join("m1").run(500).join("m2").settle().run(20)
    return group.forget()


def test_s8_cooperative_scale_out():
    group = cooperative()
    assert str(group) == "generation 1  m1: t-0 t-2 t-4  m2: t-1 t-3 t-5"
    group.join("m3").settle().run(20)
    first = "<- Heartbeat 27; " + COMMIT + "-> JoinGroup({0}); "
    again = "onPartitionsAssigned(); " + COMMIT + "-> JoinGroup({0}); "
    assert story(group, "m1") == (
        first.format("m1-1")
        + sync(2, 3)
        + "onPartitionsRevoked(t-4); "
        + again.format("m1-1")
        + sync(3, 3)
        + "onPartitionsAssigned()"
    )
    assert story(group, "m2") == (
        first.format("m2-2")
        + sync(2)
        + "onPartitionsRevoked(t-5); "
        + again.format("m2-2")
        + sync(3)
        + "onPartitionsAssigned()"
    )
    assert story(group, "m3") == (
        FIRST_JOIN
        + "-> JoinGroup(m3-3); "
        + sync(2)
        + "onPartitionsAssigned(); <- Heartbeat 27; -> JoinGroup(m3-3); "
        + sync(3)
        + "onPartitionsAssigned(t-4 t-5)"
        + FETCH
    )
    assert str(group) == "generation 3  m1: t-0 t-2  m2: t-1 t-3  m3: t-4 t-5"


def test_s8_a_follow_up_join_that_overtakes_a_sync_costs_one_more_generation():
    group = cooperative().join("m3")
    group.until(group.now_ms + 10_000, lambda: group.group is not None and group.group.state.value.startswith("Compl"))
    group.clients["m2"].latency_ms = 200  # its SyncGroup comes after m1's next JoinGroup
    group.settle().run(500)
    assert group.group is not None
    assert group.group.generation_id == 4
    told = group.story("m2")
    assert told[told.index("<- SyncGroup 27") + 1] == "-> JoinGroup(m2-2)"  # no callback, no commit in between
    assert [line for line in told if line.startswith("onPartitions")] == [
        "onPartitionsRevoked(t-5)",
        "onPartitionsAssigned()",
        "onPartitionsAssigned()",
    ]
    assert sorted(len(client.owned) for client in group.live) == [2, 2, 2]


def test_s9_rolling_bounce_eager_dynamic_is_six_rebalances():
    group = three().forget()
    for name in ("m1", "m2", "m3"):
        group.close(name).settle().join(name).settle().run(20)
    assert rebalances(group) == 1 + 6
    assert sorted(len(client.owned) for client in group.live) == [2, 2, 2]


def test_s9_all_down_together_goes_through_the_initial_delay_again():
    group = three()
    for name in ("m1", "m2", "m3"):
        group.close(name)
    group.run(10_000)
    assert group.group is not None
    assert (group.group.state, group.group.generation_id) == (State.EMPTY, 2)
    at_ms = group.now_ms
    group.join("m1").settle()
    assert group.now_ms - at_ms >= 3_000


def test_s10_rolling_bounce_static_is_no_rebalance():
    group = three_static()
    owned = {client.name: client.owned for client in group.live}
    for name in ("i1", "i2", "i3"):
        group.close(name).run(5_000).join(name, group_instance_id=name).settle().run(20)
    assert rebalances(group) == 1
    assert {client.name: client.owned for client in group.live} == owned
    assert not any("Heartbeat" in line for client in group.live for line in client.story)


def test_s10_another_selected_protocol_is_one_rebalance():
    group = classic_group({"t": 4}, ["range", "roundrobin"])
    for name in ("i1", "i2"):
        group.join(name, group_instance_id=name)
    group.settle().close("i2").run(1_000)
    group.join("i2", group_instance_id="i2", assignors=["roundrobin"]).settle()
    assert rebalances(group) == 2
    assert {client.member.generation.protocol_name for client in group.live} == {"roundrobin"}


def leader_crashes(**settings: Any) -> Conversation:
    group = three(**settings).forget()
    group.join("m4")
    completing = State.COMPLETING_REBALANCE
    assert group.until(group.now_ms + 10_000, lambda: group.group is not None and group.group.state is completing)
    assert group.group is not None
    led = next(c.name for c in group.live if group.group.leader == c.member.generation.member_id)
    return group.crash(led)


def test_s11_leader_crashes_between_join_and_sync():
    """With a request timeout above the session timeout; by default a parked SyncGroup is given up after 30 s."""
    group = leader_crashes(request_timeout_ms=60_000)
    died_ms = group.now_ms
    group.settle().run(20)
    assert 45_000 <= group.now_ms - died_ms < 46_000
    for client in group.live:
        told = story(group, client.name).replace("<- Heartbeat 27; ", "")  # in CompletingRebalance it means nothing
        member_id = client.member.generation.member_id
        assert f"<- SyncGroup 27; -> JoinGroup({member_id}); <- JoinGroup 0; -> SyncGroup(generation 3" in told
        assert told.count("onPartitionsRevoked") == (client.name != "m4")
    assert {len(client.owned) for client in group.live} == {2}


def test_s11_by_default_the_syncs_time_out_before_the_dead_leader_does():
    group = leader_crashes()
    died_ms = group.now_ms
    group.run(31_000)
    for client in group.live:
        told = story(group, client.name)
        member_id = client.member.generation.member_id
        assert told.endswith(f"-> SyncGroup(generation 2, 0 assignments); -> JoinGroup({member_id})")
    group.settle()
    assert 45_000 <= group.now_ms - died_ms < 46_000
    assert {len(client.owned) for client in group.live} == {2}


def test_s11_a_leader_that_heartbeats_but_never_syncs_is_dropped_by_the_sync_timer():
    group = classic_group({"t": 2}, max_poll_interval_ms=60_000, request_timeout_ms=100_000).join("m1").settle().run(20)
    group.join("m2")
    completing = State.COMPLETING_REBALANCE
    assert group.until(group.now_ms + 10_000, lambda: group.group is not None and group.group.state is completing)
    group.clients["m1"].member.memory.subscribed.cluster = None  # its assignor waits for metadata that never comes
    group.perform = without_metadata(group, "m1")  # type: ignore[method-assign]
    at_ms = group.now_ms
    group.until(at_ms + 70_000, lambda: "<- Heartbeat 25" in group.clients["m1"].story)
    assert 59_000 <= group.now_ms - at_ms <= 64_000
    assert group.clients["m1"].member.state is MemberState.UNJOINED
    group.run(5_000)
    assert group.clients["m2"].owned == {("t", 0), ("t", 1)}


def without_metadata(group: Conversation, name: str) -> Any:
    perform = Conversation.perform

    def deaf(client: Any, effects: Any) -> None:
        kept = [e for e in effects if client.name != name or type(e).__name__ != "RequestMetadata"]
        perform(group, client, kept)

    return deaf


def fail_over_group() -> Conversation:
    group = classic_group({"t": 6})
    for name in "ABC":
        group.join(name)
    group.settle().run(20)
    group.busy("C").join("D").forget()
    group.until(group.now_ms + 10_000, lambda: group.group is not None and group.group.awaiting_join == 3)
    return group


def test_s12_coordinator_fail_over_mid_rebalance():
    group = fail_over_group()
    assert "onPartitionsRevoked" in story(group, "A")
    group.fail_over(down_ms=1_000).run(2_000)
    assert story(group, "A") == "-> JoinGroup(A-1)"  # no prepare, no further callbacks
    group.forget().poll("C").settle().run(20)
    assert story(group, "C").startswith(COMMIT + "onPartitionsRevoked(t-4 t-5); -> JoinGroup(C-3)")
    assert group.group is not None
    assert group.group.generation_id == 2
    assert {len(client.owned) for client in group.live} == {1, 2}
    assert group.clients["D"].member.generation.member_id not in ("", "D-4")


def test_s12_the_newcomer_starts_anew():
    group = fail_over_group()
    group.fail_over(down_ms=1_000).run(2_000)
    assert story(group, "D").endswith(
        "-> JoinGroup(D-4); <- JoinGroup 25; -> JoinGroup(); <- JoinGroup 79; -> JoinGroup(D-5)"
    )


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_s12_replies_lost_after_the_append_is_one_more_generation(assignor):
    group = classic_group({"t": 6}, assignor).join("A").join("B")
    group.until(10_000, lambda: group.group is not None and group.group.state is State.STABLE)
    group.fail_over(down_ms=500).settle()
    assert group.group is not None
    assert group.group.generation_id == 2
    assert {len(client.owned) for client in group.live} == {3}


def test_closing_with_an_option():
    group = three_static()
    group.close("i2", CloseOption.LEAVE_GROUP).settle().run(20)
    assert story(group, "i2").endswith("-> LeaveGroup; <- LeaveGroup 0")
    dynamic = three().forget()
    dynamic.close("m2", CloseOption.REMAIN_IN_GROUP).run(10_000)
    assert story(dynamic, "m2") == COMMIT + "onPartitionsRevoked(t-2 t-3)"
    assert rebalances(dynamic) == 1
