"""Serve classic members inside a consumer group: translate their JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

JoinGroup  is their only heartbeat that moves anything: it carries subscription and owned partitions in its bytes.
           Each phase (give up, then receive) costs one JoinGroup and one SyncGroup
Generation is the member's epoch; it may be behind the group's, and no member leads
Woken      by an answer REBALANCE_IN_PROGRESS when a member is behind the assignment epoch, has partitions to give up,
           or waits for free partitions. The member then has the rebalance timeout to join
Reference  classicGroupJoinToConsumerGroup, classicGroupSyncToConsumerGroup, classicGroupHeartbeatToConsumerGroup
Start at   join_group
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rebalance_lab.protocol_v1.common import messages as v1
from rebalance_lab.protocol_v1.common.errors import Error, MalformedBytes
from rebalance_lab.protocol_v1.common.request_form import rebalance_timeout_of
from rebalance_lab.protocol_v2.common.topic_image import TopicPartition
from rebalance_lab.protocol_v2.coordinator.assignment.progress import Step
from rebalance_lab.protocol_v2.coordinator.assignment.reconciliation import waits_for_others
from rebalance_lab.protocol_v2.coordinator.assignment.target_assignment import is_due
from rebalance_lab.protocol_v2.coordinator.classic_members.classic_side import EmbeddedSubscription
from rebalance_lab.protocol_v2.coordinator.classic_members.conversion import PROTOCOL_TYPE, downgrade, may_be_classic
from rebalance_lab.protocol_v2.coordinator.classic_members.member_assignment import partitions_by_topic
from rebalance_lab.protocol_v2.coordinator.config import MigrationPolicy
from rebalance_lab.protocol_v2.coordinator.fencing import (
    Refused,
    check_instance,
    check_room,
    identified,
    known_member,
    static_member,
)
from rebalance_lab.protocol_v2.coordinator.leave import remove_members
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup
from rebalance_lab.protocol_v2.coordinator.state.records import GroupRecord, ending
from rebalance_lab.protocol_v2.coordinator.state.shard import JOIN, SYNC, Turn, ignore
from rebalance_lab.protocol_v2.coordinator.state.states import Event, MemberState
from rebalance_lab.protocol_v2.coordinator.state.values import (
    ClassicMetadata,
    ConsumerMember,
    CurrentAssignment,
    MemberMetadata,
)
from rebalance_lab.protocol_v2.coordinator.static_members import joining_static_member

MEMBER_ID_REQUIRED_SINCE = 4
MANY_LEAVE_SINCE = 3


def join_group(turn: Turn, group: ConsumerGroup, request: v1.JoinGroupRequest) -> None:
    try:
        step = classic_step(turn, group, request)
    except Refused as refused:
        turn.reply(request, v1.JoinGroupResponse(error_code=refused.error, member_id=refused.message or ""))
        return
    step.store_member()
    bump = step.subscription_changed
    step.refresh(bump=bump)
    if replaces_last_consumer(turn, group, request.group_instance_id):
        join_and_downgrade(step, request)
        return
    try:
        current = step.reconcile(step.renew_target())
    except Refused as refused:
        turn.reply(request, v1.JoinGroupResponse(error_code=refused.error))
        return
    key = (group.group_id, step.member.member_id)

    def durable(turn: Turn, error: Error) -> None:
        if error is Error.NONE:
            turn.shard.join_timers.discard(key)
            turn.cancel_timer((JOIN, *key))
            turn.restart_session(*key)
            turn.set_timer((SYNC, *key), max(0, rebalance_timeout_of(request)))
        turn.reply(request, join_response(step, current, error))

    turn.commit(group.group_id, step.records, Event.CLASSIC_MEMBER_JOINED, durable, member_id=step.member.member_id)


def join_and_downgrade(step: Step, request: v1.JoinGroupRequest) -> None:
    """Let a static classic member take the place of the last member that spoke the consumer protocol."""
    turn, group = step.turn, step.group
    rebalance = group.assignment_epoch < step.group_epoch
    current = step.member.current if rebalance else step.reconcile(step.kept_target())
    member = ConsumerMember(step.member.member_id, step.metadata, current)
    assert request.group_instance_id is not None

    def durable(turn: Turn, error: Error) -> None:
        turn.reply(request, join_response(step, current, error))

    downgrade(
        turn,
        group,
        joining=member,
        replaced=group.static[request.group_instance_id],
        before=step.records,
        rebalance=rebalance,
        done=durable,
    )


def join_response(step: Step, current: CurrentAssignment, error: Error) -> v1.JoinGroupResponse:
    if error is not Error.NONE:
        return v1.JoinGroupResponse(error_code=error)
    assert step.metadata.classic is not None
    return v1.JoinGroupResponse(
        generation_id=current.member_epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=step.metadata.classic.protocols[0].name,
        member_id=step.member.member_id,
    )


def classic_step(turn: Turn, group: ConsumerGroup, request: v1.JoinGroupRequest) -> Step:
    """Check the request and make its Step. A refusal's message is the member id to answer with."""
    if turn.config.group_consumer_migration_policy is MigrationPolicy.DISABLED:
        raise Refused(Error.INCONSISTENT_GROUP_PROTOCOL)
    is_stranger = not request.member_id
    prefix = request.client_id if request.group_instance_id is None else request.group_instance_id
    member_id = turn.shard.new_member_id(prefix) if is_stranger else request.member_id
    refuse_full(turn, group, member_id)
    if not supports(group, request):
        raise Refused(Error.INCONSISTENT_GROUP_PROTOCOL)
    if is_stranger and request.group_instance_id is None and request.version >= MEMBER_ID_REQUIRED_SINCE:
        raise Refused(Error.MEMBER_ID_REQUIRED, member_id)
    records: list[GroupRecord] = []
    member = classic_member_of(group, request, member_id, takes_over=is_stranger, records=records)
    try:
        subscription = turn.shard.codec.subscription(request.protocols[0].metadata)
    except MalformedBytes:
        raise Refused(Error.UNKNOWN_SERVER_ERROR) from None
    former = group.static.get(request.group_instance_id) if request.group_instance_id is not None else None
    return Step(
        turn=turn,
        group=group,
        member=member,
        metadata=classic_metadata(group, member.metadata, request, subscription),
        owned=owned_by_name(turn, member.current, subscription.owned),
        names_as_sent=subscription.topics,
        replaces=former if former != member_id else None,
        records=records,
    )


