"""__consumer_offsets of a real broker, read by Spark, decoded here: of each group it says what the AdminClient says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from rebalance_lab.harness.kafka.groups.group_reader import describe
from rebalance_lab.harness.kafka.groups.live_group import GroupDescription
from rebalance_lab.harness.scenario.reader import parse_scenario
from rebalance_lab.spark_eval.ingest.group_scenario import scenario_of_history
from rebalance_lab.spark_eval.ingest.ingest import of_topic
from rebalance_lab.spark_eval.ingest.membership_records import Story, groups_now
from rebalance_lab.spark_eval.ingest.offsets_source import OffsetsReader, register
from tests.real_brokers import cluster_of

KINDS = [(protocol, static) for protocol in ("classic", "consumer") for static in (False, True)]
NAMES = [f"{protocol}-{'static' if static else 'dynamic'}" for protocol, static in KINDS]
PARTITIONS = 6
SETTLED_S = 120.0


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    for cluster in cluster_of(1):
        yield cluster.bootstrap


@pytest.fixture(scope="module")
def described(bootstrap: str) -> Iterator[dict[str, GroupDescription]]:
    """Two members in each kind of group, of which a third has left again, held while the tests look."""
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("orders", PARTITIONS), NewTopic("payments", 2)])["orders"].result(30)
    consumers = [consumer(bootstrap, *kind, number) for kind in KINDS for number in range(3)]
    try:
        poll_until(consumers, bootstrap, members=3)
        for number in range(2, len(consumers), 3):
            consumers[number].close()
        rest = [one for number, one in enumerate(consumers) if number % 3 != 2]
        # A static member's place is kept; the dynamic groups have to give its partitions to the others.
        poll_until(rest, bootstrap, members=2)
        yield {name: describe(bootstrap, name, apart_s=0) for name in NAMES}
    finally:
        for one in consumers:
            one.close()


def consumer(bootstrap: str, protocol: str, static: bool, number: int) -> Any:
    from confluent_kafka import Consumer

    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": f"{protocol}-{'static' if static else 'dynamic'}",
        "group.protocol": protocol,
        "client.id": f"client-{number}",
        "log_level": 0,
        **({"group.instance.id": f"pod-{number}"} if static else {}),
        **({"session.timeout.ms": 6_000} if protocol == "classic" else {}),
    }
    made = Consumer(settings)
    made.subscribe(["orders", "payments"])
    return made


def poll_until(consumers: list[Any], bootstrap: str, members: int) -> None:
    ends = time.monotonic() + SETTLED_S
    while time.monotonic() < ends:
        for _ in range(20):
            for one in consumers:
                one.poll(0.02)
        if all(settled(describe(bootstrap, name, apart_s=0), members) for name in NAMES):
            return
    raise AssertionError(f"the groups did not settle with {members} members within {SETTLED_S:.0f} s")


def settled(found: GroupDescription, members: int) -> bool:
    owned = [
        place for one in found.members for topic, all_ in one.owned.items() for place in ((topic, p) for p in all_)
    ]
    return found.state.upper() == "STABLE" and len(found.members) == members and len(set(owned)) == PARTITIONS + 2


@pytest.fixture(scope="module")
def rows(spark: Any, bootstrap: str, described: Any) -> list[dict[str, Any]]:
    frame = register(spark, bootstrap)
    assert frame.rdd.getNumPartitions() == len(OffsetsReader(bootstrap, {}).partitions())
    return [row.asDict() for row in frame.orderBy("partition", "offset").collect()]


@pytest.mark.parametrize("name", NAMES)
def test_decoded_groups_are_those_of_the_admin_client(
    name: str, rows: list[dict[str, Any]], described: dict[str, GroupDescription]
) -> None:
    story: Story = groups_now(rows)[name]
    told = described[name]
    assert story.protocol == told.protocol
    ids = {topic.topic_id: topic_name for topic_name, topic in told.topics.items()}
    decoded = {
        one.member_id: (one.client_id, one.host, one.instance_id, one.topics, {ids.get(t, t): p for t, p in one.owned})
        for one in story.members.values()
    }
    assert decoded == {
        one.member_id: (
            one.client_id,
            one.host,
            one.instance_id,
            tuple(sorted(one.topics)),
            {topic: tuple(sorted(found)) for topic, found in one.owned.items() if found},
        )
        for one in told.members
    }
    assert len(decoded) == 2


def test_every_record_is_read_and_understood(bootstrap: str, rows: list[dict[str, Any]]) -> None:
    assert all(row["kind"] is not None for row in rows)
    ends = {one.partition: (one.low, one.high) for one in OffsetsReader(bootstrap, {}).partitions()}
    assert {row["partition"] for row in rows} <= ends.keys()
    assert all(ends[row["partition"]][0] <= row["offset"] < ends[row["partition"]][1] for row in rows)


def test_each_history_becomes_a_scenario(spark: Any, bootstrap: str, described: Any) -> None:
    histories = dict(of_topic(register(spark, bootstrap)))
    assert set(histories) == set(NAMES)
    for name, history in histories.items():
        scenario = parse_scenario(scenario_of_history(name, history, {"orders": PARTITIONS, "payments": 2}))
        assert len(scenario.members) == 3
        assert {one.KIND for one in scenario.timeline} == {"stop"}
