"""What a client may do to the served coordinator: the others do not notice, and nothing is printed."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode

from rebalance_lab.harness.kafka.brokers import probe
from rebalance_lab.harness.kafka.wire.addresses import WireError
from rebalance_lab.harness.kafka.wire.broker_connection import connect, encode_request, encoded, framed
from rebalance_lab.harness.kafka.wire.cluster import Cluster
from rebalance_lab.harness.kafka.wire.codec import TopicIds
from rebalance_lab.harness.kafka.wire.entities import build
from rebalance_lab.harness.kafka.wire.frame_check import MalformedFrame
from rebalance_lab.harness.kafka.wire.frame_reader import read_answer
from rebalance_lab.harness.kafka.wire.members.fetching import decoded
from rebalance_lab.harness.kafka.wire.served import intake
from rebalance_lab.harness.kafka.wire.served import server as server_module
from rebalance_lab.harness.kafka.wire.served.memory_log import CorruptBatch, MemoryLog
from rebalance_lab.harness.kafka.wire.served.server import Server
from tests.harness.kafka.wire.serving import serving

API_VERSIONS_V0 = struct.pack("!hhih", 18, 0, 5, -1)
ABORTS_KIO = struct.pack("!hhih", 3, 9, 1, 3) + b"fuz\0" + b"\xff\xff\xff\xff\x0f"
UNKNOWN_TAG = b"\x01\x63\x02hi"
"""One tagged field, with a tag that no version has."""


@pytest.fixture
def served(capfd: pytest.CaptureFixture[str]) -> Iterator[Server]:
    with serving({"orders": 3}, {}) as server:
        yield server
        assert ask(server, API_VERSIONS_V0)[:4] == struct.pack("!i", 5)
    assert list(server.failures) == []
    assert capfd.readouterr() == ("", "")


@contextmanager
def connected(server: Server) -> Iterator[socket.socket]:
    with socket.create_connection(server.address, timeout=5) as connection:
        yield connection


def ask(server: Server, frame: bytes) -> bytes:
    """Return the answer without its length; nothing where the server closes the connection."""
    with connected(server) as connection:
        connection.sendall(framed(frame))
        return receive(connection)


def receive(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as stream:
        return stream.read(int.from_bytes(stream.read(4)))


def request_frame(key: int, version: int, **values: Any) -> bytes:
    return encode_request(build(load_request_schema(key, version), values), 5, "client")


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        ABORTS_KIO[:7],
        ABORTS_KIO,
        ABORTS_KIO[:-5] + b"\0\0\0",
        API_VERSIONS_V0[:-2] + struct.pack("!h", 30_000),
        struct.pack("!hhih", 18, 3, 1, -1) + b"\0\xff\xff\xff\xff\x0f",
        struct.pack("!hhi", 18, 77, 1)[:7],
        struct.pack("!hhih", 12, 0, 1, 1) + b"\xff",
        request_frame(12, 4, group_id="g", member_id="m")[:-2],
    ],
)
def test_a_frame_that_cannot_be_read_closes_its_connection(served, frame):
    assert ask(served, frame) == b""


def test_an_unsupported_version_of_api_versions_is_answered_in_version_0(served):
    answer = ask(served, struct.pack("!hhih", 18, 99, 1234, -1))
    found = read_answer(answer, load_response_schema(18, 0))
    assert answer[:4] == struct.pack("!i", 1234)
    assert found.error_code is ErrorCode.unsupported_version
    assert any(each.api_key == 18 and each.max_version == 4 for each in found.api_keys)


def test_unknown_tagged_fields_of_header_and_body_are_skipped(served):
    plain = request_frame(12, 4, group_id="g", member_id="m", generation_id=1)
    header = struct.pack("!hhih", 12, 4, 5, 6) + b"client"
    assert plain.startswith(header + b"\0")
    assert plain.endswith(b"\0")
    tagged = header + UNKNOWN_TAG + plain[len(header) + 1 : -1] + UNKNOWN_TAG
    answer = ask(served, tagged)
    assert answer == ask(served, plain) != b""
    assert read_answer(answer, load_response_schema(12, 4)).error_code is ErrorCode.unknown_member_id


def test_a_request_to_delete_groups_is_answered_whoever_coordinates_them(served):
    """The classic side is asked about its groups alone, with another request than the client's."""
    answer = ask(served, request_frame(42, 2, groups_names=["g", "h", "g"]))
    found = read_answer(answer, load_response_schema(42, 2)).results
    assert {each.group_id: each.error_code for each in found} == dict.fromkeys("gh", ErrorCode.group_id_not_found)


def test_a_frame_that_does_not_arrive_is_given_up(served, monkeypatch):
    monkeypatch.setattr(intake, "FRAME_S", 0.3)
    for half in (b"\0", framed(b"x" * 100)[:50]):
        began = time.monotonic()
        with connected(served) as connection:
            connection.sendall(half)
            assert connection.recv(1) == b""
        assert 0.2 < time.monotonic() - began < 4


