"""Convert the lab's messages to kio's entities and back, so that the machines can speak with real peers.

Given      a request or response of protocol_v1 or protocol_v2 and its version, or what kio has read
Returns    kio's entity of that version, or the lab's message; both with every field that the version has
Driven by  kio's fields and ours with their `wire` metadata: a new message needs no code here, only a line in APIS
Names      kio drops `_ms` from durations; where Kafka has a topic id the lab has the name (TopicIds translates)
Start at   to_wire, from_wire
"""

from __future__ import annotations

import uuid
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import timedelta
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.static.protocol import Entity

from rebalance_lab.harness.conversation.message_json import HEADER, on_wire, wire_name
from rebalance_lab.harness.kafka.wire.addresses import WireError
from rebalance_lab.protocol_v1.common import messages as v1
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import Request, Response
from rebalance_lab.protocol_v1.common.txn_messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from rebalance_lab.protocol_v2.common import messages as v2

APIS: Mapping[int, tuple[type[Request], type[Response]]] = {
    8: (v1.OffsetCommitRequest, v1.OffsetCommitResponse),
    9: (v1.OffsetFetchRequest, v1.OffsetFetchResponse),
    11: (v1.JoinGroupRequest, v1.JoinGroupResponse),
    12: (v1.HeartbeatRequest, v1.HeartbeatResponse),
    13: (v1.LeaveGroupRequest, v1.LeaveGroupResponse),
    14: (v1.SyncGroupRequest, v1.SyncGroupResponse),
    15: (v1.DescribeGroupsRequest, v1.DescribeGroupsResponse),
    16: (v1.ListGroupsRequest, v1.ListGroupsResponse),
    28: (TxnOffsetCommitRequest, TxnOffsetCommitResponse),
    42: (v1.DeleteGroupsRequest, v1.DeleteGroupsResponse),
    44: (v2.IncrementalAlterConfigsRequest, v2.IncrementalAlterConfigsResponse),
    47: (v1.OffsetDeleteRequest, v1.OffsetDeleteResponse),
    68: (v2.ConsumerGroupHeartbeatRequest, v2.ConsumerGroupHeartbeatResponse),
    69: (v2.ConsumerGroupDescribeRequest, v2.ConsumerGroupDescribeResponse),
}
"""What a coordinator serves, by Kafka's key of the request."""
KEYS: Mapping[type[Request], int] = {request: key for key, (request, _) in APIS.items()}
RESPONSES: Mapping[type[Response], int] = {response: key for key, (_, response) in APIS.items()}

M = TypeVar("M", Request, Response)


@dataclass(slots=True)
class TopicIds:
    """Translate a cluster's topic names and ids. A name that the cluster does not have gets an id that no other topic
    has. The text of an id that was never seen becomes that id again, and is not kept.
    """

    by_name: dict[str, uuid.UUID] = field(default_factory=dict)
    by_id: dict[uuid.UUID, str] = field(default_factory=dict)

    def add(self, name: str, topic_id: uuid.UUID) -> None:
        self.by_name[name], self.by_id[topic_id] = topic_id, name

    def id_of(self, name: str) -> uuid.UUID:
        if name not in self.by_name:
            if (unseen := id_from_text(name)) is not None:
                return unseen
            self.add(name, uuid.uuid5(uuid.NAMESPACE_OID, name))
        return self.by_name[name]

    def name_of(self, topic_id: uuid.UUID | None) -> str:
        """Return the name; for an id that was never seen it is the id's text, which no topic has as its name."""
        return self.by_id.get(topic_id, str(topic_id)) if topic_id is not None else ""


def id_from_text(name: str) -> uuid.UUID | None:
    """Read an id that `name_of` has written."""
    try:
        found = uuid.UUID(name)
    except ValueError:
        return None
    return found if str(found) == name else None


def to_wire(message: Request | Response, version: int, topics: TopicIds) -> Any:
    return _Writer(version, topics).entity(message, _entity_of(message, version))


