"""A request without what its version demands is refused before the coordinator looks at the group."""

from __future__ import annotations

from typing import Any

import pytest

from rebalance_lab.harness.conversation.sequence_player import play

HEARTBEAT = {
    "group_id": "g", "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 5_000,
    "subscribed_topic_names": ["orders"], "topic_partitions": [],
}  # fmt: skip
JOIN = {
    "group_id": "g", "member_id": "", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000,
    "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": "AAAAAAABAAZvcmRlcnP/////"}],
}  # fmt: skip
IDENTITY = {"group_id": "g", "member_id": "$join.member_id", "generation_id": "$join.generation_id"}


def answers(protocol: str, *steps: tuple[str, str, int, dict[str, Any]]) -> dict[str, Any]:
    """Play one step every 100 ms; the group is one of KIP-848 if the first step is a heartbeat."""
    listed = [
        {"at_ms": 100 * number, "as": name, "request": request, "version": version, "body": body}
        for number, (name, request, version, body) in enumerate(steps)
    ]
    config = {"group.initial.rebalance.delay.ms": 0}
    sequence = {"protocol": protocol, "config": config, "topics": {"orders": 2}, "steps": listed, "until_ms": 5_000}
    return {each["as"]: each["body"] for each in play(sequence).to_json()["responses"]}


KINDS = {
    "a classic group": ("classic", ()),
    "a KIP-848 group": ("consumer", (("beat", "ConsumerGroupHeartbeat", 1, HEARTBEAT),)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
@pytest.mark.parametrize(("version", "error"), [(4, "NONE"), (5, "INCONSISTENT_GROUP_PROTOCOL")])
def test_sync_group_names_its_protocol_from_version_5_on(kind: str, missing: str, version: int, error: str) -> None:
    protocol, before = KINDS[kind]
    sync = {**IDENTITY, "protocol_type": "consumer", "protocol_name": "range", "assignments": []}
    del sync[missing]
    found = answers(protocol, *before, ("join", "JoinGroup", 3, JOIN), ("sync", "SyncGroup", version, sync))
    assert found["join"]["error_code"] == "NONE"
    assert found["sync"]["error_code"] == error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("request_", ["SyncGroup", "Heartbeat", "LeaveGroup"])
def test_a_request_without_a_group_is_refused(kind: str, request_: str) -> None:
    protocol, before = KINDS[kind]
    body = {"group_id": "", "member_id": "m"} | ({} if request_ == "LeaveGroup" else {"generation_id": 1})
    assert answers(protocol, *before, ("asked", request_, 1, body))["asked"]["error_code"] == "INVALID_GROUP_ID"


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_outside_the_brokers_limits_is_refused(kind: str) -> None:
    protocol, before = KINDS[kind]
    found = answers(protocol, *before, ("join", "JoinGroup", 3, {**JOIN, "session_timeout_ms": 5}))
    assert found["join"]["error_code"] == "INVALID_SESSION_TIMEOUT"
