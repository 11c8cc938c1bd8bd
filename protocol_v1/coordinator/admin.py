"""Serve DescribeGroups, ListGroups, DeleteGroups and OffsetDelete, and delete offsets that have expired.

Views      show a group once the log knows it: a group that MEMBER_ID_REQUIRED has just created may still be unknown
Expiry     every offsets.retention.check.interval.ms; it also deletes an empty group without offsets and the member ids
           that were handed out in it
Reference  GroupMetadataManager.describeGroups, GroupCoordinatorShard.cleanupGroupMetadata in Apache Kafka
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rebalance_lab.protocol_v1.common.consumer_protocol import PROTOCOL_TYPE
from rebalance_lab.protocol_v1.common.effects import TimerKey
from rebalance_lab.protocol_v1.common.errors import Error, append_error
from rebalance_lab.protocol_v1.common.messages import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from rebalance_lab.protocol_v1.coordinator.offsets import check_partition
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup
from rebalance_lab.protocol_v1.coordinator.state.records import (
    GroupOffsets,
    GroupTombstone,
    OffsetCommit,
    OffsetTombstone,
    Record,
    apply_offset,
    forget_pending,
)
from rebalance_lab.protocol_v1.coordinator.state.shard import Shard, Turn
from rebalance_lab.protocol_v1.coordinator.state.states import Event, State

UNKNOWN_GROUP_IS_AN_ERROR_SINCE = 6
EXPIRY_KEY: TimerKey = ("expiry",)


def describe_groups(turn: Turn, request: DescribeGroupsRequest) -> None:
    groups = tuple(described(turn, group_id, request.version) for group_id in request.groups)
    turn.reply(request, DescribeGroupsResponse(groups=groups))


def described(turn: Turn, group_id: str, version: int) -> DescribedGroup:
    group = turn.shard.groups.get(group_id)
    if group is None or not group.durable:
        if version < UNKNOWN_GROUP_IS_AN_ERROR_SINCE:
            return DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
        error, message = Error.GROUP_ID_NOT_FOUND, f"Group {group_id} not found."
        return DescribedGroup(group_id=group_id, group_state=State.DEAD.value, error_code=error, error_message=message)
    protocol_name = group.protocol_name if group.state is State.STABLE else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol_name or "",
        members=tuple(
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=b"" if protocol_name is None else member.metadata(protocol_name),
                member_assignment=member.assignment,
            )
            for member in group.in_order()
        ),
    )


def list_groups(turn: Turn, request: ListGroupsRequest) -> None:
    states = {state.lower() for state in request.states_filter}
    types = {group_type.lower() for group_type in request.types_filter}
    groups = tuple(
        ListedGroup(group_id=group.group_id, protocol_type=group.protocol_type or "", group_state=group.state.value)
        for group in turn.shard.groups.values()
        if group.durable and (not states or group.state.value.lower() in states) and (not types or "classic" in types)
    )
    turn.reply(request, ListGroupsResponse(groups=groups))


def delete_groups(turn: Turn, request: DeleteGroupsRequest) -> None:
    """Delete groups once the log has caught up: a commit under way would otherwise come back after its group is
    gone.
    """
    if turn.shard.pending:
        turn.when_durable(lambda turn, error: delete_groups(turn, request))
    else:
        delete_now(turn, request)


def delete_now(turn: Turn, request: DeleteGroupsRequest) -> None:
    errors: dict[str, Error] = {}
    deleted: list[tuple[ClassicGroup, GroupOffsets]] = []
    for group_id in request.groups_names:
        group = turn.shard.groups.get(group_id)
        if group is None:
            errors.setdefault(group_id, Error.GROUP_ID_NOT_FOUND)
        elif group.state is not State.EMPTY:
            errors[group_id] = Error.NON_EMPTY_GROUP
        else:
            errors[group_id] = Error.NONE
            deleted.append((group, take_out(turn, group)))

    def written(turn: Turn, error: Error) -> None:
        if error is not Error.NONE:
            put_back(turn, deleted)
        else:
            for group, _ in deleted:
                forget_pending(turn.shard.image, group.group_id)
        results = (
            DeletableGroupResult(group_id=name, error_code=code if error is Error.NONE else append_error(error))
            for name, code in errors.items()
        )
        turn.reply(request, DeleteGroupsResponse(results=tuple(results)))

    if deleted:
        turn.append(tuple(record for pair in deleted for record in tombstones(turn, *pair)), written)
    else:
        written(turn, Error.NONE)


def take_out(turn: Turn, group: ClassicGroup) -> GroupOffsets:
    """Take a group out at once, so that a member that joins before the tombstones are durable begins a new life of the
    group.
    """
    offsets = turn.shard.image.offsets.pop(group.group_id, {})
    turn.cancel_timers(group)
    turn.move(group, Event.DELETED)
    del turn.shard.groups[group.group_id]
    return offsets


def put_back(turn: Turn, deleted: Iterable[tuple[ClassicGroup, GroupOffsets]]) -> None:
    """Put groups back because the log refused the tombstones. Ids that had been handed out are not waited for again."""
    for group, offsets in deleted:
        if group.group_id not in turn.shard.groups:
            group.pending_join.clear()
            turn.move(group, Event.DELETION_NOT_STORED)
            turn.shard.groups[group.group_id] = group
            turn.shard.image.offsets[group.group_id] = offsets


def tombstones(turn: Turn, group: ClassicGroup, offsets: GroupOffsets) -> list[Record]:
    """Return the tombstones of a group and its offsets, also of those that an open transaction was about to commit."""
    pending = turn.shard.image.pending_in(group.group_id) - offsets.keys()
    gone: list[Record] = [
        OffsetTombstone(group=group.group_id, topic=topic, partition=partition)
        for topic, partition in [*offsets, *sorted(pending)]
    ]
    return [*gone, GroupTombstone(group=group.group_id)]


def offset_delete(turn: Turn, request: OffsetDeleteRequest) -> None:
    """Serve OffsetDelete. As with commits, an entry that names no existing partition is refused before the group is
    seen.
    """
    wanted = [(topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions]
    errors = {key: check_partition(turn, request.version, *key) for key in wanted}
    existing = [key for key in wanted if errors[key] is Error.NONE]
    group = turn.shard.groups.get(request.group_id)
    error = check_offset_delete(group, request) if existing or not wanted else Error.NONE
    if error is not Error.NONE:
        turn.reply(request, OffsetDeleteResponse(error_code=error))
        return
    gone: list[OffsetTombstone] = []
    for topic, partition in existing:
        assert group is not None
        if group.subscribes_to(topic):
            errors[topic, partition] = Error.GROUP_SUBSCRIBED_TO_TOPIC
        elif has_offset(turn, group.group_id, topic, partition):
            gone.append(OffsetTombstone(group=group.group_id, topic=topic, partition=partition))

    def durable(turn: Turn, error: Error) -> None:
        if error is Error.NONE:
            turn.reply(request, OffsetDeleteResponse(topics=deleted_offsets(request, errors)))
        else:
            turn.reply(request, OffsetDeleteResponse(error_code=append_error(error)))

    write_off(turn, gone)
    turn.when_durable(durable)


def has_offset(turn: Turn, group_id: str, topic: str, partition: int) -> bool:
    image = turn.shard.image
    return (topic, partition) in image.offsets.get(group_id, {}) or image.is_pending(group_id, topic, partition)


def check_offset_delete(group: ClassicGroup | None, request: OffsetDeleteRequest) -> Error:
    if group is None:
        return Error.GROUP_ID_NOT_FOUND
    if group.state is not State.EMPTY and group.protocol_type != PROTOCOL_TYPE:
        return Error.NON_EMPTY_GROUP
    return Error.NONE


def deleted_offsets(
    request: OffsetDeleteRequest, errors: Mapping[tuple[str, int], Error]
) -> tuple[OffsetDeleteResponseTopic, ...]:
    return tuple(
        OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=tuple(
                OffsetDeleteResponsePartition(
                    partition_index=partition.partition_index,
                    error_code=errors[topic.name, partition.partition_index],
                )
                for partition in topic.partitions
            ),
        )
        for topic in request.topics
    )


def topics_deleted(turn: Turn, names: frozenset[str]) -> None:
    """Delete every group's offsets of a deleted topic."""
    image = turn.shard.image
    committed = [(group_id, *key) for group_id, offsets in image.offsets.items() for key in offsets]
    pending = [key for offsets in image.pending.values() for key in offsets]
    gone = [
        OffsetTombstone(group=group_id, topic=topic, partition=partition)
        for group_id, topic, partition in dict.fromkeys([*committed, *pending])
        if topic in names
    ]
    write_off(turn, gone)


