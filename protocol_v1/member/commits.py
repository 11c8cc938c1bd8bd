"""Start and end commits. A member decides here, before anything is sent, whether it may commit.

Rule       a group commit carries generation and member id, so only a Stable member sends one. In other states the
           application is told at once that a rebalance is in progress, or that the member has left the group
Ends       every commit ends exactly once, with a Committed; commit_over reports it
Reference  ConsumerCoordinator.sendOffsetCommitRequest in Apache Kafka 4.3.1
Start at   commit_async
"""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.member_effects import CommitOutcome, Committed, Offsets
from rebalance_lab.protocol_v1.common.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rebalance_lab.protocol_v1.member.memory import MemberMemory, MemberTurn, PendingCommit
from rebalance_lab.protocol_v1.member.states import REBALANCING, MemberState


def note_positions(memory: MemberMemory, positions: Offsets) -> None:
    noted = {**memory.positions, **positions}
    if len(noted) > len(memory.positions):  # otherwise they are all of partitions that had one, which are owned
        noted = {tp: offset for tp, offset in noted.items() if tp in memory.owned}
    memory.positions = noted


def commit_async(turn: MemberTurn, offsets: Offsets, by: str) -> PendingCommit:
    """Send a commit once, never again. Without a coordinator it waits for the lookup to end."""
    commit = PendingCommit(dict(offsets), by)
    if offsets and not turn.memory.coordinator_known:
        turn.look_up()
        turn.memory.waiting_commits.append(commit)
    else:
        send_commit(turn, commit)
    return commit


def send_commit(turn: MemberTurn, commit: PendingCommit) -> None:
    memory = turn.memory
    if not commit.offsets:
        commit_over(turn, commit, CommitOutcome.DONE)
    elif memory.state is not MemberState.STABLE:
        rebalances = memory.state in REBALANCING
        refusal = CommitOutcome.REBALANCE_IN_PROGRESS if rebalances else CommitOutcome.COMMIT_FAILED
        commit_over(turn, commit, refusal)
    else:
        request = OffsetCommitRequest(
            group_id=turn.config.group_id,
            generation_id_or_member_epoch=memory.generation.generation_id,
            member_id=memory.generation.member_id,
            group_instance_id=turn.config.group_instance_id,
            topics=commit_topics(commit.offsets),
            **turn.header(),
        )
        turn.send(request, commit=commit)


def commit_topics(offsets: Offsets) -> tuple[OffsetCommitRequestTopic, ...]:
    found: dict[str, list[OffsetCommitRequestPartition]] = {}
    for tp in sorted(offsets):
        found.setdefault(tp[0], []).append(OffsetCommitRequestPartition(tp[1], offsets[tp], -1, ""))
    return tuple([OffsetCommitRequestTopic(name=name, partitions=tuple(found[name])) for name in found])


def commit_over(turn: MemberTurn, commit: PendingCommit, outcome: CommitOutcome) -> None:
    memory = turn.memory
    commit.outcome = outcome
    attempt_of_sync = memory.sync_commit is not None and memory.sync_commit.attempt is commit
    if outcome is CommitOutcome.FENCED and not attempt_of_sync:
        memory.commit_fenced = True  # every later poll raises it
    if outcome is CommitOutcome.RETRIABLE and commit.by == "interval":
        memory.auto_commit_at_ms = turn.now_ms + turn.config.pause_ms
    if commit.offsets and not attempt_of_sync:
        turn.tell(Committed(commit.offsets, outcome, commit.by))


def auto_commit_if_due(turn: MemberTurn) -> None:
    memory = turn.memory
    if turn.config.enable_auto_commit and turn.now_ms >= memory.auto_commit_at_ms:
        memory.auto_commit_at_ms = turn.now_ms + turn.config.auto_commit_interval_ms
        commit_async(turn, memory.positions, "interval")
