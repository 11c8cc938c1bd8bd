"""Compute how many bytes a request of a 4.3.1 Java consumer is on the wire: its newest version, with its length.

Strings    and lists carry their length in as few bytes as it needs; behind every structure is a byte, for no tags
Checked    against kio's encoding of the same requests
Start at   request_bytes
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache

from rebalance_lab.protocol_v1.common.member_effects import TopicPartition
from rebalance_lab.protocol_v1.common.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    Request,
    SyncGroupRequest,
)
from rebalance_lab.protocol_v2.common.messages import ConsumerGroupHeartbeatRequest

HEADER = 4 + 2 + 2 + 4 + 2 + 1
"""Length, api, version, correlation id, the client id's own length, no tags."""
NUMBER, ID, TAGS = 4, 16, 1


def request_bytes(request: Request) -> int:
    size = HEADER + len((request.client_id or "").encode()) + TAGS
    match request:
        case HeartbeatRequest():
            return size + NUMBER + texts(request.group_id, request.member_id, request.group_instance_id)
        case ConsumerGroupHeartbeatRequest():
            size += texts(request.group_id, request.member_id, request.instance_id, request.rack_id)
            size += texts(request.subscribed_topic_regex, request.server_assignor) + 2 * NUMBER
            size += listed(text(name) for name in request.subscribed_topic_names or ())
            return size + listed(ID + numbers(one.partitions) + TAGS for one in request.topic_partitions or ())
        case JoinGroupRequest():
            size += texts(request.group_id, request.member_id, request.group_instance_id, request.protocol_type)
            size += text(request.reason) + 2 * NUMBER
            return size + listed(text(one.name) + data(one.metadata) + TAGS for one in request.protocols)
        case SyncGroupRequest():
            size += texts(request.group_id, request.member_id, request.group_instance_id) + NUMBER
            size += texts(request.protocol_type, request.protocol_name)
            return size + listed(text(one.member_id) + data(one.assignment) + TAGS for one in request.assignments)
        case LeaveGroupRequest():
            who = [texts(one.member_id, one.group_instance_id, one.reason) + TAGS for one in request.members]
            return size + text(request.group_id) + listed(who)
        case OffsetCommitRequest():
            size += texts(request.group_id, request.member_id, request.group_instance_id) + NUMBER
            return size + listed(
                text(topic.name) + listed(A_COMMIT + text(one.committed_metadata) for one in topic.partitions) + TAGS
                for topic in request.topics
            )
        case OffsetFetchRequest():
            return (
                size
                + 1
                + listed(
                    texts(group.group_id, group.member_id)
                    + NUMBER
                    + listed(text(topic.name) + numbers(topic.partition_indexes) + TAGS for topic in group.topics or ())
                    + TAGS
                    for group in request.groups
                )
            )
        case _:
            raise TypeError(f"nobody sends a coordinator a {type(request).__name__} here")


A_COMMIT = 4 + 8 + 4 + TAGS
"""Index, offset, epoch of the leader; and its metadata."""


def offset_commit_bytes(
    client_id: str, member_id: str, instance_id: str | None, group_id: str, partitions: Collection[TopicPartition]
) -> int:
    """Return the size of a request that is not made, and would have no metadata."""
    each: dict[str, int] = {}
    for topic, _ in partitions:
        each[topic] = each.get(topic, 0) + 1
    size = HEADER + len(client_id.encode()) + TAGS + NUMBER + texts(group_id, member_id, instance_id)
    topics = [text(topic) + length(count) + count * (A_COMMIT + 1) + TAGS for topic, count in each.items()]
    return size + listed(topics)


def length(size: int) -> int:
    """Return the size of a length: seven bits a byte, and 0 means that there is nothing."""
    return 1 if size < 127 else -(-(size + 1).bit_length() // 7)


@lru_cache(maxsize=4_096)
def text(value: str | None) -> int:
    return 1 if value is None else data(value.encode())


def texts(*values: str | None) -> int:
    return sum(map(text, values))


def data(value: bytes) -> int:
    return length(len(value)) + len(value)


def numbers(values: Collection[int]) -> int:
    return length(len(values)) + NUMBER * len(values)


def listed(sizes: Iterable[int]) -> int:
    found = [*sizes]
    return length(len(found)) + sum(found)
