"""Define what a coordinator appends for consumer groups, and rebuild a group from those records.

Record     a key and a value, or None for a tombstone; the names are Kafka's
apply      the one place where a group changes; `replay` is that loop
stored     what is stored under a record's key now, as a record; applying it later takes the new record back
Invariant  replay(records) gives the group that wrote them, also after the log has been compacted
Reference  GroupCoordinatorRecordHelpers, GroupMetadataManager.replay in Apache Kafka
Start at   apply
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from rebalance_lab.protocol_v1.common.fast_dataclass import fast_dataclass
from rebalance_lab.protocol_v2.common.topic_image import MetadataHash
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup
from rebalance_lab.protocol_v2.coordinator.state.values import (
    GONE,
    JUST_ARRIVED,
    CurrentAssignment,
    MemberMetadata,
    ResolvedRegex,
    Target,
)

NO_ASSIGNMENT_EPOCH = -1
"""Of a group whose target metadata has been deleted, on its way to being deleted itself."""


@fast_dataclass(kw_only=True)
class GroupMetadata:
    epoch: int
    metadata_hash: MetadataHash


@fast_dataclass(kw_only=True)
class TargetMetadata:
    assignment_epoch: int
    assignment_timestamp: int | None


@fast_dataclass(kw_only=True)
class ConsumerGroupMetadata:
    group_id: str
    value: GroupMetadata | None


@fast_dataclass(kw_only=True)
class ConsumerGroupPartitionMetadata:
    """Delete a record in which Kafka before 4.1 stored a group's topics. It is never written any more."""

    group_id: str
    value: None = None


@fast_dataclass(kw_only=True)
class ConsumerGroupMemberMetadata:
    group_id: str
    member_id: str
    value: MemberMetadata | None


@fast_dataclass(kw_only=True)
class ConsumerGroupTargetAssignmentMetadata:
    group_id: str
    value: TargetMetadata | None


@fast_dataclass(kw_only=True)
class ConsumerGroupTargetAssignmentMember:
    group_id: str
    member_id: str
    value: Target | None


@fast_dataclass()
class ConsumerGroupCurrentMemberAssignment:
    group_id: str
    member_id: str
    value: CurrentAssignment | None


@fast_dataclass(kw_only=True)
class ConsumerGroupRegularExpression:
    group_id: str
    regex: str
    value: ResolvedRegex | None


GroupRecord: TypeAlias = (
    ConsumerGroupMetadata
    | ConsumerGroupPartitionMetadata
    | ConsumerGroupMemberMetadata
    | ConsumerGroupTargetAssignmentMetadata
    | ConsumerGroupTargetAssignmentMember
    | ConsumerGroupCurrentMemberAssignment
    | ConsumerGroupRegularExpression
)
Groups: TypeAlias = dict[str, ConsumerGroup]

GROUP_RECORDS = (
    ConsumerGroupMetadata,
    ConsumerGroupPartitionMetadata,
    ConsumerGroupMemberMetadata,
    ConsumerGroupTargetAssignmentMetadata,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupRegularExpression,
)


def replay(records: Iterable[GroupRecord]) -> Groups:
    """Return what a coordinator that takes over knows."""
    groups: Groups = {}
    for record in records:
        apply(groups, record, loading=True)
    for group in groups.values():
        group.loading = False
    return groups


def apply(groups: Groups, record: GroupRecord, *, loading: bool = False) -> None:
    group = groups.get(record.group_id)
    if group is None:
        if record.value is None:
            return  # the end of something that a compacted log no longer shows
        group = groups[record.group_id] = ConsumerGroup(group_id=record.group_id, loading=loading)
    if isinstance(record, ConsumerGroupMetadata) and record.value is None:
        del groups[record.group_id]
    else:
        apply_to(group, record)


