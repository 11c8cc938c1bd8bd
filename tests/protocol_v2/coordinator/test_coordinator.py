"""What the vectors do not show: timers that race, assignors that fail, settings, conversions that go wrong, growth."""

from __future__ import annotations

from time import perf_counter

import pytest

from rebalance_lab.assignors.broker.uniform import UniformAssignor
from rebalance_lab.assignors.broker.uniform_mixed import assign_heterogeneous
from rebalance_lab.assignors.model import Topic
from rebalance_lab.protocol_v1.common import messages as v1
from rebalance_lab.protocol_v1.common.effects import Append, Reply
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v2.common.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConsumerGroupHeartbeatRequest,
    IncrementalAlterConfigsRequest,
)
from rebalance_lab.protocol_v2.coordinator.assignment import subscription_type
from rebalance_lab.protocol_v2.coordinator.config import CoordinatorConfig, MigrationPolicy
from rebalance_lab.protocol_v2.coordinator.coordinator import Coordinator, at_once
from rebalance_lab.protocol_v2.coordinator.state.records import ConsumerGroupCurrentMemberAssignment, apply
from rebalance_lab.protocol_v2.coordinator.state.states import GroupState, MemberState
from rebalance_lab.protocol_v2.coordinator.state.values import CurrentAssignment
from tests.protocol_v2.coordinator.script import Script
from tests.protocol_v2.coordinator.watched import snapshot

PLAIN_TESTS = (
    "test_a_member_that_steps_out_while_revoking_outlives_its_rebalance_timer",
    "test_a_member_that_gave_up_a_topic_at_its_own_epoch_outlives_its_rebalance_timer",
    "test_a_refused_downgrade_leaves_the_consumer_group_as_it_was",
)


def play(title: str, *lines: str, **config) -> Script:
    script = Script(title, list(lines), {name.replace("_", "."): value for name, value in config.items()})
    script.run()
    return script


def machine(*, assignors=None, topics=None, **config) -> Coordinator:
    settings = {"group_consumer_assignment_interval_ms": 0, **config}
    return Coordinator(CoordinatorConfig(**settings), topics=topics or {"orders": 4}, assignors=assignors)


def ask(coordinator: Coordinator, request, now_ms: int = 0):
    effects = at_once(coordinator, coordinator.handle(request, now_ms), now_ms)
    return next(effect.response for effect in effects if isinstance(effect, Reply))


def heartbeat(coordinator: Coordinator, member_id: str, epoch: int, now_ms: int = 0, **fields):
    if epoch == 0:
        joins = {"rebalance_timeout_ms": 9_000, "subscribed_topic_names": ("orders",), "topic_partitions": ()}
        fields = joins | fields
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch, **fields)
    return ask(coordinator, request, now_ms)


def test_a_member_that_steps_out_while_revoking_outlives_its_rebalance_timer():
    play(
        "",
        "A 0 [t4] i i1 rto 2000 -> 2 {0-3} | B 0 [t4] -> 3 {} | A 2 i i1 -> 2 {0,1} | A -2 i i1 -> -2 · | wait 3",
        "member A -> e=-2 {0,1} T={0,1} consumer",
    )


def test_a_member_that_gave_up_a_topic_at_its_own_epoch_outlives_its_rebalance_timer():
    play(
        "",
        "A 0 [t4 u2] rto 2000 -> 2 {0-3 u2:0,1} | set interval 15000 | A 2 [u2] -> 2 {u2:0,1}",
        "A 2 own {u2:0,1} -> 2 · | wait 3 | A 2 -> 2 ·",
    )


def test_a_classic_member_that_becomes_a_consumer_before_its_syncgroup_is_removed_as_in_kafka():
    play(
        "",
        "A 0 [t4] -> 2 {0-3} | join c rto 2000 -> 3 | c 3 -> 3 · | wait 2.1 | c 3 -> UNKNOWN_MEMBER_ID",
    )


def test_two_expressions_that_match_alike_are_still_a_mixed_group(monkeypatch):
    """Kafka tells a homogeneous group by its expressions, not by what they match."""
    mixed = []

    def watching(group, order, moves):
        mixed.append(sorted(group.members))
        return assign_heterogeneous(group, order, moves)

    monkeypatch.setattr(subscription_type, "assign_heterogeneous", watching)
    play(
        "(topic t6)",
        "A 0 re 't6' -> 1 {} | wait 0.1 | A 1 -> 2 {0-5} | B 0 re 't6' -> 3 {}",
        "C 0 re 't6|none' -> 3 {} | wait 11 | C 3 -> 3 · | wait 0.1 | C 3 own {} -> 4 ·",
    )
    assert mixed == [["A", "B", "C"]]


