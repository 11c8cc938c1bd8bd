# ruff: noqa: E501 - a mutant is a line
"""Faults made by hand in the classic member, one at a time, each of which some test must notice.

python -m tests.protocol_v1.member.mutants
"""

from __future__ import annotations

from tests.mutants import Hunt, Mutant

HERE = "tests.protocol_v1.member"
MEMBER = "rebalance_lab.protocol_v1.member"
HUNT = Hunt(
    package=MEMBER,
    modules=[
        *(f"{MEMBER}.{name}" for name in ("states", "subscription", "memory", "commits", "connection")),
        *(f"{MEMBER}.{name}" for name in ("leave", "heartbeat", "offsets", "leader", "prepare", "join")),
        f"{MEMBER}.member",
        "rebalance_lab.harness.conversation.conversations",
        *(f"{HERE}.{name}" for name in ("alone", "watched", "random_runs", "test_scenarios", "test_error_reactions")),
        *(f"{HERE}.{name}" for name in ("test_member", "test_deadlines_and_offsets", "test_leading_and_leaving")),
    ],
    random_runs=f"{HERE}.random_runs",
    runs=60,
)

# fmt: off
MUTANTS = [
    Mutant("revoke before the commit is answered", "prepare", "    return commit.outcome is not None", "    return True"),
    Mutant("join without preparing", "join", "memory.needs_prepare and not prepare(turn)", "False"),
    Mutant("prepare again after SyncGroup 27", "join", "    memory.join = None\n    if failure.error", "    memory.join, memory.needs_prepare = None, True\n    if failure.error"),
    Mutant("call revoked where lost is meant", "prepare", "give_up(turn, Callback.LOST, memory.owned)", "give_up(turn, Callback.REVOKED, memory.owned)"),
    Mutant("eager members keep what they own", "prepare", "        turn.own(turn.memory.owned - partitions)\n", ""),
    Mutant("cooperative members revoke everything before JoinGroup", "prepare", "memory.protocol is RebalanceProtocol.EAGER:\n        give_up", "True:\n        give_up"),
    Mutant("cooperative members claim nothing", "join", "owned_partitions=owned,", "owned_partitions={},"),
    Mutant("revoke after assign", "join", "        turn.call(Callback.REVOKED, gone, revoked)", "        turn.call(Callback.ASSIGNED, assigned - memory.owned, revoked)"),
    Mutant("no follow-up after a cooperative revoke", "join", '            turn.request_rejoin("need to revoke partitions and re-join", Cause.REVOKED)\n', ""),
    Mutant("assign what is owned already", "join", "added = assigned - memory.owned", "added = assigned"),
    Mutant("do not call assigned with nothing", "join", "    turn.call(Callback.ASSIGNED, added, done)", "    turn.call(Callback.ASSIGNED, added, done) if added else done(turn, None)"),
    Mutant("accept a JoinGroup answer after a reset", "join", "elif memory.state is not MemberState.PREPARING_REBALANCE:", "elif False:"),
    Mutant("accept a SyncGroup answer after a reset", "join", "    elif memory.state is not MemberState.COMPLETING_REBALANCE:\n        fail_join(turn, join_failure(Error.ILLEGAL_GENERATION, at_once=True))\n    elif", "    elif"),
    Mutant("do not adopt the id that is handed out", "join", "        memory.generation = Generation(member_id=response.member_id)\n", ""),
    Mutant("forget the id at a soft reset", "memory", "if event is MemberEvent.SOFT_RESET else NO_GENERATION", "if False else NO_GENERATION"),
    Mutant("keep the id at a full reset", "memory", "if event is MemberEvent.SOFT_RESET else NO_GENERATION", "if True else NO_GENERATION"),
    Mutant("reset on a heartbeat of an old generation", "heartbeat", "(how in RESETS and memory.generation != sent.generation)", "False"),
    Mutant("ignore heartbeat 27", "heartbeat", "        if memory.state is MemberState.STABLE:\n", "        if False:\n"),
    Mutant("rejoin on heartbeat 27 while completing", "heartbeat", "        if memory.state is MemberState.STABLE:\n", "        if True:\n"),
    Mutant("heartbeat while JoinGroup is parked", "states", "HEARTBEATING = (COMPLETING, STABLE)", "HEARTBEATING = (PREPARING, COMPLETING, STABLE)"),
    Mutant("no heartbeats while completing", "states", "HEARTBEATING = (COMPLETING, STABLE)", "HEARTBEATING = (STABLE,)"),
    Mutant("forget the heartbeat's failure when fenced", "heartbeat", "            memory.failure = error\n", "            pass\n"),
    Mutant("never leave for max.poll.interval", "heartbeat", '            leave(turn, CloseOption.DEFAULT, "consumer poll timeout has expired.", Cause.POLL_INTERVAL)', "            memory.poll_at_ms += 10**9"),
    Mutant("lose everything when the session has no answer", "heartbeat", '            coordinator_unknown(turn, "session timed out without receiving a heartbeat response")', '            turn.reset(MemberEvent.FULL_RESET, "session")'),
    Mutant("static members leave", "leave", "(dynamic and option is CloseOption.DEFAULT)", "(option is CloseOption.DEFAULT)"),
    Mutant("dynamic members stay", "leave", "(dynamic and option is CloseOption.DEFAULT)", "False"),
    Mutant("leave before the callback of close", "leave", "    turn.call(Callback.LOST if lost else Callback.REVOKED, memory.owned, dropped)", "    dropped(turn, None)"),
    Mutant("close without a commit", "leave", "turn.config.enable_auto_commit and memory.positions", "False"),
    Mutant("commit in any state", "commits", "elif memory.state is not MemberState.STABLE:", "elif False:"),
    Mutant("ignore commit 27", "offsets", '            turn.request_rejoin("offset commit failed since group is already rebalancing", Cause.GROUP_REBALANCES)\n', ""),
    Mutant("followers watch metadata, too", "join", "    if not memory.is_leader:\n        subscribed.assigned_from = None\n", "    subscribed.assigned_from = subscribed.snapshot\n"),
    Mutant("leaders do not watch metadata", "join", "    subscribed.assigned_from = subscribed.snapshot\n    send_sync", "    send_sync"),
    Mutant("a returning static leader assigns", "join", "if not response.skip_assignment:", "if True:"),
    Mutant("the leader watches only its own topics", "join", "subscribed.group = topics_of(subscriptions_of(response.members))", "subscribed.group = frozenset()"),
    Mutant("sticky claims come from the subscription", "leader", 'if assignor_name == "sticky":', "if False:"),
    Mutant("no check of custom cooperative assignors", "leader", "        check_cooperative(subscriptions, answer)\n", "        pass\n"),
    Mutant("the configured list decides the rebalance protocol by its first entry", "member", "    for assignor in assignors:\n        common &=", "    for assignor in assignors[:1]:\n        common &="),
    Mutant("hear an answer twice", "member", "turn.memory.in_flight.pop(event.request.correlation_id, None)", "turn.memory.in_flight.get(event.request.correlation_id)"),
    Mutant("forget what is in flight when the connection breaks", "connection", "        request_failed(turn, sent)\n", "        pass\n"),
    Mutant("no back-off between lookups", "connection", "    memory.lookup_at_ms = turn.now_ms + turn.backoff_ms(memory.lookup_attempts)\n", ""),
    Mutant("deliver what is about to be revoked", "member", "kept = memory.owned - memory.pending_revocation", "kept = memory.owned"),
    Mutant("requests never time out", "connection", "return min([sent.deadline_ms for sent in memory.in_flight.values()])", "return None"),
]
# fmt: on

if __name__ == "__main__":
    HUNT.check(MUTANTS)
