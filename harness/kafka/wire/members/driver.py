"""Drive a member machine on a real cluster: the driver tells it of network, clock and application, and obeys it.

Given      a machine of protocol_v1 or protocol_v2, a Cluster, and an Application
Returns    nothing; the machine joins, rebalances, commits and leaves, and the application is called as Java's would be
Network    one connection to the coordinator, found and found again by the machine's own lookups and back-offs; records
           come through fetching.py by connections of their own
Thread     the application is inside poll() except while it works on records; callbacks run at once
Start at   WireMember.run, perform
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kio.schema.errors import ErrorCode

from rebalance_lab.assignors.model import Topic
from rebalance_lab.harness.kafka.wire.addresses import WireError
from rebalance_lab.harness.kafka.wire.broker_connection import Connection, connect
from rebalance_lab.harness.kafka.wire.cluster import Cluster
from rebalance_lab.harness.kafka.wire.codec import APIS, KEYS, from_wire, known_error, to_wire
from rebalance_lab.harness.kafka.wire.members.fetching import Fetched as Records
from rebalance_lab.harness.kafka.wire.members.fetching import earliest_offsets, fetch
from rebalance_lab.protocol_v1.common.effects import CancelTimer, SetTimer, TimerKey
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    Call,
    CallbackDone,
    Close,
    Closed,
    Committed,
    Disconnect,
    Disconnected,
    Fetched,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MemberEffect,
    MetadataChanged,
    Offsets,
    Poll,
    PollReturned,
    Raise,
    RequestMetadata,
    Responded,
    Send,
    TimerFired,
    Told,
    TopicPartition,
)
from rebalance_lab.protocol_v1.common.messages import Request

METADATA_MAX_AGE_S = 2.0
IDLE_S = 0.05
RETRY_S = 0.3


class Machine(Protocol):
    """Describe what the members of both protocols have."""

    @property
    def owned(self) -> frozenset[TopicPartition]: ...
    @property
    def fetchable(self) -> frozenset[TopicPartition]: ...
    def handle(self, event: Told, now_ms: int) -> list[MemberEffect]: ...


class Application(Protocol):
    def called(self, call: Call) -> None: ...
    def consumed(self, partition: TopicPartition, values: Sequence[bytes | None]) -> None: ...
    def committed(self, commit: Committed) -> None: ...


class WireMember:
    def __init__(self, machine: Machine, cluster: Cluster, group_id: str, application: Application) -> None:
        self.machine, self.cluster, self.group_id, self.application = machine, cluster, group_id, application
        self.loop = asyncio.get_running_loop()
        self.began = self.loop.time()
        self.coordinator: Connection | None = None
        self.timers: dict[TimerKey, asyncio.TimerHandle] = {}
        self.positions: dict[TopicPartition, int] = {}
        self.tasks: set[asyncio.Task[Any]] = set()
        self.in_callback = self.closing = False
        self.ended: asyncio.Future[None] = self.loop.create_future()

    async def run(self) -> None:
        """Run until the member is closed, or has raised; raise that error."""
        self.tell(MetadataChanged(self.topics()))
        self.tell(Poll())
        self.start(self.keep_metadata_fresh())
        self.start(self.consume())
        try:
            await self.ended
        finally:
            await self.stop()

    def close(self) -> None:
        """Leave the group, after a commit where commits are automatic."""
        if not self.ended.done():
            self.closing = True
            self.tell(Close(positions=dict(self.positions), timeout_ms=5_000))

    async def stop(self) -> None:
        """Stop without a request: that is what is left of a process that was killed."""
        for timer in self.timers.values():
            timer.cancel()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if self.coordinator is not None:
            await self.coordinator.close()
        await self.cluster.close()

    # Telling and obeying

    @property
    def now_ms(self) -> int:
        return int((self.loop.time() - self.began) * 1000)

    def tell(self, event: Told) -> None:
        if self.ended.done():
            return
        try:
            self.perform(self.machine.handle(event, self.now_ms))
        except Exception as error:  # noqa: BLE001 - whatever it is, run() raises it
            self.end(error)

    def perform(self, effects: Sequence[MemberEffect]) -> None:
        for effect in effects:
            match effect:
                case SetTimer():
                    self.set_timer(effect)
                case CancelTimer():
                    if (timer := self.timers.pop(effect.key, None)) is not None:
                        timer.cancel()
                case Send(request=FindCoordinatorRequest() as request):
                    self.start(self.look_up(request))
                case Send():
                    self.send(effect.request)
                case Disconnect():
                    self.drop_coordinator()
                case RequestMetadata():
                    self.start(self.refresh())
                case Call():
                    self.call(effect)
                case Fetched():
                    self.start(self.begin(effect.offsets))
                case Committed():
                    self.application.committed(effect)
                case Raise():
                    why = effect.error.name if effect.error is not None else effect.message
                    self.end(WireError(f"{self.cluster.client_id} cannot be in group {self.group_id}: {why}"))
                case Closed():
                    self.end(None)

    def end(self, error: Exception | None) -> None:
        if self.ended.done():
            return
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)

    def start(self, work: Any) -> None:
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        task.add_done_callback(self.note_failure)

    def note_failure(self, done: asyncio.Task[Any]) -> None:
        error = None if done.cancelled() else done.exception()
        if isinstance(error, Exception):
            self.end(error)

    # The clock

    def set_timer(self, timer: SetTimer) -> None:
        if (before := self.timers.pop(timer.key, None)) is not None:
            before.cancel()
        self.timers[timer.key] = self.loop.call_later(timer.delay_ms / 1000, self.fire, timer.key)

    def fire(self, key: TimerKey) -> None:
        del self.timers[key]
        self.tell(TimerFired(key))

    # The network

    async def look_up(self, request: FindCoordinatorRequest) -> None:
        """Look the coordinator up, which counts as found when there is a connection to it."""
        error = Error.COORDINATOR_NOT_AVAILABLE
        try:
            code, address = await self.cluster.find_coordinator(self.group_id)
            if code is ErrorCode.none:
                self.drop_coordinator()
                self.coordinator = await connect(address, self.cluster.client_id)
                self.coordinator.listening.add_done_callback(self.watch(self.coordinator))
            error = known_error(int(code))
        except WireError:
            pass
        self.tell(Responded(request, FindCoordinatorResponse(error_code=error)))

    def watch(self, connection: Connection) -> Any:
        def broke(_: object) -> None:
            if self.coordinator is connection:
                self.coordinator = None
                self.tell(Disconnected())

        return broke

    def drop_coordinator(self) -> None:
        connection, self.coordinator = self.coordinator, None
        if connection is not None:
            self.start(connection.close())

    def send(self, request: Request) -> None:
        connection = self.coordinator
        if connection is None or not connection.open:
            self.loop.call_soon(self.tell, Disconnected())
            return
        key = KEYS[type(request)]
        version = self.cluster.version(key, type(request).versions[0], request.version)
        answer = connection.send(to_wire(request, version, self.cluster.ids))
        answer.add_done_callback(lambda done: self.answered(request, done))

    def answered(self, request: Request, answer: asyncio.Future[Any]) -> None:
        """Pass on an answer; a broken connection is reported once, by its own task."""
        if answer.cancelled() or answer.exception() is not None:
            return
        _, response = APIS[KEYS[type(request)]]
        try:
            found = from_wire(response, answer.result(), self.cluster.ids)
        except WireError as error:
            self.end(error)
        else:
            self.tell(Responded(request, found))

    # Metadata

    def topics(self) -> Mapping[str, Topic]:
        return {name: Topic(len(topic.leaders)) for name, topic in self.cluster.metadata.topics.items()}

    async def refresh(self) -> None:
        while True:
            try:
                await self.cluster.refresh()
            except WireError:
                await asyncio.sleep(RETRY_S)
            else:
                self.tell(MetadataChanged(self.topics()))
                return

    async def keep_metadata_fresh(self) -> None:
        while True:
            await asyncio.sleep(METADATA_MAX_AGE_S)
            await self.refresh()

    # The application

    def call(self, call: Call) -> None:
        self.in_callback = True
        self.application.called(call)
        self.loop.call_soon(self.called)

    def called(self) -> None:
        self.in_callback = False
        self.tell(CallbackDone())

    async def begin(self, offsets: Offsets) -> None:
        """Begin where offsets are committed, or from the beginning (auto.offset.reset=earliest)."""
        unknown = [partition for partition, offset in offsets.items() if offset < 0]
        starts = {**offsets, **await self.earliest(unknown)}
        self.positions |= {partition: offset for partition, offset in starts.items() if partition in self.machine.owned}
        self.poll()

    async def earliest(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        while missing := [partition for partition in partitions if partition not in found]:
            found |= await earliest_offsets(self.cluster, missing)
            if len(found) < len(partitions):
                await asyncio.sleep(RETRY_S)
        return found

    def poll(self) -> None:
        self.positions = {
            partition: offset for partition, offset in self.positions.items() if partition in self.machine.owned
        }
        if not self.in_callback and not self.closing:  # a fetch that was under way may end after close()
            self.tell(Poll(dict(self.positions)))

    async def consume(self) -> None:
        while True:
            wanted = {
                partition: self.positions[partition]
                for partition in self.machine.fetchable
                if partition in self.positions
            }
            if not wanted or self.in_callback:
                await asyncio.sleep(IDLE_S)
                continue
            found = await fetch(self.cluster, wanted)
            if found is None:
                await asyncio.sleep(RETRY_S)
                await self.refresh()
            elif found:
                self.process(wanted, found)

    def process(self, asked: Mapping[TopicPartition, int], found: Sequence[Records]) -> None:
        """Process only records that are still this member's to read: a rebalance may have come in between."""
        fetchable = self.machine.fetchable
        mine = [
            each
            for each in found
            if each.partition in fetchable and self.positions.get(each.partition) == asked[each.partition]
        ]
        if not mine or self.in_callback:
            return
        self.tell(PollReturned())
        for each in mine:
            self.positions[each.partition] = each.next_offset
            self.application.consumed(each.partition, each.values)
        self.poll()
