"""Serve ConsumerGroupHeartbeat: a member joins, stays, acknowledges or leaves.

Given      a heartbeat; its epoch says what the member does (0 join, -1 leave, -2 step out, else stay)
Returns    in the turn's effects: records, timers and an answer; a refused heartbeat changes nothing, no timer either
Order      form, group, room, member, fencing - in this order, which decides the error code; then
           assignment/progress.py
Reference  consumerGroupHeartbeat, consumerGroupLeave in Apache Kafka
Start at   consumer_group_heartbeat
"""

from __future__ import annotations

from collections.abc import Collection

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v2.common.messages import (
    JOIN_EPOCH,
    STEP_OUT_EPOCH,
    UNCHANGED_TIMEOUT,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
)
from rebalance_lab.protocol_v2.common.topic_image import by_name
from rebalance_lab.protocol_v2.coordinator.assignment.progress import Step
from rebalance_lab.protocol_v2.coordinator.assignment.subscriptions import RegexUpdate, has_expired
from rebalance_lab.protocol_v2.coordinator.classic_members.conversion import Opened, open_group
from rebalance_lab.protocol_v2.coordinator.config import HEARTBEAT_INTERVAL, SESSION_TIMEOUT
from rebalance_lab.protocol_v2.coordinator.fencing import (
    Refused,
    check_form,
    check_member_epoch,
    check_room,
    identified,
    known_member,
    owned_partitions,
)
from rebalance_lab.protocol_v2.coordinator.leave import remove_members
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup
from rebalance_lab.protocol_v2.coordinator.state.records import ConsumerGroupCurrentMemberAssignment, GroupRecord
from rebalance_lab.protocol_v2.coordinator.state.shard import SESSION, Done, Turn
from rebalance_lab.protocol_v2.coordinator.state.states import Event
from rebalance_lab.protocol_v2.coordinator.state.values import ConsumerMember, CurrentAssignment, MemberMetadata
from rebalance_lab.protocol_v2.coordinator.static_members import joining_static_member, stepped_out


def consumer_group_heartbeat(turn: Turn, request: ConsumerGroupHeartbeatRequest) -> None:
    try:
        if request.member_epoch < JOIN_EPOCH:
            leave(turn, request)
        else:
            stay(turn, request)
    except Refused as refused:
        turn.reply(request, refused_heartbeat(request, refused.error, refused.message))


def refused_heartbeat_form(
    request: ConsumerGroupHeartbeatRequest, assignors: Collection[str]
) -> ConsumerGroupHeartbeatResponse | None:
    try:
        check_form(request, assignors)
    except Refused as refused:
        return refused_heartbeat(request, refused.error, refused.message)
    return None


def refused_heartbeat(
    request: ConsumerGroupHeartbeatRequest, error: Error, message: str | None = None
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)


def stay(turn: Turn, request: ConsumerGroupHeartbeatRequest) -> None:
    opened = open_group(turn, request.group_id, joins=request.member_epoch == JOIN_EPOCH)
    group = opened.group
    check_room(group, turn.config, request.member_id)
    member_id = request.member_id or turn.shard.new_member_id(request.client_id)
    records: list[GroupRecord] = []
    member = member_of(group, request, member_id, records)
    if brings_nothing(turn, group, member, request):
        keep_alive(turn, request, member_id)
        turn.when_durable(answer(turn, request, member_id, member.current))
        return
    owned = owned_partitions(turn.shard.image, member.current, request.topic_partitions)
    if request.member_epoch != JOIN_EPOCH:
        check_member_epoch(member.current, request.member_epoch, owned)
    metadata = updated_metadata(group, member.metadata, request)
    former = group.static.get(request.instance_id) if request.instance_id is not None else None
    step = Step(
        turn=turn,
        group=group,
        member=member,
        metadata=metadata,
        owned=owned,
        names_as_sent=request.subscribed_topic_names,
        replaces=former if former != member_id else None,
        records=records,
    )
    step.store_member()
    step.refresh(bump=step.names_changed or step.regex is RegexUpdate.RESOLVED)
    current = step.reconcile(step.renew_target())
    keep_alive(turn, request, member_id)
    send(turn, request, opened, step, current)


def brings_nothing(
    turn: Turn, group: ConsumerGroup, member: ConsumerMember, request: ConsumerGroupHeartbeatRequest
) -> bool:
    """Tell whether this is the usual heartbeat of a member that has nothing to do: then no further check is made."""
    epoch = group.assignment_epoch
    return (
        request.member_epoch == epoch >= group.group_epoch
        and member.current.is_reconciled_to(epoch)
        and says_nothing_new(member.metadata, request)
        and not group.regexes
        and not has_expired(group, turn.now_ms)
    )


