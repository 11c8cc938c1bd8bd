"""Applications that commit by themselves: after each batch, and before anything else happens to them.

Why        where a batch ends is worked out when something comes in (process.py), so what they have committed by then is
Start at   HandCommits.before_anything_else
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.sim.records import RECORD
from protocol_v1.effects.member import Commit, Offsets, PollReturned, TopicPartition

if TYPE_CHECKING:
    from harness.sim.process import Process


@dataclass(slots=True, eq=False)
class HandCommits:
    process: Process
    told: dict[TopicPartition, int] = field(default_factory=dict)
    """What it has committed, answered or not: how far it is inside a batch is an estimate."""

    def before_silence(self) -> None:
        """Nothing more will be heard of it for a while. What it did after it had fallen silent nobody heard."""
        process = self.process
        done = {} if process.cut_off or process.paused else self.done_with()
        if done and process.world.commit_late(process, done, process.now_ms):
            process.routine.made_late, process.routine.late_ms = done, process.now_ms

    def before_anything_else(self) -> None:
        process, done = self.process, self.done_with()
        if done and process.machine.in_poll:
            process.tell(PollReturned())
        if done:
            process.tell(Commit(done, sync=False))

    def after_a_batch(self, offsets: Offsets) -> None:
        if self.process.application.commits_after_processing and offsets:
            self.told = dict(offsets)
            self.process.tell(Commit(offsets, sync=False))

    def done_with(self) -> dict[TopicPartition, int]:
        """Everything apart from the batch that is worked on now."""
        process, reader = self.process, self.process.reader
        if not process.application.commits_after_processing or not reader.streams:
            return {}
        now_ms = process.now_ms
        reader.advance(now_ms)
        batch_ms = process.batch_ms()
        under_way = reader.speed * ((now_ms - reader.since_ms) % batch_ms) if batch_ms > 1 and reader.running else 0
        share = -(-under_way // len(reader.streams))
        self.told = {
            tp: max((position - share) // RECORD, reader.streams[tp].committed, self.told.get(tp, 0))
            for tp, position in reader.positions.items()
        }
        return self.told

    def forget_what_is_gone(self) -> None:
        streams = self.process.reader.streams
        self.told = {tp: offset for tp, offset in self.told.items() if tp in streams}
