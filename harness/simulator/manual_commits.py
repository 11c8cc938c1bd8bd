"""Commit for applications that commit by themselves: after each batch, before any other event reaches them.

Why        the end of a batch is computed when a message comes in (consumer_process.py), and so are the commits until
           then
Counted    only the last of those commits is sent, but each of them counts as a request to the coordinator
Start at   HandCommits.before_anything_else
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rebalance_lab.harness.simulator.record_flow import RECORD
from rebalance_lab.protocol_v1.common.member_effects import Commit, Offsets, PollReturned, TopicPartition

if TYPE_CHECKING:
    from rebalance_lab.harness.simulator.consumer_process import Process


@dataclass(slots=True, eq=False)
class HandCommits:
    process: Process
    told: dict[TopicPartition, int] = field(default_factory=dict)
    """What it has committed, answered or not: how far it is inside a batch is an estimate."""

    def before_silence(self) -> None:
        """Commit before the process falls silent. No broker hears of work after that. What the process asked of a
        consumer without a coordinator waits there, behind all that it asked before.
        """
        process = self.process
        silent = process.cut_off or process.paused or not process.machine.sends_commits
        done, earlier = ({}, 0) if silent else self.done_with()
        if done and process.world.commit_late(process, done, process.now_ms):
            process.routine.made_late, process.routine.late_ms = done, process.now_ms
            process.world.routine(process.commit_of(done), earlier)

    def before_anything_else(self) -> None:
        self.commit(*self.done_with())

    def at_the_end_of_a_batch(self) -> None:
        """Commit the whole batch of a process that is busy until now: no record of it is under way."""
        self.commit(*self.done_with(in_a_batch=False))

    def commit(self, done: dict[TopicPartition, int], earlier: int) -> None:
        process = self.process
        if not done:
            return
        if process.machine.in_poll:
            process.tell(PollReturned())
        # Without a coordinator those of a classic member fail, and others wait and are sent later.
        if not process.cut_off and (process.has_background or process.machine.sends_commits):
            process.world.routine(process.commit_of(done), earlier)
        process.tell(Commit(done, sync=False))

    def after_a_batch(self, offsets: Offsets) -> None:
        if self.process.application.commits_after_processing and offsets:
            self.told = dict(offsets)
            self.process.tell(Commit(offsets, sync=False))

    def done_with(self, *, in_a_batch: bool = True) -> tuple[dict[TopicPartition, int], int]:
        """Return all but the batch that is worked on now, and how many batches before the last it took. Where the
        current batch began is an estimate; only a process that has just ended one is not `in_a_batch`.
        """
        process, reader = self.process, self.process.reader
        if not process.application.commits_after_processing or not reader.streams:
            return {}, 0
        now_ms = process.now_ms
        reader.advance(now_ms)
        batch_ms = process.batch_ms()
        is_working = in_a_batch and batch_ms > 1 and reader.running
        under_way = reader.speed * ((now_ms - reader.since_ms) % batch_ms) if is_working else 0
        share = -(-under_way // len(reader.streams))
        told, records = {}, 0
        for tp, position in reader.positions.items():
            before = max(reader.streams[tp].committed, self.told.get(tp, 0))
            told[tp] = max((position - share) // RECORD, before)
            records += told[tp] - before
        if not records:
            return {}, 0  # a poll() that brings nothing is followed by no commit
        self.told = told
        batches, reader.backlog = self.batches_of(records), reader.lag
        return told, max(0, batches - 1)

    def batches_of(self, records: int) -> int:
        """Return how many polls have brought these records. A lagging process gets as many at a time as it may. One
        that keeps up gets what was written while a fetch was on its way, which in a quiet topic is one record (seen
        with Java's consumer).
        """
        process, reader = self.process, self.process.reader
        most = process.application.max_poll_records
        spare = reader.speed - reader.rate
        behind = min(records, reader.backlog * reader.speed // spare // RECORD) if spare > 0 else records
        at_a_time = min(max(reader.rate * process.world.round_trip_ms() // RECORD, 1), most)
        return -(-behind // most) - (behind - records) // at_a_time

    def forget_what_is_gone(self) -> None:
        streams = self.process.reader.streams
        self.told = {tp: offset for tp, offset in self.told.items() if tp in streams}
