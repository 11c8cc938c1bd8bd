"""Keep what a client knows of a cluster: its versions, nodes and topics, and which node coordinates a group.

Given      bootstrap addresses
Returns    Cluster: connections to nodes by address, requests in a version that both sides know
Errors     WireError in one line, within the timeout; the first bootstrap address that answers will do
Start at   Cluster.open
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kio.index import load_request_schema
from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload

from rebalance_lab.harness.kafka.wire.addresses import Address, WireError
from rebalance_lab.harness.kafka.wire.broker_connection import Connection, connect
from rebalance_lab.harness.kafka.wire.codec import TopicIds

API_VERSIONS, METADATA, FIND_COORDINATOR = 18, 3, 10
USED_VERSIONS: Mapping[int, tuple[int, int]] = {METADATA: (11, 12), FIND_COORDINATOR: (4, 6)}
"""Topic ids are in the metadata, and many coordinators are asked for at once: Kafka 3.0 has both."""
NO_ID = uuid.UUID(int=0)
"""Of a topic that is older than topic ids."""
TIMEOUT_S = 10.0
RETRY_S = 0.1
RETRIABLE = (ErrorCode.coordinator_not_available, ErrorCode.coordinator_load_in_progress)


@dataclass(frozen=True, slots=True)
class TopicInfo:
    topic_id: uuid.UUID
    leaders: Mapping[int, int]
    """By partition: the node."""


@dataclass(slots=True)
class Metadata:
    nodes: dict[int, Address] = field(default_factory=dict)
    topics: dict[str, TopicInfo] = field(default_factory=dict)


class Cluster:
    def __init__(self, bootstrap: Sequence[Address], client_id: str, timeout_s: float) -> None:
        self.bootstrap, self.client_id, self.timeout_s = bootstrap, client_id, timeout_s
        self.connections: dict[Address, Connection] = {}
        self.served: dict[int, tuple[int, int]] = {}
        """By key: the versions of the broker that was asked first."""
        self.ids = TopicIds()
        self.metadata = Metadata()

    @classmethod
    async def open(
        cls, bootstrap: Sequence[Address], client_id: str = "rebalance-lab", timeout_s: float = TIMEOUT_S
    ) -> Cluster:
        cluster = cls(bootstrap, client_id, timeout_s)
        try:
            await cluster.negotiate(await cluster.any_node())
            await cluster.refresh()
        except BaseException:
            await cluster.close()
            raise
        return cluster

    async def node(self, address: Address) -> Connection:
        """Return the shared connection to that node, opened (again) if need be. Parked requests go elsewhere."""
        connection = self.connections.get(address)
        if connection is None or not connection.open:
            connection = self.connections[address] = await connect(address, self.client_id, min(self.timeout_s, 5.0))
        return connection

    async def any_node(self) -> Connection:
        problems = []
        for address in dict.fromkeys((*self.metadata.nodes.values(), *self.bootstrap)):
            try:
                return await self.node(address)
            except WireError as error:
                problems.append(str(error))
        raise WireError("; ".join(problems))

    async def negotiate(self, connection: Connection) -> None:
        request: Any = load_request_schema(API_VERSIONS, 3)
        asked = request(client_software_name="rebalance-lab", client_software_version="1")
        answer = await connection.call(asked, self.timeout_s)
        self.served = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}

    def version(self, key: int, low: int, high: int) -> int:
        """Return the newest version that both know."""
        first, last = self.served.get(key, (0, -1))
        if max(first, low) > min(last, high):
            raise WireError(f"{self.bootstrap[0][0]}:{self.bootstrap[0][1]} does not serve API {key} in {low}-{high}")
        return min(last, high)

    def request(self, key: int, **values: Any) -> RequestPayload:
        kind: Any = load_request_schema(key, self.version(key, *USED_VERSIONS[key]))
        request: RequestPayload = kind(**values)
        return request

    async def refresh(self) -> Metadata:
        """Read all topics, by one node's metadata."""
        asked = self.request(
            METADATA, topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
        )
        answer = await (await self.any_node()).call(asked, self.timeout_s)
        self.metadata = Metadata(
            nodes={each.node_id: (each.host, int(each.port)) for each in answer.brokers},
            topics={
                each.name: TopicInfo(
                    each.topic_id or NO_ID, {part.partition_index: part.leader_id for part in each.partitions}
                )
                for each in answer.topics
                if each.error_code is ErrorCode.none and each.name is not None and not each.is_internal
            },
        )
        for name, topic in self.metadata.topics.items():
            self.ids.add(name, topic.topic_id)
        return self.metadata

    async def find_coordinator(self, group: str) -> tuple[ErrorCode, Address]:
        """Ask one node one question, as a member asks it."""
        asked = self.request(FIND_COORDINATOR, key_type=0, coordinator_keys=(group,))
        answer = await (await self.any_node()).call(asked, self.timeout_s)
        found = next((each for each in answer.coordinators if each.key == group), None)
        if found is None:
            raise WireError(f"{self.bootstrap[0][0]}:{self.bootstrap[0][1]} names no coordinator for group {group!r}")
        return found.error_code, (found.host, int(found.port))

    async def coordinator_of(self, group: str) -> Address:
        """Ask until there is a coordinator: a new cluster creates __consumer_offsets when it is first asked."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout_s
        while True:
            error, address = await self.find_coordinator(group)
            if error is ErrorCode.none:
                return address
            if error not in RETRIABLE or loop.time() > deadline:
                raise WireError(f"no coordinator for group {group!r}: {error.name.upper()}")
            await asyncio.sleep(RETRY_S)

    async def close(self) -> None:
        await asyncio.gather(*(connection.close() for connection in self.connections.values()))
