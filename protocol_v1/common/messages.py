"""Define the requests and responses of the classic protocol, with the fields of Kafka's protocol in snake case.

Versions   a field knows from and until which version it is on the wire (`wire(since=..., until=...)`). A message is
           built with all its fields, and the encoder leaves out those that the version does not have
Header     every request carries what Kafka's header does: version, client, correlation id. A Reply names its request,
           so two equal requests are told apart by their correlation ids
Reference  Kafka 4.3.1, clients/src/main/resources/common/message
Start at   REQUESTS, the table of what a classic coordinator serves
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, field
from types import MappingProxyType
from typing import Any, ClassVar

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.fast_dataclass import fast_dataclass


def wire(
    *,
    since: int = 0,
    until: int = 999,
    default: Any = MISSING,
    nullable_since: int = 0,
    ignorable: bool = False,
    renamed_since: tuple[int, str] | None = None,
) -> Any:
    """Define a field's place in the versions of its message.

    `nullable_since`: older versions write null as "". `ignorable`: an older version drops a given value in silence, as
    Kafka's clients do. `renamed_since`: from that version on the field has another name.
    """
    names = {"since": since, "until": until, "nullable_since": nullable_since}
    metadata: dict[str, Any] = {**names, "ignorable": ignorable, "renamed_since": renamed_since}
    if default is MISSING:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


def topic_name() -> Any:
    """Define a topic's name. From version 10 on Kafka names topics by id in the offset requests; the lab keeps
    names.
    """
    return wire(renamed_since=(10, "topic_name"))


@fast_dataclass(kw_only=True)
class Request:
    """Hold what Kafka's request header holds. Requests compare by value; the correlation id tells two equal ones
    apart.
    """

    versions: ClassVar[range]
    latest: ClassVar[int]
    """The newest version that a 4.3.1 Java consumer sends."""

    version: int
    correlation_id: int = 0
    client_id: str = "client"
    client_host: str = "/127.0.0.1"


@fast_dataclass(kw_only=True)
class Response:
    """Carry what a coordinator answers."""


@fast_dataclass(kw_only=True)
class Protocol:
    """Hold one entry of a member's ordered list: an assignor's name and the bytes it wants the leader to see."""

    name: str
    metadata: bytes


@fast_dataclass(kw_only=True)
class JoinGroupRequest(Request):
    versions: ClassVar[range] = range(0, 10)
    latest: ClassVar[int] = 9

    version: int = 9
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int = wire(since=1, default=-1, ignorable=True)
    """How long the coordinator waits for this member to rejoin or to sync. Version 0 has none: the session timeout."""
    member_id: str = ""
    """Empty on a first join; from version 4 on the answer is MEMBER_ID_REQUIRED with the id to come back with."""
    group_instance_id: str | None = wire(since=5, default=None, ignorable=True)
    protocol_type: str
    protocols: tuple[Protocol, ...]
    reason: str | None = wire(since=8, default=None, ignorable=True)


@fast_dataclass(kw_only=True)
class JoinGroupResponseMember:
    member_id: str
    group_instance_id: str | None = wire(since=5, default=None)
    metadata: bytes


@fast_dataclass(kw_only=True)
class JoinGroupResponse(Response):
    throttle_time_ms: int = wire(since=2, default=0)
    error_code: Error = Error.NONE
    generation_id: int = -1
    protocol_type: str | None = wire(since=7, default=None)
    protocol_name: str | None = wire(nullable_since=7, default=None)
    leader: str = ""
    skip_assignment: bool = wire(since=9, default=False)
    """KIP-814: the leader is to watch the group's topics but not to assign; its SyncGroup answers what is stored."""
    member_id: str = ""
    members: tuple[JoinGroupResponseMember, ...] = ()


@fast_dataclass(kw_only=True)
class SyncGroupRequestAssignment:
    member_id: str
    assignment: bytes


@fast_dataclass(kw_only=True)
class SyncGroupRequest(Request):
    versions: ClassVar[range] = range(0, 6)
    latest: ClassVar[int] = 5

    version: int = 5
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = wire(since=3, default=None, ignorable=True)
    protocol_type: str | None = wire(since=5, default=None, ignorable=True)
    protocol_name: str | None = wire(since=5, default=None, ignorable=True)
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()


@fast_dataclass(kw_only=True)
class SyncGroupResponse(Response):
    throttle_time_ms: int = wire(since=1, default=0)
    error_code: Error = Error.NONE
    protocol_type: str | None = wire(since=5, default=None)
    protocol_name: str | None = wire(since=5, default=None)
    assignment: bytes = b""


