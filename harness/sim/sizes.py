"""How many bytes a request is on the wire, near enough to compare strategies by.

Counted    what grows: names, ids, embedded metadata, lists of partitions. Fixed fields are one allowance a request
"""

from __future__ import annotations

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


def request_bytes(request: Request) -> int:
    size = HEADER + len(request.client_id or "") + len(getattr(request, "member_id", "")) + 24
    if isinstance(request, HeartbeatRequest):
        return size
    match request:
        case JoinGroupRequest():
            size += sum(len(protocol.name) + len(protocol.metadata) + 4 for protocol in request.protocols)
        case SyncGroupRequest():
            size += sum(len(one.member_id) + len(one.assignment) + 4 for one in request.assignments)
        case OffsetCommitRequest():
            size += sum(len(topic.name) + 4 + 20 * len(topic.partitions) for topic in request.topics)
        case OffsetFetchRequest():
            size += sum(
                len(topic.name) + 4 + 4 * len(topic.partition_indexes)
                for group in request.groups
                for topic in group.topics or ()
            )
        case ConsumerGroupHeartbeatRequest():
            size += sum(len(topic) + 2 for topic in request.subscribed_topic_names or ())
            size += sum(20 + 4 * len(one.partitions) for one in request.topic_partitions or ())
    return size
