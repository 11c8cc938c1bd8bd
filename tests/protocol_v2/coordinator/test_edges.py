"""The corners of the coordinator: every request refused, life without a classic side, offsets, settings, the log."""

from __future__ import annotations

import pytest

from rebalance_lab.protocol_v1.common import messages as v1
from rebalance_lab.protocol_v1.common.effects import Append, Reply, SetTimer
from rebalance_lab.protocol_v1.common.errors import Error, InvariantBroken, MalformedBytes
from rebalance_lab.protocol_v2.common.messages import (
    REQUESTS,
    AlterableConfig,
    AlterConfigsResource,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    IncrementalAlterConfigsRequest,
)
from rebalance_lab.protocol_v2.common.regex import compile_regex
from rebalance_lab.protocol_v2.coordinator.classic_members.classic_side import (
    ClassicGroupImage,
    NoClassicGroups,
    NoCodec,
)
from rebalance_lab.protocol_v2.coordinator.config import CoordinatorConfig
from rebalance_lab.protocol_v2.coordinator.coordinator import Coordinator, Status, at_once
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup
from rebalance_lab.protocol_v2.coordinator.state.values import GONE, CurrentAssignment, MemberMetadata, Target

PARTITION = v1.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)


def commit(epoch: int = -1, member_id: str = "", topic: str = "orders", version: int = 9, **fields) -> v1.Request:
    partition = v1.OffsetCommitRequestPartition(partition_index=0, committed_offset=3, **fields)
    topics = (v1.OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)
    who = {"group_id": "g", "member_id": member_id, "generation_id_or_member_epoch": epoch}
    return v1.OffsetCommitRequest(**who, topics=topics, version=version)


JOIN = v1.JoinGroupRequest(
    group_id="g",
    member_id="",
    session_timeout_ms=10_000,
    rebalance_timeout_ms=10_000,
    protocol_type="consumer",
    protocols=(v1.Protocol(name="range", metadata=b""),),
)
DELETE = v1.OffsetDeleteRequest(
    group_id="g",
    topics=(
        v1.OffsetDeleteRequestTopic(name="orders", partitions=(v1.OffsetDeleteRequestPartition(partition_index=0),)),
    ),
)
SETTING = AlterConfigsResource(resource_name="g", configs=(AlterableConfig(name="consumer.session.timeout.ms"),))
EVERY_REQUEST: dict[str, v1.Request] = {
    "ConsumerGroupHeartbeat": ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=1),
    "ConsumerGroupDescribe": ConsumerGroupDescribeRequest(group_ids=("g",)),
    "IncrementalAlterConfigs": IncrementalAlterConfigsRequest(resources=(SETTING,)),
    "JoinGroup": JOIN,
    "SyncGroup": v1.SyncGroupRequest(
        group_id="g", member_id="a", generation_id=1, protocol_type="consumer", protocol_name="range", assignments=()
    ),
    "Heartbeat": v1.HeartbeatRequest(group_id="g", member_id="a", generation_id=1),
    "LeaveGroup": v1.LeaveGroupRequest(group_id="g", members=(v1.MemberIdentity(member_id="a"),)),
    "OffsetCommit": commit(),
    "OffsetFetch": v1.OffsetFetchRequest(groups=(v1.OffsetFetchRequestGroup(group_id="g"),)),
    "DescribeGroups": v1.DescribeGroupsRequest(groups=("g",)),
    "ListGroups": v1.ListGroupsRequest(),
    "DeleteGroups": v1.DeleteGroupsRequest(groups_names=("g",)),
    "OffsetDelete": DELETE,
}


def machine(**fields) -> Coordinator:
    config = CoordinatorConfig(group_consumer_assignment_interval_ms=0)
    return Coordinator(config, topics={"orders": 4}, **fields)


def ask(coordinator: Coordinator, request: v1.Request, now_ms: int = 0):
    effects = at_once(coordinator, coordinator.handle(request, now_ms), now_ms)
    return next(effect.response for effect in effects if isinstance(effect, Reply))


