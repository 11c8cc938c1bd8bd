"""Answer any request with one error, as a broker does while it loads a partition or after it has lost it."""

from __future__ import annotations

from rebalance_lab.protocol_v1.common import messages as v1
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import Request, Response
from rebalance_lab.protocol_v2.common.messages import (
    AlterConfigsResourceResponse,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from rebalance_lab.protocol_v2.coordinator.offsets import refused_commit, refused_fetch


def refusal(request: Request, error: Error) -> Response:
    match request:
        case ConsumerGroupHeartbeatRequest():
            return ConsumerGroupHeartbeatResponse(error_code=error)
        case ConsumerGroupDescribeRequest():
            groups = (DescribedConsumerGroup(group_id=name, error_code=error) for name in request.group_ids)
            return ConsumerGroupDescribeResponse(groups=tuple(groups))
        case IncrementalAlterConfigsRequest():
            named = (resource.resource_name for resource in request.resources)
            responses = (AlterConfigsResourceResponse(resource_name=name, error_code=error) for name in named)
            return IncrementalAlterConfigsResponse(responses=tuple(responses))
        case v1.OffsetCommitRequest():
            return refused_commit(request, error)
        case v1.OffsetFetchRequest():
            return refused_fetch(request, error)
        case _:
            return refused_classic(request, error)


def refused_classic(request: Request, error: Error) -> Response:
    match request:
        case v1.JoinGroupRequest():
            return v1.JoinGroupResponse(error_code=error, member_id=request.member_id)
        case v1.SyncGroupRequest():
            return v1.SyncGroupResponse(error_code=error)
        case v1.HeartbeatRequest():
            # A loading coordinator says NONE to whatever a heartbeat claims: a rejoin now could only fail.
            loading = error is Error.COORDINATOR_LOAD_IN_PROGRESS
            return v1.HeartbeatResponse(error_code=Error.NONE if loading else error)
        case v1.LeaveGroupRequest():
            return v1.LeaveGroupResponse(error_code=error)
        case v1.DescribeGroupsRequest():
            groups = (v1.DescribedGroup(group_id=name, group_state="", error_code=error) for name in request.groups)
            return v1.DescribeGroupsResponse(groups=tuple(groups))
        case v1.DeleteGroupsRequest():
            results = (v1.DeletableGroupResult(group_id=name, error_code=error) for name in request.groups_names)
            return v1.DeleteGroupsResponse(results=tuple(results))
        case v1.OffsetDeleteRequest():
            return v1.OffsetDeleteResponse(error_code=error)
        case _:
            return v1.ListGroupsResponse(error_code=error)
