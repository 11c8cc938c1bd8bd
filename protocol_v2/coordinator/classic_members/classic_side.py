"""Declare what the consumer protocol's coordinator needs of the classic coordinator, which is handed in, never
imported.

One group id is one group, of either protocol, and one log holds both. This package stands by itself, so this module
declares what it asks of classic groups. A driver that serves both protocols hands in an adapter over protocol_v1
(harness/hosts/dual_coordinator.py). Any other driver gets NoClassicGroups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from rebalance_lab.protocol_v1.common import messages as v1
from rebalance_lab.protocol_v1.common.effects import Effect, Reply, TimerKey
from rebalance_lab.protocol_v1.common.errors import Error, MalformedBytes
from rebalance_lab.protocol_v1.common.messages import Request, Response

TakeBack: TypeAlias = Callable[[int], list[Effect]]
"""Given the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMemberImage:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[v1.Protocol, ...]
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicGroupImage:
    """Describe a classic group as a conversion hands it over, in either direction."""

    group_id: str
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    """None: not chosen yet."""
    members: tuple[ClassicMemberImage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSubscription:
    topics: tuple[str, ...]
    owned: Mapping[str, Sequence[int]]
    rack_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedAssignment:
    partitions: Mapping[str, Sequence[int]]
    has_user_data: bool = False


class ConsumerProtocolCodec(Protocol):
    """Read and write the bytes inside JoinGroup and SyncGroup; bytes that cannot be read raise MalformedBytes."""

    def subscription(self, data: bytes) -> EmbeddedSubscription: ...
    def assignment(self, data: bytes) -> EmbeddedAssignment: ...
    def encode(self, partitions: Mapping[str, Sequence[int]], like: bytes) -> bytes:
        """Encode partitions in the version that the member's subscription bytes announce."""


class ClassicGroups(Protocol):
    """Declare the coordinator of classic groups, and the few more things that a conversion asks of it."""

    def handle(self, request: Request, now_ms: int) -> list[Effect]: ...
    def on_timer(self, key: TimerKey, now_ms: int) -> list[Effect]: ...
    def first_expiry_ms(self) -> int | None: ...
    def on_append(self, append_id: int, now_ms: int, error: Error = Error.NONE) -> list[Effect]: ...
    def update_topics(self, topics: Mapping[str, int], now_ms: int) -> list[Effect]: ...
    def load(self, records: Sequence[Any], now_ms: int) -> list[Effect]: ...
    def unload(self, now_ms: int) -> list[Effect]: ...

    def phase(self, group_id: str) -> str | None:
        """Return the group's state by Kafka's name, or None if there is no such group."""

    def image_of(self, group_id: str) -> ClassicGroupImage: ...

    def answer_parked(self, group_id: str, error: Error, now_ms: int) -> list[Effect]:
        """Answer every JoinGroup and SyncGroup that waits."""

    def tombstone(self, group_id: str) -> Any:
        """Return the record that ends the group."""

    def forget(self, group_id: str, now_ms: int) -> tuple[list[Effect], TakeBack]:
        """Drop a group that now belongs to the other coordinator, and its timers. Committed offsets stay.

        The second returned value restores the group as it was, in case the conversion cannot be stored.
        """

    def adopt(self, image: ClassicGroupImage, now_ms: int, *, rebalance: bool) -> tuple[list[Any], list[Effect]]:
        """Become the group's coordinator, with the group Stable, and write it down; with `rebalance`, all members must
        rejoin.
        """


class NoCodec:
    """Stand in for a codec: without classic members there are no bytes to read."""

    def subscription(self, data: bytes) -> EmbeddedSubscription:
        raise MalformedBytes("this coordinator was given no codec for the consumer protocol's bytes")

    def assignment(self, data: bytes) -> EmbeddedAssignment:
        raise MalformedBytes("this coordinator was given no codec for the consumer protocol's bytes")

    def encode(self, partitions: Mapping[str, Sequence[int]], like: bytes) -> bytes:
        raise MalformedBytes("this coordinator was given no codec for the consumer protocol's bytes")


class NoClassicGroups:
    """Stand for a coordinator without classic groups: none exists, and none can be made."""

    def handle(self, request: Request, now_ms: int) -> list[Effect]:
        return [Reply(request=request, response=no_such_group(request))]

    def on_timer(self, key: TimerKey, now_ms: int) -> list[Effect]:
        return []

    def first_expiry_ms(self) -> int | None:
        return None

    def on_append(self, append_id: int, now_ms: int, error: Error = Error.NONE) -> list[Effect]:
        return []

    def update_topics(self, topics: Mapping[str, int], now_ms: int) -> list[Effect]:
        return []

    def load(self, records: Sequence[Any], now_ms: int) -> list[Effect]:
        return []

    def unload(self, now_ms: int) -> list[Effect]:
        return []

    def phase(self, group_id: str) -> str | None:
        return None

    def image_of(self, group_id: str) -> ClassicGroupImage:
        raise KeyError(group_id)

    def answer_parked(self, group_id: str, error: Error, now_ms: int) -> list[Effect]:
        return []

    def tombstone(self, group_id: str) -> Any:
        raise KeyError(group_id)

    def forget(self, group_id: str, now_ms: int) -> tuple[list[Effect], TakeBack]:
        raise KeyError(group_id)

    def adopt(self, image: ClassicGroupImage, now_ms: int, *, rebalance: bool) -> tuple[list[Any], list[Effect]]:
        raise KeyError(image.group_id)


def no_such_group(request: Request) -> Response:
    match request:
        case v1.JoinGroupRequest():
            return v1.JoinGroupResponse(error_code=Error.INCONSISTENT_GROUP_PROTOCOL, member_id=request.member_id)
        case v1.SyncGroupRequest():
            return v1.SyncGroupResponse(error_code=Error.UNKNOWN_MEMBER_ID)
        case v1.HeartbeatRequest():
            return v1.HeartbeatResponse(error_code=Error.UNKNOWN_MEMBER_ID)
        case v1.LeaveGroupRequest():
            return v1.LeaveGroupResponse(error_code=Error.UNKNOWN_MEMBER_ID)
        case v1.DescribeGroupsRequest():
            dead = (v1.DescribedGroup(group_id=name, group_state="Dead") for name in request.groups)
            return v1.DescribeGroupsResponse(groups=tuple(dead))
        case v1.ListGroupsRequest():
            return v1.ListGroupsResponse()
        case v1.DeleteGroupsRequest():
            unknown = Error.GROUP_ID_NOT_FOUND
            results = (v1.DeletableGroupResult(group_id=name, error_code=unknown) for name in request.groups_names)
            return v1.DeleteGroupsResponse(results=tuple(results))
        case _:
            return v1.OffsetDeleteResponse(error_code=Error.GROUP_ID_NOT_FOUND)
