"""Hold all that a KIP-848 member remembers, and define MemberTurn: one event's work on that memory.

Memory     epoch, assignments, subscription, deadlines and what is in flight; `member.py` says who changes what
Life       a number that grows whenever the member starts anew or leaves. Answers to requests of an earlier life, and
           reconciliations that an earlier life began, no longer count
Turn       collects effects; every change of state, epoch and ownership, every send and exception goes through it
Start at   MemberMemory, MemberTurn
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, TypeAlias, TypedDict

from rebalance_lab.protocol_v1.common.effects import TimerKey
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    Callback,
    CloseOption,
    CommitOutcome,
    Disconnect,
    MemberEffect,
    Moved,
    Offsets,
    Raise,
    Send,
    TopicPartition,
)
from rebalance_lab.protocol_v1.common.messages import Request
from rebalance_lab.protocol_v2.member.config import MemberConfig
from rebalance_lab.protocol_v2.member.states import MemberEvent, MemberState, next_member_state
from rebalance_lab.protocol_v2.member.subscription import Subscribed

NOWHERE: frozenset[TopicPartition] = frozenset()


class Header(TypedDict):
    correlation_id: int
    client_id: str


class LocalAssignment(NamedTuple):
    """Number an assignment, because the same partitions given twice with others in between must be acknowledged
    twice.
    """

    local_epoch: int = -1
    partitions: frozenset[TopicPartition] = NOWHERE

    def updated(self, partitions: frozenset[TopicPartition]) -> LocalAssignment:
        if self != NO_ASSIGNMENT and partitions == self.partitions:
            return self
        return LocalAssignment(self.local_epoch + 1, partitions)


NO_ASSIGNMENT = LocalAssignment()


@dataclass(slots=True)
class Reconciliation:
    life: int
    resolved: LocalAssignment
    """The part of the target whose topics are known by name."""
    added: frozenset[TopicPartition]
    revoked: frozenset[TopicPartition]


class QueuedCall(NamedTuple):
    """Hold a callback that the application's thread runs at its next chance."""

    callback: Callback
    partitions: frozenset[TopicPartition]
    then: Callable[[MemberTurn, str | None], None]
    prepare: Callable[[MemberTurn], bool] | None = None
    """Done right before the call; whether it is still to be made."""


class QueuedError(NamedTuple):
    error: Error | None
    message: str


Queued: TypeAlias = QueuedCall | QueuedError


@dataclass(slots=True)
class SentFields:
    """Hold what the coordinator was told last, as far as a client can know."""

    rebalance_timeout_ms: int = -1
    names: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: tuple[LocalAssignment, frozenset[TopicPartition]] | None = None


@dataclass(slots=True)
class Heartbeats:
    interval_ms: int = 0
    due_ms: int = 0
    retry_at_ms: int = 0
    attempts: int = 0
    in_flight: int | None = None
    memo: SentFields = field(default_factory=SentFields)
    regex_told: bool = False
    """The coordinator may hold an expression of this member."""

    def forgive(self) -> None:
        """Reset the back-off and the awaited answer."""
        self.retry_at_ms, self.attempts, self.in_flight = 0, 0, None


@dataclass(slots=True)
class PendingCommit:
    offsets: Offsets
    by: str
    deadline_ms: int | None = None
    then: Callable[[MemberTurn, CommitOutcome], None] | None = None
    attempts: int = 0
    retry_at_ms: int = 0


@dataclass(slots=True)
class PendingFetch:
    partitions: frozenset[TopicPartition]
    deadline_ms: int
    attempts: int = 0
    retry_at_ms: int = 0
    in_flight: bool = False


@dataclass(slots=True)
class Sent:
    request: Request
    deadline_ms: int
    life: int
    commit: PendingCommit | None = None
    fetch: PendingFetch | None = None
    unheard: bool = False
    """Its answer does not matter: the leave of a member whose application does not poll."""


@dataclass(slots=True)
class Closing:
    option: CloseOption
    deadline_ms: int
    left: bool = False
    """Commit and callback are over: only answers are awaited."""
    error: str | None = None
    """What the callback raised, for the end of close()."""


