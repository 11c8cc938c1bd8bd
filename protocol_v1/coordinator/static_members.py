"""Let a restarted static member (KIP-345) take over what its instance id holds, under a new member id.

Given      a JoinGroup without a member id, whose instance id a member already holds
Returns    in the turn's effects: the former holder's parked requests are fenced. Then the current generation is
           answered once the takeover is durable, without a rebalance, or the request is parked like any other
Reference  updateStaticMemberThenRebalanceOrCompleteJoin in Apache Kafka; KIP-814 for skip_assignment
"""

from __future__ import annotations

from dataclasses import replace

from rebalance_lab.protocol_v1.common.errors import Error, append_error
from rebalance_lab.protocol_v1.common.messages import JoinGroupRequest, JoinGroupResponse, SyncGroupResponse
from rebalance_lab.protocol_v1.coordinator.rebalance import current_generation, prepare_rebalance, try_complete_join
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup, ClassicMember
from rebalance_lab.protocol_v1.coordinator.state.records import group_metadata
from rebalance_lab.protocol_v1.coordinator.state.shard import Turn, session_key
from rebalance_lab.protocol_v1.coordinator.state.states import Event, State

SKIP_ASSIGNMENT_SINCE = 9


def replace_static_member(turn: Turn, group: ClassicGroup, request: JoinGroupRequest, new_id: str) -> None:
    assert request.group_instance_id is not None
    old = group.members[group.static[request.group_instance_id]]
    old_leader = group.leader
    new = take_over(turn, group, old, new_id)
    # Before the request's timeouts are stored: the first session still runs with the former holder's timeout.
    turn.restart_session(group, new)
    group.update(new, request)
    if group.state is State.PREPARING_REBALANCE:
        try_complete_join(turn, group)
    elif group.state is State.STABLE and group.select_protocol() == group.protocol_name:
        keep_generation(turn, group, request, old, new, old_leader)
    else:
        # In CompletingRebalance the leader may already be assigning to the old id, which will get nothing.
        event, reason = Event.STATIC_MEMBER_REPLACED, request.reason
        prepare_rebalance(turn, group, event, member_id=new_id, client_reason=reason)


def take_over(turn: Turn, group: ClassicGroup, old: ClassicMember, new_id: str) -> ClassicMember:
    """Replace the old member id. A request that still waits under it is of the duplicate that fencing is for."""
    join = group.unpark_join(old)
    if join is not None:
        fenced = JoinGroupResponse(error_code=Error.FENCED_INSTANCE_ID, member_id=old.member_id)
        turn.reply(join, fenced)
    sync, old.parked_sync = old.parked_sync, None
    if sync is not None:
        turn.reply(sync, SyncGroupResponse(error_code=Error.FENCED_INSTANCE_ID))
    turn.cancel_timer(session_key(group, old.member_id))
    return group.replace(old, new_id)


def keep_generation(
    turn: Turn,
    group: ClassicGroup,
    request: JoinGroupRequest,
    old: ClassicMember,
    new: ClassicMember,
    old_leader: str | None,
) -> None:
    """Keep the generation: the selected protocol stays, so the takeover is written down and answered without a
    rebalance.
    """

    def written(turn: Turn, error: Error) -> None:
        if error is not Error.NONE:
            undo(turn, group, request, old, new, old_leader, append_error(error))
        elif new.parked_join is request:
            group.unpark_join(new)
            turn.reply(request, takeover_answer(group, request, new, old_leader))

    assignments = {member.member_id: member.assignment for member in group.members.values()}
    turn.append((group_metadata(group, assignments),), written)


def takeover_answer(
    group: ClassicGroup, request: JoinGroupRequest, new: ClassicMember, old_leader: str | None
) -> JoinGroupResponse:
    """Answer the takeover. A leader that comes back must not assign again, since no other member rejoins.

    Before KIP-814 the only way to say so was to name the old leader id, which no member has any more.
    """
    if request.version >= SKIP_ASSIGNMENT_SINCE:
        return current_generation(group, new.member_id, skip_assignment=group.leader == new.member_id)
    answer = current_generation(group, new.member_id, list_members=False)
    return replace(answer, leader=old_leader or "")


def undo(
    turn: Turn,
    group: ClassicGroup,
    request: JoinGroupRequest,
    old: ClassicMember,
    new: ClassicMember,
    old_leader: str | None,
    error: Error,
) -> None:
    """Take back a takeover that the log refused: the old id lives on, with its own list and timeouts."""
    if new.parked_join is not request:
        return  # answered meanwhile, by a rebalance or by a removal
    group.unpark_join(new)
    group.store(new, old.protocols, old.rebalance_timeout_ms, old.session_timeout_ms)
    restored = group.replace(new, old.member_id)
    turn.cancel_timer(session_key(group, new.member_id))
    turn.restart_session(group, restored)
    answer = current_generation(group, "", list_members=False)
    turn.reply(request, replace(answer, error_code=error, leader=old_leader or ""))
