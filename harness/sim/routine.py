"""What a process does when nothing happens, and how it is carried over a leap.

Routine    heartbeats, and auto-commits of its interval: everything else means that something is going on
Leap       both are put off by whole periods of their own; those passed over are counted, and the last commit is made.
           Heartbeats of classic members are a little late each time, so a leap also lets them drift
Start at   Routine.leap
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isqrt
from typing import TYPE_CHECKING

from protocol_v1.effects import TimerKey
from protocol_v1.effects.member import TopicPartition
from protocol_v1.member_commits import commit_topics
from protocol_v1.messages import HeartbeatRequest, OffsetCommitRequest, Request
from protocol_v2.messages import ConsumerGroupHeartbeatRequest

if TYPE_CHECKING:
    from harness.sim.process import Process

COMMIT_TIMERS = (("poll",), ("offsets",))
"""What the members of the two protocols call the timer of their auto-commits."""


@dataclass(slots=True, eq=False)
class Routine:
    process: Process
    look_ms: int = 0
    """How late its heartbeats may be, because its heartbeat thread looks at the clock only so often."""
    drift_ms: int = 0
    heartbeat: Request | None = None
    commit: Request | None = None
    """The last ones, to count those that a leap passes over."""
    at_leap: dict[TopicPartition, int] = field(default_factory=dict)
    """What was committed for the end of the last leap."""
    last_on_the_way: list[tuple[int, int]] = field(default_factory=lambda: [(-1, 0), (-1, 0)])
    """Out and in: on which connection, and when it arrives."""

    @property
    def at_rest(self) -> bool:
        process = self.process
        held_up = (
            process.paused
            or process.cut_off
            or process.busy
            or process.in_callback
            or process.stopping
            or bool(process.starts)
        )
        return not held_up and process.machine.settled

    def shift_ms(self, to_ms: int) -> int:
        """Whole heartbeats, so that the next one comes after `to_ms` when it would have come, but for the drift."""
        process = self.process
        return periods(process.machine.heartbeat_at_ms, process.machine.heartbeat_interval_ms, to_ms) + self.drift_ms

    def draw_drift(self, leap_ms: int) -> None:
        """How far heartbeats have moved in a leap by being late a little each: a walk, from whole numbers only."""
        process = self.process
        if self.look_ms:
            step_ms = isqrt(leap_ms // process.machine.heartbeat_interval_ms) * self.look_ms * 29 // 100
            twelve = sum(process.world.random.randint(0, 1_000) for _ in range(12)) - 6_000
            half_ms = process.machine.heartbeat_interval_ms // 2
            self.drift_ms = max(-half_ms, min(twelve * step_ms // 1_000, half_ms))

    def commit_shift_ms(self, to_ms: int) -> int:
        process = self.process
        at_ms = process.machine.auto_commit_at_ms
        return periods(at_ms, process.application.auto_commit_interval_ms, to_ms) if at_ms is not None else 0

    def shift_of(self, key: TimerKey, to_ms: int) -> int:
        return self.commit_shift_ms(to_ms) if key in COMMIT_TIMERS else self.shift_ms(to_ms)

    def is_routine(self, request: Request) -> bool:
        process = self.process
        match request:
            case HeartbeatRequest():
                self.heartbeat = request
                return True
            case ConsumerGroupHeartbeatRequest(topic_partitions=None) if request.member_epoch > 0:
                self.heartbeat = request
                return process.machine.settled
            case OffsetCommitRequest():
                self.commit = request
                return process.machine.settled
            case _:
                return False

    def leap(self, from_ms: int, to_ms: int) -> None:
        """The kernel has leapt; heartbeats and commits that were passed over are counted, and the last commit made."""
        process = self.process
        self.last_on_the_way = [(connection, at_ms + to_ms - from_ms) for connection, at_ms in self.last_on_the_way]
        beats_ms, commits_ms = self.shift_ms(to_ms), self.commit_shift_ms(to_ms)
        process.timers.leap(to_ms, lambda key: commits_ms if key in COMMIT_TIMERS else beats_ms)
        process.machine.leap(beats_ms, commits_ms)
        if self.heartbeat is not None:
            process.world.routine(self.heartbeat, beats_ms // process.machine.heartbeat_interval_ms)
        if not process.reader.streams or not process.reader.rate:
            return
        if process.application.commits_after_processing:
            self.at_leap = process.commit_batches() or self.at_leap
            return
        due_ms = process.machine.auto_commit_at_ms
        if due_ms is not None:
            last_ms = due_ms - process.application.auto_commit_interval_ms
            if process.reader.at_ms < last_ms <= to_ms:
                process.reader.advance(last_ms)
                self.at_leap = process.reader.offsets()
                process.world.committed_at_rest(process, self.at_leap, last_ms)
                if self.commit is not None:
                    process.world.routine(self.commit, commits_ms // process.application.auto_commit_interval_ms)

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


def periods(at_ms: int, period_ms: int, to_ms: int) -> int:
    """By how many whole periods something due at `at_ms` is to be put off to come after `to_ms`."""
    return max(0, (to_ms - at_ms) // period_ms + 1) * period_ms