def write_off(turn: Turn, gone: list[OffsetTombstone]) -> None:
    def written(turn: Turn, error: Error) -> None:
        if error is Error.NONE:
            for record in gone:
                apply_offset(turn.shard.image, record)

    if gone:
        turn.append(tuple(gone), written)


def on_expiry_timer(turn: Turn) -> None:
    """Delete offsets of topics that no member of the group reads any more, and groups that hold nothing at all."""
    turn.set_timer(EXPIRY_KEY, turn.config.offsets_retention_check_interval_ms)
    if turn.shard.pending:
        return  # a commit may be under way: what a group holds is known next time
    for group in list(turn.shard.groups.values()):
        offsets = turn.shard.image.offsets.get(group.group_id, {})
        pending = turn.shard.image.pending_in(group.group_id)
        old = [key for key, one in offsets.items() if key not in pending and has_expired(turn, group, one)]
        if group.state is State.EMPTY and len(old) == len(offsets) and not pending:
            delete(turn, group)
        else:
            write_off(turn, [OffsetTombstone(group=group.group_id, topic=key[0], partition=key[1]) for key in old])


def delete(turn: Turn, group: ClassicGroup) -> None:
    offsets = take_out(turn, group)

    def written(turn: Turn, error: Error) -> None:
        if error is not Error.NONE:
            put_back(turn, [(group, offsets)])

    turn.append(tuple(tombstones(turn, group, offsets)), written)


