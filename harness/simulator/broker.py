"""Simulate the coordinator's broker in virtual time: it serves, appends, dies, and a successor reads its log.

Given      requests as they arrive; answers go back through `answer`
Counts     every request, with its size as it would be on the wire, near enough
Start at   Broker.receive
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from rebalance_lab.harness.measure.trace import Trace
from rebalance_lab.harness.simulator.coordinator_log import Log
from rebalance_lab.harness.simulator.kernel import Kernel, Timers
from rebalance_lab.harness.simulator.request_sizes import request_bytes
from rebalance_lab.harness.simulator.surroundings import GROUP
from rebalance_lab.protocol_v1.common.effects import Append, CancelTimer, Effect, Reply, SetTimer, TimerKey
from rebalance_lab.protocol_v1.common.member_effects import Offsets, TopicPartition
from rebalance_lab.protocol_v1.common.messages import OffsetCommitRequest, OffsetFetchRequest, Request, Response
from rebalance_lab.protocol_v1.coordinator.state.records import OffsetCommit, OffsetTombstone


class Coordinator(Protocol):
    """Describe what both protocols' coordinators have."""

    def handle(self, request: Request, now_ms: int) -> list[Effect]: ...
    def on_timer(self, key: TimerKey, now_ms: int) -> list[Effect]: ...
    def on_append(self, append_id: int, now_ms: int) -> list[Effect]: ...
    def update_topics(self, topics: Mapping[str, Any], now_ms: int) -> list[Effect]: ...
    def load(self, records: Iterable[Any], now_ms: int) -> list[Effect]: ...
    def first_expiry_ms(self) -> int | None: ...


@dataclass(slots=True)
class Requests:
    count: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)

    def add(self, request: Request, times: int = 1) -> None:
        kind = kind_of(type(request).__name__)
        if times or kind not in self.count:
            self.add_sized(kind, request_bytes(request), times)

    def add_sized(self, kind: str, size: int, times: int) -> None:
        self.count[kind] += times
        self.bytes[kind] += times * size


@cache
def kind_of(name: str) -> str:
    return name.removesuffix("Request")


