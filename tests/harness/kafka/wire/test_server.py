"""Unmodified consumers of librdkafka and of Java on our coordinator: they form groups, rebalance, read and leave."""

from __future__ import annotations

import socket
import time

import pytest

from rebalance_lab.harness.kafka.wire.served.server import MAX_CONNECTIONS, Server
from tests.conformance import java_oracle
from tests.harness.kafka.wire.interop import STRATEGIES
from tests.harness.kafka.wire.members import Process, wait_until_complete
from tests.harness.kafka.wire.serving import serving

pytestmark = pytest.mark.xdist_group("wire-interop")
TOPIC, PARTITIONS, RECORDS = "orders", 6, 300
SESSION_MS = 10_000
"""Longer than a test waits: who is gone sooner has left by itself."""


@pytest.fixture
def served():
    with serving({TOPIC: PARTITIONS}, {"group.consumer.session.timeout.ms": SESSION_MS}) as server:
        yield server


def produce(server: Server, records: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": server.bootstrap, "enable.idempotence": True})
    for number in range(records):
        producer.produce(TOPIC, f"record {number}".encode(), partition=number % PARTITIONS)
    assert producer.flush(10) == 0


@pytest.mark.parametrize(("first", "second"), [("librdkafka", "java"), ("java", "librdkafka")])
def test_real_consumers_form_rebalance_read_and_leave(served, first, second):
    if reason := java_oracle.why_not():
        pytest.skip(reason)
    groups = {strategy.replace("/", "-"): strategy for strategy in STRATEGIES}

    def run(kind: str) -> Process:
        return Process.start(kind, served.bootstrap, TOPIC, SESSION_MS, groups)

    processes = [run(first)]
    try:
        wait_until_complete(processes, list(groups), PARTITIONS)
        processes.append(run(second))
        wait_until_complete(processes, list(groups), PARTITIONS)
        assert all(len(each.owned[group]) == PARTITIONS // 2 for each in processes for group in groups)
        produce(served, RECORDS)
        read_by_both(processes, list(groups))
        processes[0].stop()
        assert wait_until_complete(processes[1:], list(groups), PARTITIONS) < SESSION_MS / 1000
    finally:
        for each in processes:
            each.stop()
    assert set(last_states(served).values()) == {"Empty"}  # everybody has left


def read_by_both(processes: list[Process], groups: list[str]) -> None:
    """Nothing moves meanwhile, so every record is read once in each group, and both have a part in it."""
    deadline = time.monotonic() + 20
    while any(sum(each.read.get(group, 0) for each in processes) < RECORDS for group in groups):
        assert time.monotonic() < deadline, [each.read for each in processes]
        time.sleep(0.05)
    assert [[each.read[group] for each in processes] for group in groups] == [[RECORDS // 2] * 2] * len(groups)


def last_states(server: Server) -> dict[str, str]:
    return dict(server.coordinator.states)


def test_what_is_not_kafka_s_protocol_is_dropped_and_the_server_goes_on(served):
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 40, (8).to_bytes(4) + b"\x7f\xff\x00\x00\x00\x00\x00\x01"):
        with socket.create_connection(served.address, timeout=5) as connection:
            connection.sendall(garbage)
            assert connection.recv(1) == b""
    produce(served, 6)


def test_connections_are_bounded(served):
    taken = [socket.create_connection(served.address, timeout=5) for _ in range(MAX_CONNECTIONS)]
    try:
        with socket.create_connection(served.address, timeout=5) as one_too_many:
            assert one_too_many.recv(1) == b""
    finally:
        for connection in taken:
            connection.close()