def joined(member_id: str = "a", **fields) -> ConsumerGroupHeartbeatRequest:
    everything = {"rebalance_timeout_ms": 9_000, "subscribed_topic_names": ("orders",), "topic_partitions": ()}
    return ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=0, **{**everything, **fields})


def codes(response) -> set[Error]:
    """Every error code that stands in an answer."""
    found = {response.error_code} if hasattr(response, "error_code") else set()
    for name in ("groups", "responses", "topics", "partitions", "results", "members"):
        for part in getattr(response, name, ()) or ():
            found |= codes(part)
    return found


def test_the_list_of_requests_is_complete():
    assert set(EVERY_REQUEST) == set(REQUESTS)


@pytest.mark.parametrize("name", EVERY_REQUEST)
def test_every_request_is_refused_while_the_partition_is_elsewhere(name):
    assert Error.NOT_COORDINATOR in codes(ask(machine(status=Status.UNLOADED), EVERY_REQUEST[name]))


@pytest.mark.parametrize("name", EVERY_REQUEST)
def test_every_request_is_refused_while_the_partition_is_loading(name):
    expected = Error.NONE if name == "Heartbeat" else Error.COORDINATOR_LOAD_IN_PROGRESS  # a rejoin could only fail
    assert expected in codes(ask(machine(status=Status.LOADING), EVERY_REQUEST[name]))


# Without a classic side


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("JoinGroup", Error.INCONSISTENT_GROUP_PROTOCOL),
        ("SyncGroup", Error.UNKNOWN_MEMBER_ID),
        ("Heartbeat", Error.UNKNOWN_MEMBER_ID),
        ("LeaveGroup", Error.UNKNOWN_MEMBER_ID),
        ("DeleteGroups", Error.GROUP_ID_NOT_FOUND),
        ("OffsetDelete", Error.GROUP_ID_NOT_FOUND),
        ("DescribeGroups", Error.NONE),
        ("ListGroups", Error.NONE),
    ],
)
def test_a_coordinator_of_consumer_groups_alone_knows_no_classic_group(name, error):
    assert codes(ask(machine(), EVERY_REQUEST[name])) == {error}


def test_without_a_classic_side_nothing_classic_happens():
    side = NoClassicGroups()
    image = ClassicGroupImage(group_id="g", generation_id=1, protocol_type=None, protocol_name=None, members=())
    assert side.on_timer(("join", "g"), 0) == side.on_append(1, 0) == side.update_topics({}, 0) == []
    assert side.load([], 0) == side.unload(0) == side.answer_parked("g", Error.NONE, 0) == []
    assert side.phase("g") is None
    for impossible in (
        lambda: side.image_of("g"),
        lambda: side.tombstone("g"),
        lambda: side.forget("g", 0),
        lambda: side.adopt(image, 0, rebalance=False),
    ):
        with pytest.raises(KeyError):
            impossible()


def test_without_a_codec_no_bytes_are_read():
    codec = NoCodec()
    for impossible in (
        lambda: codec.subscription(b""),
        lambda: codec.assignment(b""),
        lambda: codec.encode({}, b""),
    ):
        with pytest.raises(MalformedBytes):
            impossible()


# Offsets


def test_commits_without_a_group():
    coordinator = machine()
    assert codes(ask(coordinator, commit())) == {Error.NONE}
    assert codes(ask(coordinator, commit(epoch=2, member_id="a"))) == {Error.GROUP_ID_NOT_FOUND}
    assert codes(ask(coordinator, commit(epoch=2, member_id="a", version=8))) == {Error.ILLEGAL_GENERATION}


@pytest.mark.parametrize(("version", "error"), [(9, Error.UNKNOWN_TOPIC_OR_PARTITION), (10, Error.UNKNOWN_TOPIC_ID)])
def test_a_commit_of_an_unknown_topic(version, error):
    assert codes(ask(machine(), commit(topic="nope", version=version))) == {error}


def test_metadata_of_a_commit_has_a_limit():
    assert codes(ask(machine(), commit(committed_metadata="x" * 4_097))) == {Error.OFFSET_METADATA_TOO_LARGE}