class Broker:
    def __init__(
        self,
        kernel: Kernel,
        trace: Trace,
        build: Callable[[], Coordinator],
        answer: Callable[[Request, Response], None],
        *,
        append_ms: int,
        disturbed: Callable[[], None],
        epoch: Callable[[Coordinator], int],
        committed: Callable[[str, Offsets, int], None],
        store: Callable[[Coordinator, Sequence[OffsetCommit]], None],
        expired: Callable[[Sequence[TopicPartition]], None],
        heard_meanwhile: Callable[[TimerKey], bool],
    ) -> None:
        """Take `disturbed`, which is called when the group's state changes: then the group is not at rest. `epoch`
        reads its epoch.

        `committed` is told who made which offsets durable, and when; `store` puts offsets where a coordinator has them.
        `expired` is told which offsets have been deleted.
        `heard_meanwhile` knows of sessions that have gone on without a message.
        """
        self._kernel = kernel
        self._trace = trace
        self._build = build
        self._answer = answer
        self._append_ms = append_ms
        self._disturbed = disturbed
        self._epoch = epoch
        self._committed = committed
        self._store = store
        self._expired = expired
        self._heard_meanwhile = heard_meanwhile
        self.log = Log()
        self._unwritten: dict[TopicPartition, tuple[int, int]] = {}
        """Offsets that members at rest have committed, and when; records of them are made if a reader can see them."""
        self.requests = Requests()
        self.timers = Timers(kernel, self._on_timer)
        self.coordinator: Coordinator | None = None
        self._life = 0
        self._serving: Request | None = None
        self._appending: dict[int, tuple[Append, Request | None]] = {}
        self._state: str | None = None
        self._told_epoch = 0

    def start(self) -> None:
        self._life += 1
        self._appending.clear()
        self.timers.clear()
        self.coordinator = self._build()
        self._obey(self.coordinator.load(self.log, self._kernel.now_ms))

    def die(self) -> None:
        self._write(list(self._unwritten))
        self._life += 1
        self._appending.clear()
        self.timers.clear()
        self.coordinator = None

    def receive(self, request: Request) -> None:
        self.requests.add(request)
        if self.coordinator is not None:
            if isinstance(request, OffsetFetchRequest) and self._unwritten:
                self._write(asked_for(request, self._unwritten))
            self._serving = request
            if self._trace.tells_messages:
                self._trace.whisper(self._kernel.now_ms, "asks", request=request)
            self._obey(self.coordinator.handle(request, self._kernel.now_ms))
            self._serving = None

    def receive_late(self, request: Request, at_ms: int) -> bool:
        """Receive what would have been received at `at_ms`, and make it durable, without an answer; return whether it
        was.
        """
        assert self.coordinator is not None
        effects = self.coordinator.handle(request, at_ms)
        for effect in effects:
            if isinstance(effect, SetTimer):
                self.timers.put_off(effect.key, at_ms + effect.delay_ms)
        appends = [effect for effect in effects if isinstance(effect, Append)]
        for append in appends:
            self.log.append(append.records)
            self.coordinator.on_append(append.append_id, at_ms)
            self._accepted(append, request, at_ms)
        return bool(appends)

    def store(self, name: str, offsets: Offsets, at_ms: int) -> None:
        """Store a commit of a member at rest, which cannot be refused, without the request. An earlier commit of the
        member that is being appended does not come after it.
        """
        if self._appending:
            for append_id, (_, request) in list(self._appending.items()):
                if isinstance(request, OffsetCommitRequest) and request.client_id == name:
                    self._durable(append_id, self._life)
        self._unwritten.update({tp: (offset, at_ms) for tp, offset in offsets.items()})
        self._committed(name, offsets, at_ms)

    def _write(self, partitions: Iterable[TopicPartition]) -> None:
        if self.coordinator is None:
            return
        records = []
        for topic, partition in partitions:
            offset, at_ms = self._unwritten.pop((topic, partition), (None, 0))
            if offset is not None:
                records.append(
                    OffsetCommit(
                        group=GROUP,
                        topic=topic,
                        partition=partition,
                        offset=offset,
                        leader_epoch=-1,
                        metadata="",
                        commit_timestamp=at_ms,
                        expire_timestamp=None,
                    )
                )
        self.log.append(records)
        self._store(self.coordinator, records)

    def flush(self) -> None:
        """Make durable at once whatever is being appended: before a leap, which would carry it into another time."""
        for append_id in list(self._appending):
            self._durable(append_id, self._life)

    def next_deletion_ms(self, to_ms: int, check_every_ms: int) -> int | None:
        """Return when the first check of offsets comes that deletes something, if one does by then and nothing else
        happens.
        """
        due_ms = self.timers.next_due_ms(is_check_of_offsets)
        if self.coordinator is None or due_ms is None or due_ms > to_ms:
            return None
        first_ms = self.coordinator.first_expiry_ms()
        if first_ms is not None and first_ms <= to_ms and self._unwritten:
            self._write(list(self._unwritten))
            first_ms = self.coordinator.first_expiry_ms()
        if first_ms is None:
            return None
        at_ms = due_ms + max(0, -(-(first_ms - due_ms) // check_every_ms)) * check_every_ms
        return at_ms if at_ms <= to_ms else None

    def update_topics(self, topics: Mapping[str, Any]) -> None:
        if self.coordinator is not None:
            self._write(list(self._unwritten))
            self._obey(self.coordinator.update_topics(topics, self._kernel.now_ms))

    def _on_timer(self, key: TimerKey) -> None:
        if self.coordinator is not None and not ("session" in key[0] and self._heard_meanwhile(key)):
            self._write(list(self._unwritten))
            if self._trace.tells_messages:
                self._trace.whisper(self._kernel.now_ms, "timer", of=key[0], member=key[-1])
            self._obey(self.coordinator.on_timer(key, self._kernel.now_ms))

    def _obey(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Reply):
                if self._trace.tells_messages:
                    now_ms, request, response = self._kernel.now_ms, effect.request, effect.response
                    self._trace.whisper(now_ms, "answers", request=request, response=response)
                self._answer(effect.request, effect.response)
            elif isinstance(effect, SetTimer):
                self.timers.set(effect.key, effect.delay_ms)
            elif isinstance(effect, CancelTimer):
                self.timers.cancel(effect.key)
            elif isinstance(effect, Append):
                self._appending[effect.append_id] = (effect, self._serving)
                self._kernel.after(self._append_ms, self._durable, effect.append_id, self._life, rhythm=self)
            else:
                self._tell_group(effect.state, effect.event, effect.member_id)
        self._tell_epoch()

    def _accepted(self, append: Append, request: Request | None, now_ms: int) -> None:
        """Count commits from when they are durable, whenever the member hears of it."""
        offsets, unwritten = {}, self._unwritten
        for record in append.records:
            if isinstance(record, OffsetCommit):
                tp = record.topic, record.partition
                offsets[tp] = record.offset
                if tp in unwritten and unwritten[tp][1] <= record.commit_timestamp:
                    del unwritten[tp]
        if offsets and request is not None:
            self._committed(request.client_id, offsets, now_ms)

    def _tell_epoch(self) -> None:
        """Report the epoch; a KIP-848 group's may be bumped again and again while it goes on assigning, or
        reconciling.
        """
        if self.coordinator is not None and self._state and self._epoch(self.coordinator) > self._told_epoch:
            member = getattr(self._serving, "member_id", None)
            self._tell_group(self._state, "group epoch bumped", member)

    def _tell_group(self, state: str, because: str, member: str | None) -> None:
        """Report the group's state, and prevent a leap also where it has stayed: an answer that tells a member is on
        its way.
        """
        assert self.coordinator is not None
        self._disturbed()
        self._state, self._told_epoch = state, self._epoch(self.coordinator)
        self._trace.tell(
            self._kernel.now_ms, "group", state=state, epoch=self._told_epoch, because=because, member=member
        )

    def _durable(self, append_id: int, life: int) -> None:
        if life == self._life and append_id in self._appending:
            assert self.coordinator is not None
            append, request = self._appending.pop(append_id)
            self.log.append(append.records)
            gone = [(one.topic, one.partition) for one in append.records if isinstance(one, OffsetTombstone)]
            if gone:
                self._expired(gone)
            self._accepted(append, request, self._kernel.now_ms)
            self._obey(self.coordinator.on_append(append_id, self._kernel.now_ms))


def is_check_of_offsets(key: TimerKey) -> bool:
    """Tell whether the timer is the coordinator's check of expired offsets; all other timers are a group's."""
    return len(key) < 2


def asked_for(request: OffsetFetchRequest, known: Iterable[TopicPartition]) -> list[TopicPartition]:
    asked = [topic for group in request.groups for topic in group.topics or ()]
    everything = any(group.topics is None for group in request.groups)
    return list(known) if everything else [(topic.name, index) for topic in asked for index in topic.partition_indexes]
