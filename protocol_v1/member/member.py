"""Run one member of the classic protocol, the consumer's side, as a machine without I/O.

Given      what the application, the network and the clock tell the member, each with the time
           (protocol_v1/common/member_effects.py)
Returns    effects in the order in which they are to be done: requests, callbacks, timers, exceptions, facts
Threads    Java's member is two threads, and the machine keeps that: callbacks run only inside poll(), unsubscribe() and
           close(). While the application is busy, the heartbeats serve the network. Between JoinGroup and its answer
           there are no heartbeats, so that answer waits for the next poll()
Order      commit, onPartitionsRevoked or onPartitionsLost, JoinGroup, SyncGroup, onPartitionsAssigned; the cooperative
           protocol revokes after SyncGroup instead, and then joins once more
Reference  ConsumerCoordinator and AbstractCoordinator in Apache Kafka 4.3.1
Start at   Member.handle, poll_pass; then join.py for the join loop
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rebalance_lab.assignors.interface import Assignor, RebalanceProtocol, supported_protocols_of
from rebalance_lab.protocol_v1.common.effects import CancelTimer, SetTimer, TimerKey
from rebalance_lab.protocol_v1.common.errors import Error, InvariantBroken
from rebalance_lab.protocol_v1.common.member_effects import (
    CallbackDone,
    Cause,
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
    RequestMetadata,
    Responded,
    Subscribe,
    TimerFired,
    Told,
    TopicPartition,
    Unsubscribe,
)
from rebalance_lab.protocol_v1.common.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    Request,
    SyncGroupRequest,
)
from rebalance_lab.protocol_v1.member.commits import auto_commit_if_due, commit_async, note_positions
from rebalance_lab.protocol_v1.member.config import MemberConfig
from rebalance_lab.protocol_v1.member.connection import (
    connection_lost,
    coordinator_ready,
    on_find_coordinator,
    on_request_timeout,
    request_deadline,
)
from rebalance_lab.protocol_v1.member.heartbeat import on_heartbeat, tick, tick_at
from rebalance_lab.protocol_v1.member.join import assign, join_loop, on_join, on_sync, rejoin_needed_or_pending
from rebalance_lab.protocol_v1.member.leave import close, closed_if_done, unsubscribe
from rebalance_lab.protocol_v1.member.memory import Generation, MemberMemory, MemberTurn, Sent, SyncCommit
from rebalance_lab.protocol_v1.member.offsets import drive_sync_commit, fetch_offsets, on_offset_commit, on_offset_fetch
from rebalance_lab.protocol_v1.member.states import STABLE, MemberState
from rebalance_lab.protocol_v1.member.subscription import Matches, Subscribed, pythons_own


def ignore(turn: MemberTurn, sent: Sent, response: Any) -> None:
    """Ignore the answer to LeaveGroup: whatever it is, the member is out."""


ANSWERS: Mapping[type[Request], Callable[[MemberTurn, Sent, Any], None]] = {
    JoinGroupRequest: on_join,
    SyncGroupRequest: on_sync,
    HeartbeatRequest: on_heartbeat,
    LeaveGroupRequest: ignore,
    OffsetCommitRequest: on_offset_commit,
    OffsetFetchRequest: on_offset_fetch,
    FindCoordinatorRequest: on_find_coordinator,
}


def rebalance_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """Return the best protocol that all configured assignors support, whichever of them the group will choose."""
    common = set(RebalanceProtocol)
    for assignor in assignors:
        common &= set(supported_protocols_of(assignor))
    if not assignors or not common:
        names = ", ".join(assignor.name for assignor in assignors)
        raise ValueError(f"the assignors [{names}] have no rebalance protocol in common")
    return RebalanceProtocol.COOPERATIVE if RebalanceProtocol.COOPERATIVE in common else RebalanceProtocol.EAGER


class Member:
    def __init__(
        self,
        config: MemberConfig | None = None,
        *,
        assignors: Sequence[Assignor],
        topics: Iterable[str] = (),
        pattern: str | None = None,
        engine: Callable[[str], Matches] = pythons_own,
        jitter: Callable[[], float] | None = None,
    ) -> None:
        """Take `engine`, which turns a pattern into a function that matches names. `jitter` draws what Kafka's
        back-offs are multiplied by, between 0.8 and 1.2; by default they are exact.
        """
        config = config or MemberConfig()
        by_name = {assignor.name: assignor for assignor in assignors}
        if len(by_name) < len(assignors):
            raise ValueError("two assignors have the same name")
        subscribed = Subscribed(
            rack=config.client_rack, exclude_internal_topics=config.exclude_internal_topics, engine=engine
        )
        subscribed.subscribe(topics, pattern)
        self.memory = MemberMemory(
            config=config,
            assignors=by_name,
            protocol=rebalance_protocol(assignors),
            jitter=jitter or (lambda: 1.0),
            subscribed=subscribed,
        )

    # To look at, not to change

    @property
    def state(self) -> MemberState:
        return self.memory.state

    @property
    def generation(self) -> Generation:
        return self.memory.generation

    @property
    def owned(self) -> frozenset[TopicPartition]:
        return self.memory.owned

    @property
    def fetchable(self) -> frozenset[TopicPartition]:
        """Return what poll() may deliver: not what is about to be revoked, nor topics that have left the
        subscription.
        """
        memory = self.memory
        kept = memory.owned - memory.pending_revocation if memory.pending_revocation else memory.owned
        topics = memory.subscribed.topics
        if memory.subscribed.pattern is not None or topics.issuperset(memory.owned_by_topic):
            return kept
        return frozenset(tp for tp in kept if tp[0] in topics)

    @property
    def member_id(self) -> str:
        return self.memory.generation.member_id

    @property
    def epoch(self) -> int:
        """Return the generation by which the member's commits are fenced."""
        return self.memory.generation.generation_id

    @property
    def heartbeat_interval_ms(self) -> int:
        return self.memory.config.heartbeat_interval_ms

    @property
    def heartbeat_at_ms(self) -> int:
        return self.memory.heartbeat_at_ms

    @property
    def auto_commit_at_ms(self) -> int | None:
        return self.memory.auto_commit_at_ms if self.memory.config.enable_auto_commit else None

    def commits_in_poll(self, now_ms: int) -> bool:
        """Tell whether poll() would commit by itself now: not in a rebalance."""
        due_ms, memory = self.auto_commit_at_ms, self.memory
        return due_ms is not None and due_ms <= now_ms and not memory.rejoin_needed and memory.join is None

    @property
    def sends_commits(self) -> bool:
        """Tell whether a commit that is asked for now is sent: without a coordinator it waits, in a rebalance it
        fails.
        """
        return self.memory.coordinator_known and self.memory.state is STABLE

    @property
    def waits_for_an_answer(self) -> bool:
        return bool(self.memory.in_flight)

    @property
    def prepares(self) -> bool:
        """Tell whether the member commits before it rejoins; it goes on in the poll() that finds the commit
        answered.
        """
        return self.memory.prepare_commit is not None

    @property
    def subscribed_topics(self) -> frozenset[str]:
        return self.memory.subscribed.topics

    @property
    def asked_topics(self) -> frozenset[str]:
        """Return the topics whose metadata the client asks for by name, existing or not: a leader asks for the
        group's.
        """
        subscribed = self.memory.subscribed
        return subscribed.watched() if subscribed.pattern is None else subscribed.topics

    @property
    def in_poll(self) -> bool:
        return self.memory.in_poll

    @property
    def settled(self) -> bool:
        """Tell whether the member is in a generation, and has nothing to do but heartbeats and commits."""
        memory = self.memory
        if memory.state is not STABLE or memory.then is not None or memory.join is not None or memory.rejoin_needed:
            return False
        asks = memory.fetching is not None or not memory.coordinator_known
        blind = asks or memory.subscribed.snapshot.version < memory.subscribed.version
        return not blind and memory.closing is None

    @property
    def searches(self) -> bool:
        """Tell whether the member only searches for its coordinator, which does not answer."""
        memory = self.memory
        waits = memory.sync_commit is not None or memory.prepare_deadline_ms is not None or memory.electing is not None
        if memory.coordinator_known or waits or memory.closing is not None or memory.inbox or not memory.in_poll:
            return False
        return all(isinstance(sent.request, FindCoordinatorRequest) for sent in memory.in_flight.values())

    def note(self, positions: Offsets) -> None:
        """Note how far the application is, as a poll() would: for a driver that commits for a settled member."""
        note_positions(self.memory, positions)

    def leap(self, beats_ms: int, commits_ms: int) -> None:
        """Put off heartbeats, and auto-commits, by so much: for a driver that passes over time in which a settled
        member only repeats itself."""
        memory = self.memory
        memory.poll_at_ms += beats_ms
        memory.heartbeat_at_ms += beats_ms
        memory.session_at_ms += beats_ms
        memory.auto_commit_at_ms += commits_ms
        for sent in memory.in_flight.values():
            sent.deadline_ms += beats_ms
        for key in memory.armed:
            memory.armed[key] += commits_ms if key == ("poll",) else beats_ms

    def search_later(self, by_ms: int) -> None:
        """Put off what a member that searches repeats. Heartbeats and auto-commits come due meanwhile, and stay so."""
        memory = self.memory
        memory.poll_at_ms += by_ms
        memory.lookup_at_ms += by_ms
        memory.lookup_tick_at_ms += by_ms
        for sent in memory.in_flight.values():
            sent.deadline_ms += by_ms
        for key in memory.armed:
            memory.armed[key] += by_ms

    def handle(self, event: Told, now_ms: int) -> list[MemberEffect]:
        turn = MemberTurn(self.memory, now_ms)
        if self.memory.closed:
            return turn.effects
        take(turn, event)
        settle(turn)
        closed_if_done(turn)
        set_timers(turn)
        return turn.effects


