"""Start commits, send them with the member's epoch, and end each of them exactly once.

Epoch      a commit carries the epoch of the moment it is sent, so one that is sent again carries the new one
Blocking   commitSync and the commit of close(): again on retriable errors until the time is up
Prepare    the commit before a reconciliation is tried again likewise, with the newest positions each time. While the
           member has an epoch it is tried again on STALE_MEMBER_EPOCH too. Its failure stops nothing
Once       commitAsync and the auto-commit of the interval are sent once
Ends       every commit ends exactly once, with a Committed
Reference  CommitRequestManager in Apache Kafka 4.3.1
Start at   commit, on_offset_commit
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import Commit, CommitOutcome, Committed, Offsets, TopicPartition
from rebalance_lab.protocol_v1.common.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from rebalance_lab.protocol_v2.member.error_reactions import Reaction, reaction
from rebalance_lab.protocol_v2.member.memory import MemberMemory, MemberTurn, PendingCommit, Sent

PREPARE, INTERVAL, CLOSE, SYNC, ASYNC = "prepare", "interval", "close", "commitSync", "commitAsync"
Then = Callable[[MemberTurn, CommitOutcome], None]


def note_positions(memory: MemberMemory, positions: Offsets) -> None:
    """Note the application's positions; where one is new, drop those of partitions that are not owned."""
    known = len(memory.positions)
    memory.positions.update(positions)
    if len(memory.positions) > known:
        memory.positions = {tp: offset for tp, offset in memory.positions.items() if tp in memory.owned}


def commit(
    turn: MemberTurn, offsets: Offsets, by: str, deadline_ms: int | None = None, then: Then | None = None
) -> None:
    pending = PendingCommit(dict(offsets), by, deadline_ms, then)
    turn.memory.commits.append(pending)
    if by in (SYNC, CLOSE):
        turn.memory.sync_commit = pending
    if not offsets:
        commit_over(turn, pending, CommitOutcome.DONE)


def commit_for_the_application(turn: MemberTurn, event: Commit) -> None:
    if not event.sync:
        commit(turn, event.offsets, ASYNC)
        return
    turn.memory.poll_at_ms = turn.now_ms + turn.config.max_poll_interval_ms
    commit(turn, event.offsets, SYNC, turn.now_ms + turn.config.default_api_timeout_ms)


def commit_before_rebalance(turn: MemberTurn, then: Then) -> None:
    memory, config = turn.memory, turn.config
    if not config.enable_auto_commit:
        then(turn, CommitOutcome.DONE)
        return
    memory.auto_commit_under_way = True
    commit(turn, memory.positions, PREPARE, turn.now_ms + config.max_poll_interval_ms, then)


def auto_commit_if_due(turn: MemberTurn) -> None:
    memory = turn.memory
    due_ms = memory.auto_commit_at_ms
    if due_ms is not None and turn.now_ms >= due_ms and not memory.auto_commit_under_way:
        restart_auto_commit(turn)
        memory.auto_commit_under_way = True
        commit(turn, memory.positions, INTERVAL)


def restart_auto_commit(turn: MemberTurn) -> None:
    if turn.config.enable_auto_commit:
        turn.memory.auto_commit_at_ms = turn.now_ms + turn.config.auto_commit_interval_ms


# On their way


def drive_commits(turn: MemberTurn) -> None:
    """Send what may be sent. Without a coordinator a commit stays past its deadline, but the application stops
    waiting.
    """
    memory = turn.memory
    blocking = memory.sync_commit
    if blocking is not None and blocking.deadline_ms is not None and turn.now_ms >= blocking.deadline_ms:
        commit_over(turn, blocking, CommitOutcome.TIMED_OUT)
    for pending in list(memory.commits):
        if not memory.coordinator_known:
            if memory.closing is not None and memory.closing.left:
                commit_over(turn, pending, CommitOutcome.COMMIT_FAILED)
        elif turn.now_ms >= pending.retry_at_ms:
            if pending.attempts and is_late(turn, pending):
                commit_over(turn, pending, CommitOutcome.TIMED_OUT)
            else:
                send_commit(turn, pending)


def is_late(turn: MemberTurn, pending: PendingCommit) -> bool:
    return pending.deadline_ms is not None and turn.now_ms >= pending.deadline_ms