@fast_dataclass(kw_only=True)
class HeartbeatRequest(Request):
    versions: ClassVar[range] = range(0, 5)
    latest: ClassVar[int] = 4

    version: int = 4
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = wire(since=3, default=None, ignorable=True)


@fast_dataclass(kw_only=True)
class HeartbeatResponse(Response):
    throttle_time_ms: int = wire(since=1, default=0)
    error_code: Error = Error.NONE


@fast_dataclass(kw_only=True)
class MemberIdentity:
    member_id: str = ""
    """Empty together with an instance id: an administrator removes the member that holds that instance id."""
    group_instance_id: str | None = None
    reason: str | None = wire(since=5, default=None, ignorable=True)


@fast_dataclass(kw_only=True)
class LeaveGroupRequest(Request):
    versions: ClassVar[range] = range(0, 6)
    latest: ClassVar[int] = 5

    version: int = 5
    group_id: str
    member_id: str = wire(until=2, default="")
    members: tuple[MemberIdentity, ...] = wire(since=3, default=())


@fast_dataclass(kw_only=True)
class LeaveGroupResponseMember:
    member_id: str
    group_instance_id: str | None
    error_code: Error = Error.NONE


@fast_dataclass(kw_only=True)
class LeaveGroupResponse(Response):
    throttle_time_ms: int = wire(since=1, default=0)
    error_code: Error = Error.NONE
    members: tuple[LeaveGroupResponseMember, ...] = wire(since=3, default=())


@fast_dataclass()
class OffsetCommitRequestPartition:
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int = wire(since=6, default=-1, ignorable=True)
    committed_metadata: str | None = None


@fast_dataclass(kw_only=True)
class OffsetCommitRequestTopic:
    name: str = topic_name()
    partitions: tuple[OffsetCommitRequestPartition, ...]


@fast_dataclass(kw_only=True)
class OffsetCommitRequest(Request):
    versions: ClassVar[range] = range(2, 11)
    latest: ClassVar[int] = 9

    version: int = 9
    group_id: str
    generation_id_or_member_epoch: int = -1
    """Negative: a simple consumer or an administrator, outside the group's membership."""
    member_id: str = ""
    group_instance_id: str | None = wire(since=7, default=None, ignorable=True)
    retention_time_ms: int = wire(since=2, until=4, default=-1, ignorable=True)
    topics: tuple[OffsetCommitRequestTopic, ...]


@fast_dataclass()
class OffsetCommitResponsePartition:
    partition_index: int
    error_code: Error = Error.NONE


@fast_dataclass(kw_only=True)
class OffsetCommitResponseTopic:
    name: str = topic_name()
    partitions: tuple[OffsetCommitResponsePartition, ...]


@fast_dataclass(kw_only=True)
class OffsetCommitResponse(Response):
    throttle_time_ms: int = wire(since=3, default=0)
    topics: tuple[OffsetCommitResponseTopic, ...]


@fast_dataclass(kw_only=True)
class OffsetFetchRequestTopic:
    name: str = topic_name()
    partition_indexes: tuple[int, ...]


@fast_dataclass(kw_only=True)
class OffsetFetchRequestGroup:
    group_id: str
    member_id: str | None = wire(since=9, default=None, ignorable=True)
    member_epoch: int = wire(since=9, default=-1, ignorable=True)
    topics: tuple[OffsetFetchRequestTopic, ...] | None = None
    """None: every partition that has a commit."""


@fast_dataclass(kw_only=True)
class OffsetFetchRequest(Request):
    versions: ClassVar[range] = range(1, 11)
    latest: ClassVar[int] = 9

    version: int = 9
    group_id: str = wire(until=7, default="")
    topics: tuple[OffsetFetchRequestTopic, ...] | None = wire(until=7, default=None)
    groups: tuple[OffsetFetchRequestGroup, ...] = wire(since=8, default=())
    require_stable: bool = wire(since=7, default=False, ignorable=True)


@fast_dataclass()
class OffsetFetchResponsePartition:
    partition_index: int
    committed_offset: int = -1
    committed_leader_epoch: int = wire(since=5, default=-1)
    metadata: str = ""
    error_code: Error = Error.NONE


@fast_dataclass(kw_only=True)
class OffsetFetchResponseTopic:
    name: str = topic_name()
    partitions: tuple[OffsetFetchResponsePartition, ...]


@fast_dataclass(kw_only=True)
class OffsetFetchResponseGroup:
    group_id: str
    topics: tuple[OffsetFetchResponseTopic, ...] = ()
    error_code: Error = Error.NONE


