"""Serve SyncGroup: members wait for the leader's assignment, which counts once it is durable.

Checks     form, group, identity, generation, protocol (KIP-559) - in this order
Reference  classicGroupSync in Apache Kafka
Start at   sync_group
"""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.errors import NONE, Error, append_error
from rebalance_lab.protocol_v1.common.messages import SyncGroupRequest, SyncGroupResponse
from rebalance_lab.protocol_v1.coordinator.rebalance import answer_sync, prepare_rebalance, reset_assignments
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup, ClassicMember
from rebalance_lab.protocol_v1.coordinator.state.records import group_metadata
from rebalance_lab.protocol_v1.coordinator.state.shard import Turn, session_key, sync_key
from rebalance_lab.protocol_v1.coordinator.state.states import Event, State


def sync_group(turn: Turn, request: SyncGroupRequest) -> None:
    group = turn.shard.groups.get(request.group_id)
    error = check(group, request)
    if error is not NONE:
        turn.reply(request, SyncGroupResponse(error_code=error))
        return
    assert group is not None
    member = group.members[request.member_id]
    group.pending_sync.pop(member.member_id, None)
    if not group.pending_sync:
        turn.cancel_timer(sync_key(group))
    if group.state is State.STABLE:
        turn.reply(request, stored_assignment(group, member))
        return
    member.parked_sync = request
    if group.leader == member.member_id:
        store_assignments(turn, group, request)


def check(group: ClassicGroup | None, request: SyncGroupRequest) -> Error:
    if group is None:
        return Error.UNKNOWN_MEMBER_ID
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not NONE:
        return error
    if request.generation_id != group.generation_id:
        return Error.ILLEGAL_GENERATION
    if differs(request.protocol_type, group.protocol_type) or differs(request.protocol_name, group.protocol_name):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    return Error.REBALANCE_IN_PROGRESS if group.state is State.PREPARING_REBALANCE else Error.NONE


def differs(given: str | None, known: str | None) -> bool:
    """Tell whether two names differ. A group that never completed a join has none yet, and older versions name none."""
    return given is not None and known is not None and given != known


def stored_assignment(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def store_assignments(turn: Turn, group: ClassicGroup, request: SyncGroupRequest) -> None:
    """Store the leader's assignments. Members that the leader left out get zero bytes; ids that are not members get
    nothing.
    """
    given = {entry.member_id: entry.assignment for entry in request.assignments}
    assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
    generation_id = group.generation_id

    def written(turn: Turn, error: Error) -> None:
        if group.state is not State.COMPLETING_REBALANCE or group.generation_id != generation_id:
            return  # the group has moved on meanwhile
        if error is NONE:
            spread(turn, group, assignments)
        else:
            reset_assignments(turn, group, append_error(error))
            prepare_rebalance(turn, group, Event.ASSIGNMENT_NOT_STORED, member_id=request.member_id)

    turn.append((group_metadata(group, assignments),), written)


def spread(turn: Turn, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
    for member in group.in_order():
        member.assignment = assignments.get(member.member_id, b"")
        answer_sync(turn, group, member, stored_assignment(group, member))
    turn.move(group, Event.ASSIGNMENT_STORED)


def on_sync_timer(turn: Turn, group: ClassicGroup) -> None:
    """Drop members that joined but never synced, be they static or the leader, and however long the group is Stable."""
    for member_id in list(group.pending_sync):
        group.remove(member_id)
        turn.cancel_timer(session_key(group, member_id))
    prepare_rebalance(turn, group, Event.SYNC_EXPIRED)
