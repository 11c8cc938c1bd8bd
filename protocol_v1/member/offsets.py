"""Handle answers about offsets: commits that were sent, blocking commits, and positions of newly assigned partitions.

Blocking   commitSync and the commit of close(): tried again on retriable errors until the time is up
Fetch      owned partitions without a position are looked up; the answer counts only for what is still owned
Reference  OffsetCommitResponseHandler, commitOffsetsSync and fetchCommittedOffsets of ConsumerCoordinator, Kafka 4.3.1
Start at   on_offset_commit, drive_sync_commit, fetch_offsets
"""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.errors import NONE, Error
from rebalance_lab.protocol_v1.common.member_effects import Cause, CommitOutcome, Committed, Fetched, TopicPartition
from rebalance_lab.protocol_v1.common.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from rebalance_lab.protocol_v1.member.commits import commit_over, send_commit
from rebalance_lab.protocol_v1.member.connection import coordinator_ready, coordinator_unknown
from rebalance_lab.protocol_v1.member.error_reactions import Reaction, reaction
from rebalance_lab.protocol_v1.member.memory import MemberTurn, PendingCommit, Sent, by_topic
from rebalance_lab.protocol_v1.member.states import MemberEvent, MemberState


def on_offset_commit(turn: MemberTurn, sent: Sent, response: OffsetCommitResponse) -> None:
    assert sent.commit is not None
    commit_over(turn, sent.commit, commit_outcome(turn, sent, response))


def commit_outcome(turn: MemberTurn, sent: Sent, response: OffsetCommitResponse) -> CommitOutcome:
    """Find the outcome. The first partition with an error decides; only a forbidden topic waits for the other
    partitions.
    """
    outcome = CommitOutcome.DONE
    for topic in response.topics:
        for partition in topic.partitions:
            error = partition.error_code
            if error is NONE:
                continue
            if reaction(OffsetCommitRequest, error) is not Reaction.UNAUTHORIZED:
                return commit_error(turn, sent, error)
            outcome = CommitOutcome.FAILED
    return outcome


def commit_error(turn: MemberTurn, sent: Sent, error: Error) -> CommitOutcome:
    memory, how = turn.memory, reaction(OffsetCommitRequest, error)
    unchanged = memory.generation == sent.generation
    rejoining = memory.state is MemberState.PREPARING_REBALANCE and not unchanged
    match how:
        case Reaction.RETRY:
            return CommitOutcome.RETRIABLE
        case Reaction.COORDINATOR_UNKNOWN:
            coordinator_unknown(turn, f"error response {error.name}")
            return CommitOutcome.RETRIABLE
        case Reaction.REJOIN:
            turn.request_rejoin("offset commit failed since group is already rebalancing", Cause.GROUP_REBALANCES)
            return CommitOutcome.REBALANCE_IN_PROGRESS
        case Reaction.FENCED if unchanged:
            return CommitOutcome.FENCED
        case Reaction.FENCED:
            return CommitOutcome.REBALANCE_IN_PROGRESS if rejoining else CommitOutcome.COMMIT_FAILED
        case Reaction.FULL_RESET | Reaction.SOFT_RESET:
            if rejoining:
                return CommitOutcome.REBALANCE_IN_PROGRESS
            # Even if the generation has changed since: Kafka's client resets here without asking.
            soft = how is Reaction.SOFT_RESET
            turn.reset_on_error(MemberEvent.SOFT_RESET if soft else MemberEvent.FULL_RESET, error, "OFFSET_COMMIT")
            return CommitOutcome.COMMIT_FAILED
        case _:
            return CommitOutcome.FAILED


def drive_sync_commit(turn: MemberTurn) -> None:
    """Take one step of the commit that the application's thread waits for."""
    memory = turn.memory
    commit = memory.sync_commit
    if commit is None:
        return
    if commit.attempt is None and turn.now_ms >= commit.retry_at_ms and coordinator_ready(turn):
        commit.attempt = PendingCommit(commit.offsets, commit.by)
        send_commit(turn, commit.attempt)
    outcome = commit.attempt.outcome if commit.attempt is not None else None
    if outcome is CommitOutcome.RETRIABLE:
        commit.attempt, outcome = None, None
        commit.retry_at_ms = turn.now_ms + turn.backoff_ms(commit.attempts)
        commit.attempts += 1
    if outcome is None and turn.now_ms >= commit.deadline_ms:
        outcome = CommitOutcome.TIMED_OUT
    if outcome is not None:
        memory.sync_commit = None
        turn.tell(Committed(commit.offsets, outcome, commit.by))
        commit.then(turn)


def fetch_offsets(turn: MemberTurn) -> None:
    memory = turn.memory
    if memory.fetching is None and len(memory.looked_up) == len(memory.owned):
        return  # only owned partitions are looked up, so that is all of them
    missing = memory.owned.difference(memory.pending_revocation, memory.looked_up, memory.positions)
    wanted = (missing, memory.generation)
    if memory.fetching is not None and memory.fetching[1:] != wanted:
        memory.in_flight.pop(memory.fetching[0], None)
        memory.fetching = None
    if missing and memory.fetching is None and turn.now_ms >= memory.fetch_at_ms:
        named = memory.owned_by_topic if missing == memory.owned else by_topic(missing)
        topics = tuple(
            [OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in named.items()]
        )
        group = OffsetFetchRequestGroup(group_id=turn.config.group_id, topics=topics)
        request = OffsetFetchRequest(groups=(group,), require_stable=True, **turn.header())
        memory.fetching = (request.correlation_id, *wanted)
        turn.send(request)


def on_offset_fetch(turn: MemberTurn, sent: Sent, response: OffsetFetchResponse) -> None:
    memory = turn.memory
    memory.fetching = None
    group = response.groups[0]
    error = group.error_code
    found: dict[TopicPartition, int] = {}
    for topic in group.topics:
        for partition in topic.partitions:
            found[topic.name, partition.partition_index] = partition.committed_offset
            error = error or partition.error_code
    if error is not NONE:
        fetch_failed(turn, error)
        return
    offsets = {tp: offset for tp, offset in found.items() if tp in memory.owned and tp not in memory.positions}
    memory.looked_up |= offsets.keys()
    memory.positions |= {tp: offset for tp, offset in offsets.items() if offset >= 0}
    if offsets:
        turn.tell(Fetched(offsets))


def fetch_failed(turn: MemberTurn, error: Error) -> None:
    how = reaction(OffsetFetchRequest, error)
    turn.memory.fetch_at_ms = turn.now_ms + turn.config.pause_ms
    if how is Reaction.COORDINATOR_UNKNOWN:
        coordinator_unknown(turn, f"error response {error.name}")
    elif how is Reaction.RAISE and turn.memory.in_poll:
        turn.throw(error, "committed offsets cannot be fetched")
