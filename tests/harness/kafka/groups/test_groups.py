"""Live groups of both protocols, described and taken along; and every way in which a cluster says no."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
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


def new_topic(bootstrap: str) -> str:
    """A topic of one partition."""
    name = f"looked-at-{time.time_ns()}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1)])[name].result(30)
    return name


def produce(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(count):
        producer.produce(topic, b"x")
    producer.flush(30)


def set_offset(bootstrap: str, group: str, topic: str, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])
    admin.alter_consumer_group_offsets([wanted])[group].result(30)


@contextmanager
def in_background(turn: Callable[[], Any]) -> Iterator[None]:
    over = Event()

    def work() -> None:
        while not over.is_set():
            turn()

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(10)


@contextmanager
def writing(bootstrap: str, topic: str) -> Iterator[None]:
    """Fifty records a second."""
    producer = Producer({"bootstrap.servers": bootstrap})

    def turn() -> None:
        producer.produce(topic, b"x", partition=0)
        producer.poll(0)
        time.sleep(0.02)

    with in_background(turn):
        yield
    producer.flush(10)


@contextmanager
def reading(consumer: Any) -> Iterator[None]:
    with in_background(lambda: consumer.poll(0.05)):
        yield
    consumer.close()


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
    produce(bootstrap, "orders", 6)
    found = describe(bootstrap, made.name, timeout_s=30, apart_s=1.0, window_s=6.0)
    assert [member.instance_id for member in found.members] == ["classic-b"]  # a static member stays when it closes
    assert {one.status for one in found.partitions if one.owner is None and one.lag} <= {"stopped"}
    assert {one.status for one in found.partitions if one.owner is not None and one.lag} <= {"stalled"}
    assert any(one.lag for one in found.partitions)


def test_a_member_that_does_not_commit_is_stalled(bootstrap: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": f"stalled-{time.time_ns()}", "enable.auto.commit": False}
    consumer: Any = Consumer({**settings, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.2)
        glance = describe(bootstrap, settings["group.id"], timeout_s=20, apart_s=0.3)
        told: list[int] = []
        found = describe(bootstrap, settings["group.id"], timeout_s=20, apart_s=1.5, window_s=6.0, progress=told.append)
    finally:
        consumer.close()
    assert {one.status for one in glance.partitions} == {"unknown"}  # it may yet commit
    assert {one.status for one in found.partitions} == {"stalled"}
    assert (len(found.window.samples), told) == (5, [1, 2, 3, 4])
    assert found.lag >= 60


def test_a_consumer_without_membership_that_reads_and_commits_works(bootstrap: str) -> None:
    """assign() joins no group: no partition has an owner, and the commits say that it runs."""
    topic, group = new_topic(bootstrap), f"assigned-{time.time_ns()}"
    consumer: Any = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.commit.interval.ms": 500, "log_level": 0}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    with writing(bootstrap, topic), reading(consumer):
        time.sleep(2.0)
        found = describe(bootstrap, group, timeout_s=30, apart_s=1.0, window_s=8.0)
    [partition] = found.partitions
    assert (partition.owner, partition.status) == (None, "working")


def test_offsets_that_are_reset_are_rewound(bootstrap: str) -> None:
    """The group is reset between two looks, as `kafka-consumer-groups --reset-offsets` does it."""
    topic, group = new_topic(bootstrap), f"rewound-{time.time_ns()}"
    produce(bootstrap, topic, 50)
    set_offset(bootstrap, group, topic, 40)

    def reset(look: int) -> None:
        if look == 2:
            set_offset(bootstrap, group, topic, 10)

    found = describe(bootstrap, group, timeout_s=30, apart_s=0.5, window_s=2.5, progress=reset)
    [partition] = found.partitions
    assert (partition.status, partition.lag) == ("rewound", 40)


def test_a_marker_at_the_end_of_a_transaction_is_no_record_that_waits(bootstrap: str) -> None:
    """The offset stays before the marker: a lag of 1, behind which there is no record. One record more is one."""
    topic, group = new_topic(bootstrap), f"transactional-{time.time_ns()}"
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": group})
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(5):
        producer.produce(topic, b"x", partition=0)
    producer.commit_transaction(30)
    set_offset(bootstrap, group, topic, 5)
    found = describe(bootstrap, group, timeout_s=30, apart_s=1.0, window_s=6.0)
    [partition] = found.partitions
    assert (partition.lag, partition.status, partition.only_markers) == (1, "working", True)
    set_offset(bootstrap, group, topic, 4)
    found = describe(bootstrap, group, timeout_s=30, apart_s=1.0, window_s=6.0)
    [partition] = found.partitions
    assert (partition.lag, partition.status, partition.only_markers) == (2, "stopped", False)


def test_the_commands_print_the_group(group: tuple[Group, GroupDescription], bootstrap: str) -> None:
    made, _ = group
    shown = run("group", "describe", made.name, "--bootstrap", bootstrap, "--apart", "0.5", "--window", "2")
    assert shown.returncode == 0, shown.stderr
    assert "statuses are judged by 5 looks in 2.0 s" in shown.stdout
    described = run("group", "describe", made.name, "--bootstrap", bootstrap, "--apart", "0", "--json")
    assert json.loads(described.stdout)["window"]["looks"] == 1
    assert len(json.loads(described.stdout)["window"]["cannot_be_known"]) == 3
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
        (("--window", "40"), "--window: must be 0 or more and less than --timeout, got 40"),
        (
            ("--window", "12", "--apart", "0.01"),
            "--window: takes 1,201 looks that are 0.01 s apart, and at most 600 are made",
        ),
        (("--config", "/nowhere.properties"), "/nowhere.properties: No such file or directory"),
    ],
)
def test_bad_options_are_one_line(arguments: tuple[str, ...], line: str) -> None:
    answer = run("group", "describe", "g", "--bootstrap", "127.0.0.1:1", *arguments)
    assert (answer.returncode, answer.stderr) == (2, f"rebalance-lab: {line}\n")
