"""Run one member of KIP-848, the consumer's side, as a machine without I/O.

Given      what the application, the network and the clock tell the member, each with the time
           (protocol_v1/common/member_effects.py)
Returns    effects in the order in which they are to be done: requests, callbacks, timers, exceptions, facts
Threads    Java's consumer is two threads, and the machine keeps that: the background serves heartbeats, lookups and
           answers whatever the application does. Callbacks run inside poll(), unsubscribe() and close() only
Order      heartbeat, commit, onPartitionsRevoked, onPartitionsAssigned, heartbeat that acknowledges
Member id  made by the client (KIP-1082) and given by the caller; it stays the same for the life of the process
Simpler    poll() has no time-out of its own here: while it is open, everything that a pass through it does is done
Reference  AsyncKafkaConsumer, ConsumerNetworkThread and the request managers in Apache Kafka 4.3.1
Start at   Member.handle, settle; then reconciliation.py for the way to a new assignment
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rebalance_lab.protocol_v1.common.effects import CancelTimer, SetTimer, TimerKey
from rebalance_lab.protocol_v1.common.errors import InvariantBroken
from rebalance_lab.protocol_v1.common.member_effects import (
    CallbackDone,
    Close,
    Commit,
    Disconnected,
    EnforceRebalance,
    FindCoordinatorRequest,
    MemberEffect,
    MetadataChanged,
    Offsets,
    Poll,
    PollReturned,
    Responded,
    Send,
    Subscribe,
    TimerFired,
    Told,
    TopicPartition,
    Unsubscribe,
)
from rebalance_lab.protocol_v1.common.messages import OffsetCommitRequest, OffsetFetchRequest, Request
from rebalance_lab.protocol_v2.common.messages import ConsumerGroupHeartbeatRequest
from rebalance_lab.protocol_v2.member.callbacks import called, serve
from rebalance_lab.protocol_v2.member.close import close, closed_if_done
from rebalance_lab.protocol_v2.member.commits import (
    auto_commit_if_due,
    commit_for_the_application,
    drive_commits,
    note_positions,
    on_offset_commit,
    restart_auto_commit,
)
from rebalance_lab.protocol_v2.member.config import MemberConfig
from rebalance_lab.protocol_v2.member.connection import (
    connection_lost,
    look_up,
    lookup_at,
    on_find_coordinator,
    on_request_timeout,
    request_deadline,
)
from rebalance_lab.protocol_v2.member.heartbeat import forget_what_was_sent, on_heartbeat, tick
from rebalance_lab.protocol_v2.member.membership import come_back, leave_group
from rebalance_lab.protocol_v2.member.memory import MemberMemory, MemberTurn, Sent
from rebalance_lab.protocol_v2.member.offsets import drive_fetch, on_offset_fetch, want_offsets
from rebalance_lab.protocol_v2.member.reconciliation import maybe_reconcile, metadata_came
from rebalance_lab.protocol_v2.member.states import RECONCILING, STABLE, STALE, MemberState
from rebalance_lab.protocol_v2.member.subscription import Subscribed

ANSWERS: Mapping[type[Request], Callable[[MemberTurn, Sent, Any], None]] = {
    ConsumerGroupHeartbeatRequest: on_heartbeat,
    OffsetCommitRequest: on_offset_commit,
    OffsetFetchRequest: on_offset_fetch,
    FindCoordinatorRequest: on_find_coordinator,
}


class Member:
    def __init__(
        self,
        config: MemberConfig | None = None,
        *,
        member_id: str,
        topics: Iterable[str] = (),
        pattern: str | None = None,
        regex: str | None = None,
        jitter: Callable[[], float] | None = None,
    ) -> None:
        """Take `pattern`, which the member matches, and `regex`, which the coordinator matches.

        `jitter` draws what Kafka's back-offs are multiplied by, between 0.8 and 1.2; by default they are exact.
        """
        config = config or MemberConfig()
        subscribed = Subscribed(exclude_internal_topics=config.exclude_internal_topics)
        topics = frozenset(topics)
        if topics or pattern is not None or regex is not None:
            subscribed.subscribe(topics, pattern, regex)
        self.memory = MemberMemory(
            config=config, member_id=member_id, jitter=jitter or (lambda: 1.0), subscribed=subscribed
        )
        forget_what_was_sent(self.memory)

    # To look at, not to change

    @property
    def state(self) -> MemberState:
        return self.memory.state

    @property
    def member_id(self) -> str:
        return self.memory.member_id

    @property
    def member_epoch(self) -> int:
        return self.memory.member_epoch

    @property
    def owned(self) -> frozenset[TopicPartition]:
        return self.memory.owned

    @property
    def fetchable(self) -> frozenset[TopicPartition]:
        """Return what poll() may deliver."""
        memory, subscribed = self.memory, self.memory.subscribed
        kept = memory.owned
        if memory.pending_revocation or memory.awaiting_callback:
            kept = kept - memory.pending_revocation - memory.awaiting_callback
        if memory.owned_topics <= subscribed.topics:
            return kept
        return frozenset(tp for tp in kept if subscribed.may_fetch(tp[0]))

    @property
    def epoch(self) -> int:
        """Return the epoch by which the member's commits are fenced."""
        return self.memory.member_epoch

    @property
    def heartbeat_interval_ms(self) -> int:
        """Return the interval that the coordinator told; before it is heard, the coordinator's default."""
        return self.memory.heartbeats.interval_ms or 5_000

    @property
    def heartbeat_at_ms(self) -> int:
        return self.memory.heartbeats.due_ms

    @property
    def auto_commit_at_ms(self) -> int | None:
        return self.memory.auto_commit_at_ms if self.memory.config.enable_auto_commit else None

    def commits_in_poll(self, now_ms: int) -> bool:
        """Tell whether poll() would commit by itself now: not while a commit that it has begun is under way."""
        due_ms = self.auto_commit_at_ms
        return due_ms is not None and due_ms <= now_ms and not self.memory.auto_commit_under_way

    @property
    def sends_commits(self) -> bool:
        """Tell whether a commit that is asked for now is sent: without a coordinator it waits."""
        return self.memory.coordinator_known

    @property
    def waits_for_an_answer(self) -> bool:
        return bool(self.memory.in_flight)

    @property
    def prepares(self) -> bool:
        """Tell whether the member reconciles: poll() calls what follows on the answer to its commit."""
        return self.memory.reconciling is not None

    @property
    def subscribed_topics(self) -> frozenset[str]:
        return self.memory.subscribed.topics

    @property
    def asked_topics(self) -> frozenset[str]:
        """Return the topics whose metadata the client asks for by name, existing or not."""
        return self.subscribed_topics

    @property
    def in_poll(self) -> bool:
        return self.memory.in_poll

    @property
    def settled(self) -> bool:
        """Tell whether the member is in the group, and has nothing to do but heartbeats and commits."""
        memory = self.memory
        if memory.state is not STABLE or not memory.coordinator_known or memory.leaving or memory.closing is not None:
            return False
        if memory.then is not None or memory.queue or memory.batch or memory.reconciling is not None:
            return False
        if memory.fetching is not None or memory.commits:
            return False
        memo, subscribed = memory.heartbeats.memo, memory.subscribed
        return memo.names == subscribed.topics and memo.regex == subscribed.regex

    @property
    def searches(self) -> bool:
        """Tell whether the member only searches for its coordinator, which does not answer."""
        memory = self.memory
        if memory.coordinator_known or memory.leaving or memory.closing is not None or not memory.in_poll:
            return False
        if memory.queue or memory.batch or memory.reconciling is not None or memory.sync_commit is not None:
            return False
        if OFFSETS in memory.armed:
            return False  # an auto-commit is to come, which then waits for the coordinator
        return all(isinstance(sent.request, FindCoordinatorRequest) for sent in memory.in_flight.values())

    def note(self, positions: Offsets) -> None:
        """Note how far the application is, as a poll() would: for a driver that commits for a settled member."""
        note_positions(self.memory, positions)

    def leap(self, beats_ms: int, commits_ms: int) -> None:
        """Put off heartbeats, and auto-commits, by so much: for a driver that passes over time in which a settled
        member only repeats itself."""
        memory = self.memory
        memory.poll_at_ms += beats_ms
        memory.heartbeats.due_ms += beats_ms
        memory.heartbeats.retry_at_ms += beats_ms
        if memory.auto_commit_at_ms is not None:
            memory.auto_commit_at_ms += commits_ms
        for sent in memory.in_flight.values():
            sent.deadline_ms += beats_ms
        for key in memory.armed:
            memory.armed[key] += commits_ms if key == ("offsets",) else beats_ms

    def search_later(self, by_ms: int) -> None:
        """Put off what a member that searches repeats. Heartbeats and auto-commits come due meanwhile, and stay so."""
        memory = self.memory
        memory.poll_at_ms += by_ms
        memory.lookup_at_ms += by_ms
        for sent in memory.in_flight.values():
            sent.deadline_ms += by_ms
        for key in memory.armed:
            memory.armed[key] += by_ms

    def handle(self, event: Told, now_ms: int) -> list[MemberEffect]:
        turn = MemberTurn(self.memory, now_ms)
        if self.memory.closed:
            return turn.effects
        take(turn, event)
        tick_ms = settle(turn)
        if self.memory.closing is not None:
            closed_if_done(turn)
        set_timers(turn, tick_ms)
        return turn.effects


