"""Rules about callbacks, broken on purpose by a handful of facts; and the same facts put right."""

from __future__ import annotations

import pytest

from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.protocol_v1.common.consumer_protocol import Assignment, encode_assignment
from rebalance_lab.protocol_v1.common.messages import (
    JoinGroupRequest,
    Protocol,
    SyncGroupRequest,
    SyncGroupResponse,
)
from tests.harness.rules import ProtocolChecker
from tests.harness.rules.rule_facts import Group, breaks


@pytest.mark.parametrize("kept", [0, 1])
def test_a_cooperative_member_gives_up_only_what_its_last_assignment_lacks(kept: int) -> None:
    group = Group()
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=60_000, member_id="a", protocol_type="consumer",
        protocols=(Protocol(name="cooperative-sticky", metadata=b""),), client_id="a",
    )  # fmt: skip
    group.feed("asks", request=request)
    given = encode_assignment(Assignment(assigned_partitions={"o": (kept,)}))
    checker = group.checker.cooperation
    sync = SyncGroupRequest(group_id="g", generation_id=1, member_id="a", client_id="a")
    checker.feed({"t": 0, "fact": "answers", "request": sync, "response": SyncGroupResponse(assignment=given)})
    with breaks(kept == 0, "callbacks"):
        group.feed("callback", member="a", callback="onPartitionsRevoked", partitions=O0)


O0, O1 = {"o": [0]}, {"o": [1]}
LEGAL: list[tuple[str, dict[str, list[int]]]] = [
    ("onPartitionsAssigned", {"o": [0, 1]}),
    ("onPartitionsRevoked", O0),
    ("onPartitionsAssigned", O0),
    ("onPartitionsRevoked", O1),
    ("onPartitionsLost", {"o": [0, 1]}),
]


def called(*calls: tuple[str, dict[str, list[int]]], started: bool = True) -> None:
    checker = ProtocolChecker()
    if started:
        checker.feed({"t": 0, "fact": "process", "member": "a", "is": "started"})
    for t, (callback, partitions) in enumerate(calls):
        checker.feed({"t": t, "fact": "callback", "member": "a", "callback": callback, "partitions": partitions})


def test_callbacks_in_their_order_are_fine() -> None:
    called(*LEGAL)
    called(("onPartitionsRevoked", O0), started=False)  # of this process not everything is known


@pytest.mark.parametrize(
    "wrong", [("onPartitionsAssigned", O0), ("onPartitionsRevoked", {"o": [2]}), ("onPartitionsLost", O0)]
)
def test_callbacks_out_of_order_are_not(wrong: tuple[str, dict[str, list[int]]]) -> None:
    with breaks(True, "callbacks"):
        called(LEGAL[0], wrong)


@pytest.mark.parametrize("partition", [0, 1])
def test_only_what_was_assigned_is_read(partition: int) -> None:
    checker = ProtocolChecker()
    checker.feed({"t": 0, "fact": "process", "member": "a", "is": "started"})
    checker.feed({"t": 1, "fact": "callback", "member": "a", "callback": "onPartitionsAssigned", "partitions": O0})
    with breaks(partition == 1, "callbacks"):
        reads = {"partitions": {"o": [partition]}, "from": {"o": [0]}}
        checker.feed({"t": 2, "fact": "reads", "member": "a", **reads})


@pytest.mark.parametrize("stops", [False, True])
def test_what_was_given_up_is_not_read_on(stops: bool) -> None:
    checker = ProtocolChecker()
    facts: list[Fact] = [
        {"t": 0, "fact": "process", "member": "a", "is": "started"},
        {"t": 1, "fact": "callback", "member": "a", "callback": "onPartitionsAssigned", "partitions": {"o": [0, 1]}},
        {"t": 2, "fact": "reads", "member": "a", "partitions": {"o": [0, 1]}, "from": {"o": [0, 0]}},
        {"t": 3, "fact": "callback", "member": "a", "callback": "onPartitionsRevoked", "partitions": O0},
    ]
    if stops:
        facts.append({"t": 3, "fact": "stops", "member": "a", "partitions": O0, "at": {"o": [5]}})
    for fact in facts:
        checker.feed(fact)
    with breaks(not stops, "callbacks"):
        checker.feed({"t": 9, "fact": "callback", "member": "a", "callback": "onPartitionsRevoked", "partitions": O1})
