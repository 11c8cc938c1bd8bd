"""Provide the common part of conversations: processes with members, a coordinator, a network, and virtual time.

Time       moves only in run(), until() and settle(); events of one instant come in the order of their making
Network    latency_ms each way. A broken connection loses what is on it, in both directions
Members    of either protocol: both are told and want the same (protocol_v1/common/member_effects.py). They sit in
           poll() unless they are told to be busy(); callbacks take callback_ms
Left open  which coordinator serves them, and when they are at rest (conversations.py)
Start at   Stage.tell, perform and obey
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, Generic, Protocol, Self, TypeAlias, TypeVar

from rebalance_lab.assignors.model import Topic
from rebalance_lab.harness.conversation.message_text import answer_shown, call_shown, request_shown
from rebalance_lab.protocol_v1.common.effects import (
    Append,
    CancelTimer,
    Effect,
    Reply,
    SetTimer,
    StateChanged,
    TimerKey,
)
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    Call,
    CallbackDone,
    Close,
    Closed,
    CloseOption,
    CommitOutcome,
    Committed,
    Disconnect,
    Disconnected,
    Fetched,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    Left,
    MemberEffect,
    MetadataChanged,
    Moved,
    Offsets,
    Poll,
    PollReturned,
    Raise,
    RejoinNeeded,
    RequestMetadata,
    Responded,
    Send,
    TimerFired,
    Told,
    TopicPartition,
)
from rebalance_lab.protocol_v1.common.messages import Request, Response
from rebalance_lab.protocol_v1.coordinator.coordinator import numbered

GROUP = "g"
Timers: TypeAlias = dict[TimerKey, object]


class GroupMember(Protocol):
    """Describe what a driver asks of a member, whichever protocol it speaks."""

    memory: Any

    @property
    def owned(self) -> frozenset[TopicPartition]: ...

    def handle(self, event: Told, now_ms: int) -> list[MemberEffect]: ...


class GroupCoordinator(Protocol):
    def handle(self, request: Request, now_ms: int) -> list[Effect]: ...

    def on_timer(self, key: TimerKey, now_ms: int) -> list[Effect]: ...

    def on_append(self, append_id: int, now_ms: int, error: Error = Error.NONE) -> list[Effect]: ...

    def update_topics(self, topics: Mapping[str, int], now_ms: int) -> list[Effect]: ...

    def load(self, records: Sequence[Any], now_ms: int) -> list[Effect]: ...


M = TypeVar("M", bound=GroupMember)
C = TypeVar("C", bound=GroupCoordinator)


@dataclass(slots=True, eq=False)
class Client(Generic[M]):
    """Hold one process: a member, its connection, and what its application does."""

    name: str
    member: M
    connection: int = 0
    alive: bool = True
    callback_ms: int = 0
    latency_ms: int | None = None
    """Of this client's connection, where it is not the conversation's."""
    unshown: set[int] = field(default_factory=set)
    timers: Timers = field(default_factory=dict)
    story: list[str] = field(default_factory=list)
    facts: list[RejoinNeeded | Left] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    raised: Raise | None = None

    @property
    def owned(self) -> frozenset[TopicPartition]:
        return self.member.owned


class Stage(ABC, Generic[M, C]):
    def __init__(self, topics: Mapping[str, int], latency_ms: int) -> None:
        self.topics = {name: Topic(partitions) for name, partitions in topics.items()}
        self.latency_ms = latency_ms
        self.now_ms = 0
        self.heap: list[tuple[int, int, Callable[[], object]]] = []
        self.numbers = count()
        self.clients: dict[str, Client[M]] = {}
        self.requests: dict[int, tuple[Client[M], int, Request]] = {}
        """By identity: a coordinator answers with the very request that it was given."""
        self.new_member_id = numbered()
        self.log: list[Any] = []
        self.states: list[tuple[int, str, str]] = []
        self.coordinator: C | None = None
        self.coordinator_timers: Timers = {}
        self.start_coordinator()

    @abstractmethod
    def new_coordinator(self) -> C:
        """Make a coordinator that knows the topics and nothing else; the log is loaded next."""

    @abstractmethod
    def at_rest(self) -> bool:
        """Tell whether all members have what the group gave them, and nothing is under way."""

    # Who is there

    @property
    def live(self) -> list[Client[M]]:
        return [client for client in self.clients.values() if client.alive]

    def enter(self, name: str, member: M, callback_ms: int = 0) -> Client[M]:
        """Start a process, which polls."""
        client = self.clients[name] = Client(name, member, callback_ms=callback_ms)
        self.tell(client, MetadataChanged(dict(self.topics)))
        self.tell(client, Poll())
        return client

    def close(self, name: str, option: CloseOption = CloseOption.DEFAULT) -> Self:
        client = self.clients[name]
        self.tell(client, Close(option, self.positions(client)))
        return self

    def crash(self, name: str) -> Self:
        """Kill a process, and its connection with it; the coordinator hears nothing."""
        client = self.clients[name]
        client.alive = False
        client.connection += 1
        return self

    def busy(self, name: str) -> Self:
        self.tell(self.clients[name], PollReturned())
        return self

    def poll(self, name: str) -> Self:
        client = self.clients[name]
        self.tell(client, Poll(self.positions(client)))
        return self

    def positions(self, client: Client[M]) -> dict[TopicPartition, int]:
        """Return positions as if every member had consumed one more record each time."""
        return {tp: offset + 1 for tp, offset in client.member.memory.positions.items()}

    def grow(self, topics: Mapping[str, int]) -> Self:
        """Add topics or partitions, and refresh every member's metadata."""
        self.topics |= {name: Topic(partitions) for name, partitions in topics.items()}
        if self.coordinator is not None:
            self.obey(self.coordinator.update_topics(self.partition_counts(), self.now_ms))
        for client in self.live:
            self.tell(client, MetadataChanged(dict(self.topics)))
        return self

    def partition_counts(self) -> dict[str, int]:
        return {name: topic.partitions for name, topic in self.topics.items()}

    # Time

    def after(self, delay_ms: int, action: Callable[[], object]) -> None:
        heappush(self.heap, (self.now_ms + delay_ms, next(self.numbers), action))

    def set_timer(self, timers: Timers, timer: SetTimer, fire: Callable[[TimerKey], None]) -> None:
        """Set a timer; one that is set again, or cancelled, no longer has its token in `timers`."""
        token = timers[timer.key] = object()

        def due() -> bool:
            if timers.get(timer.key) is not token:
                return False
            del timers[timer.key]
            fire(timer.key)
            return True

        self.after(timer.delay_ms, due)

    def until(self, at_ms: int, done: Callable[[], bool] = lambda: False) -> bool:
        """Let everything happen that is due by then, or until it is done: asked once an instant, where something has
        happened in it. A good part of what falls due are timers that have been set again since."""
        heap, happened = self.heap, True
        while True:
            if happened and not (heap and heap[0][0] <= self.now_ms):
                if done():
                    return True
                happened = False
            if not heap or heap[0][0] > at_ms:
                self.now_ms = max(self.now_ms, at_ms)
                return False
            self.now_ms, _, action = heappop(heap)
            happened |= action() is not False

    def run(self, delay_ms: int) -> Self:
        self.until(self.now_ms + delay_ms)
        return self

    def settle(self, patience_ms: int = 600_000) -> Self:
        if not self.until(self.now_ms + patience_ms, self.at_rest):
            raise TimeoutError(f"no rest within {patience_ms} ms:\n{self}")
        return self

    # The coordinator's side

    def start_coordinator(self) -> None:
        self.coordinator = self.new_coordinator()
        self.coordinator_timers.clear()
        self.obey(self.coordinator.load(self.log, self.now_ms))

    def fail_over(self, *, down_ms: int = 1_000) -> Self:
        """Stop the coordinator's broker; another one takes over with what the log holds."""
        self.coordinator = None
        self.coordinator_timers.clear()
        for client in self.live:
            self.cut(client)
        self.after(down_ms, self.start_coordinator)
        return self

    def cut(self, client: Client[M]) -> None:
        client.connection += 1
        self.after(0, lambda: self.tell(client, Disconnected()))

    def obey(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply():
                    self.answer(effect.request, effect.response)
                case SetTimer():
                    self.set_timer(self.coordinator_timers, effect, self.on_coordinator_timer)
                case CancelTimer():
                    self.coordinator_timers.pop(effect.key, None)
                case Append():
                    assert self.coordinator is not None
                    self.log += effect.records
                    self.obey(self.coordinator.on_append(effect.append_id, self.now_ms))
                case StateChanged():
                    self.states.append((self.now_ms, effect.state, effect.event))

    def on_coordinator_timer(self, key: TimerKey) -> None:
        if self.coordinator is not None:
            self.obey(self.coordinator.on_timer(key, self.now_ms))

    def answer(self, request: Request, response: Response) -> None:
        client, connection, _ = self.requests[id(request)]
        self.after(self.latency_of(client), lambda: self.hear(client, connection, request, response))

    def arrive(self, client: Client[M], connection: int, request: Request) -> None:
        if isinstance(request, FindCoordinatorRequest):
            error = Error.COORDINATOR_NOT_AVAILABLE if self.coordinator is None else Error.NONE
            found = FindCoordinatorResponse(error_code=error)
            self.after(self.latency_of(client), lambda: self.hear(client, None, request, found))
        elif self.coordinator is not None and connection == client.connection:
            self.requests[id(request)] = (client, connection, request)
            self.obey(self.coordinator.handle(request, self.now_ms))

    # The members' side

    def hear(self, client: Client[M], connection: int | None, request: Request, response: Response) -> None:
        if not client.alive or connection not in (None, client.connection):
            return
        shown = answer_shown(request, response)
        if shown is not None and not (request.correlation_id in client.unshown and shown.endswith(" 0")):
            client.story.append(shown)
        self.tell(client, Responded(request, response))

    def tell(self, client: Client[M], event: Told) -> None:
        if client.alive:
            self.perform(client, client.member.handle(event, self.now_ms))

    def perform(self, client: Client[M], effects: Sequence[MemberEffect]) -> None:
        for effect in effects:
            match effect:
                case Send():
                    self.send(client, effect.request)
                case SetTimer():
                    self.set_timer(client.timers, effect, lambda key: self.tell(client, TimerFired(key)))
                case CancelTimer():
                    client.timers.pop(effect.key, None)
                case Disconnect():
                    client.connection += 1
                case RequestMetadata():
                    self.after(2 * self.latency_ms, lambda: self.tell(client, MetadataChanged(dict(self.topics))))
                case Call():
                    client.calls.append(effect)
                    client.story.append(call_shown(effect))
                    self.after(client.callback_ms, lambda: self.tell(client, CallbackDone()))
                case Fetched():
                    self.after(0, partial(self.start_from, client, effect.offsets))
                case Raise():
                    client.raised = effect
                    client.story.append(f"raised {effect.error.name if effect.error else effect.message}")
                case Committed():
                    if effect.outcome is not CommitOutcome.DONE:
                        client.story.append(f"{effect.by}: {effect.outcome.value}")
                case Closed():
                    client.alive = False
                case RejoinNeeded() | Left():
                    client.facts.append(effect)
                case Moved():
                    pass

    def start_from(self, client: Client[M], committed: Offsets) -> None:
        """Start from the committed offsets, or from the beginning (auto.offset.reset=earliest)."""
        if client.member.memory.in_poll:
            self.tell(client, Poll({tp: max(offset, 0) for tp, offset in committed.items()}))

    def send(self, client: Client[M], request: Request) -> None:
        sent = client.member.memory.in_flight.get(request.correlation_id)
        shown = request_shown(request)
        if sent is not None and sent.commit is not None and sent.commit.by == "interval":
            client.unshown.add(request.correlation_id)
        elif shown is not None:
            client.story.append(shown)
        connection = client.connection
        self.after(self.latency_of(client), lambda: self.arrive(client, connection, request))

    def latency_of(self, client: Client[M]) -> int:
        return self.latency_ms if client.latency_ms is None else client.latency_ms

    # Looking

    def story(self, name: str) -> list[str]:
        """Return what happened since it was last asked for."""
        client = self.clients[name]
        told, client.story = client.story, []
        return told

    def forget(self) -> Self:
        for client in self.clients.values():
            client.story = []
        return self

    def show(self) -> Self:
        print(self)
        return self
