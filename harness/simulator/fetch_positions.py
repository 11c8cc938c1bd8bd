"""Track which partitions a process reads, and from where: partitions that are fetchable and whose start is known.

Start      the committed offset; without one, or out of range, the beginning (auto.offset.reset=earliest)
Old        a topic may be created again under the name of one that was deleted. Positions of the old topic are neither
           committed nor continued
Speed      Reader (record_flow.py) says how fast a process reads, and consumer_process.py when it does not read
Start at   Reading.go_by_the_machine
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rebalance_lab.harness.measure.trace import offsets_by_topic
from rebalance_lab.harness.simulator.record_flow import RECORD
from rebalance_lab.protocol_v1.common.member_effects import Offsets, Poll, TopicPartition

if TYPE_CHECKING:
    from rebalance_lab.harness.simulator.consumer_process import Process


@dataclass(slots=True, eq=False)
class Reading:
    process: Process
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    """Where to begin with partitions whose committed offset is known and that are not read yet."""
    of_old_topics: set[TopicPartition] = field(default_factory=set)
    """Owned when another topic was created under their name: until it reads that one, its positions are of the old."""
    fetchable: frozenset[TopicPartition] = frozenset()
    """As last seen: what is read is a part of it."""

    def begin(self, offsets: Offsets) -> None:
        """Begin once committed offsets are known, or that there is none."""
        process = self.process
        if not process.alive:
            return
        # A KIP-848 member may ask twice, if a callback keeps it from the first answer: what is read by now goes on.
        streams = process.reader.streams
        read = self.of_old_topics.union(streams) if self.of_old_topics else streams
        starts = {tp: max(offset, 0) for tp, offset in offsets.items() if tp not in read}
        self.starts |= starts
        # Of offsets that were committed the machine knows; that nothing was, it leaves to the application's reset.
        polls = process.machine.in_poll and not process.paused and not process.in_callback
        if polls and min(offsets.values(), default=0) < 0:
            process.tell(Poll(starts))
        self.go_by_the_machine()

    def go_by_the_machine(self) -> None:
        process = self.process
        if not process.alive:
            return
        fetchable = process.machine.fetchable
        if fetchable is not self.fetchable and not process.busy:  # a batch that it has is worked on to its end
            self.fetchable = fetchable
            self.of_old_topics &= process.machine.owned
            read = process.reader.streams
            if not read.keys() <= fetchable:
                self.remember_what_is_unsubscribed(self.stop([tp for tp in read if tp not in fetchable]))
        if self.starts and not process.closing:
            owned = process.machine.owned
            self.starts = {tp: offset for tp, offset in self.starts.items() if tp in owned}
            read, streams = process.reader.streams, process.world.records.streams
            new = sorted(tp for tp in self.starts if tp in fetchable and tp not in read and tp in streams)
            if new:
                self.start(new)

    def start(self, new: Sequence[TopicPartition]) -> None:
        process, world, now_ms = self.process, self.process.world, self.process.now_ms
        is_member = world.about_to_read(process, new)
        offsets = {tp: self.starts.pop(tp) for tp in new}
        self.reset_what_is_out_of_range(offsets)
        process.reader.start([(world.records.streams[tp], offset) for tp, offset in offsets.items()], now_ms)
        process.batches.ahead += [
            (tp, poison) for tp in new for poison in world.poison.get(tp, ()) if poison.offset >= offsets[tp]
        ]
        partitions, start = offsets_by_topic(offsets)
        removed = {} if is_member else {"removed": True}
        world.trace.tell(now_ms, "reads", member=process.name, partitions=partitions, **{"from": start}, **removed)
        process.batches.go_on()

    def stop(self, gone: Sequence[TopicPartition]) -> Offsets:
        """Stop reading these partitions, and return how far the process was."""
        if not gone:
            return {}
        process, reader, now_ms = self.process, self.process.reader, self.process.now_ms
        process.world.sample_bend()
        reader.advance(now_ms)
        offsets = reader.offsets()
        stopped = {tp: offsets[tp] for tp in gone}
        partitions, reached = offsets_by_topic(stopped)
        reader.stop(gone, now_ms)
        process.batches.ahead = [one for one in process.batches.ahead if one[0] in reader.streams]
        process.batches.fetched = None
        process.hand_commits.forget_what_is_gone()
        process.world.trace.tell(now_ms, "stops", member=process.name, partitions=partitions, at=reached)
        return stopped

    def stop_all(self) -> Offsets:
        return self.stop(list(self.process.reader.streams))

    def remember_what_is_unsubscribed(self, reached: Offsets) -> None:
        """Remember positions of unsubscribed partitions, owned until the next rebalance: a process that subscribes
        again before that reads on there.
        """
        machine = self.process.machine
        owned, subscribed = machine.owned, machine.subscribed_topics
        self.starts |= {tp: at for tp, at in reached.items() if tp[0] not in subscribed and tp in owned}

    def reset_what_is_out_of_range(self, offsets: dict[TopicPartition, int]) -> None:
        """Reset to the beginning what is beyond the end: it comes from a topic that was deleted."""
        streams, now_ms = self.process.world.records.streams, self.process.now_ms
        beyond = {tp: 0 for tp, offset in offsets.items() if offset * RECORD > streams[tp].written(now_ms)}
        offsets |= beyond
        again = self.of_old_topics.intersection(offsets)
        self.of_old_topics -= again
        if beyond or again:
            self.process.machine.note({tp: offsets[tp] for tp in {*beyond, *again}})

    def is_another(self, topic: str) -> None:
        """Note that what the process has read, and not committed, was of the topic that had this name before."""
        self.of_old_topics |= {tp for tp in self.process.machine.owned if tp[0] == topic}
        self.starts = {tp: offset for tp, offset in self.starts.items() if tp[0] != topic}