def take(turn: MemberTurn, event: Told) -> None:
    memory = turn.memory
    match event:
        case Responded():
            sent = memory.in_flight.pop(event.request.correlation_id, None)
            if sent is not None:  # otherwise its connection was given up, or it is said twice
                ANSWERS[type(event.request)](turn, sent, event.response)
        case TimerFired():
            memory.armed.pop(event.key, None)
        case Poll():
            enter_poll(turn, event)
        case PollReturned():
            memory.polling = False
            note_positions(memory, event.positions)
            if not memory.unheard:
                memory.poll_at_ms = turn.now_ms + turn.config.max_poll_interval_ms
        case CallbackDone():
            memory.unheard = False  # poll() goes round again
            called(turn, event.error)
        case Commit():
            commit_for_the_application(turn, event)
        case Subscribe():
            subscribe(turn, event)
        case Unsubscribe():
            unsubscribe(turn)
        case EnforceRebalance():
            pass  # Java's consumer only warns that this protocol has no such thing
        case Close():
            close(turn, event)
        case MetadataChanged():
            memory.subscribed.metadata_came(event.topics)
            metadata_came(turn)
        case Disconnected():
            if memory.coordinator_known or memory.in_flight:
                connection_lost(turn)


def enter_poll(turn: MemberTurn, event: Poll) -> None:
    memory = turn.memory
    if memory.then is not None or memory.closing is not None:
        raise InvariantBroken("poll() from inside a callback, or after close()")
    memory.polling = True
    # While there is something to return, every second poll() of Kafka 4.3.1 does not tell the consumer's own thread of
    # itself: what it had to say to it last is done by now, and put away, and nothing new is said.
    memory.unheard = event.buffered and not memory.unheard and turn.config.quirks_of_java
    note_positions(memory, event.positions)