@dataclass(slots=True, kw_only=True)
class MemberMemory:
    config: MemberConfig
    member_id: str
    jitter: Callable[[], float]
    subscribed: Subscribed

    state: MemberState = MemberState.UNSUBSCRIBED
    member_epoch: int = 0
    life: int = 0
    current: LocalAssignment = NO_ASSIGNMENT
    target: LocalAssignment = NO_ASSIGNMENT
    reconciling: Reconciliation | None = None
    topic_names: set[str] = field(default_factory=set)
    """Topics that were assigned in this life: known by name even if metadata has lost them since."""
    metadata_asked: bool = False
    metadata_attempts: int = 0
    metadata_at_ms: int = 0

    owned: frozenset[TopicPartition] = NOWHERE
    owned_topics: frozenset[str] = frozenset()
    pending_revocation: frozenset[TopicPartition] = NOWHERE
    awaiting_callback: frozenset[TopicPartition] = NOWHERE
    """Added, but onPartitionsAssigned is not through with them."""
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    looked_up: set[TopicPartition] = field(default_factory=set)
    """Owned partitions whose committed offset is known, or known to be missing."""
    fetching: PendingFetch | None = None

    offset_epoch: int | None = None
    """What commits and fetches carry: None outside the group."""
    offset_member_id: str = ""
    last_epoch: int = -1
    """The last epoch in the group, which close() goes by even after the member was fenced."""

    coordinator_known: bool = False
    lookup: int | None = None
    lookup_attempts: int = 0
    lookup_at_ms: int = 0

    polling: bool = False
    unsubscribing: bool = False
    leaving: bool = False
    """A leave is under way: its callbacks, its request, or the answer to it."""
    released: bool = False
    """Nothing of what a stale member had owned is left to be called lost."""
    then: Callable[[MemberTurn, str | None], None] | None = None
    """What follows the callback that runs now."""
    queue: list[Queued] = field(default_factory=list)
    batch: list[Queued] = field(default_factory=list)
    """What the application's thread took from the queue and is working on; it raises only after the last of it."""
    thrown: QueuedError | None = None
    unheard: bool = False
    """The consumer's own thread knows nothing of the poll() that the application is in, or was in last."""
    poll_at_ms: int = 0
    heartbeats: Heartbeats = field(default_factory=Heartbeats)

    commits: list[PendingCommit] = field(default_factory=list)
    """Not sent yet, or to be sent again."""
    sync_commit: PendingCommit | None = None
    """The application's thread waits for it."""
    auto_commit_at_ms: int | None = None
    auto_commit_under_way: bool = False
    closing: Closing | None = None
    closed: bool = False

    correlation_id: int = 0
    in_flight: dict[int, Sent] = field(default_factory=dict)
    armed: dict[TimerKey, int] = field(default_factory=dict)

    @property
    def in_poll(self) -> bool:
        return self.polling and self.then is None and self.sync_commit is None

    @property
    def serving(self) -> bool:
        """Tell whether the application's thread takes callbacks and errors from the queue."""
        return (self.polling or self.unsubscribing) and self.then is None and self.sync_commit is None


@cache
def move_told(state: MemberState, event: MemberEvent) -> Moved:
    return Moved(state.value, event.value)


class MemberTurn:
    __slots__ = ("config", "effects", "memory", "now_ms")

    def __init__(self, memory: MemberMemory, now_ms: int) -> None:
        self.memory = memory
        self.config = memory.config
        self.now_ms = now_ms
        self.effects: list[MemberEffect] = []

    def tell(self, effect: MemberEffect) -> None:
        self.effects.append(effect)

    # The network

    def header(self) -> Header:
        self.memory.correlation_id += 1
        return Header(correlation_id=self.memory.correlation_id, client_id=self.config.client_id)

    def send(
        self,
        request: Request,
        *,
        commit: PendingCommit | None = None,
        fetch: PendingFetch | None = None,
        unheard: bool = False,
    ) -> None:
        deadline_ms = self.now_ms + self.config.request_timeout_ms
        sent = Sent(request, deadline_ms, self.memory.life, commit, fetch, unheard)
        self.memory.in_flight[request.correlation_id] = sent
        self.effects.append(Send(request))

    def backoff_ms(self, attempts: int) -> int:
        return self.config.backoff_ms(attempts, self.memory.jitter())

    def coordinator_unknown(self) -> None:
        """Note that the coordinator is to be looked for. The connection stays, and so do requests in flight on it."""
        self.memory.coordinator_known = False

    def disconnect(self, reason: str) -> None:
        self.tell(Disconnect(reason=reason))

    # State

    def move(self, event: MemberEvent) -> None:
        """Change the member's state; no other code does."""
        memory = self.memory
        memory.state = next_member_state(memory.state, event)
        self.effects.append(move_told(memory.state, event))

    def set_epoch(self, epoch: int) -> None:
        memory = self.memory
        if epoch == memory.member_epoch:
            return
        memory.member_epoch = epoch
        memory.offset_member_id = memory.member_id
        memory.offset_epoch = epoch if epoch > 0 else None
        if epoch > 0:
            memory.last_epoch = epoch

    def start_anew(self, epoch: int) -> None:
        self.memory.life += 1
        self.set_epoch(epoch)

    # The application

    def enqueue(self, event: Queued) -> None:
        self.memory.queue.append(event)

    def throw(self, error: Error | None, message: str) -> None:
        self.memory.polling = self.memory.unsubscribing = False
        self.tell(Raise(error=error, message=message))

    def own(self, partitions: Iterable[TopicPartition]) -> None:
        """Set the owned partitions. Positions of partitions that stay survive; new ones start from their committed
        offset.
        """
        memory = self.memory
        memory.owned = frozenset(partitions)
        memory.owned_topics = frozenset([topic for topic, _ in memory.owned])
        memory.pending_revocation &= memory.owned
        memory.awaiting_callback &= memory.owned
        memory.looked_up &= memory.owned
        memory.positions = {tp: offset for tp, offset in memory.positions.items() if tp in memory.owned}

    def clear_assignment(self) -> None:
        memory = self.memory
        self.own(())
        memory.current = memory.target = NO_ASSIGNMENT
        memory.topic_names.clear()