def test_a_commit_that_the_log_refused_is_not_kept():
    coordinator = machine()
    append = next(effect for effect in coordinator.handle(commit(), 0) if isinstance(effect, Append))
    effects = coordinator.on_append(append.append_id, 0, Error.NOT_ENOUGH_REPLICAS)
    reply = next(effect for effect in effects if isinstance(effect, Reply))
    assert codes(reply.response) != {Error.NONE}
    fetched = ask(coordinator, EVERY_REQUEST["OffsetFetch"])
    assert fetched.groups[0].topics == ()


def test_a_fetch_of_everything_and_of_old_versions():
    coordinator = machine()
    ask(coordinator, commit())
    fetched = ask(coordinator, EVERY_REQUEST["OffsetFetch"])
    assert [(topic.name, topic.partitions[0].committed_offset) for topic in fetched.groups[0].topics] == [("orders", 3)]
    topics = (v1.OffsetFetchRequestTopic(name="orders", partition_indexes=(0, 1)),)
    old = ask(coordinator, v1.OffsetFetchRequest(version=7, group_id="g", topics=topics))
    assert [partition.committed_offset for partition in old.topics[0].partitions] == [3, -1]


def test_a_fetch_that_must_be_stable_waits_for_the_log_and_fails_with_it():
    coordinator = machine()
    append = next(effect for effect in coordinator.handle(joined(), 0) if isinstance(effect, Append))
    stable = v1.OffsetFetchRequest(groups=(v1.OffsetFetchRequestGroup(group_id="g"),), require_stable=True)
    assert coordinator.handle(stable, 0) == []
    effects = coordinator.on_append(append.append_id, 0, Error.NOT_ENOUGH_REPLICAS)
    answers = [codes(effect.response) for effect in effects if isinstance(effect, Reply)]
    assert len(answers) == 2
    assert Error.NONE not in answers[1] or len(answers[1]) > 1


def deletion(coordinator: Coordinator, error: Error) -> set[Error]:
    """What an OffsetDelete is told if the log answers so."""
    effects = coordinator.handle(DELETE, 0)
    append = next(effect for effect in effects if isinstance(effect, Append))
    reply = next(effect for effect in coordinator.on_append(append.append_id, 0, error) if isinstance(effect, Reply))
    return codes(reply.response)


def test_a_deletion_that_the_log_refused_keeps_the_offset():
    coordinator = machine()
    ask(coordinator, joined(subscribed_topic_names=("other",)))
    ask(coordinator, ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=-1))
    ask(coordinator, commit())
    assert deletion(coordinator, Error.NOT_ENOUGH_REPLICAS) != {Error.NONE}
    assert coordinator.shard.offsets.of("g")
    assert deletion(coordinator, Error.NONE) == {Error.NONE}
    assert not coordinator.shard.offsets.of("g")


def test_offsets_do_not_expire_while_an_append_is_under_way_nor_if_the_log_refuses():
    coordinator = machine()
    ask(coordinator, joined(subscribed_topic_names=("other",)))
    ask(coordinator, commit(epoch=1, member_id="a", version=9))
    late = 10_080 * 60_000 + 1
    coordinator.handle(joined("b"), late)
    effects = coordinator.on_timer(("consumer-expiry",), late)
    assert [type(effect) for effect in effects] == [SetTimer]
    coordinator = machine()
    ask(coordinator, joined(subscribed_topic_names=("other",)))
    member = coordinator.groups["g"].members["a"]
    ask(coordinator, commit(epoch=member.current.member_epoch, member_id="a"))
    effects = coordinator.on_timer(("consumer-expiry",), late)
    append = next(effect for effect in effects if isinstance(effect, Append))
    coordinator.on_append(append.append_id, late, Error.NOT_ENOUGH_REPLICAS)
    assert coordinator.shard.offsets.of("g")
    at_once(coordinator, coordinator.on_timer(("consumer-expiry",), late), late)
    assert not coordinator.shard.offsets.of("g")


