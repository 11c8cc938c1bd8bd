"""Define the requests and responses of the consumer group protocol (KIP-848), with Kafka's fields in snake case.

Topics     Kafka names topics by id here; the lab keeps names (`topic_name`). A member can only own what it was given,
           so a name that was deleted and created again means the incarnation that the member holds
Unchanged  in a heartbeat None (-1 for the rebalance timeout) says "as before"
Reused     JoinGroup, SyncGroup, Heartbeat, LeaveGroup and the offset requests are protocol_v1's
Reference  Kafka 4.3.1, clients/src/main/resources/common/message
Start at   REQUESTS, the table of what this coordinator serves
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from rebalance_lab.protocol_v1.common import messages as v1
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.fast_dataclass import fast_dataclass
from rebalance_lab.protocol_v1.common.messages import Request, Response, wire

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STEP_OUT_EPOCH = -2
"""A static member leaves for a while: its partitions stay reserved until its session ends."""
UNCHANGED_TIMEOUT = -1


@fast_dataclass()
class TopicPartitions:
    topic_name: str
    partitions: tuple[int, ...]


@fast_dataclass(kw_only=True)
class ConsumerGroupHeartbeatRequest(Request):
    versions: ClassVar[range] = range(0, 2)
    latest: ClassVar[int] = 1

    version: int = 1
    group_id: str
    member_id: str = ""
    """Made by the client from version 1 on; in version 0 empty on a first join, and the coordinator makes one."""
    member_epoch: int
    """The member's epoch, or 0 to join, -1 to leave, -2 to step out."""
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = UNCHANGED_TIMEOUT
    """How long the member may take to give partitions up."""
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = wire(since=1, default=None)
    """The empty string clears it."""
    server_assignor: str | None = None
    topic_partitions: tuple[TopicPartitions, ...] | None = None
    """Everything that the member owns now; None says nothing, and then nothing counts as given up."""


@fast_dataclass()
class HeartbeatAssignment:
    """Carry the member's whole assignment, never a difference."""

    topic_partitions: tuple[TopicPartitions, ...] = ()


@fast_dataclass(kw_only=True)
class ConsumerGroupHeartbeatResponse(Response):
    throttle_time_ms: int = 0
    error_code: Error = Error.NONE
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: HeartbeatAssignment | None = None
    """None where it is what the member was told before."""


@fast_dataclass(kw_only=True)
class ConsumerGroupDescribeRequest(Request):
    versions: ClassVar[range] = range(0, 2)
    latest: ClassVar[int] = 1

    version: int = 1
    group_ids: tuple[str, ...]
    include_authorized_operations: bool = False


@fast_dataclass(kw_only=True)
class DescribedConsumerMember:
    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str
    assignment: HeartbeatAssignment
    """What it holds, what it was told to give up included."""
    target_assignment: HeartbeatAssignment
    member_type: int = wire(since=1, default=1)
    """0: a classic member, 1: a consumer."""


@fast_dataclass(kw_only=True)
class DescribedConsumerGroup:
    error_code: Error = Error.NONE
    error_message: str | None = None
    group_id: str
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    """The one most members ask for now, which need not be the one that computed the target."""
    members: tuple[DescribedConsumerMember, ...] = ()
    authorized_operations: int = -(2**31)


@fast_dataclass(kw_only=True)
class ConsumerGroupDescribeResponse(Response):
    throttle_time_ms: int = 0
    groups: tuple[DescribedConsumerGroup, ...] = ()


@fast_dataclass(kw_only=True)
class AlterableConfig:
    name: str
    config_operation: int = 0
    """0 sets, 1 deletes."""
    value: str | None = None


@fast_dataclass(kw_only=True)
class AlterConfigsResource:
    resource_type: int = 32
    """32 is a group, the only resource that a group coordinator knows."""
    resource_name: str
    configs: tuple[AlterableConfig, ...]


@fast_dataclass(kw_only=True)
class IncrementalAlterConfigsRequest(Request):
    """Give one group a session timeout, heartbeat interval or assignment interval of its own, as an administrator
    does.
    """

    versions: ClassVar[range] = range(0, 2)
    latest: ClassVar[int] = 1

    version: int = 1
    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool = False


@fast_dataclass(kw_only=True)
class AlterConfigsResourceResponse:
    error_code: Error = Error.NONE
    error_message: str | None = None
    resource_type: int = 32
    resource_name: str


@fast_dataclass(kw_only=True)
class IncrementalAlterConfigsResponse(Response):
    throttle_time_ms: int = 0
    responses: tuple[AlterConfigsResourceResponse, ...] = ()


REQUESTS: Mapping[str, type[Request]] = MappingProxyType(
    {
        "ConsumerGroupHeartbeat": ConsumerGroupHeartbeatRequest,
        "ConsumerGroupDescribe": ConsumerGroupDescribeRequest,
        "IncrementalAlterConfigs": IncrementalAlterConfigsRequest,
        **v1.REQUESTS,
    }
)
"""What a coordinator of consumer groups serves, by Kafka's name for it."""