def test_a_connection_without_a_request_is_closed_after_a_while(served, monkeypatch):
    monkeypatch.setattr(intake, "IDLE_S", 0.3)
    with connected(served) as connection:
        assert connection.recv(1) == b""


def test_the_bytes_that_wait_are_bounded_and_small_frames_go_on(served, monkeypatch):
    """Of three large halves the largest one is dropped."""
    monkeypatch.setattr(served.waiting, "limit", 1_000_000)
    connections = []
    try:
        for size in (450_000, 500_000, 100_000):
            connection = socket.create_connection(served.address, timeout=5)
            connections.append(connection)
            connection.sendall((1_000_000).to_bytes(4) + bytes(size))
            time.sleep(0.2)
        assert connections[1].recv(1) == b""
        assert served.waiting.total <= 1_000_000
        assert ask(served, API_VERSIONS_V0) != b""
        for connection in (connections[0], connections[2]):
            connection.settimeout(0.1)
            with pytest.raises(TimeoutError):
                connection.recv(1)
    finally:
        for connection in connections:
            connection.close()
    wait_for(lambda: served.waiting.total == 0)


def test_a_client_that_goes_frees_the_place_of_its_parked_request(served):
    parked = request_frame(1, 4, max_wait=timedelta(milliseconds=2**31 - 1), min_bytes=1, topics=[])
    with connected(served) as connection:
        connection.sendall(framed(parked))
        time.sleep(0.2)
        assert len(served.connections) == 1
    wait_for(lambda: not served.connections)


def test_requests_may_be_sent_before_the_answers_are_read(served):
    with connected(served) as connection:
        connection.sendall(framed(API_VERSIONS_V0) * 5)
        with connection.makefile("rb") as stream:
            for _ in range(5):
                assert stream.read(int.from_bytes(stream.read(4)))[:4] == struct.pack("!i", 5)


def test_a_parked_fetch_ends_when_it_is_cancelled_as_the_log_grows():
    async def cancel_as_the_log_grows() -> None:
        server = Server({"orders": 1}, {})
        await server.start()
        try:
            asked = {"max_wait": timedelta(minutes=1), "min_bytes": 1_000_000, "topics": []}
            fetching = asyncio.create_task(server.answer(request_frame(1, 12, **asked)))
            await asyncio.sleep(0.05)
            assert not fetching.done()
            server.log.append(server.log.partitions["orders", 0], batch(61))
            await asyncio.sleep(0)
            fetching.cancel()
            done, _ = await asyncio.wait([fetching], timeout=5)
            assert done
        finally:
            await server.close()

    asyncio.run(cancel_as_the_log_grows())


def test_what_the_coordinator_keeps_is_bounded_and_given_back():
    """Members whose clients have gone stay until their session ends; refused requests keep nothing."""

    async def fill() -> None:
        server = Server({"orders": 1}, {"group.min.session.timeout.ms": 10, "group.initial.rebalance.delay.ms": 1})
        await server.start()
        kept = server.coordinator.kept
        try:
            asked = {"session_timeout": timedelta(milliseconds=200), "rebalance_timeout": timedelta(milliseconds=200)}
            asked |= {"protocol_type": "consumer", "protocols": [{"name": "range", "metadata": bytes(3_000_000)}]}
            parked = [
                asyncio.create_task(server.answer(request_frame(11, 3, group_id=f"g{number}", **asked)))
                for number in range(8)
            ]
            answers = [read_answer(each, load_response_schema(11, 3)) for each in await asyncio.gather(*parked)]
            codes = [each.error_code for each in answers]
            assert codes.count(ErrorCode.none) == 5
            assert codes.count(ErrorCode.coordinator_not_available) == 3
            assert 15_000_000 < kept.total <= kept.limit
            await until_true(lambda: not kept.total)
            stranger = request_frame(11, 3, group_id="g", **{**asked, "member_id": "stranger"})
            await server.answer(stranger)
            assert kept.total == 0
        finally:
            await server.close()

    asyncio.run(fill())


async def until_true(condition: Any) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline, "waited 5 s in vain"
        await asyncio.sleep(0.01)


def test_an_answer_does_not_repeat_a_topic_that_is_asked_for_twice(served):
    frame = request_frame(3, 12, topics=[{"name": "orders"}] * 1_000)
    assert len(read_answer(ask(served, frame), load_response_schema(3, 12)).topics) == 1


@pytest.mark.parametrize(("key", "version", "field"), [(15, 5, "groups"), (69, 1, "group_ids")])
def test_an_answer_describes_a_group_once(served, key, version, field):
    answer = ask(served, request_frame(key, version, **{field: ["g", "h", "g"]}))
    assert [each.group_id for each in read_answer(answer, load_response_schema(key, version)).groups] == ["g", "h"]


def test_an_answer_that_is_too_large_is_not_built():
    schema = load_response_schema(15, 0)
    members = [{"member_id": "m", "member_metadata": bytes(1_000)}] * 100
    answer = build(schema, {"groups": [{"group_id": "g", "members": members}]})
    assert len(encoded(answer, 200_000)) > 100_000
    with pytest.raises(MalformedFrame, match="an answer of more than 100000 bytes"):
        encoded(answer, 100_000)