class Failing:
    name = "failing"

    def assign(self, group):
        raise RuntimeError("no")


class Doubling:
    name = "doubling"

    def assign(self, group):
        return {member: {"orders": [0]} for member in group.members}


class ToAStranger:
    name = "stranger"

    def assign(self, group):
        return {"nobody": {"orders": [0]}}


class Beyond:
    name = "beyond"

    def assign(self, group):
        return {member: {"orders": [9]} for member in group.members}


class AllToTheFirst:
    name = "first"

    def assign(self, group):
        return {min(group.members): {"orders": list(range(group.topics["orders"].partitions))}}


@pytest.mark.parametrize("assignor", [Failing(), ToAStranger(), Beyond(), Doubling()], ids=lambda each: each.name)
def test_an_assignor_that_fails_fails_the_request_and_nothing_is_written(assignor):
    coordinator = machine(assignors=[UniformAssignor(), assignor])
    heartbeat(coordinator, "A", 0)
    before = snapshot(coordinator.groups["g"])
    effects = coordinator.handle(
        ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="B",
            member_epoch=0,
            rebalance_timeout_ms=1,
            subscribed_topic_names=("orders",),
            topic_partitions=(),
            server_assignor=assignor.name,
        ),
        0,
    )
    assert [type(effect) for effect in effects] == [Reply]
    assert effects[0].response.error_code is Error.UNKNOWN_SERVER_ERROR
    assert snapshot(coordinator.groups["g"]) == before


def test_a_custom_assignor_decides_the_target():
    coordinator = machine(assignors=[AllToTheFirst()])
    heartbeat(coordinator, "B", 0)
    heartbeat(coordinator, "A", 0)
    targets = {member: len(target.partitions) for member, target in coordinator.groups["g"].targets.items()}
    assert targets == {"A": 4, "B": 0}


def test_an_unknown_stored_state_is_fenced_until_the_member_owns_nothing():
    coordinator = machine()
    heartbeat(coordinator, "A", 0)
    unknown = CurrentAssignment(
        member_epoch=2, previous_member_epoch=0, state=MemberState.UNKNOWN, assigned={("orders", 0): 2}
    )
    apply(coordinator.shard.groups, ConsumerGroupCurrentMemberAssignment(group_id="g", member_id="A", value=unknown))
    assert heartbeat(coordinator, "A", 2).error_code is Error.FENCED_MEMBER_EPOCH
    answer = heartbeat(coordinator, "A", 2, topic_partitions=())
    assert (answer.error_code, answer.member_epoch) == (Error.NONE, 2)
    assert coordinator.groups["g"].state is GroupState.STABLE


def setting(coordinator: Coordinator, name: str, value: str | None, operation: int = 0):
    config = AlterableConfig(name=name, value=value, config_operation=operation)
    request = IncrementalAlterConfigsRequest(resources=(AlterConfigsResource(resource_name="g", configs=(config,)),))
    return ask(coordinator, request).responses[0]


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("consumer.session.timeout.ms", "50000", True),
        ("consumer.session.timeout.ms", "44999", False),  # below the broker's minimum
        ("consumer.session.timeout.ms", "often", False),
        ("consumer.heartbeat.interval.ms", "15001", False),
        ("consumer.assignment.interval.ms", "0", True),
        ("consumer.session.timeout", "50000", False),
    ],
)
def test_a_groups_own_settings_stay_within_the_brokers_limits(name, value, accepted):
    coordinator = machine()
    answer = setting(coordinator, name, value)
    assert (answer.error_code is Error.NONE) == accepted
    assert coordinator.shard.settings.get("g", {}) == ({name: int(value)} if accepted else {})
    assert setting(coordinator, "consumer.session.timeout.ms", None, operation=1).error_code is Error.NONE


def test_a_shorter_heartbeat_interval_is_told_with_the_next_answer():
    coordinator = machine()
    assert heartbeat(coordinator, "A", 0).heartbeat_interval_ms == 5_000
    setting(coordinator, "consumer.heartbeat.interval.ms", "6000")
    assert heartbeat(coordinator, "A", 2).heartbeat_interval_ms == 6_000