def send_commit(turn: MemberTurn, pending: PendingCommit) -> None:
    memory = turn.memory
    memory.commits.remove(pending)
    request = OffsetCommitRequest(
        group_id=turn.config.group_id,
        generation_id_or_member_epoch=-1 if memory.offset_epoch is None else memory.offset_epoch,
        member_id=memory.offset_member_id,
        group_instance_id=turn.config.group_instance_id,
        topics=commit_topics(pending.offsets),
        **turn.header(),
    )
    turn.send(request, commit=pending)


def commit_topics(offsets: Offsets) -> tuple[OffsetCommitRequestTopic, ...]:
    found: dict[str, list[OffsetCommitRequestPartition]] = {}
    for tp in sorted(offsets):
        found.setdefault(tp[0], []).append(OffsetCommitRequestPartition(tp[1], offsets[tp], -1, ""))
    return tuple([OffsetCommitRequestTopic(name=name, partitions=tuple(found[name])) for name in found])


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for name, index in sorted(partitions):
        found.setdefault(name, []).append(index)
    return {name: tuple(indexes) for name, indexes in found.items()}


# Answers


def on_offset_commit(turn: MemberTurn, sent: Sent, response: OffsetCommitResponse) -> None:
    """End the commit. The first partition with an error decides; only a forbidden topic waits for the other
    partitions.
    """
    assert sent.commit is not None
    forbidden = False
    for topic in response.topics:
        for partition in topic.partitions:
            error = partition.error_code
            if error is Error.NONE:
                continue
            how = reaction(OffsetCommitRequest, error)
            if how is not Reaction.UNAUTHORIZED:
                if how is Reaction.COORDINATOR_UNKNOWN:
                    turn.coordinator_unknown()
                commit_failed(turn, sent.commit, how, error)
                return
            forbidden = True
    commit_over(turn, sent.commit, CommitOutcome.FAILED if forbidden else CommitOutcome.DONE)


def commit_failed(turn: MemberTurn, pending: PendingCommit, how: Reaction, error: Error | None = None) -> None:
    """Handle a failed commit; a broken connection is a reason to try again like any other."""
    retriable = how in (Reaction.RETRY, Reaction.COORDINATOR_UNKNOWN)
    stale = how is Reaction.STALE
    deleted = error is Error.UNKNOWN_TOPIC_OR_PARTITION
    if how is Reaction.REMOVED:
        commit_over(turn, pending, CommitOutcome.COMMIT_FAILED)
    elif pending.by == PREPARE and (retriable or (stale and turn.memory.offset_epoch is not None)):
        again(turn, pending, CommitOutcome.FAILED if deleted else None)
    elif pending.by in (SYNC, CLOSE) and retriable:
        again(turn, pending)
    elif pending.by in (SYNC, CLOSE) and stale:
        commit_over(turn, pending, CommitOutcome.COMMIT_FAILED)
    else:
        commit_over(turn, pending, CommitOutcome.RETRIABLE if retriable else CommitOutcome.FAILED)


def again(turn: MemberTurn, pending: PendingCommit, instead: CommitOutcome | None = None) -> None:
    memory = turn.memory
    if pending.by in (SYNC, CLOSE) and memory.sync_commit is not pending:
        return  # it timed out, and the application waits no more
    if is_late(turn, pending):
        commit_over(turn, pending, CommitOutcome.TIMED_OUT)
        return
    if instead is not None:
        commit_over(turn, pending, instead)
        return
    if pending.by == PREPARE:
        pending.offsets = dict(memory.positions)
    pending.retry_at_ms = turn.now_ms + turn.backoff_ms(pending.attempts)
    pending.attempts += 1
    memory.commits.append(pending)


def commit_over(turn: MemberTurn, pending: PendingCommit, outcome: CommitOutcome) -> None:
    memory = turn.memory
    if pending.by in (SYNC, CLOSE):
        if memory.sync_commit is not pending:
            return
        memory.sync_commit = None
    if pending in memory.commits:
        memory.commits.remove(pending)
    if pending.by in (PREPARE, INTERVAL):
        memory.auto_commit_under_way = False
    if pending.offsets or pending.by in (SYNC, ASYNC):
        turn.tell(Committed(pending.offsets, outcome, pending.by))
    if pending.then is not None:
        pending.then(turn, outcome)
