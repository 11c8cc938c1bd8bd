"""Every operation on groups of the AdminClients, on the served coordinator and on a broker: the same answers."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from rebalance_lab.harness.kafka.brokers import BrokerConfig, Cluster
from rebalance_lab.harness.kafka.brokers.processes.java import find_java
from tests.conformance import java_oracle
from tests.harness.kafka.wire.members import JAVA_SOURCE
from tests.harness.kafka.wire.serving import serving
from tests.real_brokers import cluster_of

pytestmark = pytest.mark.xdist_group("live")

TOPIC = "operated"
PROTOCOLS = ("classic", "consumer")


@pytest.fixture(scope="module")
def real() -> Iterator[Cluster]:
    """A broker of its own: its groups are listed."""
    for cluster in cluster_of(1, BrokerConfig()):
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 2)])[TOPIC].result(30)
        yield cluster


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    with serving({TOPIC: 2}, {}) as server:
        yield server.bootstrap
        assert not server.failures


def outcome(operation: Callable[[], Any]) -> Any:
    try:
        return operation()
    except KafkaException as error:
        return error.args[0].name()


def librdkafka(bootstrap: str, protocol: str) -> list[tuple[str, Any]]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    group = f"rd-{protocol}"
    told: list[tuple[str, Any]] = []

    def say(what: str, operation: Callable[[], Any]) -> None:
        told.append((what, outcome(operation)))

    def groups() -> Any:
        found = admin.list_consumer_groups().result(15)
        assert not found.errors
        return sorted(
            (one.group_id, one.state.name, one.type.name) for one in found.valid if one.group_id.startswith(group)
        )

    def described(name: str = group) -> Any:
        found = admin.describe_consumer_groups([name])[name].result(15)
        members = [
            (one.client_id, sorted((each.topic, each.partition) for each in one.assignment.topic_partitions))
            for one in found.members
        ]
        return found.state.name, found.type.name, found.partition_assignor, members

    def offsets(name: str = group) -> Any:
        found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name].result(15)
        return sorted((one.topic, one.partition, one.offset, one.metadata) for one in found.topic_partitions)

    def altered(offset: int, partition: int = 0, name: str = group) -> Any:
        wanted = ConsumerGroupTopicPartitions(name, [TopicPartition(TOPIC, partition, offset)])
        found = admin.alter_consumer_group_offsets([wanted])[name].result(15)
        return [(one.topic, one.partition, one.error and one.error.name()) for one in found.topic_partitions]

    def deleted(name: str = group) -> Any:
        return admin.delete_consumer_groups([name])[name].result(15)

    settings = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol, "client.id": "rd"}
    consumer: Any = Consumer({**settings, "enable.auto.commit": False, "log_level": 0})
    try:
        consumer.subscribe([TOPIC])
        deadline = time.monotonic() + 30
        while len(consumer.assignment()) < 2 and time.monotonic() < deadline:
            consumer.poll(0.1)
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 3), TopicPartition(TOPIC, 1, 4)], asynchronous=False)
        say("list groups", groups)
        say("describe", described)
        say("list offsets", offsets)
        say("alter offsets of a group with a member", lambda: altered(9))
        say("delete a group with a member", deleted)
    finally:
        consumer.close()
    deadline = time.monotonic() + 15
    while described()[0] != "EMPTY" and time.monotonic() < deadline:
        time.sleep(0.1)
    say("describe without members", described)
    say("alter offsets", lambda: altered(7))
    say("alter offsets of a partition that does not exist", lambda: altered(7, partition=99))
    say("alter offsets of a new group", lambda: altered(1, name=f"{group}-new"))
    say("list offsets", offsets)
    say("list offsets of an unknown group", lambda: offsets("nobody"))
    say("delete groups", deleted)
    say("delete a group again", deleted)
    say("delete a group", lambda: deleted(f"{group}-new"))
    say("describe a deleted group", described)
    say("list groups", groups)
    return told


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_librdkafkas_admin_client_gets_the_same_answers(real: Cluster, served: str, protocol: str) -> None:
    answers = librdkafka(served, protocol)
    assert answers == librdkafka(real.bootstrap, protocol)
    assert len(answers) == 16


def java(bootstrap: str, protocol: str) -> list[str]:
    source = JAVA_SOURCE.with_name("GroupAdmin.java")
    classes = ":".join(map(str, (*java_oracle.class_path(), java_oracle.compiled(source))))
    arguments = [find_java(), "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp", classes, "GroupAdmin"]
    done = subprocess.run(
        [*arguments, bootstrap, TOPIC, protocol], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_javas_admin_gets_the_same_answers(real: Cluster, served: str, protocol: str) -> None:
    if reason := java_oracle.why_not():
        pytest.skip(reason)
    answers = java(served, protocol)
    assert answers == java(real.bootstrap, protocol)
    assert len(answers) >= 26
