"""List the records of __consumer_offsets as data: a key begins with the kind's number, a value with its own version.

Field    its name in snake case, its type, and in which versions it is there
Types    text, bytes, uuid, int8, int32, int64, a list of a type, or of a struct: a tuple of fields
Tagged   in flexible versions only: absent unless written, and then behind everything else
Reference  the coordinator-key and coordinator-value schemas of Apache Kafka 4.3.1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Type: TypeAlias = "str | ListOf | Struct"
NEWEST = 1_000


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Type
    since: int = 0
    until: int = NEWEST
    tag: int | None = None


@dataclass(frozen=True, slots=True)
class Struct:
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    type: Type


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    key: tuple[Field, ...]
    value: tuple[Field, ...]
    flexible_since: int = 0
    """The first version of the value with compact lengths and tagged fields."""
    newest: int = 0


def texts(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, "text") for name in names)


TOPIC_PARTITIONS = Struct(
    (
        Field("topic_id", "uuid"),
        Field("partitions", ListOf("int32")),
        Field("assignment_epochs", ListOf("int32"), tag=0),
    )
)
CLASSIC_MEMBER = Struct(
    (
        Field("session_timeout_ms", "int32"),
        Field("supported_protocols", ListOf(Struct((*texts("name"), Field("metadata", "bytes"))))),
    )
)
OFFSET_COMMIT = Kind(
    "OffsetCommit",
    key=(*texts("group", "topic"), Field("partition", "int32")),
    value=(
        Field("offset", "int64"),
        Field("leader_epoch", "int32", since=3),
        *texts("metadata"),
        Field("commit_timestamp", "int64"),
        Field("expire_timestamp", "int64", since=1, until=1),
        Field("topic_id", "uuid", since=4, tag=0),
    ),
    flexible_since=4,
    newest=4,
)
GROUP_METADATA = Kind(
    "GroupMetadata",
    key=texts("group"),
    value=(
        *texts("protocol_type"),
        Field("generation", "int32"),
        *texts("protocol", "leader"),
        Field("current_state_timestamp", "int64", since=2),
        Field(
            "members",
            ListOf(
                Struct(
                    (
                        *texts("member_id"),
                        Field("group_instance_id", "text", since=3),
                        *texts("client_id", "client_host"),
                        Field("rebalance_timeout", "int32", since=1),
                        Field("session_timeout", "int32"),
                        Field("subscription", "bytes"),
                        Field("assignment", "bytes"),
                    )
                )
            ),
        ),
    ),
    flexible_since=4,
    newest=4,
)
KINDS: Mapping[int, Kind] = {
    0: OFFSET_COMMIT,  # written by brokers older than 0.9; the same fields
    1: OFFSET_COMMIT,
    2: GROUP_METADATA,
    3: Kind(
        "ConsumerGroupMetadata",
        key=texts("group"),
        value=(Field("epoch", "int32"), Field("metadata_hash", "int64", tag=0)),
    ),
    4: Kind(
        "ConsumerGroupPartitionMetadata",
        key=texts("group"),
        value=(
            Field(
                "topics",
                ListOf(
                    Struct(
                        (
                            Field("topic_id", "uuid"),
                            *texts("topic_name"),
                            Field("num_partitions", "int32"),
                            Field(
                                "partition_metadata",
                                ListOf(Struct((Field("partition", "int32"), Field("racks", ListOf("text"))))),
                            ),
                        )
                    )
                ),
            ),
        ),
    ),
    5: Kind(
        "ConsumerGroupMemberMetadata",
        key=texts("group", "member_id"),
        value=(
            *texts("instance_id", "rack_id", "client_id", "client_host"),
            Field("subscribed_topic_names", ListOf("text")),
            *texts("subscribed_topic_regex"),
            Field("rebalance_timeout_ms", "int32"),
            *texts("server_assignor"),
            Field("classic_member_metadata", CLASSIC_MEMBER, tag=0),
        ),
    ),
    6: Kind(
        "ConsumerGroupTargetAssignmentMetadata",
        key=texts("group"),
        value=(Field("assignment_epoch", "int32"), Field("assignment_timestamp", "int64", tag=0)),
    ),
    7: Kind(
        "ConsumerGroupTargetAssignmentMember",
        key=texts("group", "member_id"),
        value=(Field("topic_partitions", ListOf(TOPIC_PARTITIONS)),),
    ),
    8: Kind(
        "ConsumerGroupCurrentMemberAssignment",
        key=texts("group", "member_id"),
        value=(
            Field("member_epoch", "int32"),
            Field("previous_member_epoch", "int32"),
            Field("state", "int8"),
            Field("assigned_partitions", ListOf(TOPIC_PARTITIONS)),
            Field("partitions_pending_revocation", ListOf(TOPIC_PARTITIONS)),
        ),
    ),
    16: Kind(
        "ConsumerGroupRegularExpression",
        key=texts("group", "regular_expression"),
        value=(Field("topics", ListOf("text")), Field("version", "int64"), Field("timestamp", "int64")),
    ),
}
"""By the number that a key begins with. Groups of streams and of share consumers have others, which are passed over."""