def test_a_flood_of_connections_closes_none_that_is_there(served, monkeypatch):
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 3)
    with connected(served) as honest:
        for _ in range(20):
            flood = [socket.create_connection(served.address, timeout=5) for _ in range(10)]
            honest.sendall(framed(API_VERSIONS_V0))
            with honest.makefile("rb") as stream:
                assert stream.read(int.from_bytes(stream.read(4)))[:4] == struct.pack("!i", 5)
            for each in flood:
                each.close()
    monkeypatch.undo()
    wait_for(lambda: not served.connections)


def test_the_records_of_an_answer_are_bounded_in_all():
    async def read_much() -> int:
        server = Server({"orders": 1}, {})
        await server.start()
        try:
            partition = server.log.partitions["orders", 0]
            for _ in range(20):
                server.log.append(partition, batch(1_000_000))
            asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 2**31 - 1}
            fetch = {"topics": [{"topic": "orders", "partitions": [asked] * 100}], "max_bytes": 2**31 - 1}
            answer = await server.answer(request_frame(1, 12, **fetch))
            assert answer is not None
            return len(answer)
        finally:
            await server.close()

    assert 7_000_000 < asyncio.run(read_much()) < 9_000_000


def batch(size: int, last_delta: int = 0, magic: int = 2) -> bytes:
    return struct.pack("!qiibIhi", 0, size - 12, 0, magic, 0, 0, last_delta) + bytes(size - 27)


@pytest.mark.parametrize("data", [b"x", batch(61)[:-1], batch(40), batch(61, magic=1), batch(61, -1), batch(61) + b"x"])
def test_records_that_are_no_whole_batches_are_refused(data):
    log = MemoryLog({"orders": 1})
    with pytest.raises(CorruptBatch):
        log.append(log.partitions["orders", 0], data)
    assert log.bytes == 0


def test_a_log_reads_from_the_batch_that_holds_the_offset():
    log = MemoryLog({"orders": 1})
    partition = log.partitions["orders", 0]
    assert log.append(partition, batch(61, last_delta=9) + batch(70)) == 0
    assert log.append(partition, batch(80)) == 11
    assert [len(log.read(partition, offset, 1_000)) for offset in (0, 9, 10, 11, 12)] == [211, 211, 150, 80, 0]
    assert len(log.read(partition, 0, 1)) == 61
    assert log.read(partition, 0, 60, at_least_one=False) == b""


def test_ids_that_no_topic_has_are_not_kept_and_come_back_as_they_were():
    topics, unseen = TopicIds(), uuid.uuid4()
    assert topics.id_of(topics.name_of(unseen)) == unseen
    assert topics == TopicIds()


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline, "waited 5 s in vain"
        time.sleep(0.01)


# Brokers that are no better


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"\0\0\xff\xff\xff\xff\x0f", "sent what cannot be read: 4294967294 elements are announced"),
        (b"\0\0\1\0\0\0\0", "sent what cannot be read"),
        (struct.pack("!h", 9999) + b"\1\0\0\0\0\0", "sent what cannot be read: ApiVersionsResponse v3: 9999"),
        (b"", "sent what cannot be read"),
    ],
)
def test_an_answer_that_cannot_be_read_is_one_line_and_nobody_waits_on(answer, message, capfd):
    async def ask_hostile_broker() -> None:
        async def hostile(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
            writer.write(framed(frame[4:8] + answer))
            await reader.read()
            writer.close()

        listener = await asyncio.start_server(hostile, "127.0.0.1", 0)
        async with listener:
            await Cluster.open([listener.sockets[0].getsockname()[:2]], timeout_s=5)

    with pytest.raises(WireError, match=message) as raised:
        asyncio.run(ask_hostile_broker())
    assert "\n" not in str(raised.value)
    assert capfd.readouterr() == ("", "")


def test_a_probe_of_a_broker_takes_such_an_answer_for_no_answer():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"

        def answer_once() -> None:
            connection, _ = listener.accept()
            with connection:
                receive(connection)
                connection.sendall(framed(struct.pack("!ib", 1, 0) + b"\0\0\0\0\xff\xff\xff\xff\x0f"))

        thread = threading.Thread(target=answer_once)
        thread.start()
        try:
            with pytest.raises(OSError, match="does not speak Kafka: 4294967294 elements"):
                probe.metadata(address)
        finally:
            thread.join()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (batch(61), "a record batch cannot be read: Checksum mismatch"),
        (batch(61, magic=1), "a record batch cannot be read: Expected record batch magic byte"),
        (b"\x7f" + b"\xff" * 7 + batch(61, last_delta=5)[8:], "beyond Kafka's offsets"),
    ],
)
def test_records_that_cannot_be_read_are_one_line(data, message):
    with pytest.raises(WireError, match=message):
        decoded(data, 0)


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_a_port_that_does_not_exist_is_one_line(port):
    with pytest.raises(WireError, match=f"cannot connect to 127.0.0.1:{port}"):
        asyncio.run(connect(("127.0.0.1", port), "client"))
