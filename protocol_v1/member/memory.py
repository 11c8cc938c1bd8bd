"""Hold all that a member remembers, and define MemberTurn: one event's work on that memory.

Memory     generation, subscription, ownership, deadlines and what is in flight; `member.py` says who changes what
Turn       collects effects; every change of state, reset, send, callback and exception goes through its methods
Start at   MemberTurn
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict

from rebalance_lab.assignors.interface import Assignor, RebalanceProtocol
from rebalance_lab.protocol_v1.common.effects import TimerKey
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    Call,
    Callback,
    Cause,
    CloseOption,
    CommitOutcome,
    Disconnect,
    Disconnected,
    FindCoordinatorRequest,
    MemberEffect,
    Moved,
    Offsets,
    Raise,
    RejoinNeeded,
    Responded,
    Send,
    TopicPartition,
)
from rebalance_lab.protocol_v1.common.messages import JoinGroupResponse, Request
from rebalance_lab.protocol_v1.member.config import MemberConfig
from rebalance_lab.protocol_v1.member.states import HEARTBEATING, MemberEvent, MemberState, next_member_state
from rebalance_lab.protocol_v1.member.subscription import Subscribed

REASON_LENGTH = 255
"""Longer reasons are cut off before they are sent (KIP-800)."""


class Header(TypedDict):
    correlation_id: int
    client_id: str


class Generation(NamedTuple):
    generation_id: int = -1
    member_id: str = ""
    protocol_name: str | None = None

    @property
    def is_reset(self) -> bool:
        return self.generation_id == -1 and self.protocol_name is None

    @property
    def is_unknown(self) -> bool:
        return self.generation_id == -1 or not self.member_id


NO_GENERATION = Generation()


@dataclass(slots=True)
class PendingCommit:
    offsets: Offsets
    by: str
    outcome: CommitOutcome | None = None


@dataclass(slots=True)
class SyncCommit:
    """Hold a commit that the application's thread waits for, and that is tried again until its time is up."""

    offsets: Offsets
    by: str
    deadline_ms: int
    then: Callable[[MemberTurn], None]
    attempt: PendingCommit | None = None
    attempts: int = 0
    retry_at_ms: int = 0


@dataclass(slots=True)
class Join:
    """Hold one JoinGroup and SyncGroup exchange: in flight, or over and not seen by poll() yet."""

    assignment: bytes | None = None
    failure: JoinFailure | None = None


class JoinFailure(NamedTuple):
    error: Error | None
    name: str
    """The Java exception's, for the next JoinGroup's reason."""
    message: str
    at_once: bool = False
    retriable: bool = False


@dataclass(slots=True)
class Sent:
    request: Request
    generation: Generation
    deadline_ms: int
    commit: PendingCommit | None = None


@dataclass(slots=True)
class Closing:
    option: CloseOption
    deadline_ms: int
    left: bool = False
    """LeaveGroup is sent, or is not to be: only answers are awaited."""


