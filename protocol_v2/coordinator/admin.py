"""Serve ConsumerGroupDescribe, ListGroups, DeleteGroups, OffsetDelete, and changes of a group's own settings.

Both sides  a request that names groups of both protocols is answered by both coordinators; `Shard.rewrites` joins the
            answers
Expiry      deletes offsets of topics that no member subscribes to, and empty groups that hold no offsets
Reference   GroupMetadataManager.consumerGroupDescribe, GroupCoordinatorShard in Apache Kafka
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rebalance_lab.protocol_v1.common import messages as v1
from rebalance_lab.protocol_v1.common.effects import TimerKey
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import Request, Response
from rebalance_lab.protocol_v2.common.messages import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    HeartbeatAssignment,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from rebalance_lab.protocol_v2.common.topic_image import Partitions, by_name
from rebalance_lab.protocol_v2.coordinator.assignment.target_assignment import most_wanted
from rebalance_lab.protocol_v2.coordinator.config import GROUP_SETTINGS, refusal_of
from rebalance_lab.protocol_v2.coordinator.offsets import check_partition
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup
from rebalance_lab.protocol_v2.coordinator.state.records import ending
from rebalance_lab.protocol_v2.coordinator.state.shard import Rewrite, Shard, Turn
from rebalance_lab.protocol_v2.coordinator.state.states import Event, GroupState
from rebalance_lab.protocol_v2.coordinator.state.values import ConsumerMember

EXPIRY_KEY: TimerKey = ("consumer-expiry",)
GROUP_RESOURCE = 32
DELETE_SETTING = 1


def consumer_group_describe(turn: Turn, request: ConsumerGroupDescribeRequest) -> None:
    groups = tuple(described(turn, group_id) for group_id in request.group_ids)
    turn.reply(request, ConsumerGroupDescribeResponse(groups=groups))


def described(turn: Turn, group_id: str) -> DescribedConsumerGroup:
    if not group_id:
        return DescribedConsumerGroup(group_id="", error_code=Error.INVALID_GROUP_ID)
    group = turn.shard.groups.get(group_id)
    if group is None:
        message = f"Group {group_id} not found."
        # Unlike DescribeGroups, which calls such a group Dead, this view leaves the state empty.
        return DescribedConsumerGroup(group_id=group_id, error_code=Error.GROUP_ID_NOT_FOUND, error_message=message)
    return DescribedConsumerGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=most_wanted(group.assignors) or next(iter(turn.shard.assignors)),
        members=tuple(described_member(turn, group, group.members[member_id]) for member_id in group.order),
    )


def described_member(turn: Turn, group: ConsumerGroup, member: ConsumerMember) -> DescribedConsumerMember:
    metadata, current = member.metadata, member.current

    def existing(partitions: Partitions) -> HeartbeatAssignment:
        known = [partition for partition in partitions if turn.shard.image.exists(partition[0])]
        return HeartbeatAssignment(topic_partitions=by_name(known))

    return DescribedConsumerMember(
        member_id=member.member_id,
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        member_epoch=current.member_epoch,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        subscribed_topic_names=metadata.subscribed_topic_names,
        subscribed_topic_regex=metadata.subscribed_topic_regex,
        assignment=existing((*current.assigned, *current.revoking)),
        target_assignment=existing(group.target_of(member.member_id).partitions),
        member_type=1 if metadata.classic is None else 0,
    )


def list_groups(turn: Turn, request: v1.ListGroupsRequest) -> None:
    states = {state.lower() for state in request.states_filter}
    types = {group_type.lower() for group_type in request.types_filter}
    own = tuple(
        v1.ListedGroup(
            group_id=group.group_id, protocol_type="consumer", group_state=group.state.value, group_type="consumer"
        )
        for group in turn.shard.groups.values()
        if (not states or group.state.value.lower() in states) and (not types or "consumer" in types)
    )

    def with_ours(response: Response) -> Response:
        assert isinstance(response, v1.ListGroupsResponse)
        return replace(response, groups=(*response.groups, *own))

    ask_classic(turn, request, request, with_ours)


def ask_classic(turn: Turn, request: Request, asked: Request, change: Callable[[Response], Response]) -> None:
    """Ask the classic side `asked`, and answer `request` with what becomes of its answer."""
    turn.shard.rewrites.append(Rewrite(request=request, asked=asked, change=change))
    turn.from_classic(turn.shard.classic.handle(asked, turn.now_ms))


def delete_groups(turn: Turn, request: v1.DeleteGroupsRequest) -> None:
    """Delete groups. Where classic groups are named too, the classic side's answer carries this coordinator's
    results.
    """
    errors: dict[str, Error] = {}
    for name in dict.fromkeys(request.groups_names):
        group = turn.shard.in_memory(name)
        if group is not None:
            delete_group(turn, group, errors)

    def with_ours(response: Response) -> Response:
        assert isinstance(response, v1.DeleteGroupsResponse)
        ours = (v1.DeletableGroupResult(group_id=name, error_code=code) for name, code in errors.items())
        return v1.DeleteGroupsResponse(results=(*response.results, *ours))

    others = tuple(name for name in request.groups_names if name not in errors)
    if others:
        ask_classic(turn, request, replace(request, groups_names=others), with_ours)
    else:
        turn.when_durable(lambda turn, error: turn.reply(request, with_ours(v1.DeleteGroupsResponse(results=()))))


def delete_group(turn: Turn, group: ConsumerGroup, errors: dict[str, Error]) -> None:
    group_id = group.group_id
    if group.state is not GroupState.EMPTY:
        errors[group_id] = Error.NON_EMPTY_GROUP
        return
    errors[group_id] = Error.NONE
    offsets = turn.shard.offsets.tombstones(group_id)

    def durable(turn: Turn, error: Error) -> None:
        errors[group_id] = error
        if error is Error.NONE:
            for record in offsets:
                turn.shard.offsets.apply(record)

    turn.commit(group_id, [*offsets, *ending(group)], Event.DELETED, durable)


def offset_delete(turn: Turn, group: ConsumerGroup, request: v1.OffsetDeleteRequest) -> None:
    stored = turn.shard.offsets.of(group.group_id)
    topics: list[v1.OffsetDeleteResponseTopic] = []
    gone: list[Any] = []
    for topic in request.topics:
        found: list[v1.OffsetDeleteResponsePartition] = []
        for partition in topic.partitions:
            key = (topic.name, partition.partition_index)
            error = check_partition(turn, request.version, *key)
            if error is Error.NONE and (topic.name in group.names or topic.name in group.regex_topics):
                error = Error.GROUP_SUBSCRIBED_TO_TOPIC
            if error is Error.NONE and key in stored:
                gone.append(turn.shard.offsets.tombstone(group=group.group_id, topic=key[0], partition=key[1]))
            found.append(v1.OffsetDeleteResponsePartition(partition_index=key[1], error_code=error))
        topics.append(v1.OffsetDeleteResponseTopic(name=topic.name, partitions=tuple(found)))

    def durable(turn: Turn, error: Error) -> None:
        if error is Error.NONE:
            for record in gone:
                turn.shard.offsets.apply(record)
            turn.reply(request, v1.OffsetDeleteResponse(topics=tuple(topics)))
        else:
            turn.reply(request, v1.OffsetDeleteResponse(error_code=error))

    turn.commit(group.group_id, gone, Event.HEARTBEAT, durable)


def on_expiry_timer(turn: Turn) -> None:
    turn.set_timer(EXPIRY_KEY, turn.config.offsets_retention_check_interval_ms)
    if turn.shard.pending:
        return  # a commit may be under way: what a group holds is known next time
    for group in list(turn.shard.groups.values()):
        stored = turn.shard.offsets.of(group.group_id)
        old = [key for key, at_ms in expiries_ms(turn.shard, group).items() if turn.now_ms >= at_ms]
        if group.state is GroupState.EMPTY and len(old) == len(stored):
            delete_group(turn, group, {})
        elif old:
            forget_offsets(turn, group, old)


def expiries_ms(shard: Shard, group: ConsumerGroup) -> dict[tuple[str, int], int]:
    """Return when offsets expire if the group stays as it is. Offsets of subscribed topics do not."""
    retention_ms = shard.config.offsets_retention_minutes * 60_000
    return {
        key: committed.expire_timestamp or committed.commit_timestamp + retention_ms
        for key, committed in shard.offsets.of(group.group_id).items()
        if key[0] not in group.names and key[0] not in group.regex_topics
    }


def first_expiry_ms(shard: Shard) -> int | None:
    """Return from when on a check deletes something if the groups stay as they are; None for never."""
    found: list[int] = []
    for group in shard.groups.values():
        if group.state is GroupState.EMPTY and not shard.offsets.of(group.group_id):
            return 0
        found += expiries_ms(shard, group).values()
    return min(found, default=None)


def forget_offsets(turn: Turn, group: ConsumerGroup, keys: list[tuple[str, int]]) -> None:
    gone = [turn.shard.offsets.tombstone(group=group.group_id, topic=key[0], partition=key[1]) for key in keys]

    def durable(turn: Turn, error: Error) -> None:
        if error is Error.NONE:
            for record in gone:
                turn.shard.offsets.apply(record)

    turn.commit(group.group_id, gone, Event.HEARTBEAT, durable)


def incremental_alter_configs(turn: Turn, request: IncrementalAlterConfigsRequest) -> None:
    responses = tuple(altered(turn, resource, request.validate_only) for resource in request.resources)
    turn.reply(request, IncrementalAlterConfigsResponse(responses=responses))


def altered(turn: Turn, resource: AlterConfigsResource, validate_only: bool) -> AlterConfigsResourceResponse:
    name = resource.resource_name
    settings = dict(turn.shard.settings.get(name, {}))
    message = None if resource.resource_type == GROUP_RESOURCE else "only groups have settings here"
    for entry in resource.configs:
        if entry.name not in GROUP_SETTINGS:
            message = f"unknown group setting {entry.name}"
        elif entry.config_operation == DELETE_SETTING:
            settings.pop(entry.name, None)
        elif entry.value is None or not entry.value.isdecimal():
            message = f"{entry.name} must be a whole number"
        else:
            settings[entry.name] = int(entry.value)
    message = message or refusal_of(turn.config, settings)
    if message is not None:
        return AlterConfigsResourceResponse(resource_name=name, error_code=Error.INVALID_CONFIG, error_message=message)
    if not validate_only:
        turn.shard.settings[name] = settings
    return AlterConfigsResourceResponse(resource_name=name)