def test_an_empty_group_that_cannot_be_deleted_stays():
    coordinator = machine()
    ask(coordinator, joined())
    ask(coordinator, ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=-1))
    effects = coordinator.handle(EVERY_REQUEST["DeleteGroups"], 0)
    append = next(effect for effect in effects if isinstance(effect, Append))
    coordinator.on_append(append.append_id, 0, Error.NOT_ENOUGH_REPLICAS)
    assert "g" in coordinator.groups


# Settings


def altered(coordinator: Coordinator, *configs: AlterableConfig, resource_type: int = 32, only: bool = False) -> Error:
    resource = AlterConfigsResource(resource_type=resource_type, resource_name="g", configs=configs)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=only)
    return ask(coordinator, request).responses[0].error_code


SESSION, BEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


@pytest.mark.parametrize(
    "configs",
    [
        [AlterableConfig(name="nope", value="1")],
        [AlterableConfig(name=SESSION, value="soon")],
        [AlterableConfig(name=SESSION, value=None)],
        [AlterableConfig(name=SESSION, value="1")],
        [AlterableConfig(name=SESSION, value="1000"), AlterableConfig(name=BEAT, value="1000")],
    ],
)
def test_settings_that_no_broker_takes(configs):
    config = CoordinatorConfig(group_consumer_min_session_timeout_ms=100, group_consumer_min_heartbeat_interval_ms=100)
    assert altered(Coordinator(config), *configs) is Error.INVALID_CONFIG


def test_only_groups_have_settings():
    assert altered(machine(), resource_type=2) is Error.INVALID_CONFIG


def test_settings_may_be_tried_set_and_deleted():
    coordinator = machine()
    setting = AlterableConfig(name=SESSION, value="50000")
    assert altered(coordinator, setting, only=True) is Error.NONE
    assert coordinator.shard.settings == {}
    assert altered(coordinator, setting) is Error.NONE
    assert coordinator.shard.settings == {"g": {SESSION: 50_000}}
    assert altered(coordinator, AlterableConfig(name=SESSION, config_operation=1)) is Error.NONE
    assert coordinator.shard.settings == {"g": {}}


# What must never happen, and logs in which it did


def test_a_partition_cannot_be_given_twice_nor_taken_from_who_has_it_not():
    group = ConsumerGroup(group_id="g")
    held = CurrentAssignment(member_epoch=2, assigned={("orders", 0): 2})
    group.set_current("a", held)
    with pytest.raises(InvariantBroken):
        group.set_current("b", CurrentAssignment(member_epoch=3, assigned={("orders", 0): 3}))
    group.partition_epochs.clear()
    with pytest.raises(InvariantBroken):
        group.set_current("a", None)


def test_a_member_leaves_with_empty_hands():
    group = ConsumerGroup(group_id="g")
    group.set_metadata("a", MemberMetadata(instance_id="i"))
    group.set_current("a", CurrentAssignment(member_epoch=2, assigned={("orders", 0): 2}))
    with pytest.raises(InvariantBroken):
        group.set_metadata("a", None)
    group.set_current("a", None)
    assert group.members["a"].current is GONE
    group.set_metadata("a", MemberMetadata(instance_id="j"))
    assert set(group.static) == {"j"}
    group.set_metadata("a", None)
    group.set_metadata("a", None)  # a tombstone of nobody
    group.set_current("a", None)
    assert not group.members


def test_targets_compare_and_print_by_what_they_hold():
    one, other = Target.of(frozenset({("t", 1), ("t", 0)})), Target.of(frozenset({("t", 0), ("t", 1)}))
    assert one == other
    assert hash(one) == hash(other)
    assert one != "a target"
    assert repr(one) == "Target([('t', 0), ('t', 1)])"


@pytest.mark.parametrize(
    ("regex", "name", "matches"),
    [
        (r"[\x61-\x63]", "b", True),
        (r"\x{61}", "a", True),
        (r"[a-\x63]", "c", True),
        (r"[[:nope:]]", "n", False),  # no such class: plain characters, then a bracket
        (r"\101", "A", True),
    ],
)
def test_rare_spellings_of_characters(regex, name, matches):
    assert bool(compile_regex(regex)(name)) is matches