def take(turn: MemberTurn, event: Told) -> None:
    memory = turn.memory
    match event:
        case Responded() | Disconnected():
            memory.inbox.append(event)
        case TimerFired():
            memory.armed.pop(event.key, None)
        case Poll():
            enter_poll(turn, event)
        case PollReturned():
            memory.polling = False
            note_positions(memory, event.positions)
            memory.poll_at_ms = turn.now_ms + turn.config.max_poll_interval_ms
        case CallbackDone():
            if memory.then is None:
                raise InvariantBroken("no callback runs")
            then, memory.then = memory.then, None
            then(turn, event.error)
        case Commit():
            commit(turn, event)
        case Subscribe():
            memory.subscribed.subscribe(event.topics, event.pattern)
        case Unsubscribe():
            unsubscribe(turn)
        case EnforceRebalance():
            turn.request_rejoin(event.reason or "rebalance enforced by user", Cause.ENFORCED)
        case Close():
            close(turn, event)
        case MetadataChanged():
            memory.subscribed.metadata_came(event.topics)
            if memory.electing is not None:
                assign(turn)


def enter_poll(turn: MemberTurn, event: Poll) -> None:
    memory = turn.memory
    if memory.then is not None or memory.closing is not None:
        raise InvariantBroken("poll() from inside a callback, or after close()")
    memory.polling = True
    memory.retry_at_ms = 0
    note_positions(memory, event.positions)


