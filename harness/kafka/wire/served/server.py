"""Serve our coordinator to real clients, as a broker of one node on a loopback port.

Given      topics with their partitions, and a broker's settings
Returns    a Server with an address to connect to; unmodified consumers and producers do not notice the difference
Instrument the server is for tests: loopback only, MAX_CONNECTIONS connections, bounded memory, nothing durable
Order      as on a broker, a connection's requests are answered one after the other, parked ones included
Garbage    as on a broker, a connection is closed after a frame that cannot be read; intake.py bounds what is half read
Start at   serve, Server.answer
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode

from rebalance_lab.harness.kafka.wire.addresses import Address
from rebalance_lab.harness.kafka.wire.broker_connection import encoded, framed
from rebalance_lab.harness.kafka.wire.codec import APIS, from_wire, to_wire
from rebalance_lab.harness.kafka.wire.entities import build
from rebalance_lab.harness.kafka.wire.frame_check import MalformedFrame
from rebalance_lab.harness.kafka.wire.frame_reader import read_request
from rebalance_lab.harness.kafka.wire.served.intake import FRAME_S, MAX_WAITING, Intake, WaitingBytes, note_end
from rebalance_lab.harness.kafka.wire.served.memory_log import MemoryLog
from rebalance_lab.harness.kafka.wire.served.served_apis import PRODUCE, VERSIONS, ServedApis
from rebalance_lab.harness.kafka.wire.served.served_coordinator import ServedCoordinator
from rebalance_lab.protocol_v1.common.messages import DescribeGroupsRequest, Request
from rebalance_lab.protocol_v2.common.messages import ConsumerGroupDescribeRequest

HOST = "127.0.0.1"
MAX_CONNECTIONS = 200
FAILURES_KEPT = 100
API_BYTES = 8
"""A header's key, version and correlation id: less than this cannot even be answered with an error."""
API_VERSIONS = 18
API_VERSIONS_SERVED = (0, 4)
QUICK = {
    "group.initial.rebalance.delay.ms": 100,
    "group.min.session.timeout.ms": 100,
    "group.consumer.session.timeout.ms": 5_000,
    "group.consumer.min.session.timeout.ms": 100,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.assignment.interval.ms": 0,
}
"""Settings under which a test does not wait."""


