"""Live groups of both protocols, described and taken along; and every way in which a cluster says no."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from rebalance_lab.harness.kafka.brokers import Cluster
from rebalance_lab.harness.kafka.groups import GroupDescription, GroupError, describe, snapshot

pytestmark = pytest.mark.xdist_group("live")

PARTITIONS = 6
PROTOCOLS = ("classic", "consumer")


class Group:
    """Two members: one dynamic that reads orders, one static that reads both topics, and goes slowly if told to."""

    def __init__(self, bootstrap: str, protocol: str) -> None:
        self.name = f"group-{protocol}-{time.time_ns()}"
        common = {"bootstrap.servers": bootstrap, "group.id": self.name, "group.protocol": protocol, "log_level": 0}
        fast = {"auto.offset.reset": "earliest", "auto.commit.interval.ms": 200}
        self.members: list[Any] = [
            Consumer({**common, **fast, "client.id": "a"}),
            Consumer({**common, **fast, "client.id": "b", "group.instance.id": f"{protocol}-b"}),
        ]
        self.members[0].subscribe(["orders"])
        self.members[1].subscribe(["orders", "audit"])

    def settle(self) -> None:
        deadline = time.monotonic() + 40
        while time.monotonic() < deadline:
            self.poll(0.2)
            assigned = [len(member.assignment()) for member in self.members]
            if all(assigned) and sum(assigned) == PARTITIONS + 2:
                return
        raise AssertionError("the group did not come to rest")

    def poll(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for member in self.members:
                member.poll(0.02)

    def close(self) -> None:
        for member in self.members:
            member.close()


@pytest.fixture(scope="module")
def bootstrap(node: Cluster) -> str:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    for future in admin.create_topics([NewTopic("orders", PARTITIONS), NewTopic("audit", 2)]).values():
        future.result(30)
    producer = Producer({"bootstrap.servers": node.bootstrap})
    for number in range(60):
        producer.produce("orders", b"x", partition=number % PARTITIONS)
    producer.flush(30)
    return node.bootstrap


@pytest.fixture(scope="module", params=PROTOCOLS)
def group(request: pytest.FixtureRequest, bootstrap: str) -> Iterator[tuple[Group, GroupDescription]]:
    found = Group(bootstrap, request.param)
    try:
        found.settle()
        found.poll(2.0)
        yield found, describe(bootstrap, found.name, timeout_s=30, apart_s=0.2)
    finally:
        found.close()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("rebalance-lab")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_group_is_described_as_it_is(group: tuple[Group, GroupDescription]) -> None:
    made, found = group
    assert found.protocol in made.name
    assert found.state == "Stable"
    assert found.assignor == {"classic": "range", "consumer": "uniform"}[found.protocol]
    by_client = {member.client_id: member for member in found.members}
    assert by_client["a"].topics == ("orders",)
    assert sorted(by_client["b"].topics) == ["audit", "orders"]
    assert by_client["b"].instance_id == f"{found.protocol}-b"
    assert by_client["a"].instance_id is None
    assert not found.inferred
    for member, consumer in zip((by_client["a"], by_client["b"]), made.members, strict=True):
        owned = sorted((place.topic, place.partition) for place in consumer.assignment())
        assert sorted((topic, n) for topic, numbers in member.owned.items() for n in numbers) == owned


def test_everything_was_read_so_every_partition_works(group: tuple[Group, GroupDescription]) -> None:
    _, found = group
    assert found.lag == 0
    assert {one.status for one in found.partitions} == {"working"}
    assert len(found.partitions) == PARTITIONS + 2


def test_a_snapshot_is_what_assign_takes_and_confirms(group: tuple[Group, GroupDescription], tmp_path: Path) -> None:
    """What the broker has assigned, given to the lab as owned, is what the lab's assignor gives: nothing moves. A
    librdkafka leader's range does not put static members first as Java's does, so there only the spread is the same."""
    _, found = group
    file = tmp_path / "group.json"
    file.write_text(json.dumps(snapshot(found)))
    answer = run("assign", str(file), "--json")
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout)
    assert told["strategy"] == f"{found.protocol}/{found.assignor}"
    assert told["quality"]["assigned"] == PARTITIONS + 2
    assert found.protocol == "classic" or told["quality"]["moved"] == 0


def test_a_group_without_members_is_stopped(bootstrap: str) -> None:
    made = Group(bootstrap, "classic")
    try:
        made.settle()
        made.poll(1.0)
    finally:
        made.close()
    time.sleep(0.5)
    found = describe(bootstrap, made.name, timeout_s=20, apart_s=0)
    assert [member.instance_id for member in found.members] == ["classic-b"]  # a static member stays when it closes
    assert {one.status for one in found.partitions if one.owner is None} <= {"stopped"}


def test_a_member_that_does_not_commit_is_stalled(bootstrap: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": f"stalled-{time.time_ns()}", "enable.auto.commit": False}
    consumer: Any = Consumer({**settings, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.2)
        found = describe(bootstrap, settings["group.id"], timeout_s=20, apart_s=0.3)
    finally:
        consumer.close()
    assert {one.status for one in found.partitions} == {"stalled"}
    assert found.lag == 60


def test_the_commands_print_the_group(group: tuple[Group, GroupDescription], bootstrap: str) -> None:
    made, _ = group
    shown = run("group", "describe", made.name, "--bootstrap", bootstrap, "--apart", "0.2")
    assert shown.returncode == 0, shown.stderr
    assert "Stable" in shown.stdout
    assert "2 members" in shown.stdout
    told = run("group", "snapshot", made.name, "--bootstrap", bootstrap, "--apart", "0", "--load", "lag")
    assert set(json.loads(told.stdout)["group"]["topics"]) == {"orders", "audit"}


# Every way in which a cluster says no: one line, exit code 2, within the timeout


def test_nobody_answers(unused_port: int) -> None:
    began = time.monotonic()
    answer = run("group", "describe", "g", "--bootstrap", f"127.0.0.1:{unused_port}", "--timeout", "2", "--apart", "0")
    assert answer.returncode == 2
    assert answer.stderr == (
        f"rebalance-lab: 127.0.0.1:{unused_port} does not answer within 2 s (a description of group 'g')\n"
    )
    assert time.monotonic() - began < 10


def test_there_is_no_such_group(bootstrap: str) -> None:
    answer = run("group", "describe", "nobody", "--bootstrap", bootstrap, "--apart", "0")
    assert (answer.returncode, answer.stderr) == (2, f"rebalance-lab: {bootstrap} has no group 'nobody'\n")


def test_authorization_is_refused(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    denied = AclBinding(
        ResourceType.GROUP,
        "secret",
        ResourcePatternType.LITERAL,
        "User:ANONYMOUS",
        "*",
        AclOperation.ALL,
        AclPermissionType.DENY,
    )
    for future in admin.create_acls([denied]).values():
        future.result(30)
    deadline = time.monotonic() + 20
    kinds = set()
    while "unauthorized" not in kinds and time.monotonic() < deadline:  # the rule takes a moment to reach the broker
        with pytest.raises(GroupError) as caught:
            describe(bootstrap, "secret", timeout_s=10, apart_s=0)
        kinds.add(caught.value.kind)
    assert "GROUP_AUTHORIZATION_FAILED" in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--timeout", "0"), "--timeout: must be over 0 and at most 600 seconds, got 0"),
        (("--apart", "30"), "--apart: must be 0 or more and less than --timeout, got 30"),
        (("--config", "/nowhere.properties"), "/nowhere.properties: No such file or directory"),
    ],
)
def test_bad_options_are_one_line(arguments: tuple[str, ...], line: str) -> None:
    answer = run("group", "describe", "g", "--bootstrap", "127.0.0.1:1", *arguments)
    assert (answer.returncode, answer.stderr) == (2, f"rebalance-lab: {line}\n")