@dataclass(slots=True, kw_only=True)
class MemberMemory:
    config: MemberConfig
    assignors: Mapping[str, Assignor]
    protocol: RebalanceProtocol
    jitter: Callable[[], float]
    subscribed: Subscribed

    state: MemberState = MemberState.UNJOINED
    generation: Generation = NO_GENERATION
    rejoin_needed: bool = True
    rejoin_reason: str = ""
    needs_prepare: bool = True
    join: Join | None = None
    electing: JoinGroupResponse | None = None
    """This member leads and waits for metadata before it can assign."""
    is_leader: bool = False

    owned: frozenset[TopicPartition] = frozenset()
    owned_by_topic: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    pending_revocation: frozenset[TopicPartition] = frozenset()
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    looked_up: set[TopicPartition] = field(default_factory=set)
    """Owned partitions whose committed offset is known, or known to be missing."""
    fetching: tuple[int, frozenset[TopicPartition], Generation] | None = None

    coordinator_known: bool = False
    lookup: int | None = None
    """The correlation id of the FindCoordinator that the member waits for."""
    lookup_attempts: int = 0
    lookup_at_ms: int = 0
    lookup_tick_at_ms: int = 0

    polling: bool = False
    then: Callable[[MemberTurn, str | None], None] | None = None
    """What follows the callback that runs now."""
    poll_at_ms: int = 0
    heartbeat_at_ms: int = 0
    session_at_ms: int = 0
    heartbeat_attempts: int = 0
    retry_at_ms: int = 0
    fetch_at_ms: int = 0
    auto_commit_at_ms: int = 0
    prepare_deadline_ms: int | None = None
    prepare_commit: PendingCommit | None = None
    sync_commit: SyncCommit | None = None
    waiting_commits: list[PendingCommit] = field(default_factory=list)
    """Async commits that go out once the coordinator is found."""
    commit_fenced: bool = False
    failure: Error | None = None
    """What the heartbeats ran into, for the next poll() to raise."""
    closing: Closing | None = None
    closed: bool = False

    correlation_id: int = 0
    in_flight: dict[int, Sent] = field(default_factory=dict)
    inbox: list[Responded | Disconnected] = field(default_factory=list)
    """What came while the network was not served: the application was busy, and there were no heartbeats to send."""
    armed: dict[TimerKey, int] = field(default_factory=dict)

    @property
    def in_poll(self) -> bool:
        return self.polling and self.then is None

    @property
    def listening(self) -> bool:
        """Tell whether the network is read: Java's client does so in poll(), in blocking calls, and on the heartbeat
        thread while it runs.
        """
        return self.state in HEARTBEATING or self.in_poll or self.sync_commit is not None or self.closing is not None


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for name, index in sorted(partitions):
        found.setdefault(name, []).append(index)
    return {name: tuple(indexes) for name, indexes in found.items()}


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
        return {"correlation_id": self.memory.correlation_id, "client_id": self.config.client_id}

    def send(self, request: Request, timeout_ms: int | None = None, commit: PendingCommit | None = None) -> None:
        deadline_ms = self.now_ms + (self.config.request_timeout_ms if timeout_ms is None else timeout_ms)
        sent = Sent(request, self.memory.generation, deadline_ms, commit)
        self.memory.in_flight[request.correlation_id] = sent
        self.tell(Send(request))

    def look_up(self) -> None:
        """Ask for the coordinator, unless a lookup is already in flight."""
        if self.memory.lookup is None:
            request = FindCoordinatorRequest(key=self.config.group_id, **self.header())
            self.memory.lookup = request.correlation_id
            self.send(request)

    def backoff_ms(self, attempts: int) -> int:
        return self.config.backoff_ms(attempts, self.memory.jitter())

    # State

    def move(self, event: MemberEvent) -> None:
        """Change the member's state; no other code does."""
        memory = self.memory
        memory.state = next_member_state(memory.state, event)
        self.tell(Moved(memory.state.value, event.value))

    def reset(self, event: MemberEvent, reason: str, cause: Cause = Cause.FORGOTTEN) -> None:
        """Reset the generation; the next prepare finds none and gives up as lost what this member still owns."""
        memory = self.memory
        self.move(event)
        memory.generation = (
            Generation(member_id=memory.generation.member_id) if event is MemberEvent.SOFT_RESET else NO_GENERATION
        )
        self.request_rejoin(reason, cause)
        memory.needs_prepare = True

    def reset_on_error(self, event: MemberEvent, error: Error, api: str) -> None:
        self.reset(event, f"encountered {error.name} from {api} response")

    def request_rejoin(self, reason: str, cause: Cause) -> None:
        self.memory.rejoin_needed = True
        self.memory.rejoin_reason = reason[:REASON_LENGTH]
        self.tell(RejoinNeeded(cause=cause, reason=self.memory.rejoin_reason))

    # The application

    def call(
        self, callback: Callback, partitions: Iterable[TopicPartition], then: Callable[[MemberTurn, str | None], None]
    ) -> None:
        """Call the application. max.poll.interval goes on counting inside a callback, and heartbeats go on too."""
        self.memory.then = then
        self.memory.poll_at_ms = self.now_ms + self.config.max_poll_interval_ms
        self.tell(Call(callback, tuple(sorted(partitions))))

    def throw(self, error: Error | None, message: str) -> None:
        self.memory.polling = False
        self.tell(Raise(error=error, message=message))

    def own(self, partitions: Iterable[TopicPartition]) -> None:
        """Set the owned partitions. Positions of partitions that stay survive; new ones start from their committed
        offset.
        """
        memory, owned = self.memory, frozenset(partitions)
        memory.pending_revocation = frozenset()
        if owned == memory.owned:
            return
        memory.owned, memory.owned_by_topic = owned, by_topic(owned)
        memory.looked_up &= memory.owned
        memory.positions = {tp: offset for tp, offset in memory.positions.items() if tp in memory.owned}

    def disconnect(self, reason: str) -> None:
        self.tell(Disconnect(reason=reason))