def subscribe(turn: MemberTurn, event: Subscribe) -> None:
    """Subscribe; an empty subscription is Java's way to unsubscribe."""
    if event.topics or event.pattern is not None or event.regex is not None:
        turn.memory.subscribed.subscribe(event.topics, event.pattern, event.regex)
    else:
        unsubscribe(turn)


def unsubscribe(turn: MemberTurn) -> None:
    turn.memory.unsubscribing = True
    leave_group(turn, callbacks=True)


def settle(turn: MemberTurn) -> int | None:
    """Do what can be done now, until nothing more comes of it.

    Returns when `tick` has something to do next, which nothing that follows it in the last round can move.
    """
    memory = turn.memory
    if memory.auto_commit_at_ms is None:
        restart_auto_commit(turn)
        memory.poll_at_ms = memory.poll_at_ms or turn.now_ms + turn.config.max_poll_interval_ms
    deadline_ms = request_deadline(memory) if memory.in_flight else None
    if deadline_ms is not None and deadline_ms <= turn.now_ms:
        on_request_timeout(turn)
    effects, done, tick_ms = turn.effects, -1, None
    while done != len(effects):
        done = len(effects)
        if may_pass(memory):
            poll_pass(turn)
        tick_ms = background_pass(turn)
        if memory.queue or memory.batch or memory.thrown is not None or memory.unsubscribing:
            serve(turn)
        elif len(effects) == done + 1 and isinstance(effects[done], Send):
            break  # nothing more comes of a request before its answer
    return tick_ms


