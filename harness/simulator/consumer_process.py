"""Simulate one process: a member machine, its connection, and an application that polls, works and is called back.

Thread     the application works on a batch, polls, works. While it works, callbacks and rebalances wait for the next
           poll. The end of a batch is computed when a message comes in, not by stepping through batches
Slow       only where a batch can outlast half of max.poll.interval.ms is every poll an event of its own (batches.py)
Rest       routine.py has what a process does when nothing happens, manual_commits.py what its application commits, and
           fetch_positions.py which partitions it reads. Nothing is read in callbacks and standstill
Given      a World: time, network, records, trace
Start at   Process.deliver, perform
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rebalance_lab.assignors.model import Topic
from rebalance_lab.harness.measure.trace import by_topic, offsets_by_topic
from rebalance_lab.harness.scenario.application import Application
from rebalance_lab.harness.scenario.model import MemberSpec
from rebalance_lab.harness.simulator.batches import Batches
from rebalance_lab.harness.simulator.fetch_positions import Reading
from rebalance_lab.harness.simulator.kernel import Timers
from rebalance_lab.harness.simulator.manual_commits import HandCommits
from rebalance_lab.harness.simulator.record_flow import RECORD, Reader
from rebalance_lab.harness.simulator.routine import Routine, brings_nothing
from rebalance_lab.harness.simulator.surroundings import GROUP, Machine, World, up_to
from rebalance_lab.protocol_v1.common.effects import CancelTimer, SetTimer, TimerKey
from rebalance_lab.protocol_v1.common.member_effects import (
    Call,
    Callback,
    CallbackDone,
    Close,
    Closed,
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
)
from rebalance_lab.protocol_v1.common.messages import OffsetCommitRequest, OffsetCommitResponse
from rebalance_lab.protocol_v1.member.commits import commit_topics
from rebalance_lab.protocol_v1.member.member import TICK


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
    routine: Routine = field(init=False)
    reading: Reading = field(init=False)
    batches: Batches = field(init=False)
    hand_commits: HandCommits = field(init=False)
    has_background: bool = False
    """A thread of the consumer's own that does everything but call the application (KIP-848)."""
    connection: int = 0
    alive: bool = True
    stopping: bool = False
    closing: bool = False
    """Inside close(), out of which comes nothing to work on."""
    paused: bool = False
    cut_off: bool = False
    in_callback: bool = False
    stalled: bool = False
    """By a poisoned record."""
    fetching: bool = False
    """What has been written in a standstill is not here yet."""
    waiting: list[Told] = field(default_factory=list)
    """What came while the process stood still."""
    between_polls: list[Told] = field(default_factory=list)
    """What the application calls once it is through with its batch."""
    factor: float = 1.0
    busy_until_ms: int = 0
    busy: bool = False
    turn: int = 0
    """Counts the application's plans, so that one that was overtaken does nothing."""

    def __post_init__(self) -> None:
        kernel = self.world.kernel
        self.reader = Reader(self.world.records, self.spec.record_ms, kernel.now_ms)
        self.timers = Timers(kernel, self.on_timer)
        self.routine = Routine(self)
        self.reading = Reading(self)
        self.batches = Batches(self)
        self.hand_commits = HandCommits(self)

    @property
    def now_ms(self) -> int:
        return self.world.kernel.now_ms

    @property
    def record_ms(self) -> float:
        return self.spec.record_ms * self.factor

    def commit_of(self, offsets: Offsets) -> OffsetCommitRequest:
        return OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self.machine.epoch,
            member_id=self.machine.member_id,
            group_instance_id=self.instance_id,
            topics=commit_topics(offsets),
            client_id=self.name,
        )

    # What comes in

    def start(self, topics: Mapping[str, Topic]) -> None:
        self.world.trace.tell(self.now_ms, "process", member=self.name, **{"is": "started"})
        self.tell(MetadataChanged(topics))
        self.tell(Poll())

    def on_timer(self, key: TimerKey) -> None:
        if key != self.routine.commits_key or not self.routine.commit_at_rest():
            self.deliver(TimerFired(key))

    def deliver(self, event: Told) -> None:
        """Deliver an event to the machine from outside; the application may have to come to its next poll first."""
        if not self.alive:
            return
        if self.paused:
            self.waiting.append(event)
            return
        if self.reader.streams and self.machine.in_poll and not self.in_callback and self.concerns(event):
            self.come_to_poll()
        self.tell(event)

    def concerns(self, event: Told) -> bool:
        """Tell whether the event concerns the application's thread; an auto-commit needs its position."""
        if isinstance(event, Responded) and isinstance(event.response, OffsetCommitResponse):
            due_ms = self.machine.auto_commit_at_ms  # the next one may have come due before this one is answered
            harmless = not self.machine.prepares and (due_ms is None or due_ms > self.now_ms)
        else:
            harmless = brings_nothing(event)
        return not harmless or (self.machine.commits_in_poll(self.now_ms) and not self.routine.commit_at_rest())

    def come_to_poll(self) -> None:
        """Come to poll(), if the batch that is worked on is over; else say so, and poll when it is."""
        now_ms = self.now_ms
        self.reader.advance(now_ms)
        self.hand_commits.before_anything_else()
        ends_ms = self.batch_ends_ms()
        if ends_ms > now_ms:
            self.work_until(ends_ms)
        else:
            self.tell(Poll(self.reader.offsets()))

    def batch_ends_ms(self) -> int:
        """Return the end of the batch that is worked on now, counted in whole batches from when this reading began."""
        batch_ms = self.batch_ms()
        if batch_ms <= 1 or not self.reader.running:
            return self.now_ms
        return self.now_ms + (self.reader.since_ms - self.now_ms) % batch_ms

    def batch_ms(self, at_ms: int | None = None) -> int:
        """Return how long a batch takes at present, or will by then: many records for a lagging process, one for any
        other.
        """
        reader = self.reader
        lag = reader.lag if at_ms is None else reader.lag_at(at_ms)
        records = min(max(lag // RECORD, 1 if reader.rate else 0), self.application.max_poll_records)
        return int(records * self.record_ms)

    def work_until(self, ends_ms: int) -> None:
        """Work on a batch. A consumer that commits meanwhile needs the application's position; others hear it in
        poll().
        """
        self.tell(PollReturned(self.reader.offsets() if self.has_background else {}))
        self.busy_for(ends_ms - self.now_ms)

    def busy_for(self, ms: int) -> None:
        self.busy, self.busy_until_ms = True, self.now_ms + ms
        self.hold_up(ms)
        self.turn += 1
        self.world.kernel.at(self.busy_until_ms, self.poll_again, self.turn)

    def hold_up(self, ms: int) -> None:
        """Note that the world cannot come to rest while an application does not poll for longer than its timeouts
        allow. A thread of the consumer's own keeps up a session. A classic consumer's does not hear the answer to a
        JoinGroup that was sent before the batch, and sends its first heartbeat an interval after it has.
        """
        application = self.application
        allowed_ms = application.max_poll_interval_ms
        if not self.has_background:
            first_beat_ms = application.heartbeat_interval_ms + self.routine.look_ms + self.world.round_trip_ms()
            allowed_ms = min(allowed_ms, application.session_timeout_ms - first_beat_ms)
        if ms >= allowed_ms:
            world = self.world
            world.held_up_until_ms = max(world.held_up_until_ms, self.now_ms + ms)

    def poll_again(self, turn: int) -> None:
        if not self.alive or turn != self.turn:
            return
        if self.paused:
            self.busy_until_ms = self.now_ms  # on resuming
            return
        self.busy = self.stalled = False
        self.read_on()
        self.reader.advance(self.now_ms)
        self.reading.go_by_the_machine()
        if self.stopping:
            self.hand_commits.at_the_end_of_a_batch()
            self.close()
            return
        if self.between_polls:
            events, self.between_polls = self.between_polls, []
            self.do_between_polls(events)
        if self.in_callback or not self.alive:
            return
        offsets = self.reader.offsets()
        self.hand_commits.after_a_batch(offsets)
        self.tell(Poll(offsets, buffered=self.has_background and self.batches.next_is_slow()))
        self.batches.go_on()

    # How it ends, and what happens to it

    def stop(self) -> None:
        """Stop by SIGTERM: after the batch, and not inside a callback, the consumer is closed."""
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
        """Close the consumer. Owned partitions are not read any more, however long it takes to find the coordinator to
        leave.
        """
        self.hand_commits.before_anything_else()
        self.closing = True
        self.read_on()
        positions = self.reading.stop_all()
        self.tell(Close(positions=positions))

    def kill(self) -> None:
        self.hand_commits.before_silence()
        self.world.trace.tell(self.now_ms, "process", member=self.name, **{"is": "killed"})
        self.end()

    def end(self) -> None:
        self.reading.stop_all()
        self.alive = False
        self.connection += 1
        self.timers.clear()
        self.world.ended(self)

    def pause(self) -> None:
        if self.paused:
            return
        self.hand_commits.before_silence()
        self.paused = True
        self.read_on()
        self.world.trace.tell(self.now_ms, "process", member=self.name, **{"is": "paused"})

    def resume(self) -> None:
        if not self.alive or not self.paused:
            return
        self.paused = False
        self.fetch_again()
        self.world.trace.tell(self.now_ms, "process", member=self.name, **{"is": "resumed"})
        waiting, self.waiting = self.waiting, []
        for event in waiting:
            if isinstance(event, CallbackDone):
                self.called()
            else:
                self.deliver(event)
        if self.busy and self.busy_until_ms <= self.now_ms:
            self.poll_again(self.turn)

    def fetch_again(self) -> None:
        """Start to fetch again: nothing has been fetched for a while."""
        self.fetching = True
        self.read_on()
        self.world.kernel.after(self.world.fetch_ms(), self.fetched)

    def fetched(self) -> None:
        self.fetching = False
        if self.alive:
            self.read_on()
            self.batches.go_on()

    def read_on(self) -> None:
        """Read on, if records can be fetched and processed. Nothing is processed in a standstill, a callback or
        close(), or while one record holds all up.
        """
        still = self.paused or self.in_callback or self.closing or self.stalled or self.fetching or self.cut_off
        if still is self.reader.running and self.reader.streams:
            self.world.sample_bend()
        self.reader.set_running(not still, self.now_ms)

    def slow_down(self, factor: float) -> None:
        """Make the process slow; the batch that is worked on is not spared, nor does it stay slow once the trouble is
        over.
        """
        left_ms = self.busy_until_ms - self.now_ms
        if self.busy and not self.stalled and left_ms > 0:
            self.busy_for(round(left_ms * factor / self.factor))
        self.factor = factor
        self.world.sample_bend()
        self.reader.set_speed(self.record_ms, self.now_ms)
        self.batches.go_on()

    def subscribe(self, topics: Sequence[str], pattern: str | None) -> None:
        """Subscribe between two polls."""
        self.world.catalogue.wants(self.name, topics, pattern)
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
            self.perform(self.machine.handle(event, self.world.kernel.now_ms))

    def perform(self, effects: Sequence[MemberEffect]) -> None:
        moved = commits = False
        for effect in effects:
            # What is frequent first: a match asks for one class after the other.
            if isinstance(effect, SetTimer):
                look_ms = self.routine.look_ms
                late_ms = up_to(look_ms, self.world.random) if look_ms and effect.key == TICK else 0
                self.timers.set(effect.key, effect.delay_ms + late_ms)
                continue
            match effect:
                case CancelTimer():
                    self.timers.cancel(effect.key)
                case Send():
                    # What is to be given up is committed first, and not read any more from then on.
                    commits = commits or isinstance(effect.request, OffsetCommitRequest)
                    self.world.send(self, effect.request)
                case Moved():
                    moved = True
                case Call():
                    moved = True
                    self.call(effect)
                case Committed():
                    self.committed(effect)
                case Fetched():
                    moved = True
                    self.world.kernel.after(0, self.reading.begin, effect.offsets)
                case RejoinNeeded() | Left():
                    moved = True
                case Disconnect():
                    self.connection += 1
                    moved = True
                case RequestMetadata():
                    self.world.catalogue.metadata_for(self)
                case Raise():
                    self.fail(effect)
                    return
                case Closed():
                    self.world.trace.tell(self.now_ms, "process", member=self.name, **{"is": "closed"})
                    self.end()
                    return
        if moved:
            self.world.disturbed()
        if moved or commits:
            self.reading.go_by_the_machine()

    def call(self, call: Call) -> None:
        """Call the application, which does nothing else inside a callback."""
        self.in_callback = True
        spec, n = self.world.callbacks, len(call.partitions)
        if call.callback is Callback.ASSIGNED:
            lasts_ms = spec.assigned_ms + n * spec.assigned_ms_per_partition if n else 0
        else:
            lasts_ms = spec.revoked_ms + n * spec.revoked_ms_per_partition if n else 0
        self.world.trace.tell(
            self.now_ms,
            "callback",
            member=self.name,
            callback=call.callback.value,
            partitions=by_topic(call.partitions),
            **({"ms": lasts_ms} if lasts_ms else {}),
        )
        if lasts_ms:
            self.hold_up(lasts_ms)
            self.read_on()
        self.world.kernel.after(lasts_ms, self.called)

    def called(self) -> None:
        if not self.alive:
            return
        if self.paused:
            self.waiting.append(CallbackDone())
            return
        self.in_callback = False
        self.read_on()
        self.return_from_poll()
        self.tell(CallbackDone())
        self.reading.go_by_the_machine()
        if self.alive and not self.in_callback and self.machine.in_poll:
            self.after_callbacks()

    def return_from_poll(self) -> None:
        """Return from poll() with what there is to work on. Where a background thread decides what is called next,
        poll() does not wait for it, and the next callback comes in the next poll().
        """
        if not self.has_background or self.stopping or self.closing or self.busy:
            return
        self.reader.advance(self.now_ms)
        if self.reader.lag >= RECORD and not self.cut_off:
            self.work_until(self.now_ms + self.batch_ms())

    def after_callbacks(self) -> None:
        """Do what had to wait for the callbacks."""
        if self.stopping:
            self.close()
        elif self.between_polls and not self.busy:
            events, self.between_polls = self.between_polls, []
            self.do_between_polls(events)

    def committed(self, effect: Committed) -> None:
        if effect.outcome is CommitOutcome.DONE and effect.offsets and effect.by != "interval":
            partitions, offsets = offsets_by_topic(effect.offsets)
            self.world.trace.tell(
                self.now_ms, "committed", member=self.name, by=effect.by, partitions=partitions, offsets=offsets
            )

    def fail(self, raised: Raise) -> None:
        """End the process: the application has no answer to an exception out of poll()."""
        why = raised.error.name if raised.error is not None else raised.message
        self.world.trace.tell(self.now_ms, "process", member=self.name, **{"is": "failed", "why": why})
        self.end()
        self.world.failed(self)

    def lose_connection(self) -> None:
        self.connection += 1
        self.world.kernel.after(0, self.deliver, Disconnected())
