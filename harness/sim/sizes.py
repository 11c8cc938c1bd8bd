"""How many bytes a request is on the wire, near enough to compare strategies by.

Counted    what grows: names, ids, embedded metadata, lists of partitions. Fixed fields are one allowance a request
"""

from __future__ import annotations

from collections.abc import Collection

from protocol_v1.effects.member import TopicPartition
from protocol_v1.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    Request,
    SyncGroupRequest,
)
from protocol_v2.messages import ConsumerGroupHeartbeatRequest

HEADER = 24
"""Length, api, version, correlation id, and the client id's own length."""


A_COMMIT = 20
"""Index, offset, epoch, and metadata of no length."""


def fixed_bytes(client_id: str, member_id: str) -> int:
    return HEADER + len(client_id) + len(member_id) + 24


def request_bytes(request: Request) -> int:
    size = fixed_bytes(request.client_id or "", getattr(request, "member_id", ""))
    if isinstance(request, HeartbeatRequest):
        return size
    match request:
        case ConsumerGroupHeartbeatRequest():
            size += sum([len(topic) + 2 for topic in request.subscribed_topic_names or ()])
            size += sum([20 + 4 * len(one.partitions) for one in request.topic_partitions or ()])
        case JoinGroupRequest():
            size += sum([len(protocol.name) + len(protocol.metadata) + 4 for protocol in request.protocols])
        case SyncGroupRequest():
            size += sum([len(one.member_id) + len(one.assignment) + 4 for one in request.assignments])
        case OffsetCommitRequest():
            size += sum([len(topic.name) + 4 + A_COMMIT * len(topic.partitions) for topic in request.topics])
        case OffsetFetchRequest():
            topics = [topic for group in request.groups for topic in group.topics or ()]
            size += sum([len(topic.name) + 4 + 4 * len(topic.partition_indexes) for topic in topics])
    return size


def offset_commit_bytes(client_id: str, member_id: str, partitions: Collection[TopicPartition]) -> int:
    """Of a request that is not made."""
    names = sum([len(topic) + 4 for topic in {topic for topic, _ in partitions}])
    return fixed_bytes(client_id, member_id) + names + A_COMMIT * len(partitions)