def test_real_topic_ids_tell_a_recreated_topic_apart():
    coordinator = machine(topics={"orders": Topic(2, id="AAAAAAAAAAAAAAAAAAAAAQ")})
    heartbeat(coordinator, "A", 0)
    coordinator.on_metadata({"orders": Topic(2, id="AAAAAAAAAAAAAAAAAAAAAg")}, 1)
    assert heartbeat(coordinator, "A", 2, 2).assignment.topic_partitions == ()
    answer = heartbeat(coordinator, "A", 2, 3, topic_partitions=())
    assert answer.assignment.topic_partitions[0].partitions == (0, 1)


def test_the_racks_of_a_topics_replicas_bump_the_group_epoch():
    coordinator = machine(topics={"orders": Topic(1, racks=(("a",),))})
    heartbeat(coordinator, "A", 0)
    coordinator.on_metadata({"orders": Topic(1, racks=(("b",),))}, 1)
    assert heartbeat(coordinator, "A", 2, 2).member_epoch == 3


def test_old_offsets_of_unread_topics_expire_and_the_empty_group_goes_with_them():
    coordinator = machine(topics={"orders": 1, "audit": 1})
    heartbeat(coordinator, "A", 0)
    entry = v1.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topics = tuple(v1.OffsetCommitRequestTopic(name=name, partitions=(entry,)) for name in ("orders", "audit"))
    commit = v1.OffsetCommitRequest(group_id="g", member_id="A", generation_id_or_member_epoch=2, topics=topics)
    ask(coordinator, commit)
    later = 8 * 24 * 3_600_000
    at_once(coordinator, coordinator.on_timer(("consumer-expiry",), later), later)
    assert set(coordinator.shard.offsets.of("g")) == {("orders", 0)}  # it is still read
    heartbeat(coordinator, "A", -1, later)
    at_once(coordinator, coordinator.on_timer(("consumer-expiry",), later), later)
    assert "g" not in coordinator.groups


def test_an_offset_can_be_deleted_unless_its_topic_is_subscribed():
    script = play("", "A 0 [t4] -> 2 {0-3} | commit A 2 {0 u2:0} -> NONE")
    topics = [{"name": name, "partitions": [{"partition_index": 0}]} for name in ("t4", "u2")]
    found = script.send("OffsetDelete", {"group_id": "g", "topics": topics})
    errors = [topic["partitions"][0]["error_code"] for topic in found["topics"]]
    assert errors == ["GROUP_SUBSCRIBED_TO_TOPIC", "NONE"]


def test_a_deletion_may_name_groups_of_both_protocols():
    script = play("", "A 0 [t4] -> 2 {0-3} | A -1 -> -1 ·")
    commit = {"group_id": "simple", "topics": [{"name": "t4", "partitions": []}]}
    commit["topics"][0]["partitions"] = [{"partition_index": 0, "committed_offset": 1}]
    script.send("OffsetCommit", commit, 9)
    found = script.send("DeleteGroups", {"groups_names": ["g", "simple", "none"]})
    errors = {result["group_id"]: result["error_code"] for result in found["results"]}
    assert errors == {"g": "NONE", "simple": "NONE", "none": "GROUP_ID_NOT_FOUND"}


def test_only_upgrade_lets_classic_members_be_woken_when_asked_to():
    """Kafka's stall of C37, and the switch against it."""
    lines = (
        "A 0 [t4] -> 2 {0-3} | join c -> 3 | A 2 own {0,1} -> 3 {0,1} | join c -> 3 | sync c 3 -> {2,3} | A -1 -> -1 ·"
    )
    script = play("", lines, group_consumer_migration_policy="upgrade")
    script.step("beat c 3 -> NONE")
    shard = script.player.machine.shard
    shard.config = CoordinatorConfig(
        group_consumer_assignment_interval_ms=0,
        group_consumer_migration_policy=MigrationPolicy.UPGRADE,
        wakes_classic_members=True,
    )
    script.step("beat c 3 -> REBALANCE_IN_PROGRESS")