def refuse_full(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    try:
        check_room(group, turn.config, member_id)
    except Refused as full:
        raise Refused(full.error) from None


def supports(group: ConsumerGroup, request: v1.JoinGroupRequest) -> bool:
    """Tell whether all classic members share a name with the request; a rejoining member still counts with its old
    list.
    """
    if request.protocol_type != PROTOCOL_TYPE:
        return False
    return any(group.classic_protocols[protocol.name] == group.classic_members for protocol in request.protocols)


def classic_member_of(
    group: ConsumerGroup,
    request: v1.JoinGroupRequest,
    member_id: str,
    *,
    takes_over: bool,
    records: list[GroupRecord],
) -> ConsumerMember:
    if request.group_instance_id is None:
        return group.members.get(member_id) or ConsumerMember(member_id, MemberMetadata())
    try:
        return joining_static_member(
            group, member_id, request.group_instance_id, takes_over=takes_over, classic=True, records=records
        )
    except Refused as refused:
        raise Refused(refused.error) from None


def classic_metadata(
    group: ConsumerGroup, before: MemberMetadata, request: v1.JoinGroupRequest, subscription: EmbeddedSubscription
) -> MemberMetadata:
    names = group.interned(subscription.topics)
    timeout_ms = rebalance_timeout_of(request)
    return replace(
        before,
        instance_id=before.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=before.rack_id if subscription.rack_id is None else subscription.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        subscribed_topic_names=before.subscribed_topic_names if names == before.subscribed_topic_names else names,
        subscribed_topic_regex="",
        rebalance_timeout_ms=before.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        classic=ClassicMetadata(session_timeout_ms=request.session_timeout_ms, protocols=request.protocols),
    )


def owned_by_name(turn: Turn, current: CurrentAssignment, owned: Mapping[str, Sequence[int]]) -> list[TopicPartition]:
    """Read owned names against the topics that exist, as Kafka does; what is gone cannot be owned any more."""
    topics = turn.shard.image.topics
    return [
        (topics[name].topic_id, partition)
        for name, partitions in owned.items()
        if name in topics
        for partition in partitions
    ]


def replaces_last_consumer(turn: Turn, group: ConsumerGroup, instance_id: str | None) -> bool:
    """Tell whether the join replaces the last consumer; a static member may change to the classic protocol under its
    own id.
    """
    holder = group.static.get(instance_id) if instance_id is not None else None
    if holder is None or group.members[holder].metadata.classic is not None:
        return False
    return group.classic_members == len(group.members) - 1 and may_be_classic(turn.config, len(group.members))


def classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> tuple[ConsumerMember, ClassicMetadata]:
    member = identified(group, member_id, instance_id)
    classic = member.metadata.classic
    if classic is None:
        raise Refused(Error.UNKNOWN_MEMBER_ID, "The member does not use the classic protocol.")
    if generation_id != member.current.member_epoch:
        raise Refused(Error.ILLEGAL_GENERATION)
    return member, classic


def sync_group(turn: Turn, group: ConsumerGroup, request: v1.SyncGroupRequest) -> None:
    key = (group.group_id, request.member_id)
    try:
        member, classic = classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
        if request.protocol_type not in (None, PROTOCOL_TYPE):
            raise Refused(Error.INCONSISTENT_GROUP_PROTOCOL)
        if request.protocol_name not in (None, classic.protocols[0].name):
            raise Refused(Error.INCONSISTENT_GROUP_PROTOCOL)
        behind = group.assignment_epoch > member.current.member_epoch
        if behind and member.current.state is not MemberState.UNREVOKED_PARTITIONS:
            wake(turn, group, member)
            raise Refused(Error.REBALANCE_IN_PROGRESS)
    except Refused as refused:
        turn.reply(request, v1.SyncGroupResponse(error_code=refused.error))
        return
    by_topic = partitions_by_topic(turn.shard.image, member.current.assigned)
    response = v1.SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=turn.shard.codec.encode(by_topic, like=classic.protocols[0].metadata),
    )

    def durable(turn: Turn, error: Error) -> None:
        if error is Error.NONE:
            turn.cancel_timer((SYNC, *key))
            turn.restart_session(*key)
        turn.reply(request, response if error is Error.NONE else v1.SyncGroupResponse(error_code=error))

    turn.when_durable(durable)


