"""Encode and decode the bytes that sticky members send along with their subscriptions.

sticky v1                an array of (topic, array of int32 partitions), then int32 generation
sticky v0                the same without the generation
cooperative-sticky v0    int32 generation
Reference  StickyAssignor and CooperativeStickyAssignor of Apache Kafka 4.3.1; big endian, strings with an int16 length
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rebalance_lab.assignors.java.hash_order import HashTable, string_hash
from rebalance_lab.assignors.java.string_order import java_string_order


class StickyUserData(NamedTuple):
    owned: dict[str, list[int]]
    generation: int | None
    """None in version 0."""


def encode_sticky(owned: Mapping[str, Sequence[int]], generation: int) -> bytes:
    """Encode version 1. Topics stand in the order of the HashMap in which Java collects them."""
    topics: HashTable[str] = HashTable(string_hash, sort_key=java_string_order)
    for name, partitions in owned.items():
        # Java asks once per partition; the second call can already grow the table.
        for _ in partitions[:2]:
            topics.compute_if_absent(name)
    parts = [struct.pack(">i", len(topics))]
    for name in topics:
        encoded, partitions = name.encode(), owned[name]
        parts.append(
            struct.pack(f">h{len(encoded)}si{len(partitions)}i", len(encoded), encoded, len(partitions), *partitions)
        )
    parts.append(struct.pack(">i", generation))
    return b"".join(parts)


def decode_sticky(data: bytes | None) -> StickyUserData:
    """Decode as Java's leader does: version 1, else version 0, else nothing owned in generation -1."""
    if not data:
        return StickyUserData({}, None)
    try:
        owned, rest = _decode_owned(data)
    except (ValueError, struct.error, UnicodeDecodeError):
        return StickyUserData({}, -1)
    if len(rest) < 4:
        return StickyUserData(owned, None)
    return StickyUserData(owned, int.from_bytes(rest[:4], "big", signed=True))


def _decode_owned(data: bytes) -> tuple[dict[str, list[int]], bytes]:
    owned: dict[str, list[int]] = {}
    topics, data = _array_length(data)
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", data)
        if not 0 <= length <= len(data) - 2:
            raise ValueError("a string longer than the data")
        name = data[2 : 2 + length].decode(errors="replace")
        count, data = _array_length(data[2 + length :])
        owned.setdefault(name, []).extend(struct.unpack_from(f">{count}i", data))
        data = data[4 * count :]
    return owned, data


def _array_length(data: bytes) -> tuple[int, bytes]:
    (length,) = struct.unpack_from(">i", data)
    if not 0 <= length <= len(data) - 4:
        raise ValueError("an array longer than the data")
    return length, data[4:]


def encode_cooperative(generation: int) -> bytes:
    return struct.pack(">i", generation)


def decode_cooperative(data: bytes | None) -> int | None:
    """Return None without user data; bytes that are too short count as generation -1."""
    if data is None:
        return None
    return int.from_bytes(data[:4], "big", signed=True) if len(data) >= 4 else -1
