"""Take a member into its group and out of it: join, fence, fail, leave, unsubscribe, and expire without a poll.

Lost       a member that is out reports what it still owns as lost inside the application's next poll(). Only then may
           it join again: two members must not believe that they own one partition
Leaving    unsubscribe() runs its callback first, then the leave goes out; close() has run it already (close.py)
Static     members step out (-2) and their partitions wait for them, unless they are closed with LEAVE_GROUP (KIP-1092)
Reference  AbstractMembershipManager and ConsumerMembershipManager in Apache Kafka 4.3.1
Start at   join, fence, leave_group
"""

from __future__ import annotations

from collections.abc import Callable

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import Callback, Cause, CloseOption, Left, RejoinNeeded
from rebalance_lab.protocol_v2.common.messages import JOIN_EPOCH, LEAVE_EPOCH, STEP_OUT_EPOCH
from rebalance_lab.protocol_v2.member.memory import NO_ASSIGNMENT, MemberMemory, MemberTurn, QueuedCall, QueuedError
from rebalance_lab.protocol_v2.member.states import NOT_IN_GROUP, MemberEvent, MemberState


def join(turn: MemberTurn, event: MemberEvent, cause: Cause) -> None:
    memory = turn.memory
    turn.start_anew(JOIN_EPOCH)
    turn.move(event)
    memory.target = NO_ASSIGNMENT
    memory.topic_names.clear()
    turn.tell(RejoinNeeded(cause=cause, reason=event.value))


def lose(turn: MemberTurn, then: Callable[[MemberTurn, str | None], None]) -> None:
    """Stop reading now; say so when the application polls."""
    memory = turn.memory
    memory.pending_revocation = memory.owned
    if memory.owned:
        turn.enqueue(QueuedCall(Callback.LOST, memory.owned, then))
    else:
        then(turn, None)


def fence(turn: MemberTurn) -> None:
    memory = turn.memory
    memory.heartbeats.forgive()
    if memory.state is MemberState.UNSUBSCRIBED:
        return  # the answer to a leave
    was_leaving = memory.leaving
    turn.move(MemberEvent.FENCED)
    turn.start_anew(leave_epoch(memory) if was_leaving else JOIN_EPOCH)
    if was_leaving:
        leave_done(turn)
        return
    life = memory.life

    def released(turn: MemberTurn, error: str | None) -> None:
        turn.clear_assignment()
        if memory.life == life and memory.state is MemberState.FENCED:
            join(turn, MemberEvent.RELEASED, Cause.FORGOTTEN)

    lose(turn, released)


def fail(turn: MemberTurn, error: Error, message: str) -> None:
    memory = turn.memory
    was_leaving = memory.leaving
    turn.enqueue(QueuedError(error, message))
    turn.move(MemberEvent.FAILED)
    memory.offset_epoch = None
    if was_leaving:
        leave_done(turn)
    else:
        lose(turn, lambda turn, error: turn.clear_assignment())


# Out


def leave_epoch(memory: MemberMemory) -> int:
    leaves = memory.closing is not None and memory.closing.option is CloseOption.LEAVE_GROUP
    return LEAVE_EPOCH if leaves or memory.config.group_instance_id is None else STEP_OUT_EPOCH


def leave_group(turn: MemberTurn, *, callbacks: bool) -> None:
    """Leave the group. A member that is out already only clears its subscription."""
    memory = turn.memory
    if memory.state in NOT_IN_GROUP:
        if memory.state is MemberState.FENCED:
            turn.clear_assignment()
            turn.move(MemberEvent.LEAVE_WANTED)
        memory.subscribed.unsubscribe()
        turn.own(())
        return
    turn.move(MemberEvent.LEAVE_WANTED)
    memory.leaving = True
    if callbacks and memory.owned:
        memory.pending_revocation = memory.owned
        how = Callback.REVOKED if memory.member_epoch > 0 else Callback.LOST
        turn.enqueue(QueuedCall(how, memory.owned, lambda turn, error: ready_to_leave(turn)))
    else:
        ready_to_leave(turn)


def ready_to_leave(turn: MemberTurn) -> None:
    turn.memory.subscribed.unsubscribe()
    turn.clear_assignment()
    if turn.memory.state is MemberState.PREPARE_LEAVING:
        start_leaving(turn)


def start_leaving(turn: MemberTurn) -> None:
    turn.start_anew(leave_epoch(turn.memory))
    turn.memory.current = NO_ASSIGNMENT
    turn.move(MemberEvent.READY_TO_LEAVE)


def skip_leave(turn: MemberTurn) -> None:
    turn.move(MemberEvent.LEAVE_SKIPPED)
    left(turn, sent=False)
    leave_done(turn)


def left(turn: MemberTurn, *, sent: bool) -> None:
    closes = turn.memory.closing is not None
    turn.tell(Left(cause=Cause.LEAVE, reason="close" if closes else "unsubscribe", sent=sent))


def leave_done(turn: MemberTurn) -> None:
    turn.memory.leaving = False


# For want of a poll


def expire(turn: MemberTurn, send_leave: Callable[[MemberTurn], None]) -> None:
    """Leave because poll() came too late: the leave is sent whatever else is in flight, and its answer does not
    matter.
    """
    memory = turn.memory
    turn.move(MemberEvent.POLL_EXPIRED)
    start_leaving(turn)
    send_leave(turn)
    turn.tell(Left(cause=Cause.POLL_INTERVAL, reason="max.poll.interval exceeded", sent=True))
    turn.move(MemberEvent.STALE_LEAVE_SENT)
    memory.released = False
    life = memory.life

    def released(turn: MemberTurn, error: str | None) -> None:
        turn.clear_assignment()
        memory.released = memory.life == life

    lose(turn, released)


def come_back(turn: MemberTurn) -> None:
    """Join again at a poll(): a member that has subscribed since, or that had left for want of a poll."""
    memory, subscribed = turn.memory, turn.memory.subscribed
    updated, subscribed.updated = subscribed.updated, False
    if updated and memory.state is MemberState.UNSUBSCRIBED:
        join(turn, MemberEvent.SUBSCRIBED, Cause.JOIN)
    elif memory.state is MemberState.STALE and memory.released:
        join(turn, MemberEvent.POLLED_AGAIN, Cause.POLL_INTERVAL)
