"""Put hostile frames through decoders and coordinator in this process: the work of a watched child.

Requests   are decoded and answered by a Server whose coordinator lives as long as the process; its own answers must be
           readable
Answers    are decoded, and become what our clients make of them: messages, metadata, coordinators, records
Allowed    MalformedFrame, and from answers WireError; whatever else is raised is a Failure
Start at   Requests, Answers
"""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from typing import Any, Protocol

from kio.index import load_response_schema

from rebalance_lab.harness.kafka.wire.addresses import WireError
from rebalance_lab.harness.kafka.wire.cluster import Cluster, TopicInfo
from rebalance_lab.harness.kafka.wire.codec import APIS, TopicIds, from_wire
from rebalance_lab.harness.kafka.wire.frame_check import MalformedFrame
from rebalance_lab.harness.kafka.wire.frame_reader import read_answer
from rebalance_lab.harness.kafka.wire.members import fetching
from rebalance_lab.harness.kafka.wire.served.server import Server, serve
from tests.harness.kafka.wire.fuzzing.hostile_frames import HostileFrame, Known

PARKED_KEPT = 200
TOPICS = {"orders": 3, "clicks": 2}
FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR, API_VERSIONS = 1, 2, 3, 10, 18
JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT = 11, 68
NODE = ("127.0.0.1", 1)


class Failure(Exception):
    """An error that no peer may cause."""


class Target(Protocol):
    known: Known

    async def take(self, frame: HostileFrame) -> bool:
        """Return whether the frame could be read."""

    async def close(self) -> None: ...


class Requests:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.known = Known(topic_ids=[server.log.ids.id_of(name) for name in (*TOPICS, "nowhere")])
        self.parked: deque[asyncio.Task[Any]] = deque()
        self.trouble: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: self.trouble.append(describe(context)))

    @classmethod
    async def start(cls) -> Requests:
        return cls(await serve(TOPICS))

    async def take(self, frame: HostileFrame) -> bool:
        answering = asyncio.create_task(self.server.answer(frame.data))
        await asyncio.sleep(0)
        if self.trouble:
            raise Failure(self.trouble[0])
        if not answering.done():
            await self.park(answering)
            return True
        try:
            answer = answering.result()
        except MalformedFrame:
            return False
        if answer is not None:
            self.read_own(frame.data, answer)
        return True

    async def park(self, answering: asyncio.Task[Any]) -> None:
        self.parked.append(answering)
        if len(self.parked) > PARKED_KEPT:
            oldest = self.parked.popleft()
            oldest.cancel()
            await asyncio.wait([oldest])
            if not oldest.cancelled():
                oldest.result()

    def read_own(self, request: bytes, answer: bytes) -> None:
        key, version = int.from_bytes(request[:2]), int.from_bytes(request[2:4])
        if key == API_VERSIONS and version > 4:
            version = 0
        found = read_answer(answer, load_response_schema(key, version))
        if key in (JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT) and found.member_id:
            self.known.member_ids.append(found.member_id)

    async def close(self) -> None:
        for task in self.parked:
            task.cancel()
        await asyncio.gather(*self.parked, return_exceptions=True)
        await self.server.close()


def describe(context: dict[str, Any]) -> str:
    """Describe what asyncio would have printed."""
    error = context.get("exception")
    return "\n".join((context["message"], *(traceback.format_exception(error) if error is not None else ())))


class FakeConnection:
    open = True

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def call(self, request: Any, timeout_s: float | None = None) -> Any:
        return self.answer


class FakeCluster(Cluster):
    """One node, which answers everything with one answer."""

    def __init__(self, key: int, version: int, answer: Any) -> None:
        super().__init__([NODE], "fuzz", 1.0)
        self.connection: Any = FakeConnection(answer)
        self.served = {key: (version, version)}

    async def any_node(self) -> Any:
        return self.connection

    async def node(self, address: Any) -> Any:
        return self.connection


class Answers:
    def __init__(self) -> None:
        self.known = Known()
        self.topics = TopicIds()

    async def take(self, frame: HostileFrame) -> bool:
        try:
            answer = read_answer(frame.data, load_response_schema(frame.key, frame.version))
            await self.use(frame, answer)
        except (MalformedFrame, WireError):
            return False
        return True

    async def use(self, frame: HostileFrame, answer: Any) -> None:
        if frame.key in APIS:
            from_wire(APIS[frame.key][1], answer, self.topics)
            return
        cluster = FakeCluster(frame.key, frame.version, answer)
        if frame.key == API_VERSIONS:
            await cluster.negotiate(cluster.connection)
        elif frame.key == METADATA and frame.version >= 11:
            await cluster.refresh()
        elif frame.key == FIND_COORDINATOR and frame.version >= 4:
            await cluster.find_coordinator("g")
        elif frame.key in (FETCH, LIST_OFFSETS):
            cluster.metadata.nodes[1] = NODE
            await self.use_records(cluster, frame)

    async def use_records(self, cluster: Cluster, frame: HostileFrame) -> None:
        wanted = {("orders", 0): 0, ("orders", 1): 5, ("clicks", 1): 0}
        for name, _ in wanted:
            leaders = {other: 1 for topic, other in wanted if topic == name}
            cluster.metadata.topics[name] = TopicInfo(self.known.topic_ids[0], leaders)
        if frame.key == FETCH:
            await fetching.fetch(cluster, wanted)
        else:
            await fetching.earliest_offsets(cluster, list(wanted))

    async def close(self) -> None:
        return None