def has_expired(turn: Turn, group: ClassicGroup, committed: OffsetCommit) -> bool:
    expires_ms = expiry_ms(turn.shard, group, committed)
    return expires_ms is not None and turn.now_ms >= expires_ms


def expiry_ms(shard: Shard, group: ClassicGroup, committed: OffsetCommit) -> int | None:
    """Return when the offset expires if the group stays as it is; None for never."""
    base = age_counts_from(group, committed)
    if base is None or group.subscribes_to(committed.topic):
        return None
    if committed.expire_timestamp is not None:
        return committed.expire_timestamp
    return base + shard.config.offsets_retention_minutes * 60_000


def first_expiry_ms(shard: Shard) -> int | None:
    """Return from when on a check deletes something if the groups stay as they are; None for never."""
    found = []
    for group in shard.groups.values():
        offsets, pending = shard.image.offsets.get(group.group_id, {}), shard.image.pending_in(group.group_id)
        if group.state is State.EMPTY and not offsets and not pending:
            return 0
        found += [expiry_ms(shard, group, one) for key, one in offsets.items() if key not in pending]
    return min((at_ms for at_ms in found if at_ms is not None), default=None)


def age_counts_from(group: ClassicGroup, committed: OffsetCommit) -> int | None:
    """Return the time from which the offset's age counts; None, so that it does not expire, where the group rebalances
    or its topics are unknown.
    """
    if group.protocol_type is None:
        return committed.commit_timestamp
    if group.state is State.EMPTY:
        return group.state_since_ms
    if group.state is State.STABLE and group.subscribed_topics() is not None:
        return committed.commit_timestamp
    return None