def commit(turn: MemberTurn, event: Commit) -> None:
    if not event.sync:
        commit_async(turn, event.offsets, "commitAsync")
        return
    deadline_ms = turn.now_ms + turn.config.default_api_timeout_ms
    turn.memory.sync_commit = SyncCommit(dict(event.offsets), "commitSync", deadline_ms, lambda turn: None)


def settle(turn: MemberTurn) -> None:
    """Do what can be done now: read the network while the member listens, tick, and let poll() go on."""
    memory = turn.memory
    while memory.inbox and memory.listening:
        hear(turn, memory.inbox.pop(0))
    if memory.armed.get(REQUEST, 0) <= turn.now_ms:  # otherwise its timer is still to come
        deadline_ms = request_deadline(memory)
        if deadline_ms is not None and deadline_ms <= turn.now_ms:
            on_request_timeout(turn)
    tick(turn)
    if memory.sync_commit is not None:
        drive_sync_commit(turn)
    if memory.in_poll:
        poll_pass(turn)


def hear(turn: MemberTurn, event: Responded | Disconnected) -> None:
    if isinstance(event, Disconnected):
        if turn.memory.coordinator_known:
            connection_lost(turn)
        return
    sent = turn.memory.in_flight.pop(event.request.correlation_id, None)
    if sent is not None:  # otherwise its connection was given up, or it is said twice
        ANSWERS[type(event.request)](turn, sent, event.response)


