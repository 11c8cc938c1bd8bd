"""One process: a consumer (the machine), its connection, and an application that polls, works and is called back.

Thread     the application works on a batch, polls, works. While it works, callbacks and rebalances wait for the next
           poll; where the batch ends is worked out when something comes in, not by stepping through batches
Slow       only where a batch can outlast half of max.poll.interval.ms is every poll an event of its own
Reading    what the machine says is fetchable and whose start is known, except in callbacks and standstill
Given      a World: time, network, records, trace
Start at   Process.deliver, perform
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isqrt
from random import Random
from typing import Any, Protocol

from assignors.model import Topic
from harness.scenario.model import Callbacks, MemberSpec, Poison
from harness.sim.kernel import Kernel, Timers
from harness.sim.records import RECORD, Reader, Records
from harness.sim.trace import Trace, by_topic, offsets_by_topic
from protocol_v1.effects import CancelTimer, SetTimer, TimerKey
from protocol_v1.effects.member import (
    Call,
    Callback,
    CallbackDone,
    Close,
    Closed,
    Commit,
    CommitOutcome,
    Committed,
    Disconnect,
    Disconnected,
    Fetched,
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
    Subscribe,
    TimerFired,
    Told,
    TopicPartition,
)
from protocol_v1.errors import Error
from protocol_v1.member_commits import commit_topics
from protocol_v1.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    Request,
)
from protocol_v2.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

LOOK_AGAIN_MS = 1_000
COMMIT_TIMERS = (("poll",), ("offsets",))
"""What the members of the two protocols call the timer of their auto-commits."""


class Machine(Protocol):
    """What the members of both protocols have."""

    @property
    def owned(self) -> frozenset[TopicPartition]: ...
    @property
    def fetchable(self) -> frozenset[TopicPartition]: ...
    @property
    def settled(self) -> bool: ...
    @property
    def subscribed_topics(self) -> frozenset[str]: ...
    @property
    def in_poll(self) -> bool: ...
    @property
    def member_id(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def heartbeat_interval_ms(self) -> int: ...
    @property
    def heartbeat_at_ms(self) -> int: ...
    @property
    def auto_commit_at_ms(self) -> int | None: ...
    def handle(self, event: Told, now_ms: int) -> list[MemberEffect]: ...
    def leap(self, beats_ms: int, commits_ms: int) -> None: ...


class World(Protocol):
    """What a process needs around it."""

    kernel: Kernel
    trace: Trace
    random: Random
    records: Records
    callbacks: Callbacks
    poison: Mapping[TopicPartition, Sequence[Poison]]

    def send(self, process: Process, request: Request) -> None: ...
    def metadata_for(self, process: Process) -> None: ...
    def disturbed(self) -> None: ...
    def about_to_read(self, process: Process, partitions: Sequence[TopicPartition]) -> None: ...
    def ended(self, process: Process) -> None: ...
    def failed(self, process: Process) -> None: ...
    def commit_late(self, process: Process, offsets: Offsets, at_ms: int) -> None: ...
    def committed_at_rest(self, process: Process, offsets: Offsets, at_ms: int) -> None: ...
    def routine(self, request: Request, times: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """How it consumes, beyond what the machine is configured with."""

    max_poll_records: int = 500
    max_poll_interval_ms: int = 300_000
    commits_after_processing: bool = False
    """commitSync after every batch, instead of the auto-commit."""
    auto_commit_interval_ms: int = 5_000


@dataclass(slots=True, eq=False)
class Process:
    name: str
    spec: MemberSpec
    machine: Machine
    application: Application
    world: World
    started_ms: int
    instance_id: str | None = None
    reader: Reader = field(init=False)
    timers: Timers = field(init=False)
    connection: int = 0
    alive: bool = True
    stopping: bool = False
    paused: bool = False
    cut_off: bool = False
    in_callback: bool = False
    waiting: list[Told] = field(default_factory=list)
    """What came while the process stood still."""
    between_polls: list[Told] = field(default_factory=list)
    """What the application calls once it is through with its batch."""
    factor: float = 1.0
    busy_until_ms: int = 0
    busy: bool = False
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    """Where to begin with partitions whose committed offset is known and that are not read yet."""
    look_ms: int = 0
    """How late its heartbeats may be, because its heartbeat thread looks at the clock only so often."""
    drift_ms: int = 0
    turn: int = 0
    """Counts the application's plans, so that one that was overtaken does nothing."""
    ahead: list[tuple[TopicPartition, Poison]] = field(default_factory=list)
    """Poisoned records that this process will come to."""
    last_on_the_way: list[tuple[int, int]] = field(default_factory=lambda: [(-1, 0), (-1, 0)])
    """Out and in: on which connection, and when it arrives."""
    heartbeat: Request | None = None
    at_leap: dict[TopicPartition, int] = field(default_factory=dict)
    """What was committed for the end of the last leap."""
    commit: Request | None = None
    """The last ones, to count those that a leap passes over."""

    def __post_init__(self) -> None:
        kernel = self.world.kernel
        self.reader = Reader(self.world.records, self.spec.record_ms, kernel.now_ms)
        self.timers = Timers(kernel, self.on_timer)

    @property
    def now_ms(self) -> int:
        return self.world.kernel.now_ms

    @property
    def record_ms(self) -> float:
        return self.spec.record_ms * self.factor

    # Rest

    @property
    def at_rest(self) -> bool:
        held_up = self.paused or self.cut_off or self.busy or self.in_callback or self.stopping or bool(self.starts)
        return not held_up and self.machine.settled

    def shift_ms(self, to_ms: int) -> int:
        """Whole heartbeats, so that the next one comes after `to_ms` when it would have come, but for the drift."""
        return periods(self.machine.heartbeat_at_ms, self.machine.heartbeat_interval_ms, to_ms) + self.drift_ms

    def draw_drift(self, leap_ms: int) -> None:
        """How far heartbeats have moved in a leap by being late a little each: a walk, from whole numbers only."""
        if self.look_ms:
            step_ms = isqrt(leap_ms // self.machine.heartbeat_interval_ms) * self.look_ms * 29 // 100
            twelve = sum(self.world.random.randint(0, 1_000) for _ in range(12)) - 6_000
            half_ms = self.machine.heartbeat_interval_ms // 2
            self.drift_ms = max(-half_ms, min(twelve * step_ms // 1_000, half_ms))

    def commit_shift_ms(self, to_ms: int) -> int:
        at_ms = self.machine.auto_commit_at_ms
        return periods(at_ms, self.application.auto_commit_interval_ms, to_ms) if at_ms is not None else 0

    def shift_of(self, key: TimerKey, to_ms: int) -> int:
        return self.commit_shift_ms(to_ms) if key in COMMIT_TIMERS else self.shift_ms(to_ms)

    def is_routine(self, request: Request) -> bool:
        match request:
            case HeartbeatRequest():
                self.heartbeat = request
                return True
            case ConsumerGroupHeartbeatRequest(topic_partitions=None) if request.member_epoch > 0:
                self.heartbeat = request
                return self.machine.settled
            case OffsetCommitRequest():
                self.commit = request
                return self.machine.settled
            case _:
                return False

    def leap(self, from_ms: int, to_ms: int) -> None:
        """The kernel has leapt; heartbeats and commits that were passed over are counted, and the last commit made."""
        self.last_on_the_way = [(connection, at_ms + to_ms - from_ms) for connection, at_ms in self.last_on_the_way]
        beats_ms, commits_ms = self.shift_ms(to_ms), self.commit_shift_ms(to_ms)
        self.timers.leap(to_ms, lambda key: commits_ms if key in COMMIT_TIMERS else beats_ms)
        self.machine.leap(beats_ms, commits_ms)
        if self.heartbeat is not None:
            self.world.routine(self.heartbeat, beats_ms // self.machine.heartbeat_interval_ms)
        if not self.reader.streams or not self.reader.rate:
            return
        if self.application.commits_after_processing:
            self.at_leap = self.commit_batches() or self.at_leap
            return
        due_ms = self.machine.auto_commit_at_ms
        if due_ms is not None:
            last_ms = due_ms - self.application.auto_commit_interval_ms
            if self.reader.at_ms < last_ms <= to_ms:
                self.reader.advance(last_ms)
                self.at_leap = self.reader.offsets()
                self.world.committed_at_rest(self, self.at_leap, last_ms)
                if self.commit is not None:
                    self.world.routine(self.commit, commits_ms // self.application.auto_commit_interval_ms)

    def brought_up_to_date(self, request: OffsetCommitRequest) -> OffsetCommitRequest:
        """A commit that a leap caught on its way must not undo the one that was made for the end of the leap."""
        offsets = {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in request.topics
            for partition in topic.partitions
        }
        return replace(
            request, topics=commit_topics({tp: max(offset, self.at_leap.get(tp, 0)) for tp, offset in offsets.items()})
        )

    def commit_batches(self) -> dict[TopicPartition, int]:
        """For who commits after processing: whatever is done with, apart from the batch that is worked on now."""
        if not self.application.commits_after_processing or not self.reader.streams:
            return {}
        reader, now_ms = self.reader, self.now_ms
        reader.advance(now_ms)
        batch_ms = self.batch_ms()
        under_way = reader.speed * ((now_ms - reader.since_ms) % batch_ms) if batch_ms > 1 and reader.running else 0
        share = -(-under_way // len(reader.streams))
        done = {
            tp: max((position - share) // RECORD, reader.streams[tp].committed)
            for tp, position in reader.positions.items()
        }
        self.world.commit_late(self, done, now_ms)
        return done

    # What comes in

    def start(self, topics: Mapping[str, Topic]) -> None:
        self.world.trace.tell(self.now_ms, "process", member=self.name, **{"is": "started"})
        self.tell(MetadataChanged(topics))
        self.tell(Poll())

    def on_timer(self, key: TimerKey) -> None:
        self.deliver(TimerFired(key))

    def deliver(self, event: Told) -> None:
        """Something for the machine from outside; the application may have to come to its next poll first."""
        if not self.alive:
            return
        if self.paused:
            self.waiting.append(event)
            return
        if self.reader.streams and self.machine.in_poll and not self.in_callback and self.concerns(event):
            self.come_to_poll()
        self.tell(event)

    def concerns(self, event: Told) -> bool:
        """Whether the application's thread has to do with it; an auto-commit wants to know how far it is."""
        due_ms = self.machine.auto_commit_at_ms
        return not harmless(event) or (due_ms is not None and due_ms <= self.now_ms)

    def come_to_poll(self) -> None:
        """The application is somewhere in a batch: if that is not over, say so, and poll when it is."""
        now_ms = self.now_ms
        self.reader.advance(now_ms)
        ends_ms = self.batch_ends_ms()
        if ends_ms > now_ms:
            self.work_until(ends_ms)
        else:
            self.tell(Poll(self.reader.offsets()))

    def batch_ends_ms(self) -> int:
        """The end of the batch that is worked on now, counted in whole batches from when this reading began."""
        batch_ms = self.batch_ms()
        if batch_ms <= 1 or not self.reader.running:
            return self.now_ms
        return self.now_ms + (self.reader.since_ms - self.now_ms) % batch_ms

    def batch_ms(self) -> int:
        """How long a batch takes at present: many records for who is behind, one for who keeps up."""
        reader = self.reader
        records = min(max(reader.lag // RECORD, 1 if reader.rate else 0), self.application.max_poll_records)
        return int(records * self.record_ms)

    def work_until(self, ends_ms: int) -> None:
        self.tell(Poll(self.reader.offsets()))
        self.tell(PollReturned())
        self.busy, self.busy_until_ms = True, ends_ms
        self.turn += 1
        self.world.kernel.at(ends_ms, self.poll_again, self.turn)

    def poll_again(self, turn: int) -> None:
        if not self.alive or turn != self.turn:
            return
        if self.paused:
            self.busy_until_ms = self.now_ms  # on resuming
            return
        self.busy = False
        self.reader.set_running(not self.in_callback, self.now_ms)
        self.reader.advance(self.now_ms)
        if self.stopping:
            self.close()
            return
        if self.between_polls:
            events, self.between_polls = self.between_polls, []
            self.do_between_polls(events)
        if self.in_callback or not self.alive:
            return
        offsets = self.reader.offsets()
        if self.application.commits_after_processing and offsets:
            self.tell(Commit(offsets, sync=False))
        self.tell(Poll(offsets))
        self.go_on()

    # What the application does by itself

    def go_on(self) -> None:
        """Plan the next thing that is an event of its own: a slow batch, or a poisoned record."""
        if not self.alive or self.busy or self.in_callback or self.paused or not self.reader.streams:
            return
        self.reader.advance(self.now_ms)
        due = [self.poisoned_ms(tp, poison) for tp, poison in self.ahead]
        if self.is_slow(self.application.max_poll_records):
            due.append(self.next_batch_ms())
        if due:
            self.turn += 1
            self.world.kernel.at(min(due), self.look_at_batch, self.turn)

    def is_slow(self, records: int) -> bool:
        return records * self.record_ms * 2 >= self.application.max_poll_interval_ms

    def next_batch_ms(self) -> int:
        """When there is a record to work on."""
        missing = RECORD - self.reader.lag
        if missing <= 0:
            return self.now_ms
        return self.now_ms + (-(-missing // self.reader.rate) if self.reader.rate else LOOK_AGAIN_MS)

    def poisoned_ms(self, tp: TopicPartition, poison: Poison) -> int:
        """When the poisoned record is reached at the earliest, if this process goes on as now."""
        stream, place = self.reader.streams[tp], poison.offset * RECORD
        if self.reader.lag:
            wait_ms = (place - self.reader.positions[tp]) // self.reader.speed
        else:
            wait_ms = (place - stream.written(self.now_ms)) // stream.rate if stream.rate else LOOK_AGAIN_MS
        return self.now_ms + max(1, wait_ms)

    def look_at_batch(self, turn: int) -> None:
        if not self.alive or turn != self.turn or self.busy or self.paused or not self.machine.in_poll:
            return
        self.reader.advance(self.now_ms)
        stall_ms = self.stall_ms()
        batch = min(max(self.reader.lag // RECORD, 1), self.application.max_poll_records)
        if stall_ms:
            self.world.trace.tell(self.now_ms, "process", member=self.name, **{"is": "stalled", "ms": stall_ms})
            self.reader.set_running(False, self.now_ms)
            self.work_until(self.now_ms + stall_ms)
        elif self.is_slow(batch):
            self.work_until(self.now_ms + int(batch * self.record_ms))
        elif self.ahead or self.is_slow(self.application.max_poll_records):
            self.turn += 1
            self.world.kernel.after(self.patience_ms(), self.look_at_batch, self.turn)

    def patience_ms(self) -> int:
        """Nothing to stop for yet: how long until there may be."""
        due = [self.poisoned_ms(tp, poison) - self.now_ms for tp, poison in self.ahead]
        if self.is_slow(self.application.max_poll_records):
            due.append(LOOK_AGAIN_MS)
        return max(1, min(due))

    def stall_ms(self) -> int:
        """Of the poisoned records that have just been reached."""
        reached = [one for one in self.ahead if self.reader.positions[one[0]] >= one[1].offset * RECORD]
        self.ahead = [one for one in self.ahead if one not in reached]
        return max((poison.stall_ms for _, poison in reached), default=0)

    def stop(self) -> None:
        """SIGTERM: after the batch, and not inside a callback, the consumer is closed."""
        self.stopping = True
        self.world.trace.tell(self.now_ms, "process", member=self.name, **{"is": "closing"})
        if self.busy or self.in_callback or self.paused:
            return
        self.reader.advance(self.now_ms)
        ends_ms = self.batch_ends_ms() if self.machine.in_poll and self.reader.streams else self.now_ms
        if ends_ms > self.now_ms:
            self.work_until(ends_ms)
        else:
            self.close()

    def close(self) -> None:
        self.stopping = True
        self.tell(Close(positions=self.reader.offsets()))

    def kill(self) -> None:
        self.commit_batches()
        self.world.trace.tell(self.now_ms, "process", member=self.name, **{"is": "killed"})
        self.end()

    def end(self) -> None:
        self.stop_reading(list(self.reader.streams))
        self.alive = False
        self.connection += 1
        self.timers.clear()
        self.world.ended(self)

    def pause(self) -> None:
        self.commit_batches()
        self.paused = True
        self.reader.set_running(False, self.now_ms)
        self.world.trace.tell(self.now_ms, "process", member=self.name, **{"is": "paused"})

    def resume(self) -> None:
        if not self.alive or not self.paused:
            return
        self.paused = False
        self.reader.set_running(not self.in_callback, self.now_ms)
        self.world.trace.tell(self.now_ms, "process", member=self.name, **{"is": "resumed"})
        waiting, self.waiting = self.waiting, []
        for event in waiting:
            self.deliver(event)
        if self.busy and self.busy_until_ms <= self.now_ms:
            self.poll_again(self.turn)

    def slow_down(self, factor: float) -> None:
        self.factor = factor
        self.reader.set_speed(self.record_ms, self.now_ms)
        self.go_on()

    def subscribe(self, topics: Sequence[str], pattern: str | None) -> None:
        """Between two polls."""
        event = Subscribe(frozenset(topics), pattern)
        if self.busy or self.in_callback or self.paused:
            self.between_polls.append(event)
        else:
            self.do_between_polls([event])

    def do_between_polls(self, events: Sequence[Told]) -> None:
        if self.stopping:
            return
        self.reader.advance(self.now_ms)
        self.tell(Poll(self.reader.offsets()))
        for event in events:
            self.tell(event)

    # What the machine wants

    def tell(self, event: Told) -> None:
        if self.alive:
            self.perform(self.machine.handle(event, self.now_ms))

    def perform(self, effects: Sequence[MemberEffect]) -> None:
        moved = False
        for effect in effects:
            match effect:
                case SetTimer(key=("tick",)) if self.look_ms:
                    self.timers.set(effect.key, effect.delay_ms + self.world.random.randint(0, self.look_ms))
                case SetTimer():
                    self.timers.set(effect.key, effect.delay_ms)
                case CancelTimer():
                    self.timers.cancel(effect.key)
                case Send():
                    self.world.send(self, effect.request)
                case Disconnect():
                    self.connection += 1
                    moved = True
                case RequestMetadata():
                    self.world.metadata_for(self)
                case Call():
                    moved = True
                    self.call(effect)
                case Fetched():
                    moved = True
                    self.world.kernel.after(0, self.begin, effect.offsets)
                case Committed():
                    self.committed(effect)
                case Moved() | RejoinNeeded() | Left():
                    moved = True
                case Raise():
                    self.fail(effect)
                    return
                case Closed():
                    self.world.trace.tell(self.now_ms, "process", member=self.name, **{"is": "closed"})
                    self.end()
                    return
        if moved:
            self.world.disturbed()
            self.read_what_is_fetchable()

    def call(self, call: Call) -> None:
        """Inside a callback the application does nothing else."""
        self.world.trace.tell(
            self.now_ms,
            "callback",
            member=self.name,
            callback=call.callback.value,
            partitions=by_topic(call.partitions),
        )
        self.in_callback = True
        spec, n = self.world.callbacks, len(call.partitions)
        if call.callback is Callback.ASSIGNED:
            lasts_ms = spec.assigned_ms + n * spec.assigned_ms_per_partition if n else 0
        else:
            lasts_ms = spec.revoked_ms + n * spec.revoked_ms_per_partition if n else 0
        if lasts_ms:
            self.reader.set_running(False, self.now_ms)
        self.world.kernel.after(lasts_ms, self.called)

    def called(self) -> None:
        if not self.alive:
            return
        if self.paused:
            self.waiting.append(CallbackDone())
            return
        self.in_callback = False
        self.reader.set_running(not self.paused, self.now_ms)
        self.tell(CallbackDone())
        self.read_what_is_fetchable()
        if self.alive and not self.in_callback and self.machine.in_poll:
            self.after_callbacks()

    def after_callbacks(self) -> None:
        """What had to wait for them."""
        if self.stopping:
            self.close()
        elif self.between_polls and not self.busy:
            events, self.between_polls = self.between_polls, []
            self.do_between_polls(events)

    def begin(self, offsets: Offsets) -> None:
        """Committed offsets are known: where there is none, from the beginning (auto.offset.reset=earliest)."""
        if not self.alive:
            return
        self.starts |= {tp: max(offset, 0) for tp, offset in offsets.items()}
        if self.machine.in_poll and not self.paused and not self.in_callback:
            self.tell(Poll({tp: max(offset, 0) for tp, offset in offsets.items()}))
        self.read_what_is_fetchable()

    def read_what_is_fetchable(self) -> None:
        if not self.alive:
            return
        fetchable = self.machine.fetchable
        gone = [tp for tp in self.reader.streams if tp not in fetchable]
        if gone:
            self.stop_reading(gone)
        self.starts = {tp: offset for tp, offset in self.starts.items() if tp in self.machine.owned}
        streams = self.world.records.streams
        new = sorted(tp for tp in self.starts if tp in fetchable and tp not in self.reader.streams and tp in streams)
        if new:
            self.world.about_to_read(self, new)
            offsets = {tp: self.starts.pop(tp) for tp in new}
            self.reader.start([(streams[tp], offset) for tp, offset in offsets.items()], self.now_ms)
            self.ahead += [
                (tp, poison) for tp in new for poison in self.world.poison.get(tp, ()) if poison.offset >= offsets[tp]
            ]
            partitions, start = offsets_by_topic(offsets)
            self.world.trace.tell(self.now_ms, "reads", member=self.name, partitions=partitions, **{"from": start})
            self.go_on()

    def stop_reading(self, gone: Sequence[TopicPartition]) -> None:
        if not gone:
            return
        self.reader.advance(self.now_ms)
        offsets = self.reader.offsets()
        partitions, reached = offsets_by_topic({tp: offsets[tp] for tp in gone})
        self.reader.stop(gone, self.now_ms)
        self.ahead = [one for one in self.ahead if one[0] in self.reader.streams]
        self.world.trace.tell(self.now_ms, "stops", member=self.name, partitions=partitions, at=reached)

    def committed(self, effect: Committed) -> None:
        if effect.outcome is CommitOutcome.DONE and effect.offsets and effect.by != "interval":
            partitions, offsets = offsets_by_topic(effect.offsets)
            self.world.trace.tell(
                self.now_ms, "committed", member=self.name, by=effect.by, partitions=partitions, offsets=offsets
            )

    def fail(self, raised: Raise) -> None:
        """The application has no answer to an exception out of poll(): the process ends."""
        why = raised.error.name if raised.error is not None else raised.message
        self.world.trace.tell(self.now_ms, "process", member=self.name, **{"is": "failed", "why": why})
        self.end()
        self.world.failed(self)

    def lose_connection(self) -> None:
        self.connection += 1
        self.world.kernel.after(0, self.deliver, Disconnected())


def periods(at_ms: int, period_ms: int, to_ms: int) -> int:
    """By how many whole periods something due at `at_ms` is to be put off to come after `to_ms`."""
    return max(0, (to_ms - at_ms) // period_ms + 1) * period_ms


def harmless(event: Told) -> bool:
    """Nothing that the application's thread has to do with."""
    match event:
        case TimerFired(key=("tick",)):
            return True
        case Responded(response=HeartbeatResponse(error_code=Error.NONE)):
            return True
        case Responded(response=ConsumerGroupHeartbeatResponse(error_code=Error.NONE, assignment=None)):
            return True
        case Responded(response=OffsetCommitResponse()):
            return True
        case _:
            return False


def options(settings: Mapping[str, Any]) -> Application:
    auto = settings.get("enable.auto.commit", True)
    return Application(
        max_poll_records=int(settings.get("max.poll.records", 500)),
        max_poll_interval_ms=int(settings.get("max.poll.interval.ms", 300_000)),
        commits_after_processing=not auto,
        auto_commit_interval_ms=int(settings.get("auto.commit.interval.ms", 5_000)),
    )
