"""The clients of these tests: short, and patient with a broker that is being broken on purpose."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rebalance_lab.harness.kafka.brokers import Cluster

PARTITIONS = 4  # what librdkafka's mock cluster gives a topic; the others are asked for as many
PATIENCE_S = 60.0
QUIET = {"log_level": 0}  # a killed node makes librdkafka write about it on standard error


def fresh(word: str) -> str:
    return f"{word}-{uuid.uuid4().hex[:8]}"


def new_topic(cluster: Cluster) -> str:
    topic = fresh("orders")
    if "create-topics" not in cluster.lacks:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
        replicas = min(3, len(cluster.node_ids))
        created = admin.create_topics([NewTopic(topic, PARTITIONS, replicas)], operation_timeout=30)
        created[topic].result(timeout=30)
    return topic


def produce(cluster: Cluster, topic: str, values: Iterable[str]) -> None:
    """Returns when every record is acknowledged by all replicas in sync."""
    refused: list[str] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "enable.idempotence": True, **QUIET})
    for number, value in enumerate(values):
        producer.produce(
            topic,
            value,
            partition=number % PARTITIONS,
            on_delivery=lambda error, _: refused.append(str(error)) if error else None,
        )
    unsent = producer.flush(PATIENCE_S)
    assert (unsent, refused) == (0, [])


class Member:
    """A consumer that remembers what it was assigned and what it read."""

    def __init__(self, cluster: Cluster, group: str, topic: str, protocol: str) -> None:
        settings = {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 1000,
            "reconnect.backoff.max.ms": 1000,
            **QUIET,
        }
        if protocol == "classic":
            settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
        self.values: Counter[str] = Counter()
        self._consumer = Consumer(settings)
        self._consumer.subscribe([topic])

    def poll(self) -> None:
        message = self._consumer.poll(0.1)
        # Errors are the faults under test; librdkafka retries by itself, and the wait has an end.
        if message is not None and message.error() is None:
            self.values[message.value().decode()] += 1

    @property
    def partitions(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def commit(self) -> None:
        """Again until the coordinator takes it: just after a fault there may be none."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._consumer.commit(asynchronous=False)
            except KafkaException:
                assert time.monotonic() < deadline, "the coordinator took no commit"
                self.poll()
            else:
                return

    def close(self) -> None:
        self._consumer.close()


def poll_until(members: list[Member], condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S:.0f} s in vain: {what}"
        for member in members:
            member.poll()
