"""Serve LeaveGroup: one member leaves, a batch of members leaves, or an administrator removes static members.

Reference  classicGroupLeave in Apache Kafka; KIP-345 for the batch, which names static members by instance id
"""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.errors import Error, append_error
from rebalance_lab.protocol_v1.common.messages import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeaveGroupResponseMember,
    MemberIdentity,
)
from rebalance_lab.protocol_v1.coordinator.rebalance import rebalance_or_complete, remove_member
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup
from rebalance_lab.protocol_v1.coordinator.state.shard import Turn, session_key
from rebalance_lab.protocol_v1.coordinator.state.states import Event, State

BATCH_SINCE = 3


def leave_group(turn: Turn, request: LeaveGroupRequest) -> None:
    group = turn.shard.groups.get(request.group_id)
    entries = request.members if request.version >= BATCH_SINCE else (MemberIdentity(member_id=request.member_id),)
    if group is None:
        turn.reply(request, answer(request, entries, [Error.UNKNOWN_MEMBER_ID] * len(entries)))
        return
    errors = [leave(turn, group, entry) for entry in entries]
    gone = [entry for entry, error in zip(entries, errors, strict=True) if error is Error.NONE]
    if gone and group.state is not State.EMPTY:
        # One rebalance for the whole batch. That a handed-out id which leaves starts one too is Kafka's way.
        member_id = gone[0].member_id or gone[0].group_instance_id
        rebalance_or_complete(turn, group, Event.MEMBER_LEFT, member_id=member_id, client_reason=gone[0].reason)

    def durable(turn: Turn, error: Error) -> None:
        if error is Error.NONE:
            turn.reply(request, answer(request, entries, errors))
        else:
            turn.reply(request, LeaveGroupResponse(error_code=append_error(error)))

    turn.when_durable(durable)


def leave(turn: Turn, group: ClassicGroup, entry: MemberIdentity) -> Error:
    member_id = entry.member_id
    if not member_id:
        holder = None if entry.group_instance_id is None else group.static.get(entry.group_instance_id)
        if holder is None:
            return Error.UNKNOWN_MEMBER_ID
        member_id = holder
    elif member_id in group.pending_join:
        group.remove(member_id)
        turn.cancel_timer(session_key(group, member_id))
        return Error.NONE
    else:
        error = group.check_member(member_id, entry.group_instance_id)
        if error is not Error.NONE:
            return error
    remove_member(turn, group, member_id)
    return Error.NONE


def answer(request: LeaveGroupRequest, entries: tuple[MemberIdentity, ...], errors: list[Error]) -> LeaveGroupResponse:
    if request.version < BATCH_SINCE:
        return LeaveGroupResponse(error_code=errors[0])
    return LeaveGroupResponse(
        members=tuple(
            LeaveGroupResponseMember(
                member_id=entry.member_id, group_instance_id=entry.group_instance_id, error_code=error
            )
            for entry, error in zip(entries, errors, strict=True)
        )
    )
