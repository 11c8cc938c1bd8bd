# ruff: noqa: E501 - a mutant is a line
"""Faults made by hand in the KIP-848 member, one at a time, each of which some test must notice.

python -m tests.protocol_v2.member.mutants
"""

from __future__ import annotations

from tests.mutants import Hunt, Mutant

HERE = "tests.protocol_v2.member"
TESTS = (
    "test_error_reactions",
    "test_reconciliation",
    "test_heartbeats",
    "test_leaving",
    "test_offsets",
    "test_scenarios",
)
MEMBER = "rebalance_lab.protocol_v2.member"
HUNT = Hunt(
    package=MEMBER,
    modules=[
        *(f"{MEMBER}.{name}" for name in ("states", "config", "subscription", "memory", "error_reactions")),
        *(f"{MEMBER}.{name}" for name in ("membership", "callbacks", "commits", "reconciliation", "offsets")),
        *(f"{MEMBER}.{name}" for name in ("heartbeat", "connection", "close")),
        f"{MEMBER}.member",
        "rebalance_lab.harness.conversation.conversations",
        *(f"{HERE}.{name}" for name in ("alone", "watched", "random_runs", *TESTS)),
    ],
    random_runs=f"{HERE}.random_runs",
    runs=40,
)

# fmt: off
MUTANTS = [
    Mutant("revoke before the commit is over", "reconciliation", "    commit_before_rebalance(turn, lambda turn, outcome: committed(turn, this, outcome))", "    commit_before_rebalance(turn, lambda turn, outcome: None)\n    committed(turn, this, CommitOutcome.DONE)"),
    Mutant("assign before revoke", "reconciliation", "    if this.revoked:\n", "    if this.revoked and not this.added:\n"),
    Mutant("acknowledge although the callback failed", "reconciliation", "    if error is not None:\n        memory.reconciling = None\n        return\n", ""),
    Mutant("what is owned is told only in a join", "heartbeat", "    if full or memo.owned != owned:\n", "    if full:\n"),
    Mutant("go on with a reconciliation of an earlier life", "reconciliation", "over = memory.life != this.life or memory.state is not MemberState.RECONCILING", "over = False"),
    Mutant("two reconciliations at a time", "reconciliation", "or memory.current == memory.target or memory.reconciling:", "or memory.current == memory.target:"),
    Mutant("reconcile between polls", "reconciliation", "    if not in_poll and (turn.config.enable_auto_commit or revoked):\n        return\n", ""),
    Mutant("read on what is to be revoked", "reconciliation", "    memory.pending_revocation = revoked\n    commit", "    commit"),
    Mutant("read what onPartitionsAssigned has not seen", "reconciliation", "        turn.memory.awaiting_callback |= this.added\n", ""),
    Mutant("take over topics that are not known", "reconciliation", "    if topics <= memory.topic_names:\n        return memory.target\n", "    return memory.target\n"),
    Mutant("ask for metadata without a back-off", "reconciliation", "memory.metadata_at_ms = turn.now_ms + turn.backoff_ms(memory.metadata_attempts)", "memory.metadata_at_ms = 0"),
    Mutant("do not call assigned with nothing", "reconciliation", "    turn.enqueue(QueuedCall(Callback.ASSIGNED, this.added, lambda turn, error: assigned(turn, this, error), take_over))", "    turn.enqueue(QueuedCall(Callback.ASSIGNED, this.added, lambda turn, error: assigned(turn, this, error), take_over)) if this.added else (take_over(turn), assigned(turn, this, None))"),
    Mutant("the same partitions are never a new target", "memory", "        return LocalAssignment(self.local_epoch + 1, partitions)", "        return LocalAssignment(0, partitions)"),
    Mutant("fenced members keep their partitions", "membership", "    lose(turn, released)\n\n\ndef fail", "    released(turn, None)\n\n\ndef fail"),
    Mutant("fenced members read on", "membership", "    memory.pending_revocation = memory.owned\n    if memory.owned:\n        turn.enqueue(QueuedCall(Callback.LOST", "    if memory.owned:\n        turn.enqueue(QueuedCall(Callback.LOST"),
    Mutant("fenced members join before onPartitionsLost", "membership", "    life = memory.life\n\n    def released(turn: MemberTurn, error: str | None) -> None:\n        turn.clear_assignment()\n        if memory.life", "    join(turn, MemberEvent.RELEASED, Cause.FORGOTTEN)\n    life = memory.life\n\n    def released(turn: MemberTurn, error: str | None) -> None:\n        turn.clear_assignment()\n        if memory.life"),
    Mutant("call revoked where lost is meant", "membership", "QueuedCall(Callback.LOST, memory.owned, then)", "QueuedCall(Callback.REVOKED, memory.owned, then)"),
    Mutant("keep the epoch when fenced", "membership", "turn.start_anew(leave_epoch(memory) if was_leaving else JOIN_EPOCH)", "turn.start_anew(leave_epoch(memory) if was_leaving else memory.member_epoch)"),
    Mutant("static members leave for good", "membership", "return LEAVE_EPOCH if leaves or memory.config.group_instance_id is None else STEP_OUT_EPOCH", "return LEAVE_EPOCH"),
    Mutant("LEAVE_GROUP is not heard", "membership", "leaves = memory.closing is not None and memory.closing.option is CloseOption.LEAVE_GROUP", "leaves = False"),
    Mutant("leave before the callback", "membership", "    if callbacks and memory.owned:\n", "    if False:\n"),
    Mutant("join again before the leave is answered", "member", "    return free and memory.subscribed.active and not memory.leaving", "    return free and memory.subscribed.active"),
    Mutant("a stale member joins before onPartitionsLost", "membership", "elif memory.state is MemberState.STALE and memory.released:", "elif memory.state is MemberState.STALE:"),
    Mutant("a stale member never comes back", "membership", "elif memory.state is MemberState.STALE and memory.released:", "elif False:"),
    Mutant("never leave for max.poll.interval", "heartbeat", "    if memory.state in IN_GROUP and turn.now_ms >= memory.poll_at_ms and not memory.in_poll:\n", "    if False:\n"),
    Mutant("every poll is heard", "member", "event.buffered and not memory.unheard and turn.config.quirks_of_java", "False"),
    Mutant("no poll is heard while records wait", "member", "event.buffered and not memory.unheard and turn.config.quirks_of_java", "event.buffered and turn.config.quirks_of_java"),
    Mutant("a poll in which the application is called is not heard", "member", "            memory.unheard = False  # poll() goes round again\n", ""),
    Mutant("a poll that is not heard counts", "member", "            if not memory.unheard:\n                memory.poll_at_ms", "            if True:\n                memory.poll_at_ms"),
    Mutant("max.poll.interval is over at once", "heartbeat", "    if poll_at_ms is None or memory.config.quirks_of_java:\n", "    if poll_at_ms is None:\n"),
    Mutant("heartbeats wait for poll", "heartbeat", "    due_ms = tick_at(memory)\n    if due_ms is None", "    due_ms = tick_at(memory)\n    if not memory.in_poll and memory.state is MemberState.STABLE or due_ms is None"),
    Mutant("two heartbeats in flight", "heartbeat", "    if memory.heartbeats.in_flight is not None:\n        return poll_at_ms\n", ""),
    Mutant("joining waits for the interval", "states", "AT_ONCE = (JOINING, ACKNOWLEDGING)", "AT_ONCE = (ACKNOWLEDGING,)"),
    Mutant("acknowledging waits for the interval", "states", "AT_ONCE = (JOINING, ACKNOWLEDGING)", "AT_ONCE = (JOINING,)"),
    Mutant("ignore the broker's interval", "heartbeat", "        heartbeats.interval_ms = response.heartbeat_interval_ms\n", "        heartbeats.interval_ms = 3_000\n"),
    Mutant("no back-off after a failure", "heartbeat", "    heartbeats.retry_at_ms = turn.now_ms + turn.backoff_ms(heartbeats.attempts)\n", ""),
    Mutant("a failure is not followed by a full heartbeat", "heartbeat", "    forget_what_was_sent(turn.memory)\n    heartbeats.due_ms", "    heartbeats.due_ms"),
    Mutant("a join claims what is owned", "heartbeat", '        fields["topic_partitions"] = listed(owned[1])', '        fields["topic_partitions"] = listed(owned[1] | memory.owned)'),
    Mutant("every heartbeat says what is owned", "heartbeat", "    if full or memo.owned != owned:\n", "    if True:\n"),
    Mutant("the rack is sent every time", "heartbeat", '    if full:\n        fields["rack_id"]', '    if True:\n        fields["rack_id"]'),
    Mutant("a changed subscription is not told", "heartbeat", "    if full or memo.names != subscribed.topics:\n", "    if full or memo.names is None:\n"),
    Mutant("an expression is never cleared", "heartbeat", "memo.regex != subscribed.regex:\n", "False:\n"),
    Mutant("answers of an earlier life count", "heartbeat", "    if sent.unheard or sent.life != memory.life:\n        return\n    if response", "    if sent.unheard:\n        return\n    if response"),
    Mutant("the epoch of an answer is not taken", "heartbeat", "    turn.set_epoch(response.member_epoch)\n", ""),
    Mutant("assignments are taken while leaving", "heartbeat", "if response.assignment is not None and memory.state in IN_GROUP:", "if response.assignment is not None:"),
    Mutant("what is about to be owned is not claimed", "heartbeat", "    return memory.current.partitions | memory.target.partitions | taking", "    return memory.current.partitions"),
    Mutant("FENCED_MEMBER_EPOCH is fatal", "error_reactions", "        Error.FENCED_MEMBER_EPOCH: Reaction.FENCE,\n", ""),
    Mutant("a stale commit before a revocation is not repeated", "commits", "(retriable or (stale and turn.memory.offset_epoch is not None))", "retriable"),
    Mutant("commitSync repeats a stale commit", "commits", "    elif pending.by in (SYNC, CLOSE) and retriable:", "    elif pending.by in (SYNC, CLOSE) and (retriable or stale):"),
    Mutant("commits carry no epoch", "commits", "generation_id_or_member_epoch=-1 if memory.offset_epoch is None else memory.offset_epoch", "generation_id_or_member_epoch=-1"),
    Mutant("fetches carry no epoch", "offsets", "    epoch = memory.offset_epoch\n", "    epoch = None\n"),
    Mutant("two auto-commits at a time", "commits", "and turn.now_ms >= due_ms and not memory.auto_commit_under_way:", "and turn.now_ms >= due_ms:"),
    Mutant("a lost connection fails nothing", "connection", "            connection_broke(turn, sent)\n", "            pass\n"),
    Mutant("requests never time out", "connection", "        return sent.deadline_ms\n", "        return None\n"),
    Mutant("close without a commit", "close", "    if turn.config.enable_auto_commit:\n", "    if False:\n"),
    Mutant("close without a callback", "close", "    if memory.owned:\n", "    if False:\n"),
    Mutant("callbacks run while the application is busy", "memory", "return (self.polling or self.unsubscribing) and self.then is None and self.sync_commit is None", "return self.then is None"),
    Mutant("the first error ends the batch", "callbacks", "if not memory.batch and memory.thrown is not None:", "if memory.thrown is not None:"),
    Mutant("topics that left the subscription are read", "subscription", "return topic in self.topics or self.pattern is not None or self.regex is not None", "return True"),
    Mutant("a pattern is matched once", "subscription", "if self.pattern is not None and self.version > self.seen:", "if False:"),
]
# fmt: on

if __name__ == "__main__":
    HUNT.check(MUTANTS)
