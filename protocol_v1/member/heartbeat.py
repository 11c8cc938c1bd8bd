"""Send heartbeats, and keep the heartbeat thread's deadlines: session and max.poll.interval.

Ticks      one rule at a time, first match first: coordinator unknown, session deadline, poll deadline, heartbeat due.
           Active only in CompletingRebalance and Stable
Session    a member cannot end its own membership: when its heartbeats go unanswered, it looks for the coordinator again
Reference  AbstractCoordinator.HeartbeatThread and Heartbeat in Apache Kafka 4.3.1
Start at   tick, tick_at
"""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.errors import NONE
from rebalance_lab.protocol_v1.common.member_effects import Cause, CloseOption
from rebalance_lab.protocol_v1.common.messages import HeartbeatRequest, HeartbeatResponse
from rebalance_lab.protocol_v1.member.connection import coordinator_unknown, heartbeat_failed
from rebalance_lab.protocol_v1.member.error_reactions import Reaction, reaction
from rebalance_lab.protocol_v1.member.leave import leave
from rebalance_lab.protocol_v1.member.memory import MemberMemory, MemberTurn, Sent
from rebalance_lab.protocol_v1.member.states import HEARTBEATING, MemberEvent, MemberState


def restart_deadlines(turn: MemberTurn) -> None:
    """Restart the deadlines after an answered JoinGroup: max.poll.interval is not measured while a JoinGroup is
    parked.
    """
    memory, config = turn.memory, turn.config
    memory.session_at_ms = turn.now_ms + config.session_timeout_ms
    memory.poll_at_ms = turn.now_ms + config.max_poll_interval_ms
    memory.heartbeat_at_ms = turn.now_ms + config.heartbeat_interval_ms


def tick_at(memory: MemberMemory) -> int | None:
    """Return when a rule of `tick` applies next."""
    if memory.state not in HEARTBEATING or (memory.closing is not None and memory.closing.left):
        return None
    if not memory.coordinator_known:
        return memory.lookup_tick_at_ms
    session_at_ms, heartbeat_at_ms = memory.session_at_ms, memory.heartbeat_at_ms
    due_ms = heartbeat_at_ms if heartbeat_at_ms < session_at_ms else session_at_ms
    return due_ms if due_ms < memory.poll_at_ms or memory.in_poll else memory.poll_at_ms


def tick(turn: MemberTurn) -> None:
    memory = turn.memory
    while (due_ms := tick_at(memory)) is not None and due_ms <= turn.now_ms:
        if not memory.coordinator_known:
            if memory.lookup is None:
                turn.look_up()
            else:
                memory.lookup = None  # it may be stuck: the next tick asks again
            memory.lookup_tick_at_ms = turn.now_ms + turn.config.pause_ms
        elif memory.session_at_ms <= turn.now_ms:
            coordinator_unknown(turn, "session timed out without receiving a heartbeat response")
        elif memory.poll_at_ms <= turn.now_ms and not memory.in_poll:
            leave(turn, CloseOption.DEFAULT, "consumer poll timeout has expired.", Cause.POLL_INTERVAL)
        else:
            memory.heartbeat_at_ms = turn.now_ms + turn.config.heartbeat_interval_ms
            send_heartbeat(turn)


def send_heartbeat(turn: MemberTurn) -> None:
    generation = turn.memory.generation
    turn.send(
        HeartbeatRequest(
            group_id=turn.config.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=turn.config.group_instance_id,
            **turn.header(),
        )
    )


def heartbeat_received(turn: MemberTurn) -> None:
    turn.memory.heartbeat_attempts = 0
    turn.memory.session_at_ms = turn.now_ms + turn.config.session_timeout_ms


RESETS = {
    Reaction.FULL_RESET: MemberEvent.FULL_RESET,
    Reaction.FENCED: MemberEvent.FULL_RESET,
    Reaction.SOFT_RESET: MemberEvent.SOFT_RESET,
}


def on_heartbeat(turn: MemberTurn, sent: Sent, response: HeartbeatResponse) -> None:
    memory, error = turn.memory, response.error_code
    how = reaction(HeartbeatRequest, error)
    if error is NONE or (how in RESETS and memory.generation != sent.generation):
        heartbeat_received(turn)  # an error about a generation that is over means nothing
    elif how is Reaction.REJOIN:
        heartbeat_received(turn)
        if memory.state is MemberState.STABLE:
            turn.request_rejoin("group is already rebalancing", Cause.GROUP_REBALANCES)
    elif how in RESETS:
        turn.reset_on_error(RESETS[how], error, "HEARTBEAT")
        if how is Reaction.FENCED:
            memory.failure = error
        heartbeat_failed(turn)
    else:
        if how is Reaction.COORDINATOR_UNKNOWN:
            coordinator_unknown(turn, f"error response {error.name}")
        heartbeat_failed(turn)
