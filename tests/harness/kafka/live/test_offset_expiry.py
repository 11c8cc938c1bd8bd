"""Offsets that expire on a broker, and in a simulation with the same settings."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.kafka.brokers import BrokerConfig, Cluster
from rebalance_lab.harness.scenario.reader import parse_scenario
from tests.harness.kafka.brokers.clients import fresh
from tests.real_brokers import cluster_of

pytestmark = pytest.mark.xdist_group("live")

SETTINGS = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"}
RECORDS = 30
LATE_S = 20.0


@pytest.fixture(scope="module")
def forgetful() -> Iterator[Cluster]:
    yield from cluster_of(1, BrokerConfig(extra=SETTINGS))


def has_offsets(admin: AdminClient, group: str) -> bool:
    """Tell whether the group has offsets. Once its last offset has expired, there is no group either."""
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    try:
        return any(one.offset >= 0 for one in asked[group].result(10).topic_partitions)
    except KafkaException as error:
        if error.args[0].name() != "GROUP_ID_NOT_FOUND":
            raise
        return False


def read_all(bootstrap: str, group: str, protocol: str) -> int:
    """Read until nothing comes any more, commit, and leave. Return how many records came."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol, "log_level": 0}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe(["kept"])
    try:
        seen, deadline = 0, time.monotonic() + 30
        while time.monotonic() < deadline and (seen < RECORDS or consumer.poll(1.0) is not None):
            seen += consumer.poll(0.5) is not None
        return seen
    finally:
        consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_of_an_empty_group_expire_as_in_the_simulation(forgetful: Cluster, protocol: str) -> None:
    admin = AdminClient({"bootstrap.servers": forgetful.bootstrap})
    group = fresh(protocol)
    if "kept" not in admin.list_topics(timeout=30).topics:
        admin.create_topics([NewTopic("kept", 1)])["kept"].result(30)
        producer = Producer({"bootstrap.servers": forgetful.bootstrap})
        for _ in range(RECORDS):
            producer.produce("kept", b"")
        producer.flush(30)
    assert read_all(forgetful.bootstrap, group, protocol) == RECORDS
    left = time.monotonic()
    assert has_offsets(admin, group)
    while has_offsets(admin, group) and time.monotonic() - left < 60 + 3 * LATE_S:
        time.sleep(0.5)
    lasted_s = time.monotonic() - left
    again = read_all(forgetful.bootstrap, group, protocol)

    strategy = {"classic": "classic/range", "consumer": "consumer/uniform"}[protocol]
    facts = simulate(
        parse_scenario(
            {
                "name": "left",
                "duration": "5m",
                "topics": {"kept": {"partitions": 1, "rate": "1/s"}},
                "members": {"c": {"topics": "kept"}},
                "broker": {name: int(value) for name, value in SETTINGS.items()},
                "timeline": [{"at": "30s", "stop": "c"}],
            }
        ),
        strategy,
        1,
    ).facts
    closed_ms = next(fact["t"] for fact in facts if fact["fact"] == "process" and fact["is"] == "closed")
    expired_ms = next(fact["t"] for fact in facts if fact["fact"] == "expired")
    assert 55 <= (expired_ms - closed_ms) / 1_000 <= 62
    assert (expired_ms - closed_ms) / 1_000 - 5 <= lasted_s <= (expired_ms - closed_ms) / 1_000 + LATE_S
    assert again == RECORDS