def keep_alive(turn: Turn, request: ConsumerGroupHeartbeatRequest, member_id: str) -> None:
    turn.set_timer((SESSION, request.group_id, member_id), turn.setting(request.group_id, SESSION_TIMEOUT))


def send(
    turn: Turn, request: ConsumerGroupHeartbeatRequest, opened: Opened, step: Step, current: CurrentAssignment
) -> None:
    member_id, known = step.member.member_id, step.member.current.assigned
    changed = current.assigned is not known and current.assigned != known
    told = changed or request.member_epoch == JOIN_EPOCH or is_full(request)
    durable = answer(
        turn, request, member_id, current, HeartbeatAssignment(by_name(current.assigned)) if told else None
    )
    opened.commit(turn, step.records, durable, member_id=member_id)


def answer(
    turn: Turn,
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
    current: CurrentAssignment,
    assignment: HeartbeatAssignment | None = None,
) -> Done:
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=current.member_epoch,
        heartbeat_interval_ms=turn.setting(request.group_id, HEARTBEAT_INTERVAL),
        assignment=assignment,
    )

    def durable(turn: Turn, error: Error) -> None:
        turn.reply(request, response if error is Error.NONE else refused_heartbeat(request, error))

    return durable


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Tell whether the request says everything, as a client does that has lost an answer; it is told everything."""
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    has_timeout = request.rebalance_timeout_ms != UNCHANGED_TIMEOUT
    return has_timeout and subscribes and request.topic_partitions is not None


def member_of(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: str, records: list[GroupRecord]
) -> ConsumerMember:
    """Find or make the request's member. Without an instance id even a static member takes the dynamic path."""
    joins = request.member_epoch == JOIN_EPOCH
    if request.instance_id is not None:
        return joining_static_member(
            group, member_id, request.instance_id, takes_over=joins, classic=False, records=records
        )
    if joins:
        return group.members.get(member_id) or ConsumerMember(member_id, MemberMetadata())
    return known_member(group, member_id)


def updated_metadata(
    group: ConsumerGroup, before: MemberMetadata, request: ConsumerGroupHeartbeatRequest
) -> MemberMetadata:
    """Update the member's metadata: what the request leaves out stays, and a classic member is classic no longer."""
    if says_nothing_new(before, request):
        return before
    after = MemberMetadata(
        instance_id=before.instance_id if request.instance_id is None else request.instance_id,
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        subscribed_topic_names=subscribed_names(group, before, request.subscribed_topic_names),
        subscribed_topic_regex=(
            before.subscribed_topic_regex if request.subscribed_topic_regex is None else request.subscribed_topic_regex
        ),
        rebalance_timeout_ms=(
            before.rebalance_timeout_ms
            if request.rebalance_timeout_ms == UNCHANGED_TIMEOUT
            else request.rebalance_timeout_ms
        ),
        server_assignor=before.server_assignor if request.server_assignor is None else request.server_assignor,
    )
    return before if after == before else after


def says_nothing_new(before: MemberMetadata, request: ConsumerGroupHeartbeatRequest) -> bool:
    """Tell whether this is the usual heartbeat, without building anything."""
    return (
        request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.rebalance_timeout_ms == UNCHANGED_TIMEOUT
        and request.server_assignor is None
        and request.rack_id is None
        and request.instance_id in (None, before.instance_id)
        and request.client_id == before.client_id
        and request.client_host == before.client_host
        and before.classic is None
    )


def subscribed_names(group: ConsumerGroup, before: MemberMetadata, names: tuple[str, ...] | None) -> tuple[str, ...]:
    if names is None:
        return before.subscribed_topic_names
    wanted = group.interned(names)
    return before.subscribed_topic_names if wanted == before.subscribed_topic_names else wanted


def leave(turn: Turn, request: ConsumerGroupHeartbeatRequest) -> None:
    """Let a member leave, without a check of its epoch: a member that leaves may be behind."""
    group = turn.shard.in_memory(request.group_id)
    if group is None:
        raise Refused(Error.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    member = identified(group, request.member_id, request.instance_id)

    def durable(turn: Turn, error: Error) -> None:
        if error is Error.NONE:
            response = ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=request.member_epoch)
            turn.reply(request, response)
        else:
            turn.reply(request, refused_heartbeat(request, error))

    if request.member_epoch == STEP_OUT_EPOCH:
        record = ConsumerGroupCurrentMemberAssignment(
            group_id=group.group_id, member_id=member.member_id, value=stepped_out(member.current)
        )
        turn.commit(group.group_id, [record], Event.MEMBER_STEPPED_OUT, durable, member_id=member.member_id)
    else:
        remove_members(turn, group, [member], Event.MEMBER_LEFT, durable)
