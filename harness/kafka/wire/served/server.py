"""Serve our coordinator to real clients, as a broker of one node on a loopback port.

Given      topics with their partitions, and a broker's settings
Returns    a Server with an address to connect to; unmodified consumers and producers do not notice the difference
Instrument the server is for tests: loopback only, MAX_CONNECTIONS connections, bounded memory, nothing durable
Order      as on a broker, a connection's requests are answered one after the other, parked ones included
Start at   serve, Server.answer
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader

from rebalance_lab.harness.kafka.wire.addresses import Address
from rebalance_lab.harness.kafka.wire.broker_connection import encoded, framed, read_frame
from rebalance_lab.harness.kafka.wire.codec import APIS, from_wire, to_wire
from rebalance_lab.harness.kafka.wire.entities import build
from rebalance_lab.harness.kafka.wire.served.memory_log import MemoryLog
from rebalance_lab.harness.kafka.wire.served.served_apis import PRODUCE, VERSIONS, ServedApis
from rebalance_lab.harness.kafka.wire.served.served_coordinator import ServedCoordinator

HOST = "127.0.0.1"
MAX_CONNECTIONS = 200
MAX_REQUEST = 8 * 1024 * 1024
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
        self.connections: set[asyncio.Task[Any]] = set()
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
        try:
            while len(self.connections) <= MAX_CONNECTIONS:
                answer = await self.answer(await read_frame(reader, MAX_REQUEST))
                if answer is not None:
                    writer.write(framed(answer))
                    await writer.drain()
        except (OSError, asyncio.IncompleteReadError, ValueError):
            pass  # the client went, or does not speak Kafka's protocol: a broker drops it as well
        except asyncio.CancelledError:
            pass  # by close(); asyncio would complain about a connection's task that ends so
        finally:
            self.connections.discard(task)
            with suppress(OSError):
                writer.close()

    async def answer(self, frame: bytes) -> bytes | None:
        """Answer a request; None where the client wants no answer."""
        key, version = int.from_bytes(frame[:2]), int.from_bytes(frame[2:4])
        low, high = served_versions().get(key, (0, -1))
        if key == API_VERSIONS and not low <= version <= high:
            return self.api_versions(frame[4:8], 0, ErrorCode.unsupported_version)
        if not low <= version <= high:
            raise ValueError(f"API {key} v{version} is not served")
        schema = load_request_schema(key, version)
        header, size = entity_reader(schema.__header_schema__)(frame, 0)
        if key == API_VERSIONS:
            return self.api_versions(frame[4:8], version, ErrorCode.none)
        request: Any
        request, _ = entity_reader(schema)(frame, size)
        entity = await self.dispatch(key, version, request, header.client_id or "")
        if key == PRODUCE and request.acks == 0:
            return None
        return response_header(type(entity), header.correlation_id) + encoded(entity)

    async def dispatch(self, key: int, version: int, request: Any, client_id: str) -> Any:
        if key in APIS:
            kind, _ = APIS[key]
            header = {"client_id": client_id, "client_host": f"/{HOST}"}
            answer = await self.coordinator.handle(from_wire(kind, request, self.log.ids, header))
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


def served_versions() -> dict[int, tuple[int, int]]:
    groups = {key: (kind.versions[0], kind.versions[-1]) for key, (kind, _) in APIS.items()}
    return {**groups, **VERSIONS, API_VERSIONS: API_VERSIONS_SERVED}


def response_header(kind: Any, correlation_id: int) -> bytes:
    return encoded(kind.__header_schema__(correlation_id=correlation_id))


async def serve(topics: Mapping[str, int], config: Mapping[str, Any] | None = None, port: int = 0) -> Server:
    server = Server(topics, QUICK | dict(config or {}))
    await server.start(port)
    return server
