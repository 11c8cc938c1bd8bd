"""Serve Heartbeat, and remove members whose session has expired.

Reference  classicGroupHeartbeat, expireClassicGroupMemberHeartbeat in Apache Kafka
"""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.errors import NONE, Error, append_error
from rebalance_lab.protocol_v1.common.messages import HeartbeatRequest, HeartbeatResponse
from rebalance_lab.protocol_v1.coordinator.rebalance import complete_join, prepare_rebalance, remove_member
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup
from rebalance_lab.protocol_v1.coordinator.state.shard import Turn
from rebalance_lab.protocol_v1.coordinator.state.states import Event, State


def heartbeat(turn: Turn, request: HeartbeatRequest) -> None:
    group = turn.shard.groups.get(request.group_id)
    error = check(group, request)
    if error is not NONE:
        turn.reply(request, HeartbeatResponse(error_code=error))
        return
    assert group is not None
    turn.restart_session(group, group.members[request.member_id])
    rebalancing = group.state is State.PREPARING_REBALANCE
    answer = Error.REBALANCE_IN_PROGRESS if rebalancing else NONE

    def durable(turn: Turn, error: Error) -> None:
        turn.reply(request, HeartbeatResponse(error_code=answer if error is NONE else append_error(error)))

    turn.when_durable(durable)


def check(group: ClassicGroup | None, request: HeartbeatRequest) -> Error:
    if group is None:
        return Error.UNKNOWN_MEMBER_ID
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is NONE and request.generation_id != group.generation_id:
        return Error.ILLEGAL_GENERATION
    return error


def on_session_timer(turn: Turn, group: ClassicGroup, member_id: str) -> None:
    if member_id in group.pending_join:
        group.remove(member_id)
    else:
        member = group.members[member_id]
        waits_for_us = member.parked_join is not None or member.parked_sync is not None
        if waits_for_us and not member.is_new:
            return  # its session begins anew with the answer
        remove_member(turn, group, member_id)
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            prepare_rebalance(turn, group, Event.SESSION_EXPIRED, member_id=member_id)
            return
    # Unlike a leave, an expiry also ends the initial delay of a group that was empty.
    if group.state is State.PREPARING_REBALANCE and group.all_joined:
        complete_join(turn, group)