def from_wire(kind: type[M], entity: Entity, topics: TopicIds, header: Mapping[str, Any] | None = None) -> M:
    """Decode an entity. `header`: what stands in the request's header (message_json.HEADER); the version is the
    entity's own.
    """
    version = int(entity.__version__)
    values = _Reader(version, topics).fields(kind, entity)
    if issubclass(kind, Request):
        values |= {"version": version, **(header or {})}
    return kind(**values)


def known_error(code: int) -> Error:
    try:
        return Error(code)
    except ValueError:
        raise WireError(f"the peer answered with Kafka's error {code}, which the lab does not know") from None


def _entity_of(message: Request | Response, version: int) -> type[Any]:
    if isinstance(message, Request):
        return load_request_schema(KEYS[type(message)], version)
    return load_response_schema(RESPONSES[type(message)], version)


@cache
def _hints(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _ours(kind: Hashable, version: int) -> dict[str, str]:
    """Return our attributes by their names on the wire in that version."""
    assert isinstance(kind, type)
    apart = HEADER if issubclass(kind, Request) else ()
    return {
        wire_name(each, version): each.name
        for each in fields(kind)
        if each.name not in apart and on_wire(each, version)
    }


def _attribute(name: str, ours: Mapping[str, str]) -> str:
    """Return our attribute for a field of kio's."""
    if name in ours:
        return ours[name]
    if name == "topic_id":
        return ours["topic_name"]
    return ours[f"{name}_ms"]


def _bare(hint: Any) -> Any:
    """Remove `| None` from a type."""
    if get_origin(hint) is UnionType:
        return next(choice for choice in get_args(hint) if choice is not NoneType)
    return hint


class _Writer:
    def __init__(self, version: int, topics: TopicIds) -> None:
        self.version, self.topics = version, topics

    def entity(self, message: Any, kind: type[Any]) -> Any:
        ours, hints = _ours(cast(Hashable, type(message)), self.version), _hints(cast(Hashable, kind))
        return kind(
            **{
                each.name: self.value(getattr(message, _attribute(each.name, ours)), hints[each.name])
                for each in fields(kind)
            }
        )

    def value(self, value: Any, hint: Any) -> Any:
        bare = _bare(hint)
        if value is None:
            # Where a version has no way to write null, Kafka writes the empty string.
            return "" if bare is hint and issubclass(bare, str) else None
        if get_origin(bare) is tuple:
            item = get_args(bare)[0]
            return tuple(self.value(each, item) for each in value)
        if is_dataclass(bare):
            return self.entity(value, cast(type, bare))
        if bare is uuid.UUID:
            return self.topics.id_of(value)
        if bare is ErrorCode:
            return ErrorCode(int(value))
        if issubclass(bare, timedelta):
            return timedelta(milliseconds=value)
        return value


class _Reader:
    def __init__(self, version: int, topics: TopicIds) -> None:
        self.version, self.topics = version, topics

    def fields(self, kind: type[Any], entity: Any) -> dict[str, Any]:
        ours, hints = _ours(cast(Hashable, kind), self.version), _hints(cast(Hashable, kind))
        names = {_attribute(each.name, ours): each.name for each in fields(entity)}  # a name, where both are there
        return {mine: self.value(getattr(entity, theirs), hints[mine]) for mine, theirs in names.items()}

    def value(self, value: Any, hint: Any) -> Any:
        bare = _bare(hint)
        if isinstance(value, uuid.UUID) or (value is None and hint is str):
            return self.topics.name_of(value)
        if value is None:
            return None
        if get_origin(bare) is tuple:
            item = get_args(bare)[0]
            return tuple(self.value(each, item) for each in value)
        if is_dataclass(bare):
            kind = cast(type, bare)
            return kind(**self.fields(kind, value))
        if bare is Error:
            return known_error(int(value))
        if isinstance(value, timedelta):
            return value // timedelta(milliseconds=1)
        return bare(value)