@fast_dataclass(kw_only=True)
class OffsetFetchResponse(Response):
    throttle_time_ms: int = wire(since=3, default=0)
    topics: tuple[OffsetFetchResponseTopic, ...] = wire(until=7, default=())
    error_code: Error = wire(since=2, until=7, default=Error.NONE)
    groups: tuple[OffsetFetchResponseGroup, ...] = wire(since=8, default=())


@fast_dataclass(kw_only=True)
class DescribeGroupsRequest(Request):
    versions: ClassVar[range] = range(0, 7)
    latest: ClassVar[int] = 6

    version: int = 6
    groups: tuple[str, ...]
    include_authorized_operations: bool = wire(since=3, default=False, ignorable=True)


@fast_dataclass(kw_only=True)
class DescribedGroupMember:
    member_id: str
    group_instance_id: str | None = wire(since=4, default=None)
    client_id: str
    client_host: str
    member_metadata: bytes = b""
    member_assignment: bytes = b""


@fast_dataclass(kw_only=True)
class DescribedGroup:
    error_code: Error = Error.NONE
    error_message: str | None = wire(since=6, default=None)
    group_id: str
    group_state: str
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedGroupMember, ...] = ()
    authorized_operations: int = wire(since=3, default=-(2**31))


@fast_dataclass(kw_only=True)
class DescribeGroupsResponse(Response):
    throttle_time_ms: int = wire(since=1, default=0)
    groups: tuple[DescribedGroup, ...]


@fast_dataclass(kw_only=True)
class DeleteGroupsRequest(Request):
    versions: ClassVar[range] = range(0, 3)
    latest: ClassVar[int] = 2

    version: int = 2
    groups_names: tuple[str, ...]


@fast_dataclass(kw_only=True)
class DeletableGroupResult:
    group_id: str
    error_code: Error = Error.NONE


@fast_dataclass(kw_only=True)
class DeleteGroupsResponse(Response):
    throttle_time_ms: int = 0
    results: tuple[DeletableGroupResult, ...]


@fast_dataclass(kw_only=True)
class ListGroupsRequest(Request):
    versions: ClassVar[range] = range(0, 6)
    latest: ClassVar[int] = 5

    version: int = 5
    states_filter: tuple[str, ...] = wire(since=4, default=())
    types_filter: tuple[str, ...] = wire(since=5, default=())


@fast_dataclass(kw_only=True)
class ListedGroup:
    group_id: str
    protocol_type: str
    group_state: str = wire(since=4, default="")
    group_type: str = wire(since=5, default="classic")


@fast_dataclass(kw_only=True)
class ListGroupsResponse(Response):
    throttle_time_ms: int = wire(since=1, default=0)
    error_code: Error = Error.NONE
    groups: tuple[ListedGroup, ...] = ()


@fast_dataclass(kw_only=True)
class OffsetDeleteRequestPartition:
    partition_index: int


@fast_dataclass(kw_only=True)
class OffsetDeleteRequestTopic:
    name: str
    partitions: tuple[OffsetDeleteRequestPartition, ...]


@fast_dataclass(kw_only=True)
class OffsetDeleteRequest(Request):
    versions: ClassVar[range] = range(0, 1)
    latest: ClassVar[int] = 0

    version: int = 0
    group_id: str
    topics: tuple[OffsetDeleteRequestTopic, ...]


@fast_dataclass(kw_only=True)
class OffsetDeleteResponsePartition:
    partition_index: int
    error_code: Error = Error.NONE


@fast_dataclass(kw_only=True)
class OffsetDeleteResponseTopic:
    name: str
    partitions: tuple[OffsetDeleteResponsePartition, ...]


@fast_dataclass(kw_only=True)
class OffsetDeleteResponse(Response):
    error_code: Error = Error.NONE
    throttle_time_ms: int = 0
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()


REQUESTS: Mapping[str, type[Request]] = MappingProxyType(
    {
        "JoinGroup": JoinGroupRequest,
        "SyncGroup": SyncGroupRequest,
        "Heartbeat": HeartbeatRequest,
        "LeaveGroup": LeaveGroupRequest,
        "OffsetCommit": OffsetCommitRequest,
        "OffsetFetch": OffsetFetchRequest,
        "DescribeGroups": DescribeGroupsRequest,
        "ListGroups": ListGroupsRequest,
        "DeleteGroups": DeleteGroupsRequest,
        "OffsetDelete": OffsetDeleteRequest,
    }
)
"""What a classic coordinator serves, by Kafka's name for it."""
