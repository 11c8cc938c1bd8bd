"""Find a member's coordinator, lose it, and fail the requests in flight when it is lost.

Lookup     goes on in the background whenever no coordinator is known, until the member is being closed
Loss       requests in flight fail, each in its own way. The coordinator may have done what was asked, or not
Reference  CoordinatorRequestManager and NetworkClientDelegate in Apache Kafka 4.3.1
Start at   look_up, connection_lost
"""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    CommitOutcome,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from rebalance_lab.protocol_v2.member.commits import commit_failed, commit_over
from rebalance_lab.protocol_v2.member.error_reactions import Reaction, reaction
from rebalance_lab.protocol_v2.member.heartbeat import connection_broke
from rebalance_lab.protocol_v2.member.memory import MemberMemory, MemberTurn, QueuedError, Sent
from rebalance_lab.protocol_v2.member.offsets import fetch_failed


def lookup_at(memory: MemberMemory) -> int | None:
    stopped = memory.closing is not None and memory.closing.left
    return None if memory.coordinator_known or memory.lookup is not None or stopped else memory.lookup_at_ms


def look_up(turn: MemberTurn) -> None:
    at_ms = lookup_at(turn.memory)
    if at_ms is not None and turn.now_ms >= at_ms:
        request = FindCoordinatorRequest(key=turn.config.group_id, **turn.header())
        turn.memory.lookup = request.correlation_id
        turn.send(request)


def on_find_coordinator(turn: MemberTurn, sent: Sent, response: FindCoordinatorResponse) -> None:
    memory, error = turn.memory, response.error_code
    if error is Error.NONE:
        memory.lookup, memory.lookup_attempts, memory.coordinator_known = None, 0, True
        memory.lookup_at_ms = turn.now_ms + turn.backoff_ms(0)
        return
    lookup_failed(turn)
    if reaction(FindCoordinatorRequest, error) is Reaction.RAISE:
        for pending in list(memory.commits):
            commit_over(turn, pending, CommitOutcome.FAILED)
        memory.fetching = None
        turn.enqueue(QueuedError(error, "FindCoordinator hit a fatal error"))


def lookup_failed(turn: MemberTurn) -> None:
    memory = turn.memory
    memory.lookup = None
    memory.lookup_at_ms = turn.now_ms + turn.backoff_ms(memory.lookup_attempts)
    memory.lookup_attempts += 1


def connection_lost(turn: MemberTurn) -> None:
    memory = turn.memory
    memory.coordinator_known = False
    for sent in [sent for sent in memory.in_flight.values() if not isinstance(sent.request, FindCoordinatorRequest)]:
        del memory.in_flight[sent.request.correlation_id]
        if sent.commit is not None:
            commit_failed(turn, sent.commit, Reaction.RETRY)
        elif sent.fetch is not None:
            fetch_failed(turn, sent.fetch, Reaction.RETRY)
        else:
            connection_broke(turn, sent)


def request_deadline(memory: MemberMemory) -> int | None:
    """Return the deadline of the request that was sent first: all requests get the same time."""
    for sent in memory.in_flight.values():
        return sent.deadline_ms
    return None


def on_request_timeout(turn: MemberTurn) -> None:
    """Drop the whole connection when one request on it is not answered in time, as Kafka's client does."""
    memory = turn.memory
    late = [sent for sent in memory.in_flight.values() if sent.deadline_ms <= turn.now_ms]
    for sent in late:
        if isinstance(sent.request, FindCoordinatorRequest):
            del memory.in_flight[sent.request.correlation_id]
            lookup_failed(turn)
    if any(not isinstance(sent.request, FindCoordinatorRequest) for sent in late):
        turn.disconnect("a request was not answered in time")
        connection_lost(turn)
