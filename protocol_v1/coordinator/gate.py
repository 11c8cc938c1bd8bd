"""Answer any request with one error, as a broker does before it looks at the group.

A coordinator that loads its partition or has lost it answers this way. So can a layer in front of it: a server
without authorisation, or a simulated network whose coordinator is on another broker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    Request,
    Response,
    SyncGroupRequest,
    SyncGroupResponse,
)
from rebalance_lab.protocol_v1.common.txn_messages import TxnOffsetCommitRequest
from rebalance_lab.protocol_v1.coordinator.offsets import refused_commit, refused_fetch
from rebalance_lab.protocol_v1.coordinator.transactions import refused_txn_commit


def heartbeat(request: HeartbeatRequest, error: Error) -> Response:
    """Refuse a heartbeat. A loading coordinator answers NONE to whatever it claims: a rejoin now could only fail."""
    loading = error is Error.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=Error.NONE if loading else error)


REFUSALS: dict[type[Request], Callable[[Any, Error], Response]] = {
    JoinGroupRequest: lambda request, error: JoinGroupResponse(error_code=error, member_id=request.member_id),
    SyncGroupRequest: lambda request, error: SyncGroupResponse(error_code=error),
    HeartbeatRequest: heartbeat,
    LeaveGroupRequest: lambda request, error: LeaveGroupResponse(error_code=error),
    OffsetCommitRequest: refused_commit,
    OffsetFetchRequest: refused_fetch,
    TxnOffsetCommitRequest: refused_txn_commit,
    DescribeGroupsRequest: lambda request, error: DescribeGroupsResponse(
        groups=tuple(DescribedGroup(group_id=name, group_state="", error_code=error) for name in request.groups)
    ),
    ListGroupsRequest: lambda request, error: ListGroupsResponse(error_code=error),
    DeleteGroupsRequest: lambda request, error: DeleteGroupsResponse(
        results=tuple(DeletableGroupResult(group_id=name, error_code=error) for name in request.groups_names)
    ),
    OffsetDeleteRequest: lambda request, error: OffsetDeleteResponse(error_code=error),
}


def refusal(request: Request, error: Error) -> Response:
    return REFUSALS[type(request)](request, error)