def apply_to(group: ConsumerGroup, record: GroupRecord) -> None:
    match record:
        case ConsumerGroupCurrentMemberAssignment():  # nearly all are
            group.set_current(record.member_id, record.value)
        case ConsumerGroupMetadata(value=GroupMetadata() as value):
            group.group_epoch = value.epoch
            group.metadata_hash = value.metadata_hash
        case ConsumerGroupMemberMetadata():
            group.set_metadata(record.member_id, record.value)
        case ConsumerGroupTargetAssignmentMetadata(value=value):
            group.assignment_epoch = value.assignment_epoch if value else NO_ASSIGNMENT_EPOCH
            group.assignment_timestamp = value.assignment_timestamp if value else None
        case ConsumerGroupTargetAssignmentMember():
            group.set_target(record.member_id, record.value)
        case ConsumerGroupRegularExpression():
            group.set_resolved(record.regex, record.value)
        case _:
            pass  # partition metadata, of which nothing is kept


def stored(groups: Groups, record: GroupRecord) -> GroupRecord:
    """Return what the record is about to replace."""
    group = groups.get(record.group_id)
    group_id = record.group_id
    match record:
        case ConsumerGroupCurrentMemberAssignment(member_id=member_id):
            member = group.members.get(member_id) if group else None
            current = member.current if member else None
            if current and current.member_epoch <= 0 and current in (JUST_ARRIVED, GONE):
                current = None
            return ConsumerGroupCurrentMemberAssignment(group_id, member_id, current)
        case ConsumerGroupMetadata():
            known = GroupMetadata(epoch=group.group_epoch, metadata_hash=group.metadata_hash) if group else None
            return ConsumerGroupMetadata(group_id=group_id, value=known)
        case ConsumerGroupMemberMetadata(member_id=member_id):
            member = group.members.get(member_id) if group else None
            return ConsumerGroupMemberMetadata(
                group_id=group_id, member_id=member_id, value=member.metadata if member else None
            )
        case ConsumerGroupTargetAssignmentMetadata():
            return ConsumerGroupTargetAssignmentMetadata(
                group_id=group_id,
                value=TargetMetadata(
                    assignment_epoch=group.assignment_epoch, assignment_timestamp=group.assignment_timestamp
                )
                if group
                else None,
            )
        case ConsumerGroupTargetAssignmentMember(member_id=member_id):
            target = group.targets.get(member_id) if group else None
            return ConsumerGroupTargetAssignmentMember(group_id=group_id, member_id=member_id, value=target)
        case ConsumerGroupRegularExpression(regex=regex):
            resolved = group.resolved.get(regex) if group else None
            return ConsumerGroupRegularExpression(group_id=group_id, regex=regex, value=resolved)
        case ConsumerGroupPartitionMetadata():
            return record


def ending(group: ConsumerGroup) -> list[GroupRecord]:
    """Return the tombstones of a group and all that is in it, in the order in which nothing is orphaned."""
    group_id = group.group_id
    members = list(group.order)
    return [
        *(ConsumerGroupCurrentMemberAssignment(group_id=group_id, member_id=m, value=None) for m in members),
        *(ConsumerGroupTargetAssignmentMember(group_id=group_id, member_id=m, value=None) for m in members),
        ConsumerGroupTargetAssignmentMetadata(group_id=group_id, value=None),
        *(ConsumerGroupMemberMetadata(group_id=group_id, member_id=m, value=None) for m in members),
        *(ConsumerGroupRegularExpression(group_id=group_id, regex=regex, value=None) for regex in group.resolved),
        ConsumerGroupPartitionMetadata(group_id=group_id),
        ConsumerGroupMetadata(group_id=group_id, value=None),
    ]


def removal(group_id: str, member_id: str) -> list[GroupRecord]:
    return [
        ConsumerGroupCurrentMemberAssignment(group_id=group_id, member_id=member_id, value=None),
        ConsumerGroupTargetAssignmentMember(group_id=group_id, member_id=member_id, value=None),
        ConsumerGroupMemberMetadata(group_id=group_id, member_id=member_id, value=None),
    ]
