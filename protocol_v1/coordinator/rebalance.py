"""Rebalance a group, from the first cause to the generation that ends the join phase.

prepare      the group becomes PreparingRebalance: parked syncs get an error, and members get time to rejoin
try_complete the join phase ends early once every member, and every id handed out, has joined
complete     members that have not rejoined are dropped, the generation goes up, the parked joins are answered.

A group that was empty waits for group.initial.rebalance.delay.ms first, and longer while members keep coming.
Reference  GroupMetadataManager.prepareRebalance, completeClassicGroupJoin in Apache Kafka
"""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import JoinGroupResponse, JoinGroupResponseMember, SyncGroupResponse
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup, ClassicMember, InitialDelay
from rebalance_lab.protocol_v1.coordinator.state.records import group_metadata
from rebalance_lab.protocol_v1.coordinator.state.shard import Turn, ignore, join_key, session_key, sync_key
from rebalance_lab.protocol_v1.coordinator.state.states import Event, State


def rebalance_or_complete(
    turn: Turn, group: ClassicGroup, event: Event, *, member_id: str | None = None, client_reason: str | None = None
) -> None:
    """React to a change: it starts a rebalance, or it may be what the one under way was waiting for."""
    if group.state is State.PREPARING_REBALANCE:
        try_complete_join(turn, group)
    else:
        prepare_rebalance(turn, group, event, member_id=member_id, client_reason=client_reason)


def prepare_rebalance(
    turn: Turn, group: ClassicGroup, event: Event, *, member_id: str | None = None, client_reason: str | None = None
) -> None:
    if group.state is State.COMPLETING_REBALANCE:
        reset_assignments(turn, group, Error.REBALANCE_IN_PROGRESS)
    group.pending_sync.clear()
    turn.cancel_timer(sync_key(group))
    was_empty = group.state is State.EMPTY
    turn.move(group, event, member_id=member_id, client_reason=client_reason)
    if was_empty:
        delay_ms = turn.config.group_initial_rebalance_delay_ms
        left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        group.initial_delay = InitialDelay(delay_ms=delay_ms, left_ms=left_ms)
        turn.set_timer(join_key(group), delay_ms)
    elif group.all_joined:
        complete_join(turn, group)
    else:
        turn.set_timer(join_key(group), group.rebalance_timeout_ms)


def try_complete_join(turn: Turn, group: ClassicGroup) -> None:
    """End the join phase if all have joined. In a group that was empty only its timer ends it, even if all known are
    there.
    """
    if group.state is State.PREPARING_REBALANCE and group.previous_state is not State.EMPTY and group.all_joined:
        complete_join(turn, group)


def on_join_timer(turn: Turn, group: ClassicGroup) -> None:
    initial = group.initial_delay
    if initial is None or initial.left_ms == 0 or not group.new_member_added:
        complete_join(turn, group)
        return
    group.new_member_added = False
    delay_ms = min(turn.config.group_initial_rebalance_delay_ms, initial.left_ms)
    left_ms = max(initial.left_ms - initial.delay_ms, 0)
    group.initial_delay = InitialDelay(delay_ms=delay_ms, left_ms=left_ms)
    turn.set_timer(join_key(group), delay_ms)


def complete_join(turn: Turn, group: ClassicGroup) -> None:
    turn.cancel_timer(join_key(group))
    group.initial_delay = None
    drop_absent_dynamic_members(turn, group)
    if not group.elect_joined_leader():
        # Only absent static members are left: they are waited for until their sessions end.
        turn.set_timer(join_key(group), group.rebalance_timeout_ms)
        return
    group.generation_id += 1
    if not group.members:
        group.protocol_name = None
        group.remember_subscriptions()
        turn.move(group, Event.LAST_MEMBER_GONE)
        turn.append((group_metadata(group, {}),), ignore)
        return
    protocol_name = group.select_protocol()
    if protocol_name is None:
        # Kafka fails here in its timer thread, and nothing is ever answered; a member that lists a name twice does it.
        return
    group.protocol_name = protocol_name
    group.remember_subscriptions()
    turn.move(group, Event.JOIN_COMPLETED)
    answer_joins(turn, group)
    turn.set_timer(sync_key(group), group.rebalance_timeout_ms)


def drop_absent_dynamic_members(turn: Turn, group: ClassicGroup) -> None:
    if group.awaiting_join == len(group.members):
        return
    absent = [m.member_id for m in group.in_order() if m.parked_join is None and m.group_instance_id is None]
    for member_id in absent:
        group.remove(member_id)
        turn.cancel_timer(session_key(group, member_id))


def answer_joins(turn: Turn, group: ClassicGroup) -> None:
    """Answer the parked joins. Every session begins anew, also an absent static member's; every member now owes a
    SyncGroup.
    """
    group.pending_sync.clear()
    for member in group.in_order():
        request = group.unpark_join(member)
        if request is not None:
            turn.reply(request, current_generation(group, member.member_id))
        turn.restart_session(group, member)
        member.is_new = False
        group.pending_sync[member.member_id] = None


def current_generation(
    group: ClassicGroup, member_id: str, *, list_members: bool = True, skip_assignment: bool = False
) -> JoinGroupResponse:
    """Return what a member is told of the generation; the leader also gets the list of members."""
    leads = list_members and member_id == group.leader
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=member_list(group) if leads else (),
    )


def member_list(group: ClassicGroup) -> tuple[JoinGroupResponseMember, ...]:
    return tuple(
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.metadata(group.protocol_name),
        )
        for member in group.in_order()
    )


def reset_assignments(turn: Turn, group: ClassicGroup, error: Error) -> None:
    """Drop the assignment that was being computed; members that wait for it get the error."""
    for member in group.in_order():
        member.assignment = b""
        answer_sync(turn, group, member, SyncGroupResponse(error_code=error))


def answer_sync(turn: Turn, group: ClassicGroup, member: ClassicMember, response: SyncGroupResponse) -> None:
    """Answer a parked SyncGroup. The member's session may have run out unnoticed meanwhile, so it begins anew."""
    request, member.parked_sync = member.parked_sync, None
    if request is not None:
        turn.reply(request, response)
        turn.restart_session(group, member)


def remove_member(turn: Turn, group: ClassicGroup, member_id: str) -> None:
    """Remove a member that left or expired. Its parked SyncGroup is never answered, as in Kafka."""
    member = group.members[member_id]
    turn.cancel_timer(session_key(group, member_id))
    request = group.unpark_join(member)
    if request is not None:
        turn.reply(request, JoinGroupResponse(error_code=Error.UNKNOWN_MEMBER_ID))
    group.remove(member_id)
