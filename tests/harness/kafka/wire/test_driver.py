"""Our members over TCP: they read everything, commit it, leave, and come back after their connections broke."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient

from rebalance_lab.assignors.strategies import parse_strategy
from rebalance_lab.harness.kafka.wire.members.driver import WireMember
from rebalance_lab.harness.kafka.wire.members.live_members import Change, Consumer, GroupPlan, enter
from rebalance_lab.harness.kafka.wire.recordings.broker_setup import ensure_topics
from rebalance_lab.harness.kafka.wire.served.server import serve
from tests.harness.kafka.wire.test_record_command import rebalance_lab

pytestmark = pytest.mark.xdist_group("wire")
PARTITIONS, RECORDS, MEMBERS = 6, 240, 3
STRATEGIES = ("classic/cooperative-sticky", "classic/tests.harness.kafka.wire.lopsided:Lopsided", "consumer/uniform")
PATIENCE_S = 30.0


async def with_members(
    bootstrap: str, topic: str, strategy: str, then: Callable[[list[Consumer], list[Change]], Awaitable[None]]
) -> None:
    """Three of ours in a new group; they leave at the end."""
    changes: list[Change] = []
    plan = GroupPlan(
        bootstrap=bootstrap, group=f"g-{uuid.uuid4().hex[:8]}", topics=[topic], strategy=parse_strategy(strategy)
    )
    consumers = [await enter(plan, f"{plan.group}-{number}", changes.append) for number in range(MEMBERS)]
    running = [asyncio.create_task(consumer.member.run()) for consumer in consumers]
    try:
        await until(lambda: shared_out(consumers), running)
        await then(consumers, changes)
    finally:
        for consumer in consumers:
            consumer.member.close()
        await asyncio.gather(*running)
    assert all(not consumer.machine.owned for consumer in consumers)


async def until(condition: Callable[[], bool], running: list[asyncio.Task[None]] | None = None) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        for task in running or ():
            assert not task.done(), f"a member has ended: {task.exception()}"
        assert time.monotonic() < deadline, f"waited {PATIENCE_S:.0f} s in vain"
        await asyncio.sleep(0.02)


def shared_out(consumers: list[Consumer]) -> bool:
    owned = [number for consumer in consumers for _, number in consumer.owned]
    return sorted(owned) == list(range(PARTITIONS)) and all(consumer.owned for consumer in consumers)


def produce(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(topic, f"record {number}".encode(), partition=number % PARTITIONS)
    assert producer.flush(10) == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_members_read_everything_and_commit_it_on_a_real_broker(broker, strategy):
    topic = f"read-{uuid.uuid4().hex[:8]}"
    ensure_topics(broker.bootstrap, {topic: PARTITIONS}, {}, 1)
    produce(broker.bootstrap, topic)
    groups: list[str] = []

    async def read_all(consumers: list[Consumer], changes: list[Change]) -> None:
        groups.append(consumers[0].member.group_id)
        await until(lambda: sum(consumer.records for consumer in consumers) >= RECORDS)

    asyncio.run(with_members(broker.bootstrap, topic, strategy, read_all))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    committed = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(groups[0])])[groups[0]].result(10)
    assert {each.partition: each.offset for each in committed.topic_partitions} == dict.fromkeys(
        range(PARTITIONS), RECORDS // PARTITIONS
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_members_find_the_coordinator_again_when_every_connection_breaks(strategy):
    """They were away for less than a session, so nobody loses anything, and heartbeats go on."""

    async def story() -> None:
        server = await serve({"orders": PARTITIONS})

        async def cut(consumers: list[Consumer], changes: list[Change]) -> None:
            before, so_far = [consumer.owned for consumer in consumers], len(changes)
            old = {consumer.name: consumer.member.coordinator for consumer in consumers}
            for connection in list(server.connections):
                connection.cancel()
            await until(
                lambda: all(consumer.member.coordinator not in (None, old[consumer.name]) for consumer in consumers)
            )
            await asyncio.sleep(1.5)
            assert [consumer.owned for consumer in consumers] == before
            assert len(changes) == so_far

        try:
            await with_members(server.bootstrap, "orders", strategy, cut)
            assert server.coordinator.states[-1][1] == "Empty"
        finally:
            await server.close()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("assignor", "topics", "message"),
    [
        (
            "tests.harness.kafka.wire.lopsided:Nobody",
            "orders",
            "--assignor: tests.harness.kafka.wire.lopsided:Nobody cannot be found",
        ),
        ("consumer/tests.harness.kafka.wire.lopsided:Lopsided", "orders", "a custom assignor needs classic"),
        ("classic/range", "nowhere", "no topic nowhere at 127.0.0.1:"),
    ],
)
def test_what_cannot_run_is_one_line_and_exit_code_2(broker, assignor, topics, message):
    arguments = ("--assignor", assignor, "--bootstrap", broker.bootstrap, "--topics", topics)
    told = rebalance_lab("live", *arguments)
    assert told.returncode == 2
    assert message in told.stderr


def test_a_fetch_that_ends_after_close_is_not_polled_for():
    """The machine refuses poll() after close(), as Java's consumer does, and the member ended with that."""

    class Told:
        owned = fetchable = frozenset()
        events: list[object]

        def handle(self, event, now_ms):
            self.events.append(event)
            return []

    async def close_and_poll() -> list[str]:
        machine = Told()
        machine.events = []
        member = WireMember(machine, None, "g", None)
        member.poll()
        member.close()
        member.poll()
        return [type(event).__name__ for event in machine.events]

    assert asyncio.run(close_and_poll()) == ["Poll", "Close"]