def poll_pass(turn: MemberTurn) -> None:
    """Go one round inside poll(), in Java's order."""
    memory, subscribed = turn.memory, turn.memory.subscribed
    subscribed.look()
    if memory.commit_fenced or memory.failure is not None:
        memory.failure = None
        turn.throw(Error.FENCED_INSTANCE_ID, "another member holds this group.instance.id")
        return
    memory.poll_at_ms = turn.now_ms + turn.config.max_poll_interval_ms
    if not subscribed.active or not coordinator_ready(turn):
        return
    if rejoin_needed_or_pending(turn):
        if subscribed.pattern is not None and memory.needs_prepare and not subscribed.fresh:
            ask_for_metadata(turn)
        else:
            join_loop(turn)
        return
    subscribed.fresh = False
    auto_commit_if_due(turn)
    fetch_offsets(turn)


def ask_for_metadata(turn: MemberTurn) -> None:
    """Ask for metadata, because a pattern is matched against fresh names before every rebalance."""
    subscribed = turn.memory.subscribed
    if not subscribed.asked:
        subscribed.asked = True
        turn.tell(RequestMetadata())


# Timers: a deadline that moved is set anew, one that is gone is cancelled


TICK, REQUEST, POLL, COMMIT, CLOSE = ("tick",), ("request",), ("poll",), ("commit",), ("close",)


def set_timers(turn: MemberTurn) -> None:
    memory, now_ms = turn.memory, turn.now_ms
    wanted, armed = {} if memory.closed else deadlines(memory, now_ms), memory.armed
    if wanted == armed:
        return
    if not armed.keys() <= wanted.keys():
        for key in [key for key in armed if key not in wanted]:
            del armed[key]
            turn.tell(CancelTimer(key))
    for key, at_ms in wanted.items():
        if armed.get(key) != at_ms:
            armed[key] = at_ms
            turn.tell(SetTimer(key, at_ms - now_ms if at_ms > now_ms else 0))


def deadlines(memory: MemberMemory, now_ms: int) -> dict[TimerKey, int]:
    found: dict[TimerKey, int] = {}
    if (tick_ms := tick_at(memory)) is not None:
        found[TICK] = tick_ms
    if (request_ms := request_deadline(memory)) is not None:
        found[REQUEST] = request_ms
    if memory.in_poll and (poll_ms := first_after(now_ms, poll_deadlines(memory))) is not None:
        found[POLL] = poll_ms
    if memory.sync_commit is not None and (commit_ms := first_after(now_ms, commit_deadlines(memory))) is not None:
        found[COMMIT] = commit_ms
    if memory.closing is not None and memory.closing.left and memory.then is None:
        # Before the callback the commit has a deadline of its own, and a callback has none.
        found[CLOSE] = memory.closing.deadline_ms
    return found


def first_after(now_ms: int, deadlines: list[int]) -> int | None:
    first_ms = None
    for at_ms in deadlines:
        if at_ms > now_ms and (first_ms is None or at_ms < first_ms):
            first_ms = at_ms
    return first_ms


def poll_deadlines(memory: MemberMemory) -> list[int]:
    """Return when poll() would go on by itself, if nothing comes before."""
    if not memory.subscribed.active:
        return []
    if not memory.coordinator_known:
        return [memory.lookup_at_ms]
    if memory.rejoin_needed or memory.join is not None:
        prepared_ms = memory.prepare_deadline_ms
        return [memory.retry_at_ms] if prepared_ms is None else [memory.retry_at_ms, prepared_ms]
    if memory.config.enable_auto_commit and memory.positions:
        return [memory.fetch_at_ms, memory.auto_commit_at_ms]
    return [memory.fetch_at_ms]


def commit_deadlines(memory: MemberMemory) -> list[int]:
    commit = memory.sync_commit
    if commit is None:
        return []
    return [commit.deadline_ms, commit.retry_at_ms, *([] if memory.coordinator_known else [memory.lookup_at_ms])]
