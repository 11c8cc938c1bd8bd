"""Serve JoinGroup: decide which members may join, and whether a join starts a rebalance.

Given      a request of a new member, of a member id that was handed out, or of a known member
Returns    in the turn's effects: an answer, or the request parked until the join phase ends
Checks     form, group, capacity, protocols, identity - in this order, which decides the error code
Reference  KIP-394 (handed-out ids), KIP-345 (instance ids), KIP-814 (skip_assignment); classicGroupJoin in Apache Kafka
Start at   join_group
"""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.errors import NONE, Error
from rebalance_lab.protocol_v1.common.messages import JoinGroupRequest, JoinGroupResponse
from rebalance_lab.protocol_v1.common.request_form import rebalance_timeout_of
from rebalance_lab.protocol_v1.coordinator.rebalance import current_generation, rebalance_or_complete
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup, ClassicMember
from rebalance_lab.protocol_v1.coordinator.state.records import group_metadata
from rebalance_lab.protocol_v1.coordinator.state.shard import Turn, session_key
from rebalance_lab.protocol_v1.coordinator.state.states import Event, State
from rebalance_lab.protocol_v1.coordinator.static_members import replace_static_member

MEMBER_ID_REQUIRED_SINCE = 4


def join_group(turn: Turn, request: JoinGroupRequest) -> None:
    group = turn.shard.groups.get(request.group_id)
    if group is None and request.member_id:
        refuse(turn, request, Error.UNKNOWN_MEMBER_ID)
    elif group is None:
        join_new_group(turn, request)
    else:
        join_existing_group(turn, group, request)


def refuse(turn: Turn, request: JoinGroupRequest, error: Error, member_id: str | None = None) -> None:
    turn.reply(
        request, JoinGroupResponse(error_code=error, member_id=request.member_id if member_id is None else member_id)
    )


def join_new_group(turn: Turn, request: JoinGroupRequest) -> None:
    """Create a group and join it. The group is written down empty, even if this very request is refused (as Kafka
    does).
    """
    group = turn.create_group(request.group_id)
    empty = group_metadata(group, {})
    join_existing_group(turn, group, request)
    turn.append((empty,), lambda turn, error: turn.settle_birth(group, error))


def join_existing_group(turn: Turn, group: ClassicGroup, request: JoinGroupRequest) -> None:
    if not has_room(turn, group, request.member_id):
        # Kafka does not ask here whether the others are complete now, so the join phase may last its full time.
        if request.member_id in group.members or request.member_id in group.pending_join:
            turn.cancel_timer(session_key(group, request.member_id))
            group.remove(request.member_id)
        refuse(turn, request, Error.GROUP_MAX_SIZE_REACHED, member_id="")
    elif not group.supports(request.protocol_type, request.protocols):
        refuse(turn, request, Error.INCONSISTENT_GROUP_PROTOCOL)
    elif not request.member_id:
        join_stranger(turn, group, request)
    elif request.member_id in group.pending_join:
        if request.group_instance_id is None:
            add_member(turn, group, request, request.member_id)
        else:
            # Ids are handed out to dynamic members only; Kafka trips over its own assertion.
            refuse(turn, request, Error.UNKNOWN_SERVER_ERROR, member_id="")
    else:
        error = group.check_member(request.member_id, request.group_instance_id)
        if error is NONE:
            rejoin(turn, group, group.members[request.member_id], request)
        else:
            refuse(turn, request, error)


def has_room(turn: Turn, group: ClassicGroup, member_id: str) -> bool:
    """Tell whether the group has room. During a join phase joined members count, so that the last to rejoin are left
    out.
    """
    member = group.members.get(member_id)
    if group.state is State.EMPTY:
        return True
    if group.state is State.PREPARING_REBALANCE:
        is_in, size = member is not None and member.parked_join is not None, group.awaiting_join
    else:
        is_in, size = member is not None, len(group.members)
    return is_in or size < turn.config.group_max_size


def join_stranger(turn: Turn, group: ClassicGroup, request: JoinGroupRequest) -> None:
    instance_id = request.group_instance_id
    new_id = turn.shard.new_member_id(request.client_id if instance_id is None else instance_id)
    if instance_id is not None and instance_id in group.static:
        replace_static_member(turn, group, request, new_id)
    elif instance_id is None and request.version >= MEMBER_ID_REQUIRED_SINCE:
        # KIP-394: a client that loses this answer leaves behind an id, not a member that everyone waits for.
        group.pending_join.add(new_id)
        turn.set_timer(session_key(group, new_id), request.session_timeout_ms)
        refuse(turn, request, Error.MEMBER_ID_REQUIRED, member_id=new_id)
    else:
        add_member(turn, group, request, new_id)


def add_member(turn: Turn, group: ClassicGroup, request: JoinGroupRequest, member_id: str) -> None:
    member = ClassicMember(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_of(request),
        protocols=request.protocols,
        parked_join=request,
        is_new=True,
    )
    if group.state is State.PREPARING_REBALANCE and group.previous_state is State.EMPTY:
        group.new_member_added = True
    group.add(member, request.protocol_type)
    # It cannot heartbeat while it waits, and a parked connection does not show that its client is gone.
    turn.restart_session(group, member, turn.config.new_member_join_timeout_ms)
    rebalance_or_complete(turn, group, Event.MEMBER_JOINED, member_id=member_id, client_reason=request.reason)


def rejoin(turn: Turn, group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest) -> None:
    """Handle a member that joins again: because of a rebalance, to cause one, or because an answer was lost."""
    unchanged = request.protocols == member.protocols
    leads = group.leader == member.member_id
    if group.state is State.COMPLETING_REBALANCE and unchanged:
        turn.reply(request, current_generation(group, member.member_id))
        return
    if group.state is State.STABLE and unchanged and not leads:
        turn.reply(request, current_generation(group, member.member_id))
        return
    group.update(member, request)
    event = Event.LEADER_REJOINED if leads and group.state is State.STABLE else Event.SUBSCRIPTION_CHANGED
    rebalance_or_complete(turn, group, event, member_id=member.member_id, client_reason=request.reason)
