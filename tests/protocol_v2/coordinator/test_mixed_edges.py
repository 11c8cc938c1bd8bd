"""Classic members inside a consumer group, where something goes wrong: assignors, bytes, the log, a deleted topic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rebalance_lab.harness.hosts.dual_coordinator import make_dual_coordinator
from rebalance_lab.protocol_v1.common import messages as v1
from rebalance_lab.protocol_v1.common.consumer_protocol import Subscription, decode_assignment, encode_subscription
from rebalance_lab.protocol_v1.common.effects import Append, Reply
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v2.common.messages import ConsumerGroupHeartbeatRequest, TopicPartitions
from rebalance_lab.protocol_v2.coordinator.coordinator import Coordinator, at_once, numbered
from tests.protocol_v2.coordinator.test_edges import JOIN, ask, codes, joined, machine


class Moody:
    """It fails when it is told to."""

    name = "moody"
    fails = False

    def assign(self, group):
        if Moody.fails:
            raise ValueError("no")
        return {name: {} for name in group.members}


def mixed(**config) -> Coordinator:
    coordinator = make_dual_coordinator(
        {"group.consumer.assignment.interval.ms": 0, "group.initial.rebalance.delay.ms": 0, **config},
        numbered(),
        {"orders": 4},
    )
    return coordinator


def classic(member_id: str = "c", metadata: bytes | None = None, **fields) -> v1.JoinGroupRequest:
    data = encode_subscription(Subscription(topics=("orders",))) if metadata is None else metadata
    protocols = (v1.Protocol(name="range", metadata=data),)
    return replace(JOIN, member_id=member_id, protocols=protocols, **fields)


def test_an_assignor_that_fails_fails_a_classic_join_too(monkeypatch):
    coordinator = mixed()
    coordinator.shard.assignors = {"moody": Moody()}
    ask(coordinator, joined())
    monkeypatch.setattr(Moody, "fails", True)
    assert codes(ask(coordinator, classic())) == {Error.UNKNOWN_SERVER_ERROR}
    assert set(coordinator.groups["g"].members) == {"a"}


def test_another_protocol_type_is_refused_in_syncgroup():
    coordinator = mixed()
    ask(coordinator, joined())
    epoch = ask(coordinator, classic()).generation_id
    sync = v1.SyncGroupRequest(
        group_id="g",
        member_id="c",
        generation_id=epoch,
        protocol_type="consumer",
        protocol_name="range",
        assignments=(),
    )
    assert codes(ask(coordinator, replace(sync, protocol_type="connect"))) == {Error.INCONSISTENT_GROUP_PROTOCOL}
    assert codes(ask(coordinator, replace(sync, protocol_type="consumer"))) == {Error.NONE}


@pytest.mark.parametrize(("member_id", "error"), [("c", Error.NONE), ("nobody", Error.UNKNOWN_MEMBER_ID)])
def test_an_old_leavegroup_names_one_member(member_id, error):
    coordinator = mixed()
    ask(coordinator, joined())
    ask(coordinator, classic())
    assert codes(ask(coordinator, v1.LeaveGroupRequest(version=2, group_id="g", member_id=member_id))) == {error}


@pytest.mark.parametrize("name", ["JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"])
def test_a_classic_member_is_told_when_the_log_refuses(name):
    coordinator = mixed()
    ask(coordinator, joined())
    epoch = ask(coordinator, classic()).generation_id
    who = {"group_id": "g", "member_id": "c", "generation_id": epoch}
    request = {
        "JoinGroup": classic("d"),
        "SyncGroup": v1.SyncGroupRequest(**who, protocol_type="consumer", protocol_name="range", assignments=()),
        "Heartbeat": v1.HeartbeatRequest(**who),
        "LeaveGroup": v1.LeaveGroupRequest(group_id="g", members=(v1.MemberIdentity(member_id="c"),)),
    }[name]
    first = next(effect for effect in coordinator.handle(joined("b"), 0) if isinstance(effect, Append))
    coordinator.handle(request, 0)
    effects = coordinator.on_append(first.append_id, 0, Error.NOT_ENOUGH_REPLICAS)
    assert not any(codes(effect.response) == {Error.NONE} for effect in effects if isinstance(effect, Reply))


def test_a_classic_group_with_bytes_that_cannot_be_read_is_not_upgraded():
    coordinator = mixed()
    member_id = ask(coordinator, classic("", metadata=b"?")).member_id
    coordinator.handle(classic(member_id, metadata=b"?"), 0)
    answers = at_once(coordinator, coordinator.on_timer(("join", "g"), 1), 1)  # the join phase is over
    assert any(isinstance(effect, Reply) and codes(effect.response) == {Error.NONE} for effect in answers)
    answer = ask(coordinator, joined(), 10)
    assert answer.error_code is Error.GROUP_ID_NOT_FOUND
    assert "malformed" in (answer.error_message or "")


def test_a_group_of_another_protocol_type_is_not_upgraded():
    coordinator = mixed()
    asked = classic("", protocol_type="connect")
    member_id = ask(coordinator, asked).member_id
    coordinator.handle(replace(asked, member_id=member_id), 0)
    answer = ask(coordinator, joined(), 10)
    assert answer.error_code is Error.GROUP_ID_NOT_FOUND
    assert "consumer embedded protocol" in (answer.error_message or "")


def test_a_deleted_topic_is_left_out_of_a_classic_members_assignment():
    coordinator = mixed()
    ask(coordinator, joined())
    ask(coordinator, classic())
    kept = (TopicPartitions(topic_name="orders", partitions=(0, 1)),)
    ask(coordinator, ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=2, topic_partitions=kept))
    epoch = ask(coordinator, classic()).generation_id
    sync = v1.SyncGroupRequest(
        group_id="g",
        member_id="c",
        generation_id=epoch,
        protocol_type="consumer",
        protocol_name="range",
        assignments=(),
    )
    assert decode_assignment(ask(coordinator, sync).assignment).assigned_partitions == {"orders": (2, 3)}
    coordinator.on_metadata({}, 0)
    assert decode_assignment(ask(coordinator, sync).assignment).assigned_partitions == {}


def test_a_resolution_of_a_group_that_is_gone_is_dropped():
    coordinator = machine()
    assert coordinator.on_timer(("consumer-regex", "g"), 0) == []
    assert coordinator.on_timer(("consumer-session", "g", "a"), 0) == []


def test_a_request_that_both_sides_answer_is_answered_itself():
    """A host finds the client by the very request, and two clients may delete the same groups at once."""
    coordinator = mixed()
    requests = [v1.DeleteGroupsRequest(version=2, groups_names=("g", "nowhere")) for _ in range(2)]
    ask(coordinator, joined())
    effects = [effect for request in requests for effect in coordinator.handle(request, 0)]
    replies = [effect for effect in effects if isinstance(effect, Reply)]
    assert [reply.request is request for reply, request in zip(replies, requests, strict=True)] == [True, True]
    assert {result.group_id for reply in replies for result in reply.response.results} == {"g", "nowhere"}
    assert coordinator.shard.rewrites == []


def test_a_group_is_converted_though_its_members_cannot_agree_on_a_protocol():
    """A name that a member lists twice counts twice, as in Kafka, and then no name counts once for each member."""
    coordinator = mixed()
    ask(coordinator, joined())
    twice = classic().protocols * 2
    ask(coordinator, replace(classic(), protocols=twice))
    ask(coordinator, replace(joined(), member_epoch=-1))
    assert set(coordinator.groups) == set()
    assert coordinator.shard.classic.phase("g") == "PreparingRebalance"
