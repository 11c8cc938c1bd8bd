"""Encode and decode ConsumerProtocol: the metadata in JoinGroup and the assignment in SyncGroup for the type
`consumer`.

Given      a Subscription or Assignment and a version 0-3, or bytes
Returns    bytes, or the value; MalformedBytes where they end too early, count below zero or are not UTF-8
Versions   subscription: 1 adds owned partitions, 2 the generation, 3 the rack; each is a prefix of the next.
           assignment: the same in all. Versions above 3 are read as 3, and what follows is left unread
Reference  ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json in Apache Kafka
Start at   encode_subscription, decode_subscription, encode_assignment, decode_assignment
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import field

from rebalance_lab.protocol_v1.common.errors import MalformedBytes
from rebalance_lab.protocol_v1.common.fast_dataclass import fast_dataclass

PROTOCOL_TYPE = "consumer"
LATEST_VERSION = 3
INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")

Partitions = Mapping[str, tuple[int, ...]]


@fast_dataclass(kw_only=True)
class Subscription:
    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: Partitions = field(default_factory=dict)
    generation_id: int = -1
    rack_id: str | None = None


@fast_dataclass(kw_only=True)
class Assignment:
    assigned_partitions: Partitions = field(default_factory=dict)
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = LATEST_VERSION) -> bytes:
    """Encode a subscription, with topics and owned partitions sorted, so that equal subscriptions are equal bytes."""
    _check_version(version)
    parts = [INT16.pack(version), INT32.pack(len(subscription.topics))]
    parts += [_string(topic) for topic in sorted(subscription.topics)]
    parts.append(_nullable_bytes(subscription.user_data))
    if version >= 1:
        parts += _topic_partitions(subscription.owned_partitions)
    if version >= 2:
        parts.append(INT32.pack(subscription.generation_id))
    if version >= 3:
        parts.append(INT16.pack(-1) if subscription.rack_id is None else _string(subscription.rack_id))
    return b"".join(parts)


def decode_subscription(data: bytes) -> Subscription:
    reader = Reader(data, "subscription")
    version = reader.version()
    topics = tuple(reader.string() for _ in range(reader.count()))
    user_data = reader.nullable_bytes()
    return Subscription(
        topics=topics,
        user_data=user_data,
        owned_partitions=reader.topic_partitions() if version >= 1 else {},
        generation_id=reader.int32() if version >= 2 else -1,
        rack_id=(reader.nullable_string() or None) if version >= 3 else None,
    )


def subscribed_topics(data: bytes) -> tuple[str, ...]:
    """Read the topics alone, as a coordinator does: version 0 is a prefix of every later version, also of unknown ones.

    It does not look at the version's value, and user data must be whole because version 0 ends with it.
    """
    reader = Reader(data, "subscription")
    reader.int16()
    topics = tuple(reader.string() for _ in range(reader.count()))
    reader.nullable_bytes()
    return topics


def encode_assignment(assignment: Assignment, version: int = LATEST_VERSION) -> bytes:
    _check_version(version)
    parts = [INT16.pack(version), *_topic_partitions(assignment.assigned_partitions)]
    parts.append(_nullable_bytes(assignment.user_data))
    return b"".join(parts)


def decode_assignment(data: bytes) -> Assignment:
    reader = Reader(data, "assignment")
    reader.version()
    return Assignment(assigned_partitions=reader.topic_partitions(), user_data=reader.nullable_bytes())


def _check_version(version: int) -> None:
    if not 0 <= version <= LATEST_VERSION:
        raise ValueError(f"ConsumerProtocol is written in versions 0-{LATEST_VERSION}, not {version}")


def _string(text: str) -> bytes:
    data = text.encode()
    if len(data) > 0x7FFF:
        raise ValueError(f"a string of {len(data)} bytes is longer than the 32767 that the format allows")
    return INT16.pack(len(data)) + data


def _nullable_bytes(data: bytes | None) -> bytes:
    return INT32.pack(-1) if data is None else INT32.pack(len(data)) + data


def _topic_partitions(partitions: Mapping[str, Iterable[int]]) -> list[bytes]:
    parts = [INT32.pack(len(partitions))]
    for topic in sorted(partitions):
        numbers = sorted(partitions[topic])
        parts += [_string(topic), struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    return parts


class Reader:
    """Read big-endian values, with a position for messages. A length field alone never makes the reader allocate
    memory.
    """

    def __init__(self, data: bytes, what: str) -> None:
        self.data = data
        self.what = what
        self.position = 0

    def refuse(self, message: str) -> MalformedBytes:
        return MalformedBytes(f"{self.what} at byte {self.position} of {len(self.data)}: {message}")

    def take(self, length: int) -> bytes:
        end = self.position + length
        if end > len(self.data):
            raise self.refuse(f"{length} bytes expected, {len(self.data) - self.position} left")
        piece = self.data[self.position : end]
        self.position = end
        return piece

    def int16(self) -> int:
        number: int = INT16.unpack(self.take(2))[0]
        return number

    def int32(self) -> int:
        number: int = INT32.unpack(self.take(4))[0]
        return number

    def version(self) -> int:
        version = self.int16()
        if version < 0:
            raise self.refuse(f"version {version}")
        return version

    def count(self) -> int:
        """Read a count, and refuse one that the bytes cannot hold: every item of every list here takes at least two
        bytes.
        """
        count = self.int32()
        if count < 0:
            raise self.refuse(f"a list of {count} items")
        if count * 2 > len(self.data) - self.position:
            raise self.refuse(f"a list of {count} items in {len(self.data) - self.position} bytes")
        return count

    def nullable_string(self) -> str | None:
        length = self.int16()
        if length == -1:
            return None
        if length < 0:
            raise self.refuse(f"a string of {length} bytes")
        try:
            return self.take(length).decode()
        except UnicodeDecodeError:
            raise self.refuse("a string that is not UTF-8") from None

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise self.refuse("null where a string must be")
        return text

    def nullable_bytes(self) -> bytes | None:
        length = self.int32()
        if length == -1:
            return None
        if length < 0:
            raise self.refuse(f"{length} bytes of user data")
        return self.take(length)

    def topic_partitions(self) -> dict[str, tuple[int, ...]]:
        """Read partitions by topic. Writers send one entry per topic; a topic that comes twice is read as Kafka's
        consumer does.
        """
        partitions: dict[str, tuple[int, ...]] = {}
        for _ in range(self.count()):
            topic = self.string()
            count = self.count()
            numbers = struct.unpack(f">{count}i", self.take(4 * count))
            partitions[topic] = partitions.get(topic, ()) + numbers
        return partitions