def may_pass(memory: MemberMemory) -> bool:
    """Tell whether poll() goes round once more: not while it has callbacks to run, or an exception to raise at their
    end.
    """
    free = memory.in_poll and not memory.unheard and not memory.batch and memory.thrown is None
    return free and memory.subscribed.active and not memory.leaving


def poll_pass(turn: MemberTurn) -> None:
    """Go one round inside poll(), in Java's order."""
    memory = turn.memory
    if memory.state is RECONCILING:
        maybe_reconcile(turn, in_poll=True)
    auto_commit_if_due(turn)
    subscribed = memory.subscribed
    if subscribed.pattern is not None:
        subscribed.look()
    if subscribed.updated or memory.state is STALE:
        come_back(turn)
    memory.poll_at_ms = turn.now_ms + turn.config.max_poll_interval_ms
    if len(memory.looked_up) < len(memory.owned):
        want_offsets(turn)


def background_pass(turn: MemberTurn) -> int | None:
    """Go one round in the background. Most rounds have little to do, so work that does not exist is not asked about."""
    memory = turn.memory
    if not memory.coordinator_known:
        look_up(turn)
    if memory.commits or memory.sync_commit is not None:
        drive_commits(turn)
    if memory.fetching is not None:
        drive_fetch(turn)
    tick_ms = tick(turn)
    if memory.state is RECONCILING:
        maybe_reconcile(turn, in_poll=False)
    return tick_ms


# Timers: a deadline that moved is set anew, one that is gone is cancelled


TICK, REQUEST, LOOKUP, OFFSETS, METADATA, CLOSE = (
    ("tick",),
    ("request",),
    ("lookup",),
    ("offsets",),
    ("metadata",),
    ("close",),
)


def set_timers(turn: MemberTurn, tick_ms: int | None) -> None:
    memory, now_ms = turn.memory, turn.now_ms
    wanted, armed = {} if memory.closed else deadlines(memory, now_ms, tick_ms), memory.armed
    if wanted == armed:
        return
    for key in list(armed):
        if key not in wanted:
            del armed[key]
            turn.effects.append(CancelTimer(key))
    for key, at_ms in wanted.items():
        if armed.get(key) != at_ms:
            armed[key] = at_ms
            turn.effects.append(SetTimer(key, at_ms - now_ms if at_ms > now_ms else 0))


def deadlines(memory: MemberMemory, now_ms: int, tick_ms: int | None) -> dict[TimerKey, int]:
    found: dict[TimerKey, int] = {}
    if tick_ms is not None:
        found[TICK] = tick_ms
    if memory.in_flight and (request_ms := request_deadline(memory)) is not None:
        found[REQUEST] = request_ms
    if not memory.coordinator_known and (lookup_ms := lookup_at(memory)) is not None:
        found[LOOKUP] = lookup_ms
    if (offsets_ms := offsets_at(memory, now_ms)) is not None:
        found[OFFSETS] = offsets_ms
    if memory.metadata_at_ms > now_ms and memory.state is RECONCILING and not memory.metadata_asked:
        found[METADATA] = memory.metadata_at_ms
    if memory.closing is not None and memory.closing.left:
        found[CLOSE] = memory.closing.deadline_ms
    return found


def offsets_at(memory: MemberMemory, now_ms: int) -> int | None:
    """Return when a commit or a fetch would go on by itself, if nothing comes before."""
    found = memory.auto_commit_at_ms
    if found is None or found <= now_ms or not memory.positions or not memory.in_poll:
        found = None
    if memory.coordinator_known:
        for pending in memory.commits:
            found = sooner(pending.retry_at_ms, found, now_ms)
        if memory.fetching is not None:
            found = sooner(memory.fetching.retry_at_ms, found, now_ms)
    if memory.sync_commit is not None and memory.sync_commit.deadline_ms is not None:
        found = sooner(memory.sync_commit.deadline_ms, found, now_ms)
    return found


def sooner(at_ms: int, than_ms: int | None, now_ms: int) -> int | None:
    """Return the sooner of two deadlines; a time in the past is no deadline."""
    return at_ms if at_ms > now_ms and (than_ms is None or at_ms < than_ms) else than_ms
