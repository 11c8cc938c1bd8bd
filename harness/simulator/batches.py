"""Run the batches that are events of their own: slow ones, which can outlast max.poll.interval.ms, and poisoned
records.

Others     end when a message comes in and asks where the application is (consumer_process.py)
Start at   Batches.go_on
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isqrt
from typing import TYPE_CHECKING

from rebalance_lab.harness.scenario.model import Poison
from rebalance_lab.harness.simulator.record_flow import RECORD
from rebalance_lab.protocol_v1.common.member_effects import TopicPartition

if TYPE_CHECKING:
    from rebalance_lab.harness.simulator.consumer_process import Process

LOOK_AGAIN_MS = 1_000


@dataclass(slots=True, eq=False)
class Batches:
    process: Process
    ahead: list[tuple[TopicPartition, Poison]] = field(default_factory=list)
    """Poisoned records that this process will come to."""
    fetched: int | None = None
    """What the fetch that was sent with the last slow batch has brought: Java's consumer asks for more when it returns
    records, is answered at once with what waits by then, and the next poll() has that, and not what came since."""

    def go_on(self) -> None:
        """Plan the next thing that is an event of its own: a slow batch, or a poisoned record."""
        process = self.process
        if not process.alive or process.busy or process.in_callback or not process.reader.streams:
            return
        if process.paused or process.cut_off:
            return  # until it fetches again
        process.reader.advance(process.now_ms)
        due = [self.poisoned_ms(tp, poison) for tp, poison in self.ahead]
        if self.is_slow(process.application.max_poll_records):
            due.append(self.next_batch_ms())
        if due:
            process.turn += 1
            process.world.kernel.at(min(due), self.look_at_batch, process.turn)

    def is_slow(self, records: int) -> bool:
        process = self.process
        return records * process.record_ms * 2 >= process.application.max_poll_interval_ms

    def next_is_slow(self) -> bool:
        """Tell whether poll() would return a slow batch at once, with the records that wait by now."""
        return self.process.reader.lag >= RECORD and self.is_slow(self.batch())

    def batch(self) -> int:
        """Return how many records the next poll() returns. Who falls behind gets what was written during the batch
        before last, so each is the square root of rate and speed times the last, and the next has been fetched.
        """
        process, reader = self.process, self.process.reader
        waiting = reader.lag // RECORD
        if self.fetched is not None:
            waiting = min(waiting, self.fetched)
        elif reader.rate > reader.speed:
            waiting = waiting * 1_000 // (1_000 + isqrt(1_000_000 * reader.rate // reader.speed))
        return min(max(waiting, 1), process.application.max_poll_records)

    def next_batch_ms(self) -> int:
        """Return when there is a record to work on."""
        process = self.process
        missing = RECORD - process.reader.lag
        if missing <= 0:
            return process.now_ms
        return process.now_ms + (-(-missing // process.reader.rate) if process.reader.rate else LOOK_AGAIN_MS)

    def poisoned_ms(self, tp: TopicPartition, poison: Poison) -> int:
        """Return when the poisoned record is reached at the earliest, if this process goes on as now."""
        process = self.process
        stream, place = process.reader.streams[tp], poison.offset * RECORD
        if process.reader.lag:
            wait_ms = (place - process.reader.positions[tp]) // process.reader.speed
        else:
            wait_ms = (place - stream.written(process.now_ms)) // stream.rate if stream.rate else LOOK_AGAIN_MS
        return process.now_ms + max(1, wait_ms)

    def look_at_batch(self, turn: int) -> None:
        process = self.process
        if not process.alive or turn != process.turn or process.busy or not process.machine.in_poll:
            return
        if process.paused or process.cut_off:
            return
        process.reader.advance(process.now_ms)
        stall_ms = self.stall_ms()
        batch = self.batch()
        if stall_ms:
            process.world.trace.tell(
                process.now_ms, "process", member=process.name, **{"is": "stalled", "ms": stall_ms}
            )
            rest_ms = self.rest_of_batch_ms()
            process.stalled = True
            process.read_on()
            process.work_until(process.now_ms + stall_ms + rest_ms)
            if rest_ms:
                process.world.kernel.after(stall_ms, self.get_over_it, process.turn)
        elif self.is_slow(batch):
            self.fetched = process.reader.lag // RECORD - batch
            process.work_until(process.now_ms + int(batch * process.record_ms))
        elif self.ahead or self.is_slow(process.application.max_poll_records):
            self.fetched = None
            process.turn += 1
            process.world.kernel.after(self.patience_ms(), self.look_at_batch, process.turn)

    def rest_of_batch_ms(self) -> int:
        """Return how long the rest of the batch takes, which the application got with the record that holds it up."""
        process, reader = self.process, self.process.reader
        most, waiting = process.application.max_poll_records, reader.lag // RECORD
        done = int((process.now_ms - reader.since_ms) / process.record_ms) if process.record_ms else 0
        return int(min(most - done % most, waiting) * process.record_ms)

    def get_over_it(self, turn: int) -> None:
        process = self.process
        if process.alive and process.busy and turn == process.turn:
            process.stalled = False
            process.read_on()

    def patience_ms(self) -> int:
        """Return how long until there may be a reason to stop; there is none yet."""
        process = self.process
        due = [self.poisoned_ms(tp, poison) - process.now_ms for tp, poison in self.ahead]
        if self.is_slow(process.application.max_poll_records):
            due.append(LOOK_AGAIN_MS)
        return max(1, min(due))

    def stall_ms(self) -> int:
        """Return how long the poisoned records stall that have just been reached."""
        reached = [one for one in self.ahead if self.process.reader.positions[one[0]] >= one[1].offset * RECORD]
        self.ahead = [one for one in self.ahead if one not in reached]
        return max((poison.stall_ms for _, poison in reached), default=0)
