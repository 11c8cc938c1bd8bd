"""Take a member out of its group: by close, by unsubscribe, or after a poll that came too late.

Close      commit, then the callback, then LeaveGroup, which is sent once and never again
Static     members stay unless they are closed with LEAVE_GROUP: their partitions wait for them (KIP-345, KIP-1092)
Lost       onPartitionsLost runs instead of onPartitionsRevoked when the generation is reset or a rebalance is under way
Reference  ConsumerCoordinator.close, onLeavePrepare and AbstractCoordinator.maybeLeaveGroup in Apache Kafka 4.3.1
Start at   close, unsubscribe, leave
"""

from __future__ import annotations

from collections.abc import Callable

from rebalance_lab.protocol_v1.common.errors import InvariantBroken
from rebalance_lab.protocol_v1.common.member_effects import (
    Callback,
    Cause,
    Close,
    Closed,
    CloseOption,
    FindCoordinatorRequest,
    Left,
)
from rebalance_lab.protocol_v1.common.messages import LeaveGroupRequest, MemberIdentity
from rebalance_lab.protocol_v1.member.commits import note_positions
from rebalance_lab.protocol_v1.member.memory import REASON_LENGTH, Closing, MemberTurn, SyncCommit
from rebalance_lab.protocol_v1.member.states import REBALANCING, MemberEvent, MemberState


def leave(turn: MemberTurn, option: CloseOption, reason: str, cause: Cause) -> None:
    """Tell the coordinator where that is due, and forget the membership in any case."""
    memory, config = turn.memory, turn.config
    member_id = memory.generation.member_id
    can = memory.coordinator_known and memory.state is not MemberState.UNJOINED and bool(member_id)
    dynamic = config.group_instance_id is None
    wants = option is CloseOption.LEAVE_GROUP or (dynamic and option is CloseOption.DEFAULT)
    if can and wants:
        leaver = MemberIdentity(member_id=member_id, reason=reason[:REASON_LENGTH])
        turn.send(LeaveGroupRequest(group_id=config.group_id, members=(leaver,), **turn.header()))
    turn.tell(Left(cause=cause, reason=reason, sent=can and wants))
    turn.reset(MemberEvent.LEFT, "consumer pro-actively leaving the group", cause)


def drop_partitions(turn: MemberTurn, then: Callable[[MemberTurn, str | None], None]) -> None:
    memory = turn.memory
    if not memory.owned or not memory.subscribed.active:
        then(turn, None)
        return
    lost = memory.generation.is_unknown or memory.state in REBALANCING

    def dropped(turn: MemberTurn, error: str | None) -> None:
        turn.own(())
        then(turn, error)

    turn.call(Callback.LOST if lost else Callback.REVOKED, memory.owned, dropped)


def unsubscribe(turn: MemberTurn) -> None:
    def left(turn: MemberTurn, error: str | None) -> None:
        if error is None:
            leave(turn, CloseOption.DEFAULT, "the consumer unsubscribed from all topics", Cause.LEAVE)
            turn.memory.subscribed.unsubscribe()
            turn.own(())
        else:
            turn.throw(None, f"User rebalance callback throws an error: {error}")

    drop_partitions(turn, left)


def close(turn: MemberTurn, event: Close) -> None:
    memory = turn.memory
    if memory.then is not None:
        raise InvariantBroken("closed from inside a callback")
    memory.polling = False
    note_positions(memory, event.positions)
    memory.closing = Closing(event.option, turn.now_ms + event.timeout_ms)
    if turn.config.enable_auto_commit and memory.positions:
        deadline_ms = memory.closing.deadline_ms
        memory.sync_commit = SyncCommit(dict(memory.positions), "close", deadline_ms, drop_and_leave)
    else:
        drop_and_leave(turn)


def drop_and_leave(turn: MemberTurn) -> None:
    """Stop heartbeats, and then run the callback."""
    closing = turn.memory.closing
    assert closing is not None
    closing.left = True

    def left(turn: MemberTurn, error: str | None) -> None:
        if error is None:
            leave(turn, closing.option, "the consumer is being closed", Cause.LEAVE)
        else:
            turn.throw(None, f"User rebalance callback throws an error: {error}")

    drop_partitions(turn, left)


def closed_if_done(turn: MemberTurn) -> None:
    memory = turn.memory
    closing = memory.closing
    if closing is None or not closing.left or memory.then is not None:
        return
    # Only what the coordinator was asked: nobody waits for the answer to a question who that is.
    awaited = any(not isinstance(sent.request, FindCoordinatorRequest) for sent in memory.in_flight.values())
    if memory.coordinator_known and awaited and turn.now_ms < closing.deadline_ms:
        return
    memory.closed = True
    memory.in_flight.clear()
    turn.tell(Closed())
