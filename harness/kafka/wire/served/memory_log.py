"""Keep topics and their records in memory: just enough of a log for clients to produce to and to consume from.

Given      record batches as producers send them
Returns    batches with their offsets, from an offset on
Bounded    by MAX_BYTES in all; records beyond that are refused. Nothing is written to disk, and nothing survives
Start at   MemoryLog.append, read
"""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from rebalance_lab.assignors.model import Topic
from rebalance_lab.harness.kafka.wire.codec import TopicIds

MAX_BYTES = 64 * 1024 * 1024
BASE_OFFSET, LAST_DELTA, BATCH_HEADER = slice(0, 8), slice(23, 27), 61


class LogFull(Exception):
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
        if self.bytes + len(data) > MAX_BYTES:
            raise LogFull
        first, at = partition.end_offset, 0
        while at + BATCH_HEADER <= len(data):
            size = 12 + int.from_bytes(data[at + 8 : at + 12])
            batch = bytearray(data[at : at + size])
            batch[BASE_OFFSET] = partition.end_offset.to_bytes(8)
            partition.batches.append((partition.end_offset, bytes(batch)))
            partition.end_offset += int.from_bytes(batch[LAST_DELTA]) + 1
            at += size
        self.bytes += len(data)
        self.grew.set()
        self.grew = asyncio.Event()
        return first

    def read(self, partition: Partition, offset: int, max_bytes: int) -> bytes:
        """Return whole batches, and at least one where there is one: it may begin before the offset."""
        found: list[bytes] = []
        for place, (_, batch) in enumerate(partition.batches):
            following = partition.batches[place + 1][0] if place + 1 < len(partition.batches) else partition.end_offset
            if following <= offset:
                continue
            if found and sum(map(len, found)) + len(batch) > max_bytes:
                break
            found.append(batch)
        return b"".join(found)
