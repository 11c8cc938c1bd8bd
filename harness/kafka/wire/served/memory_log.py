"""Keep topics and their records in memory: just enough of a log for clients to produce to and to consume from.

Given      record batches as producers send them
Returns    batches with their offsets, from an offset on
Bounded    by MAX_BYTES in all; records beyond that are refused. Nothing is written to disk, and nothing survives
Refused    bytes that are not whole batches of Kafka's present format, as a broker refuses them
Start at   MemoryLog.append, read
"""

from __future__ import annotations

import asyncio
import base64
import uuid
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from rebalance_lab.assignors.model import Topic
from rebalance_lab.harness.kafka.wire.codec import TopicIds

MAX_BYTES = 64 * 1024 * 1024
BATCH_OVERHEAD = 256
"""Bytes of memory that a batch takes beside its own."""
BASE_OFFSET, LENGTH, MAGIC, LAST_DELTA = slice(0, 8), slice(8, 12), 16, slice(23, 27)
BEFORE_LENGTH, BATCH_HEADER = 12, 61
PRESENT_FORMAT = 2


class LogFull(Exception):
    pass


class CorruptBatch(Exception):
    pass


@dataclass(slots=True)
class Partition:
    batches: list[tuple[int, bytes]] = field(default_factory=list)
    """Base offset and bytes."""
    end_offset: int = 0


class MemoryLog:
    def __init__(self, topics: Mapping[str, int]) -> None:
        self.ids = TopicIds()
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.bytes = 0
        self.grew = asyncio.Event()
        self.topics: dict[str, Topic] = {}
        for name, partitions in topics.items():
            self.add_topic(name, partitions)

    def add_topic(self, name: str, partitions: int) -> None:
        """Add a topic, or more partitions of an existing one."""
        if name not in self.topics:
            self.ids.add(name, uuid.uuid4())
        text = base64.urlsafe_b64encode(self.ids.id_of(name).bytes).decode().rstrip("=")
        self.topics[name] = Topic(partitions, id=text)
        for number in range(partitions):
            self.partitions.setdefault((name, number), Partition())

    def append(self, partition: Partition, data: bytes) -> int:
        """Append a batch, and return the offset of its first record. A batch's checksum does not cover offsets, so they
        are written in.
        """
        batches = split(data)
        size = sum(len(batch) + BATCH_OVERHEAD for batch in batches)
        if self.bytes + size > MAX_BYTES:
            raise LogFull
        first = partition.end_offset
        for batch in batches:
            batch[BASE_OFFSET] = partition.end_offset.to_bytes(8)
            partition.batches.append((partition.end_offset, bytes(batch)))
            partition.end_offset += int.from_bytes(batch[LAST_DELTA]) + 1
        self.bytes += size
        self.grew.set()
        self.grew = asyncio.Event()
        return first

    def read(self, partition: Partition, offset: int, max_bytes: int, at_least_one: bool = True) -> bytes:
        """Return whole batches, and at least one where there is one: it may begin before the offset."""
        if offset >= partition.end_offset:
            return b""
        found: list[bytes] = []
        size = 0
        first = bisect_right(partition.batches, offset, key=base_offset) - 1
        for _, batch in islice(partition.batches, first, None):
            size += len(batch)
            if size > max_bytes and (found or not at_least_one):
                break
            found.append(batch)
        return b"".join(found)


def split(data: bytes) -> list[bytearray]:
    """Split records into their batches; all of them have to be whole."""
    batches, at = [], 0
    while at < len(data):
        size = BEFORE_LENGTH + int.from_bytes(data[at + LENGTH.start : at + LENGTH.stop], signed=True)
        if not BATCH_HEADER <= size <= len(data) - at:
            raise CorruptBatch
        batch = bytearray(data[at : at + size])
        if batch[MAGIC] != PRESENT_FORMAT or int.from_bytes(batch[LAST_DELTA], signed=True) < 0:
            raise CorruptBatch
        batches.append(batch)
        at += size
    return batches


def base_offset(entry: tuple[int, bytes]) -> int:
    return entry[0]
