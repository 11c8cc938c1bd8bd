"""Move a member from what it owns to what it is assigned: commit, revoke, assign, acknowledge, in this order.

Start      inside poll(); between polls only where there is nothing to commit and nothing to revoke
Newer      one reconciliation runs at a time; an assignment that comes meanwhile waits until it is acknowledged
Unknown    topics that metadata does not show yet are left out, and asked for; the rest goes ahead
Abort      a member that was fenced, left or joined again finishes nothing of what it had begun
Failure    a callback that raises ends it without an acknowledgement; the next poll() begins again
Departs    from Java where a callback fails or comes too late. An onPartitionsAssigned that waits for poll() while the
           member is fenced is not called; Java calls it and then forgets the partitions without onPartitionsLost.
           Partitions that come back after a failed callback are read again; Java acknowledges them and does not read
Reference  AbstractMembershipManager.maybeReconcile in Apache Kafka 4.3.1
Start at   maybe_reconcile
"""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.member_effects import Callback, CommitOutcome, RequestMetadata
from rebalance_lab.protocol_v2.member.commits import commit_before_rebalance, restart_auto_commit
from rebalance_lab.protocol_v2.member.memory import (
    NO_ASSIGNMENT,
    NOWHERE,
    LocalAssignment,
    MemberTurn,
    QueuedCall,
    Reconciliation,
)
from rebalance_lab.protocol_v2.member.states import MemberEvent, MemberState


def maybe_reconcile(turn: MemberTurn, *, in_poll: bool) -> None:
    memory = turn.memory
    if memory.state is not MemberState.RECONCILING or memory.current == memory.target or memory.reconciling:
        return
    resolved = resolve(turn)
    if memory.current != NO_ASSIGNMENT and resolved.partitions == memory.current.partitions == memory.owned:
        if memory.current != resolved or turn.config.quirks_of_java:
            memory.current = resolved
            memory.pending_revocation = NOWHERE
            turn.move(MemberEvent.RECONCILED)
        return
    added, revoked = resolved.partitions - memory.owned, memory.owned - resolved.partitions
    if not in_poll and (turn.config.enable_auto_commit or revoked):
        return
    this = memory.reconciling = Reconciliation(memory.life, resolved, added, revoked)
    memory.pending_revocation = revoked
    commit_before_rebalance(turn, lambda turn, outcome: committed(turn, this, outcome))


def resolve(turn: MemberTurn) -> LocalAssignment:
    memory = turn.memory
    known = memory.subscribed.cluster
    topics = {topic for topic, _ in memory.target.partitions}
    memory.topic_names |= topics & known.keys()
    if topics <= memory.topic_names:
        return memory.target
    if not memory.metadata_asked and turn.now_ms >= memory.metadata_at_ms:
        memory.metadata_asked = True
        turn.tell(RequestMetadata())
    found = frozenset(tp for tp in memory.target.partitions if tp[0] in memory.topic_names)
    return LocalAssignment(memory.target.local_epoch, found)


def metadata_came(turn: MemberTurn) -> None:
    """Look at new metadata. If it lacks a wanted topic, the next request waits for a back-off."""
    memory = turn.memory
    if memory.metadata_asked:
        memory.metadata_asked = False
        memory.metadata_at_ms = turn.now_ms + turn.backoff_ms(memory.metadata_attempts)
        memory.metadata_attempts += 1
    wanted = {topic for topic, _ in memory.target.partitions}
    if wanted <= memory.subscribed.cluster.keys():
        memory.metadata_attempts, memory.metadata_at_ms = 0, 0


def aborted(turn: MemberTurn, this: Reconciliation) -> bool:
    memory = turn.memory
    over = memory.life != this.life or memory.state is not MemberState.RECONCILING
    if over:
        memory.reconciling = None
    return over


def committed(turn: MemberTurn, this: Reconciliation, outcome: CommitOutcome) -> None:
    """Go on after the commit, whatever became of it."""
    if aborted(turn, this):
        return
    if this.revoked:
        turn.enqueue(QueuedCall(Callback.REVOKED, this.revoked, lambda turn, error: revoked(turn, this, error)))
    else:
        assign(turn, this)


def revoked(turn: MemberTurn, this: Reconciliation, error: str | None) -> None:
    if error is not None:
        turn.memory.reconciling = None
    elif not aborted(turn, this):
        assign(turn, this)


def assign(turn: MemberTurn, this: Reconciliation) -> None:
    """Call onPartitionsAssigned, even with nothing to add."""

    def take_over(turn: MemberTurn) -> bool:
        if aborted(turn, this):
            return False
        turn.own(this.resolved.partitions)
        turn.memory.pending_revocation = NOWHERE
        turn.memory.awaiting_callback |= this.added
        return True

    turn.enqueue(QueuedCall(Callback.ASSIGNED, this.added, lambda turn, error: assigned(turn, this, error), take_over))


def assigned(turn: MemberTurn, this: Reconciliation, error: str | None) -> None:
    memory = turn.memory
    if error is not None:
        memory.reconciling = None
        return
    memory.awaiting_callback = NOWHERE
    if not aborted(turn, this):
        memory.reconciling = None
        memory.current = this.resolved
        restart_auto_commit(turn)
        turn.move(MemberEvent.RECONCILED)


def receive(turn: MemberTurn, given: LocalAssignment) -> None:
    """Take in an answer's assignment, which may be the one that this member has."""
    turn.memory.target = given
    if turn.memory.current != given:
        turn.move(MemberEvent.TARGET_CHANGED)
