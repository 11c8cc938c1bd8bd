"""Check the form of a classic request, as a broker does before it asks the coordinator of the group.

Given      a request, and the least and the most session timeout that the broker allows
Returns    Error.NONE, or the error of the first check that fails
Order      Kafka's: mandatory fields, then the group id, then the session timeout. A loading coordinator, and a group of
           either kind, therefore answers a malformed request alike
Reference  KafkaApis and GroupCoordinatorService in Apache Kafka 4.3.1
"""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetDeleteRequest,
    Request,
    SyncGroupRequest,
)

PROTOCOL_MANDATORY_SINCE = 5
"""From this version on, SyncGroup names the protocol type and the protocol (KIP-559)."""
NEEDS_GROUP_ID = (JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, LeaveGroupRequest, OffsetDeleteRequest)


def form_error(request: Request, least_session_ms: int, most_session_ms: int) -> Error:
    if isinstance(request, SyncGroupRequest) and lacks_protocol(request):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    if isinstance(request, NEEDS_GROUP_ID) and not request.group_id:
        return Error.INVALID_GROUP_ID
    if isinstance(request, JoinGroupRequest) and not least_session_ms <= request.session_timeout_ms <= most_session_ms:
        return Error.INVALID_SESSION_TIMEOUT
    return Error.NONE


def lacks_protocol(request: SyncGroupRequest) -> bool:
    if request.version < PROTOCOL_MANDATORY_SINCE:
        return False
    return request.protocol_type is None or request.protocol_name is None


def rebalance_timeout_of(request: JoinGroupRequest) -> int:
    """Return the rebalance timeout. Version 0 has none: the session timeout serves for both."""
    return request.session_timeout_ms if request.version == 0 else request.rebalance_timeout_ms
