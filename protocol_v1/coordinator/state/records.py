"""Define what a coordinator writes to __consumer_offsets, and rebuild groups from those records.

Written    a group's birth by JoinGroup, the leader's assignment, a static takeover in Stable, the last member's end;
           and every committed offset. Not written: joins, leaves, handed-out ids, generations without an assignment
Pending    offsets of a transaction count from its end on, and only if nothing later has been committed meanwhile
Invariant  replay(records) depends on the last record of each key alone, so a compacted log gives the same groups.
           Transactions are the exception: a log keeps them until they end
Reference  GroupMetadataValue, OffsetCommitValue; GroupMetadataManager.replay in Apache Kafka
Start at   replay
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rebalance_lab.protocol_v1.common.fast_dataclass import fast_dataclass
from rebalance_lab.protocol_v1.common.messages import Protocol
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup, ClassicMember
from rebalance_lab.protocol_v1.coordinator.state.states import Event, next_state


@fast_dataclass(kw_only=True)
class MemberMetadata:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription: bytes
    """The metadata of the selected protocol; the rest of the member's list is not kept."""
    assignment: bytes


@fast_dataclass(kw_only=True)
class GroupMetadata:
    group: str
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: tuple[MemberMetadata, ...]


@fast_dataclass(kw_only=True)
class GroupTombstone:
    group: str


@fast_dataclass()
class OffsetCommit:
    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int | None = None
    """Only requests of versions 2-4 can give one."""


@fast_dataclass(kw_only=True)
class OffsetTombstone:
    group: str
    topic: str
    partition: int


@fast_dataclass(kw_only=True)
class PendingOffset:
    """Hold an OffsetCommit in a batch of a transactional producer."""

    producer_id: int
    commit: OffsetCommit


@fast_dataclass(kw_only=True)
class TransactionMarker:
    """Mark the end of a producer's transaction, as a control record does."""

    producer_id: int
    committed: bool


OffsetRecord: TypeAlias = OffsetCommit | OffsetTombstone | PendingOffset | TransactionMarker
Record: TypeAlias = GroupMetadata | GroupTombstone | OffsetRecord
GroupOffsets: TypeAlias = dict[tuple[str, int], OffsetCommit]
PendingOffsets: TypeAlias = dict[tuple[str, str, int], tuple[int, OffsetCommit]]
"""By group, topic and partition: the place in the log, and what is to be committed."""


@dataclass(slots=True)
class Image:
    """Hold all that a coordinator keeps: the groups, and their offsets by (topic, partition)."""

    groups: dict[str, ClassicGroup] = field(default_factory=dict)
    offsets: dict[str, GroupOffsets] = field(default_factory=dict)
    pending: dict[int, PendingOffsets] = field(default_factory=dict)
    """By producer id."""
    places: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """Where in the log an offset stands; kept for those that a transaction, open or ended, has touched."""
    written: int = 0

    def pending_in(self, group_id: str) -> set[tuple[str, int]]:
        """Return the partitions whose offsets an open transaction may still change."""
        return {key[1:] for offsets in self.pending.values() for key in offsets if key[0] == group_id}

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        return any((group_id, topic, partition) in offsets for offsets in self.pending.values())


def replay(records: Iterable[Record]) -> Image:
    """Return what a coordinator that takes over knows."""
    image = Image()
    for record in records:
        apply(image, record)
    return image


def apply(image: Image, record: Record) -> None:
    match record:
        case GroupMetadata():
            image.groups[record.group] = _loaded_group(record)
        case GroupTombstone():
            image.groups.pop(record.group, None)
        case OffsetCommit():
            _simple_group(image, record.group)
            apply_offset(image, record)
        case PendingOffset():
            _simple_group(image, record.commit.group)
            apply_offset(image, record)
        case OffsetTombstone() | TransactionMarker():
            apply_offset(image, record)


def _simple_group(image: Image, group_id: str) -> None:
    """Make a group that has no record of its own: its first offset stands for it."""
    if group_id not in image.groups:
        image.groups[group_id] = ClassicGroup(group_id=group_id, durable=True)


def apply_offset(image: Image, record: OffsetRecord) -> None:
    """Apply an offset record. A live coordinator takes in an offset this way too, once it is durable."""
    image.written += 1
    match record:
        case OffsetCommit():
            _commit(image, image.written, record)
        case PendingOffset(producer_id=producer_id, commit=commit):
            key = (commit.group, commit.topic, commit.partition)
            image.pending.setdefault(producer_id, {})[key] = image.written, commit
        case TransactionMarker():
            for place, commit in image.pending.pop(record.producer_id, {}).values():
                if record.committed:
                    _commit(image, place, commit)
        case OffsetTombstone():
            offsets = image.offsets.get(record.group, {})
            offsets.pop((record.topic, record.partition), None)
            if not offsets:
                image.offsets.pop(record.group, None)
            forget_pending(image, record.group, record.topic, record.partition)


def _commit(image: Image, place: int, commit: OffsetCommit) -> None:
    """Commit an offset. Of a transaction's and other commits the one written last counts, whenever the transaction
    ends.
    """
    if image.places or image.pending or place < image.written:
        key = (commit.group, commit.topic, commit.partition)
        if place < image.places.get(key, 0):
            return
        if place < image.written or image.pending:
            image.places[key] = place
    image.offsets.setdefault(commit.group, {})[commit.topic, commit.partition] = commit


def forget_pending(image: Image, *key: Any) -> None:
    """Forget pending offsets whose key begins like this: a group, or one partition of it."""
    if not image.pending and not image.places:
        return
    image.places = {known: place for known, place in image.places.items() if known[: len(key)] != key}
    for producer_id, offsets in list(image.pending.items()):
        image.pending[producer_id] = {known: one for known, one in offsets.items() if known[: len(key)] != key}


def _loaded_group(record: GroupMetadata) -> ClassicGroup:
    """Load a group, Stable if it has members: a rebalance under way has vanished with the coordinator."""
    group = ClassicGroup(
        group_id=record.group,
        state=next_state(None, Event.LOADED_WITH_MEMBERS if record.members else Event.LOADED_WITHOUT_MEMBERS),
        state_since_ms=record.current_state_timestamp,
        generation_id=record.generation,
        protocol_type=record.protocol_type or None,
        protocol_name=record.protocol,
        leader=record.leader,
        durable=True,
    )
    for member in record.members:
        assert record.protocol is not None
        loaded = ClassicMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            session_timeout_ms=member.session_timeout,
            rebalance_timeout_ms=member.rebalance_timeout,
            protocols=(Protocol(name=record.protocol, metadata=member.subscription),),
            assignment=member.assignment,
        )
        group.add(loaded, record.protocol_type)
    group.remember_subscriptions()
    return group


def group_metadata(group: ClassicGroup, assignments: Mapping[str, bytes]) -> GroupMetadata:
    """Record the group as it is now, with the assignments that are about to become effective."""
    return GroupMetadata(
        group=group.group_id,
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader,
        current_state_timestamp=group.state_since_ms,
        members=tuple(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol_name),
                assignment=assignments[member.member_id],
            )
            for member in group.in_order()
        ),
    )
