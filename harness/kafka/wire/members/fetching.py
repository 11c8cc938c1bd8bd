"""Fetch records from their leaders, with just enough of ListOffsets and Fetch for our members to consume.

Given      partitions with the offsets to read from
Returns    what was read, by partition, with the offset that comes next; None where a leader is gone or has moved
Errors     WireError in one line for records that cannot be read
Left out   fetch sessions, compression (such a batch is passed over unread, its offsets are right), isolation levels
Start at   fetch, earliest_offsets
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kio.index import load_payload_module
from kio.records.readers import read_batch
from kio.schema.errors import ErrorCode
from kio.serial.errors import SerialError
from kio.static.constants import EntityType

from rebalance_lab.harness.kafka.wire.addresses import WireError
from rebalance_lab.harness.kafka.wire.cluster import Cluster
from rebalance_lab.protocol_v1.common.member_effects import TopicPartition

FETCH, FETCH_VERSION = 1, 12
"""The last version in which topics go by name."""
LIST_OFFSETS, LIST_OFFSETS_VERSION = 2, 7
EARLIEST = -2
MAX_WAIT_MS = 250
MAX_BYTES = 4 * 1024 * 1024
HEADER_BYTES = 61
"""Of a record batch, before its records."""
COMPRESSION_BITS, CONTROL_BIT = 0x07, 0x20
MOST_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    partition: TopicPartition
    values: Sequence[bytes | None]
    next_offset: int


async def fetch(cluster: Cluster, wanted: Mapping[TopicPartition, int]) -> list[Fetched] | None:
    by_leader = led_by(cluster, wanted)
    if by_leader is None:
        return None
    answers = await asyncio.gather(
        *(
            ask(cluster, node, fetch_request({each: wanted[each] for each in asked}))
            for node, asked in by_leader.items()
        )
    )
    if None in answers:
        return None
    found: list[Fetched] = []
    for answer in answers:
        for topic in answer.responses:
            for part in topic.partitions:
                if part.error_code is not ErrorCode.none:
                    return None
                partition = (topic.topic, part.partition_index)
                if partition not in wanted:
                    continue
                values, next_offset = decoded(part.records or b"", wanted[partition])
                if next_offset > wanted[partition]:
                    found.append(Fetched(partition=partition, values=values, next_offset=next_offset))
    return found if None not in answers else None


async def earliest_offsets(cluster: Cluster, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """Return those offsets that could be had now."""
    found: dict[TopicPartition, int] = {}
    for node, asked in (led_by(cluster, partitions) or {}).items():
        answer = await ask(cluster, node, list_offsets_request(asked))
        for topic in answer.topics if answer is not None else ():
            for part in topic.partitions:
                if part.error_code is ErrorCode.none:
                    found[(topic.name, part.partition_index)] = part.offset
    return found


def led_by(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]] | None:
    """Return partitions by leader, or None while one of them has no leader that is known."""
    found: dict[int, list[TopicPartition]] = {}
    for name, number in partitions:
        topic = cluster.metadata.topics.get(name)
        leader = topic.leaders.get(number, -1) if topic is not None else -1
        if leader not in cluster.metadata.nodes:
            return None
        found.setdefault(leader, []).append((name, number))
    return found


async def ask(cluster: Cluster, node: int, request: Any) -> Any:
    """Ask a node, or return None where it is not there."""
    try:
        return await (await cluster.node(cluster.metadata.nodes[node])).call(request, cluster.timeout_s)
    except (WireError, KeyError):
        return None


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name, number in partitions:
        found.setdefault(name, []).append(number)
    return found


def fetch_request(wanted: Mapping[TopicPartition, int]) -> Any:
    schema: Any = load_payload_module(FETCH, FETCH_VERSION, EntityType.request)
    return schema.FetchRequest(
        max_wait=timedelta(milliseconds=MAX_WAIT_MS),
        min_bytes=1,
        topics=tuple(
            schema.FetchTopic(
                topic=name,
                partitions=tuple(
                    schema.FetchPartition(
                        partition=number, fetch_offset=wanted[(name, number)], partition_max_bytes=MAX_BYTES
                    )
                    for number in numbers
                ),
            )
            for name, numbers in by_topic(wanted).items()
        ),
        forgotten_topics_data=(),
    )


def list_offsets_request(partitions: Sequence[TopicPartition]) -> Any:
    schema: Any = load_payload_module(LIST_OFFSETS, LIST_OFFSETS_VERSION, EntityType.request)
    return schema.ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
        topics=tuple(
            schema.ListOffsetsTopic(
                name=name,
                partitions=tuple(
                    schema.ListOffsetsPartition(partition_index=number, timestamp=EARLIEST) for number in numbers
                ),
            )
            for name, numbers in by_topic(partitions).items()
        ),
    )


def decoded(data: bytes, from_offset: int) -> tuple[list[bytes | None], int]:
    """Return the values from that offset on, and the offset that comes next. A broker may cut the last batch off."""
    values: list[bytes | None] = []
    at, next_offset = 0, from_offset
    while at + HEADER_BYTES <= len(data):
        size = 12 + int.from_bytes(data[at + 8 : at + 12])
        if at + size > len(data):
            break
        attributes = int.from_bytes(data[at + 21 : at + 23])
        last_delta = int.from_bytes(data[at + 23 : at + 27])
        next_offset = max(next_offset, int.from_bytes(data[at : at + 8]) + last_delta + 1)
        if next_offset > MOST_OFFSET:
            raise WireError(f"a record batch ends at offset {next_offset - 1}, beyond Kafka's offsets")
        if not attributes & (COMPRESSION_BITS | CONTROL_BIT):
            values += [record.value for record in records_of(data[at : at + size]) if record.offset >= from_offset]
        at += size
    return values, next_offset


def records_of(batch: bytes) -> Sequence[Any]:
    try:
        found, _ = read_batch(batch, 0)
    except (SerialError, ValueError, OverflowError, OSError) as error:  # OSError: a time that this computer cannot have
        raise WireError(f"a record batch cannot be read: {error}") from None
    return found.records
