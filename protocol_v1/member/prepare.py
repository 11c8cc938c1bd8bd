"""Prepare a rebalance once, before JoinGroup: commit, then give up partitions that must not be held while it lasts.

Commit     the outcome is awaited (or the rebalance timeout), so that the next owner starts where this one stopped
Lost       without a generation the coordinator has forgotten the member: other members may own its partitions already
Eager      everything is revoked, and onPartitionsRevoked is called even with nothing to revoke
Coop.      only partitions of topics that left the subscription are revoked; the rest is kept and consumed
Reference  ConsumerCoordinator.onJoinPrepare in Apache Kafka 4.3.1
Start at   prepare
"""

from __future__ import annotations

from rebalance_lab.assignors.interface import RebalanceProtocol
from rebalance_lab.protocol_v1.common.member_effects import Callback, CommitOutcome, TopicPartition
from rebalance_lab.protocol_v1.member.commits import commit_async
from rebalance_lab.protocol_v1.member.memory import MemberTurn


def prepare(turn: MemberTurn) -> bool:
    """Prepare the rebalance, and return whether JoinGroup may follow at once. If not, the flag is up again, or a
    callback runs first.
    """
    memory = turn.memory
    memory.needs_prepare = False
    if not committed(turn):
        memory.needs_prepare = True
        return False
    if memory.generation.is_unknown:
        if memory.owned:
            give_up(turn, Callback.LOST, memory.owned)
    elif memory.protocol is RebalanceProtocol.EAGER:
        give_up(turn, Callback.REVOKED, memory.owned)
    elif unsubscribed := memory.owned_by_topic.keys() - memory.subscribed.topics:
        give_up(turn, Callback.REVOKED, frozenset(tp for tp in memory.owned if tp[0] in unsubscribed))
    if memory.then is not None:
        return False
    prepared(turn)
    return True


def committed(turn: MemberTurn) -> bool:
    """Tell whether the wait for the auto-commit is over."""
    memory = turn.memory
    if memory.prepare_deadline_ms is None:
        memory.prepare_deadline_ms = turn.now_ms + turn.config.max_poll_interval_ms
    if turn.config.enable_auto_commit and memory.prepare_commit is None:
        if memory.protocol is RebalanceProtocol.EAGER:
            memory.pending_revocation = memory.owned
        memory.prepare_commit = commit_async(turn, memory.positions, "prepare")
    commit = memory.prepare_commit
    if commit is None or turn.now_ms >= memory.prepare_deadline_ms:
        return True
    if commit.outcome is CommitOutcome.RETRIABLE:
        memory.prepare_commit = None
        memory.retry_at_ms = turn.now_ms + turn.config.pause_ms
        return False
    return commit.outcome is not None


def give_up(turn: MemberTurn, callback: Callback, partitions: frozenset[TopicPartition]) -> None:
    def given_up(turn: MemberTurn, error: str | None) -> None:
        turn.own(turn.memory.owned - partitions)
        prepared(turn)
        if error is not None:
            turn.throw(None, f"User rebalance callback throws an error: {error}")

    turn.call(callback, partitions, given_up)


def prepared(turn: MemberTurn) -> None:
    memory = turn.memory
    memory.prepare_deadline_ms, memory.prepare_commit = None, None
    memory.is_leader = False
    memory.subscribed.group = frozenset()