def test_a_first_join_phase_cannot_be_upgraded_and_its_joins_are_sent_away():
    script = play("", "join c new -> MEMBER_ID_REQUIRED", group_initial_rebalance_delay_ms=3_000)
    body = {"group_id": "g", "member_id": script.ids["c"], "session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000}
    body |= {"protocol_type": "consumer", "protocols": [{"name": "range", "metadata": "AAEAAAABAAJ0NP////8AAAAA"}]}
    assert script.send("JoinGroup", body, 9) == {}
    parked = f"s{script.number}"
    script.step("N 0 [t4] -> UNKNOWN_SERVER_ERROR")
    assert script.player.answers[parked]["error_code"] == "REBALANCE_IN_PROGRESS"
    script.step("classic_group -> PreparingRebalance")


def test_an_upgrade_that_the_log_refused_leaves_the_classic_group_as_it_was():
    script = play("", "join c new -> MEMBER_ID_REQUIRED | join c -> 1 leader | sync c 1 give {0-3} -> {0-3}")
    script.player.log.mode = "NOT_ENOUGH_REPLICAS"
    script.step("N 0 [t4] -> COORDINATOR_NOT_AVAILABLE")
    script.player.log.mode = "ok"
    script.step("classic_group -> Stable")
    script.step("beat c 1 -> NONE")
    script.step("N 0 [t4] -> 2 {}")


def test_a_refused_downgrade_leaves_the_consumer_group_as_it_was():
    script = play(
        "",
        "A 0 [t4] -> 2 {0-3} | join c -> 3 | A 2 own {0,1} -> 3 {0,1} | join c -> 3 | sync c 3 -> {2,3}",
    )
    before = snapshot(script.player.machine.groups["g"])
    script.player.log.mode = "NOT_ENOUGH_REPLICAS"
    script.step("A -1 -> COORDINATOR_NOT_AVAILABLE")
    script.player.log.mode = "ok"
    assert snapshot(script.player.machine.groups["g"]) == before
    script.step("beat c 3 -> NONE")
    script.step("A -1 -> -1 ·")
    script.step("classic_group -> PreparingRebalance")


@pytest.mark.parametrize(
    ("title", "lines"),
    [
        ("(needs group.consumer.migration.policy=downgrade)", ["N 0 [t4] -> GROUP_ID_NOT_FOUND"]),
        ("(needs group.consumer.max.size=0)", ["N 0 [t4] -> GROUP_ID_NOT_FOUND"]),
    ],
)
def test_an_upgrade_needs_the_policy_and_the_room(title, lines):
    play(title, "join c new -> MEMBER_ID_REQUIRED | join c -> 1 leader | sync c 1 give {0-3} -> {0-3}", *lines)


def test_an_upgrade_loses_no_user_data_of_a_custom_assignor():
    script = play("", "join c new -> MEMBER_ID_REQUIRED | join c -> 1 leader")
    body = {"group_id": "g", "member_id": script.ids["c"], "generation_id": 1}
    body |= {"protocol_type": "consumer", "protocol_name": "range"}
    user_data = "AAEAAAAAAAAAAXg="  # version 1, no partitions, one byte
    script.send("SyncGroup", {**body, "assignments": [{"member_id": script.ids["c"], "assignment": user_data}]}, 5)
    script.step("N 0 [t4] -> GROUP_ID_NOT_FOUND")


def test_a_mixed_group_survives_a_fail_over():
    script = play(
        "",
        "A 0 [t4] -> 2 {0-3} | join c -> 3 | A 2 own {0,1} -> 3 {0,1} | join c -> 3 | sync c 3 -> {2,3}",
        "commit c 3 {2} -> NONE",
    )
    before = snapshot(script.player.machine.groups["g"])
    script.player.fail_over(orderly=False)
    assert snapshot(script.player.machine.groups["g"]) == before
    script.step("list -> consumer Stable")
    script.step("beat c 3 -> NONE")
    script.step("A 3 -> 3 ·")
    script.step("commit A 3 {0} -> NONE")


def test_a_heartbeat_without_news_costs_the_same_in_a_small_and_in_a_large_group():
    def cost_us(members: int) -> float:
        coordinator = Coordinator(topics={"orders": 10 * members})
        for i in range(members):
            heartbeat(coordinator, f"m{i}", 0)  # one target now, the next after the interval
        for i in range(members):
            heartbeat(coordinator, f"m{i}", 2, 1_000)
        first = coordinator.groups["g"].members["m1"].current.member_epoch
        request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m1", member_epoch=first)
        best = float("inf")
        for _ in range(5):
            start = perf_counter()
            for _ in range(200):
                effects = coordinator.handle(request, 1_001)
            best = min(best, (perf_counter() - start) / 200 * 1e6)
        assert not any(isinstance(effect, Append) for effect in effects)
        return best

    assert cost_us(2_000) < 3 * cost_us(10)
