"""The short language of tests and examples: real classic members, a real coordinator, and virtual time between them.

    group = classic_group(topics={"orders": 4}, assignor="cooperative-sticky")
    group.join("A").settle().show()  # generation 1  A: orders-0 orders-1 orders-2 orders-3

Time       moves only in run(), until() and settle(); events of one instant come in the order of their making
Network    latency_ms each way. A broken connection loses what is on it, in both directions
Members    sit in poll() unless they are told to be busy(); callbacks take callback_ms
Stories    what a member sent, heard and was called with, in order; left out are lookups, and the heartbeats and
           auto-commits of the interval that hear nothing but 0
Start at   classic_group, Conversation.join, settle, story
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeAlias

from assignors.interface import Assignor
from assignors.model import Topic
from assignors.strategies import load_assignor, parse_strategy
from harness.stories import answer_shown, call_shown, partitions_shown, request_shown
from protocol_v1.config import CoordinatorConfig
from protocol_v1.coordinator import Coordinator, numbered
from protocol_v1.effects import Append, CancelTimer, Effect, Reply, SetTimer, StateChanged, TimerKey
from protocol_v1.effects.member import (
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
from protocol_v1.errors import Error
from protocol_v1.group import ClassicGroup
from protocol_v1.member import Member
from protocol_v1.member_config import MemberConfig
from protocol_v1.member_states import MemberState
from protocol_v1.messages import Request, Response
from protocol_v1.states import State

GROUP = "g"
Timers: TypeAlias = dict[TimerKey, object]


@dataclass(slots=True, eq=False)
class Client:
    """One process: a member, its connection, and what its application does."""

    name: str
    member: Member
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


class Conversation:
    def __init__(
        self,
        topics: Mapping[str, int],
        assignors: Sequence[str],
        coordinator_config: CoordinatorConfig,
        latency_ms: int,
        settings: Mapping[str, Any],
    ) -> None:
        self.topics = {name: Topic(partitions) for name, partitions in topics.items()}
        self.assignors = assignors
        self.settings = settings
        self.latency_ms = latency_ms
        self.now_ms = 0
        self.heap: list[tuple[int, int, Callable[[], None]]] = []
        self.numbers = count()
        self.clients: dict[str, Client] = {}
        self.requests: dict[int, tuple[Client, int, Request]] = {}
        """By identity: a coordinator answers with the very request that it was given."""
        self.config = coordinator_config
        self.new_member_id = numbered()
        self.log: list[Any] = []
        self.states: list[tuple[int, str, str]] = []
        self.coordinator: Coordinator | None = None
        self.coordinator_timers: Timers = {}
        self.start_coordinator()

    # Who is there

    @property
    def group(self) -> ClassicGroup | None:
        return None if self.coordinator is None else self.coordinator.groups.get(GROUP)

    @property
    def live(self) -> list[Client]:
        return [client for client in self.clients.values() if client.alive]

    def join(
        self,
        name: str,
        *,
        topics: Iterable[str] | None = None,
        pattern: str | None = None,
        assignors: Sequence[str | Assignor] | None = None,
        callback_ms: int = 0,
        **settings: Any,
    ) -> Conversation:
        """A process starts and polls. Settings are a consumer's, such as group_instance_id or session_timeout_ms."""
        chosen = [
            load_assignor(parse_strategy(f"classic/{one}")) if isinstance(one, str) else one
            for one in (self.assignors if assignors is None else assignors)
        ]
        config = MemberConfig(group_id=GROUP, client_id=name, **{**self.settings, **settings})
        subscribed = (() if pattern else tuple(self.topics)) if topics is None else topics
        member = Member(config, assignors=chosen, topics=subscribed, pattern=pattern)
        client = self.clients[name] = Client(name, member, callback_ms=callback_ms)
        self.tell(client, MetadataChanged(self.topics))
        self.tell(client, Poll())
        return self

    def close(self, name: str, option: CloseOption = CloseOption.DEFAULT) -> Conversation:
        client = self.clients[name]
        self.tell(client, Close(option, self.positions(client)))
        return self

    def crash(self, name: str) -> Conversation:
        """The process is gone, and its connection with it; nobody is told."""
        client = self.clients[name]
        client.alive = False
        client.connection += 1
        return self

    def busy(self, name: str) -> Conversation:
        self.tell(self.clients[name], PollReturned())
        return self

    def poll(self, name: str) -> Conversation:
        client = self.clients[name]
        self.tell(client, Poll(self.positions(client)))
        return self

    def positions(self, client: Client) -> dict[TopicPartition, int]:
        """Everybody has consumed a little more each time it is asked."""
        return {tp: offset + 1 for tp, offset in client.member.memory.positions.items()}

    def grow(self, topics: Mapping[str, int]) -> Conversation:
        """Topics come or gain partitions, and every member's metadata is refreshed."""
        self.topics |= {name: Topic(partitions) for name, partitions in topics.items()}
        if self.coordinator is not None:
            self.obey(self.coordinator.update_topics(self.partition_counts(), self.now_ms))
        for client in self.live:
            self.tell(client, MetadataChanged(dict(self.topics)))
        return self

    def partition_counts(self) -> dict[str, int]:
        return {name: topic.partitions for name, topic in self.topics.items()}

    # Time

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        heappush(self.heap, (self.now_ms + delay_ms, next(self.numbers), action))

    def set_timer(self, timers: Timers, timer: SetTimer, fire: Callable[[TimerKey], None]) -> None:
        """A timer that is set again, or cancelled, no longer has its token in `timers`."""
        token = timers[timer.key] = object()

        def due() -> None:
            if timers.get(timer.key) is token:
                del timers[timer.key]
                fire(timer.key)

        self.after(timer.delay_ms, due)

    def until(self, at_ms: int, done: Callable[[], bool] = lambda: False) -> bool:
        """Let everything happen that is due by then, or until it is done."""
        while not done():
            if not self.heap or self.heap[0][0] > at_ms:
                self.now_ms = max(self.now_ms, at_ms)
                return False
            self.now_ms, _, action = heappop(self.heap)
            action()
        return True

    def run(self, delay_ms: int) -> Conversation:
        self.until(self.now_ms + delay_ms)
        return self

    def settle(self, patience_ms: int = 600_000) -> Conversation:
        if not self.until(self.now_ms + patience_ms, self.at_rest):
            raise TimeoutError(f"no rest within {patience_ms} ms:\n{self}")
        return self

    def at_rest(self) -> bool:
        """Everybody has what the group's one generation gave it, and nothing is under way."""
        if any(client.member.memory.closing is not None for client in self.live):
            return False
        group, members = self.group, [client.member for client in self.live]
        if group is None:
            return not members
        absent = {id for instance, id in group.static.items() if instance not in map(instance_of, members)}
        if set(group.members) - absent != {member.generation.member_id for member in members}:
            return False
        return not members or (group.state is State.STABLE and all(map(settled, members)) and one_generation(members))

    # The coordinator's side

    def start_coordinator(self) -> None:
        topics = self.partition_counts()
        self.coordinator = Coordinator(self.config, new_member_id=self.new_member_id, topics=topics)
        self.coordinator_timers.clear()
        self.obey(self.coordinator.load(self.log, self.now_ms))

    def fail_over(self, *, down_ms: int = 1_000) -> Conversation:
        """The coordinator's broker dies; another one takes over with what the log holds."""
        self.coordinator = None
        self.coordinator_timers.clear()
        for client in self.live:
            self.cut(client)
        self.after(down_ms, self.start_coordinator)
        return self

    def cut(self, client: Client) -> None:
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

    def arrive(self, client: Client, connection: int, request: Request) -> None:
        if isinstance(request, FindCoordinatorRequest):
            error = Error.COORDINATOR_NOT_AVAILABLE if self.coordinator is None else Error.NONE
            found = FindCoordinatorResponse(error_code=error)
            self.after(self.latency_of(client), lambda: self.hear(client, None, request, found))
        elif self.coordinator is not None and connection == client.connection:
            self.requests[id(request)] = (client, connection, request)
            self.obey(self.coordinator.handle(request, self.now_ms))

    # The members' side

    def hear(self, client: Client, connection: int | None, request: Request, response: Response) -> None:
        if not client.alive or connection not in (None, client.connection):
            return
        shown = answer_shown(request, response)
        if shown is not None and not (request.correlation_id in client.unshown and shown.endswith(" 0")):
            client.story.append(shown)
        self.tell(client, Responded(request, response))

    def tell(self, client: Client, event: Told) -> None:
        if client.alive:
            self.perform(client, client.member.handle(event, self.now_ms))

    def perform(self, client: Client, effects: Sequence[MemberEffect]) -> None:
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

    def start_from(self, client: Client, committed: Offsets) -> None:
        """auto.offset.reset=earliest."""
        if client.member.memory.in_poll:
            self.tell(client, Poll({tp: max(offset, 0) for tp, offset in committed.items()}))

    def send(self, client: Client, request: Request) -> None:
        sent = client.member.memory.in_flight.get(request.correlation_id)
        shown = request_shown(request)
        if sent is not None and sent.commit is not None and sent.commit.by == "interval":
            client.unshown.add(request.correlation_id)
        elif shown is not None:
            client.story.append(shown)
        connection = client.connection
        self.after(self.latency_of(client), lambda: self.arrive(client, connection, request))

    def latency_of(self, client: Client) -> int:
        return self.latency_ms if client.latency_ms is None else client.latency_ms

    # Looking

    def story(self, name: str) -> list[str]:
        """What happened since it was last asked for."""
        client = self.clients[name]
        told, client.story = client.story, []
        return told

    def forget(self) -> Conversation:
        for client in self.clients.values():
            client.story = []
        return self

    def __str__(self) -> str:
        generation = self.group.generation_id if self.group is not None else 0
        shares = [f"{client.name}: {partitions_shown(client.owned)}".rstrip() for client in self.live]
        return "  ".join([f"generation {generation}", *shares])

    def show(self) -> Conversation:
        print(self)
        return self


def classic_group(
    topics: Mapping[str, int],
    assignor: str | Sequence[str] = "range",
    *,
    coordinator: CoordinatorConfig | None = None,
    latency_ms: int = 1,
    **settings: Any,
) -> Conversation:
    assignors = [assignor] if isinstance(assignor, str) else assignor
    return Conversation(topics, assignors, coordinator or CoordinatorConfig(), latency_ms, settings)


def settled(member: Member) -> bool:
    memory = member.memory
    busy = memory.then is not None or memory.join is not None or memory.rejoin_needed
    blind = not memory.coordinator_known or memory.subscribed.snapshot.version < memory.subscribed.version
    return member.state is MemberState.STABLE and not busy and not blind


def one_generation(members: Sequence[Member]) -> bool:
    return len({member.generation.generation_id for member in members}) == 1


def instance_of(member: Member) -> str | None:
    return member.memory.config.group_instance_id
