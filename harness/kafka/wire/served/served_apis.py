"""Answer what a broker answers besides group coordination, as one node with the log in memory.

Given      kio's requests
Returns    plain dicts for kio's responses (../entities.py), in the version of the request
Versions   the last in which topics go by name, for Produce and Fetch; no fetch sessions, no transactions
Start at   VERSIONS, and the methods that HANDLERS names
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from itertools import count
from typing import Any

from kio.schema.errors import ErrorCode

from rebalance_lab.harness.kafka.wire.addresses import Address
from rebalance_lab.harness.kafka.wire.served.memory_log import CorruptBatch, LogFull, MemoryLog, Partition

PRODUCE, FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR, INIT_PRODUCER_ID = 0, 1, 2, 3, 10, 22
VERSIONS: Mapping[int, tuple[int, int]] = {
    PRODUCE: (3, 9),
    FETCH: (4, 12),
    LIST_OFFSETS: (1, 7),
    METADATA: (1, 12),
    FIND_COORDINATOR: (0, 6),
    INIT_PRODUCER_ID: (0, 4),
}
NODE = 1
CLUSTER_ID = "rebalance-lab-served-00"
LATEST, EARLIEST = -1, -2
MAX_FETCH = 8 * 1024 * 1024
"""Of an answer's records, as fetch.max.bytes; a broker's default is larger."""
GROUP = 0
"""What FindCoordinator is asked for."""


class ServedApis:
    def __init__(self, log: MemoryLog, address: Address) -> None:
        self.log, self.address = log, address
        self.producer_ids = count(1)
        self.handlers: Mapping[int, Callable[[Any], Awaitable[dict[str, Any]]]] = {
            PRODUCE: self.produce,
            FETCH: self.fetch,
            LIST_OFFSETS: self.list_offsets,
            METADATA: self.metadata,
            FIND_COORDINATOR: self.find_coordinator,
            INIT_PRODUCER_ID: self.init_producer_id,
        }

    def partition(self, topic: str, number: int) -> Partition | None:
        return self.log.partitions.get((topic, number))

    async def metadata(self, request: Any) -> dict[str, Any]:
        host, port = self.address
        # Before version 4 an empty list asked for nothing, and null for everything: as it is here.
        asked = dict.fromkeys(self.log.topics if request.topics is None else map(self.asked_name, request.topics))
        return {
            "brokers": [{"node_id": NODE, "host": host, "port": port}],
            "cluster_id": CLUSTER_ID,
            "controller_id": NODE,
            "topics": [self.topic_metadata(name) for name in asked],
        }

    def asked_name(self, topic: Any) -> str:
        return topic.name if topic.name is not None else self.log.ids.name_of(topic.topic_id)

    def topic_metadata(self, name: str) -> dict[str, Any]:
        topic = self.log.topics.get(name)
        if topic is None:
            return {"error_code": ErrorCode.unknown_topic_or_partition, "name": name}
        places = {"leader_id": NODE, "leader_epoch": 0, "replica_nodes": [NODE], "isr_nodes": [NODE]}
        return {
            "name": name,
            "topic_id": self.log.ids.id_of(name),
            "partitions": [{"partition_index": number, **places} for number in range(topic.partitions)],
        }

    async def find_coordinator(self, request: Any) -> dict[str, Any]:
        host, port = self.address
        is_group = getattr(request, "key_type", GROUP) == GROUP
        found = {"node_id": NODE, "host": host, "port": port, "error_message": ""}
        if not is_group:
            found |= {"error_code": ErrorCode.coordinator_not_available, "error_message": "no transactions here"}
        keys = getattr(request, "coordinator_keys", ())
        return {**found, "coordinators": [{"key": key, **found} for key in keys]}

    async def init_producer_id(self, request: Any) -> dict[str, Any]:
        if request.transactional_id is not None:
            return {"error_code": ErrorCode.coordinator_not_available, "producer_id": -1, "producer_epoch": -1}
        return {"producer_id": next(self.producer_ids), "producer_epoch": 0}

    async def produce(self, request: Any) -> dict[str, Any]:
        return {
            "responses": [
                {
                    "name": topic.name,
                    "partition_responses": [
                        {"index": each.index, **self.appended(topic.name, each)} for each in topic.partition_data
                    ],
                }
                for topic in request.topic_data
            ]
        }

    def appended(self, topic: str, data: Any) -> dict[str, Any]:
        partition = self.partition(topic, data.index)
        if partition is None:
            return {"error_code": ErrorCode.unknown_topic_or_partition, "base_offset": -1}
        try:
            return {"base_offset": self.log.append(partition, data.records or b""), "log_start_offset": 0}
        except CorruptBatch:
            return {"error_code": ErrorCode.corrupt_message, "base_offset": -1}
        except LogFull:
            return {"error_code": ErrorCode.kafka_storage_error, "base_offset": -1}

    async def list_offsets(self, request: Any) -> dict[str, Any]:
        return {
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [self.listed(topic.name, each) for each in topic.partitions],
                }
                for topic in request.topics
            ]
        }

    def listed(self, topic: str, asked: Any) -> dict[str, Any]:
        partition = self.partition(topic, asked.partition_index)
        found: dict[str, Any] = {"partition_index": asked.partition_index, "timestamp": -1, "leader_epoch": 0}
        if partition is None:
            return {**found, "error_code": ErrorCode.unknown_topic_or_partition, "offset": -1}
        offsets = {LATEST: partition.end_offset, EARLIEST: 0}
        return {**found, "offset": offsets.get(asked.timestamp, -1)}  # by time nothing is found

    async def fetch(self, request: Any) -> dict[str, Any]:
        """Fetch records, and wait for them as long as the client says, if there are none."""
        deadline = asyncio.get_running_loop().time() + request.max_wait / timedelta(seconds=1)
        while True:
            grew = self.log.grew
            answer, size = self.fetched(request)
            left = deadline - asyncio.get_running_loop().time()
            if size >= request.min_bytes or left <= 0:
                return answer
            try:
                # Not wait_for: before Python 3.12 it forgets that it was cancelled if the log grows at that moment.
                async with asyncio.timeout(left):
                    await grew.wait()
            except TimeoutError:
                return answer

    def fetched(self, request: Any) -> tuple[dict[str, Any], int]:
        topics, size, most = [], 0, min(request.max_bytes, MAX_FETCH)
        for topic in request.topics:
            parts = []
            for each in topic.partitions:
                parts.append(self.fetched_partition(topic.topic, each, most - size, is_first=not size))
                size += len(parts[-1]["records"])
            topics.append({"topic": topic.topic, "partitions": parts})
        return {"responses": topics}, size

    def fetched_partition(self, topic: str, asked: Any, most: int, *, is_first: bool) -> dict[str, Any]:
        """`most`: what is left of the answer; its first records may be more, so that a large batch can be read."""
        partition = self.partition(topic, asked.partition)
        found: dict[str, Any] = {"partition_index": asked.partition, "records": b"", "aborted_transactions": None}
        if partition is None:
            return {**found, "error_code": ErrorCode.unknown_topic_or_partition, "high_watermark": -1}
        end = partition.end_offset
        found |= {"high_watermark": end, "last_stable_offset": end, "log_start_offset": 0}
        if not 0 <= asked.fetch_offset <= end:
            return {**found, "error_code": ErrorCode.offset_out_of_range}
        most = min(most, asked.partition_max_bytes)
        return {**found, "records": self.log.read(partition, asked.fetch_offset, most, at_least_one=is_first)}
