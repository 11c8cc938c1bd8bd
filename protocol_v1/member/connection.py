"""Find a member's coordinator, lose it, and fail the requests in flight when it is lost.

Lookup     poll() asks and waits; the heartbeats ask too, and forget a lookup that may be stuck
Loss       requests in flight fail, each in its own way. The coordinator may have done what was asked, or not
Reference  AbstractCoordinator.ensureCoordinatorReady and markCoordinatorUnknown in Apache Kafka 4.3.1
Start at   coordinator_ready, coordinator_unknown
"""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    CommitOutcome,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from rebalance_lab.protocol_v1.common.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from rebalance_lab.protocol_v1.member.commits import commit_over, send_commit
from rebalance_lab.protocol_v1.member.error_reactions import Reaction, java_name, reaction
from rebalance_lab.protocol_v1.member.memory import Join, JoinFailure, MemberMemory, MemberTurn, Sent


def coordinator_ready(turn: MemberTurn) -> bool:
    memory = turn.memory
    if not memory.coordinator_known and turn.now_ms >= memory.lookup_at_ms:
        turn.look_up()
    return memory.coordinator_known


def on_find_coordinator(turn: MemberTurn, sent: Sent, response: FindCoordinatorResponse) -> None:
    memory = turn.memory
    awaited = memory.lookup == sent.request.correlation_id
    if response.error_code is Error.NONE:
        memory.lookup, memory.lookup_attempts, memory.coordinator_known = None, 0, True
        memory.session_at_ms = turn.now_ms + turn.config.session_timeout_ms
        waiting, memory.waiting_commits = memory.waiting_commits, []
        for commit in waiting:
            send_commit(turn, commit)
    elif awaited:
        fatal = reaction(FindCoordinatorRequest, response.error_code) is Reaction.RAISE
        lookup_failed(turn)
        if fatal and memory.sync_commit is not None:
            memory.sync_commit.deadline_ms = turn.now_ms  # the exception ends the blocking call
        elif fatal and memory.in_poll:
            turn.throw(response.error_code, "FindCoordinator hit a fatal error")


def lookup_failed(turn: MemberTurn) -> None:
    memory = turn.memory
    memory.lookup = None
    memory.lookup_at_ms = turn.now_ms + turn.backoff_ms(memory.lookup_attempts)
    memory.lookup_attempts += 1
    waiting, memory.waiting_commits = memory.waiting_commits, []
    for commit in waiting:
        commit_over(turn, commit, CommitOutcome.RETRIABLE)


def coordinator_unknown(turn: MemberTurn, reason: str) -> None:
    """Drop the connection by the member's own decision; requests in flight on it fail."""
    if turn.memory.coordinator_known:
        turn.disconnect(reason)
        connection_lost(turn)


def connection_lost(turn: MemberTurn) -> None:
    memory = turn.memory
    memory.coordinator_known = False
    memory.lookup_tick_at_ms = turn.now_ms
    for sent in [sent for sent in memory.in_flight.values() if not isinstance(sent.request, FindCoordinatorRequest)]:
        del memory.in_flight[sent.request.correlation_id]
        request_failed(turn, sent)


def request_failed(turn: MemberTurn, sent: Sent) -> None:
    memory = turn.memory
    if isinstance(sent.request, JoinGroupRequest | SyncGroupRequest):
        fail_join(turn, JoinFailure(None, "DisconnectException", "disconnected", retriable=True))
    elif isinstance(sent.request, HeartbeatRequest):
        heartbeat_failed(turn)
    elif sent.commit is not None:
        commit_over(turn, sent.commit, CommitOutcome.RETRIABLE)
    elif isinstance(sent.request, OffsetFetchRequest):
        memory.fetching = None
        memory.fetch_at_ms = turn.now_ms + turn.config.pause_ms


def fail_join(turn: MemberTurn, failure: JoinFailure) -> None:
    turn.memory.electing = None
    turn.memory.join = Join(failure=failure)


def join_failure(error: Error, *, at_once: bool = False, retriable: bool = False) -> JoinFailure:
    return JoinFailure(error, java_name(error), error.name, at_once, retriable)


def heartbeat_failed(turn: MemberTurn) -> None:
    memory = turn.memory
    memory.heartbeat_at_ms = turn.now_ms + turn.backoff_ms(memory.heartbeat_attempts)
    memory.heartbeat_attempts += 1


def on_request_timeout(turn: MemberTurn) -> None:
    """Drop the whole connection when one request on it is not answered in time, as Kafka's client does."""
    memory = turn.memory
    late = [sent for sent in memory.in_flight.values() if sent.deadline_ms <= turn.now_ms]
    for sent in late:
        if isinstance(sent.request, FindCoordinatorRequest):
            del memory.in_flight[sent.request.correlation_id]
            if memory.lookup == sent.request.correlation_id:
                lookup_failed(turn)
    if any(not isinstance(sent.request, FindCoordinatorRequest) for sent in late):
        turn.disconnect("a request was not answered in time")
        connection_lost(turn)


def request_deadline(memory: MemberMemory) -> int | None:
    if not memory.in_flight or not memory.listening:
        return None
    return min([sent.deadline_ms for sent in memory.in_flight.values()])