def heartbeat(turn: Turn, group: ConsumerGroup, request: v1.HeartbeatRequest) -> None:
    try:
        member, _ = classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    except Refused as refused:
        turn.reply(request, v1.HeartbeatResponse(error_code=refused.error))
        return
    turn.restart_session(group.group_id, member.member_id)
    answer = Error.NONE
    if should_join(turn, group, member):
        answer = Error.REBALANCE_IN_PROGRESS
        wake(turn, group, member)

    def durable(turn: Turn, error: Error) -> None:
        turn.reply(request, v1.HeartbeatResponse(error_code=answer if error is Error.NONE else error))

    turn.when_durable(durable)


def should_join(turn: Turn, group: ConsumerGroup, member: ConsumerMember) -> bool:
    current = member.current
    if current.member_epoch < group.assignment_epoch or current.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    if current.state is MemberState.UNRELEASED_PARTITIONS:
        return not waits_for_others(current, group.target_of(member.member_id), group.partition_epochs)
    return turn.config.wakes_classic_members and is_due(turn, group, group.group_epoch)


def wake(turn: Turn, group: ConsumerGroup, member: ConsumerMember) -> None:
    """Tell a member to join; it has the rebalance timeout from the first time that it is told."""
    key = (group.group_id, member.member_id)
    if key not in turn.shard.join_timers:
        turn.shard.join_timers.add(key)
        turn.set_timer((JOIN, *key), max(0, member.metadata.rebalance_timeout_ms))


def leave_group(turn: Turn, group: ConsumerGroup, request: v1.LeaveGroupRequest) -> None:
    """Remove members, whichever protocol they speak, with one bump for all of them."""
    entries = request.members
    if request.version < MANY_LEAVE_SINCE:
        entries = (v1.MemberIdentity(member_id=request.member_id),)
    errors: list[Error] = []
    leaving: dict[str, ConsumerMember] = {}
    for entry in entries:
        try:
            member = leaving_member(group, entry)
        except Refused as refused:
            errors.append(refused.error)
        else:
            errors.append(Error.NONE)
            leaving[member.member_id] = member

    def durable(turn: Turn, error: Error) -> None:
        turn.reply(request, leave_response(request, entries, errors, error))

    if leaving:
        remove_members(turn, group, list(leaving.values()), Event.MEMBER_LEFT, durable)
    else:
        turn.when_durable(durable)


def leaving_member(group: ConsumerGroup, entry: v1.MemberIdentity) -> ConsumerMember:
    if entry.group_instance_id is None:
        return known_member(group, entry.member_id)
    holder = static_member(group, entry.group_instance_id)
    if entry.member_id:
        check_instance(holder, entry.member_id)
    return holder


def leave_response(
    request: v1.LeaveGroupRequest, entries: Sequence[v1.MemberIdentity], errors: Sequence[Error], error: Error
) -> v1.LeaveGroupResponse:
    if error is not Error.NONE:
        return v1.LeaveGroupResponse(error_code=error)
    if request.version < MANY_LEAVE_SINCE:
        return v1.LeaveGroupResponse(error_code=errors[0])
    return v1.LeaveGroupResponse(
        members=tuple(
            v1.LeaveGroupResponseMember(
                member_id=entry.member_id, group_instance_id=entry.group_instance_id, error_code=code
            )
            for entry, code in zip(entries, errors, strict=True)
        )
    )


def join_empty_group(turn: Turn, group: ConsumerGroup, request: v1.JoinGroupRequest) -> None:
    """Turn an empty group into a classic group under any policy: tombstones, then the classic side's own way."""
    if request.member_id:
        if turn.config.forgets_empty_groups:
            turn.shard.forgotten.add(group.group_id)
        response = v1.JoinGroupResponse(error_code=Error.UNKNOWN_MEMBER_ID, member_id=request.member_id)
        turn.reply(request, response)
        return
    turn.shard.forgotten.discard(group.group_id)
    turn.commit(group.group_id, ending(group), Event.DOWNGRADED, ignore)
    turn.from_classic(turn.shard.classic.handle(request, turn.now_ms))