class Server:
    def __init__(self, topics: Mapping[str, int], config: Mapping[str, Any]) -> None:
        self.log = MemoryLog(topics)
        self.coordinator = ServedCoordinator(config, self.log.topics)
        self.connections: set[asyncio.Task[None]] = set()
        self.waiting = WaitingBytes(MAX_WAITING)
        self.failures: deque[Exception] = deque(maxlen=FAILURES_KEPT)
        """The latest errors of this program itself; their connections were closed."""
        self.listener: asyncio.Server | None = None
        self.apis: ServedApis | None = None

    @property
    def address(self) -> Address:
        assert self.listener is not None
        host, port = self.listener.sockets[0].getsockname()[:2]
        return host, port

    @property
    def bootstrap(self) -> str:
        host, port = self.address
        return f"{host}:{port}"

    async def start(self, port: int = 0) -> None:
        self.listener = await asyncio.start_server(self.connected, HOST, port)
        self.apis = ServedApis(self.log, self.address)

    def grow(self, topic: str, partitions: int) -> None:
        self.log.add_topic(topic, partitions)
        self.coordinator.update_topics(self.log.topics)

    async def close(self) -> None:
        assert self.listener is not None
        self.listener.close()
        for task in self.connections:
            task.cancel()
        await asyncio.gather(*self.connections, return_exceptions=True)
        self.coordinator.close()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.connections.add(task)
        intake = Intake(task, reader, self.waiting)
        try:
            # Only the newcomer is one too many: a flood of connections closes none that is there.
            has_place = len(self.connections) <= MAX_CONNECTIONS
            while has_place:
                answer = await self.answer_unless_gone(await intake.take_frame(), intake)
                if answer is not None:
                    self.waiting.add(task, len(answer))
                    writer.write(framed(answer))
                    async with asyncio.timeout(FRAME_S):
                        await writer.drain()
                self.waiting.release(task)
        except (OSError, asyncio.IncompleteReadError, MalformedFrame):
            pass  # the client went, is too slow, or does not speak Kafka's protocol: a broker drops it as well
        except asyncio.CancelledError:
            pass  # by close() or for its bytes; asyncio would complain about a connection's task that ends so
        except Exception as error:  # noqa: BLE001 - one connection's trouble is not that of the others
            self.failures.append(error)
        finally:
            self.connections.discard(task)
            intake.close()
            close_writer(writer)

    async def answer_unless_gone(self, frame: bytes, intake: Intake) -> bytes | None:
        """Answer a frame. A parked request of a client that has gone would keep a connection from another client."""
        answering, next_byte = asyncio.create_task(self.answer(frame)), intake.next_byte()
        answering.add_done_callback(note_end)
        try:
            await asyncio.wait((answering, next_byte), return_when=asyncio.FIRST_COMPLETED)
            if not answering.done() and not next_byte.result():
                raise asyncio.IncompleteReadError(b"", 0)
            return await answering
        finally:
            answering.cancel()

    async def answer(self, frame: bytes) -> bytes | None:
        """Answer a request; None where the client wants no answer."""
        if len(frame) < API_BYTES:
            raise MalformedFrame(f"a request of {len(frame)} bytes")
        key, version = int.from_bytes(frame[:2]), int.from_bytes(frame[2:4])
        low, high = served_versions().get(key, (0, -1))
        if key == API_VERSIONS and not low <= version <= high:
            return self.api_versions(frame[4:8], 0, ErrorCode.unsupported_version)
        if not low <= version <= high:
            raise MalformedFrame(f"API {key} v{version} is not served")
        header, request = read_request(frame, load_request_schema(key, version))
        if key == API_VERSIONS:
            return self.api_versions(frame[4:8], version, ErrorCode.none)
        entity = await self.dispatch(key, version, request, header.client_id or "", len(frame))
        if key == PRODUCE and request.acks == 0:
            return None
        return response_header(type(entity), header.correlation_id) + encoded(entity, MAX_WAITING)

    async def dispatch(self, key: int, version: int, request: Any, client_id: str, size: int) -> Any:
        if key in APIS:
            kind, _ = APIS[key]
            header = {"client_id": client_id, "client_host": f"/{HOST}"}
            asked = without_repeats(from_wire(kind, request, self.log.ids, header))
            answer = await self.coordinator.handle(asked, size)
            return to_wire(answer, version, self.log.ids)
        assert self.apis is not None
        return build(load_response_schema(key, version), await self.apis.handlers[key](request))

    def api_versions(self, correlation_id: bytes, version: int, error: ErrorCode) -> bytes:
        keys = [
            {"api_key": key, "min_version": low, "max_version": high}
            for key, (low, high) in sorted(served_versions().items())
        ]
        schema = load_response_schema(API_VERSIONS, version)
        return correlation_id + encoded(build(schema, {"error_code": error, "api_keys": keys}))


@cache
def served_versions() -> Mapping[int, tuple[int, int]]:
    groups = {key: (kind.versions[0], kind.versions[-1]) for key, (kind, _) in APIS.items()}
    return {**groups, **VERSIONS, API_VERSIONS: API_VERSIONS_SERVED}


def without_repeats(request: Request) -> Request:
    """Describe a group once, however often a request names it: its answer would be as many times as large."""
    if isinstance(request, DescribeGroupsRequest):
        return replace(request, groups=tuple(dict.fromkeys(request.groups)))
    if isinstance(request, ConsumerGroupDescribeRequest):
        return replace(request, group_ids=tuple(dict.fromkeys(request.group_ids)))
    return request


def close_writer(writer: asyncio.StreamWriter) -> None:
    """Close a connection at once: an answer that its client does not read would stay in memory."""
    with suppress(OSError):
        if writer.transport.get_write_buffer_size():
            writer.transport.abort()
        else:
            writer.close()


def response_header(kind: Any, correlation_id: int) -> bytes:
    return encoded(kind.__header_schema__(correlation_id=correlation_id))


async def serve(topics: Mapping[str, int], config: Mapping[str, Any] | None = None, port: int = 0) -> Server:
    server = Server(topics, QUICK | dict(config or {}))
    await server.start(port)
    return server
