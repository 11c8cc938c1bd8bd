"""Keep the topics as they come, grow and go, who subscribes to them, and who has heard of a change.

Written    at the rates of their scenario, into record_flow.py
Heard      the coordinator hears of a change at once, each client with its next metadata. A client that reads a deleted
           topic, or asks for a missing one, hears within moments
Again      a topic that is created under the name of a deleted one is another topic. It has an id of its own, and
           positions in the old topic do not count in it
Start at   Catalogue.create, delete
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import count
from random import Random
from typing import TYPE_CHECKING

from rebalance_lab.assignors.model import Topic
from rebalance_lab.harness.scenario.model import TopicSpec
from rebalance_lab.harness.simulator.consumer_process import Process
from rebalance_lab.harness.simulator.record_flow import Stream, per_ms
from rebalance_lab.harness.timeline.subscription_wishes import SubscriptionWishes
from rebalance_lab.protocol_v1.common.member_effects import MetadataChanged
from rebalance_lab.protocol_v2.common.topic_image import numbered_id

if TYPE_CHECKING:
    from rebalance_lab.harness.simulator.world import World

FIRST_ID = (1 << 32) + 1
"""Of topic ids given here: coordinators number from one the topics that have none."""
BEGIN_AGAIN_MS = 1_000
"""How often a member that owns partitions of a topic under its old id looks whether it has been given the new one."""
ASKS_FOR_MISSING_MS = 1_000
"""How often a client asks for a topic that it subscribes to and that does not exist: retry.backoff.max.ms."""


class Catalogue:
    def __init__(self, world: World) -> None:
        self.world = world
        self.topics: dict[str, Topic] = {}
        self.specs: dict[str, TopicSpec] = {}
        """Also of topics that are gone."""
        self.created_again: dict[str, int] = {}
        """Topics of a name that another had before, and since when."""
        self.ids = count(FIRST_ID)
        self.wishes = SubscriptionWishes(world.replica_names)
        self.wanted: list[str] = []

    def create(self, spec: TopicSpec) -> None:
        """Create a topic while other processes look."""
        self.add(spec)
        self.changed()
        self.was_missing(spec.name)

    def add(self, spec: TopicSpec) -> None:
        world, now_ms, again = self.world, self.world.kernel.now_ms, spec.name in self.specs
        self.specs[spec.name] = spec
        topic_id = numbered_id(next(self.ids)) if again else None  # the others can be told by their names
        loads = self.loads(spec, spec.partitions)
        self.topics[spec.name] = Topic(spec.partitions, racks=spec.racks, load=loads, id=topic_id)
        world.trace.tell(now_ms, "topic", topic=spec.name, partitions=spec.partitions)
        self.tell_wanted()
        for index in range(spec.partitions):
            world.records.add((spec.name, index), self.rate_of(spec, index, now_ms), now_ms)
        for at_ms, _ in spec.rate.steps:
            if at_ms > now_ms:
                world.kernel.at(at_ms, self.change_rates, spec.name)
        if again:
            self.is_another(spec.name)

    def is_another(self, name: str) -> None:
        self.created_again[name] = self.world.kernel.now_ms
        for process in self.world.processes.values():
            process.reading.is_another(name)
        self.old_owners_begin_again(name)

    def old_owners_begin_again(self, name: str) -> None:
        """Let old owners begin again, after a fetch that fails and one that asks where the new topic begins."""
        for process in self.world.processes.values():
            if any(tp[0] == name for tp in process.reading.of_old_topics):
                self.world.kernel.after(2 * self.world.fetch_ms(), self.begin_again, process)

    def begin_again(self, process: Process) -> None:
        """Reset the position of a process that owns partitions by their old name, because it is out of range. Not in
        close(), nor if another process has them by now: a KIP-848 coordinator tells topics by their ids, and gives out
        the new one.
        """
        reading = process.reading
        left = sorted(reading.of_old_topics & process.machine.owned & self.world.records.streams.keys())
        if not left or not process.alive or process.closing or id(process) in self.world.removed:
            return
        held = [tp for tp in left if self.world.build.holds(self.world.broker.coordinator, process.machine, tp)]
        reading.starts |= {tp: self.world.records.streams[tp].committed for tp in held}
        reading.go_by_the_machine()
        self.world.kernel.after(BEGIN_AGAIN_MS, self.begin_again, process)

    def rate_of(self, spec: TopicSpec, index: int, now_ms: int) -> int:
        return per_ms(spec.rate_of(index, self.topics[spec.name].partitions, spec.rate.at(now_ms)))

    def loads(self, spec: TopicSpec, partitions: int) -> tuple[float, ...] | None:
        """Return loads for assignors that ask, as if measured once: records a second when the topic gets so many
        partitions.
        """
        rate = spec.rate.at(self.world.kernel.now_ms)
        return tuple(spec.rate_of(index, partitions, rate) for index in range(partitions)) if rate else None

    def change_rates(self, name: str) -> None:
        if name not in self.topics:
            return
        self.world.sample_bend()
        now_ms = self.world.kernel.now_ms
        for process in self.world.processes.values():
            process.reader.advance(now_ms)
        for index in range(self.topics[name].partitions):
            stream = self.world.records.streams[name, index]
            self.world.records.set_rate(stream, self.rate_of(self.specs[name], index, now_ms), now_ms)
        for process in self.world.processes.values():
            process.reader.rates_changed(now_ms)

    def grow(self, name: str, partitions: int) -> None:
        now_ms, before = self.world.kernel.now_ms, self.topics[name]
        loads = self.loads(self.specs[name], partitions)
        self.topics[name] = Topic(partitions, racks=grown_racks(before, partitions), load=loads, id=before.id)
        self.world.trace.tell(now_ms, "topic", topic=name, partitions=partitions)
        for index in range(before.partitions, partitions):
            self.world.records.add((name, index), 0, now_ms)
        self.old_owners_begin_again(name)
        self.change_rates(name)
        self.changed()

    def delete(self, name: str) -> None:
        self.world.broker.flush()
        partitions = [(name, index) for index in range(self.topics.pop(name).partitions)]
        readers = []
        for process in list(self.world.processes.values()):
            if not process.reader.streams.keys().isdisjoint(partitions):
                readers.append(process)
                process.reading.stop([tp for tp in partitions if tp in process.reader.streams])
        for tp in partitions:
            self.world.records.remove(tp)
        self.world.trace.tell(self.world.kernel.now_ms, "topic", topic=name, partitions=0)
        self.tell_wanted()
        for process in readers:
            self.world.kernel.after(self.world.fetch_ms(), self.metadata_for, process)  # because its next fetch fails
        self.changed()
        self.world.broker.log.forget(name)

    @property
    def deleted(self) -> Set[str]:
        return self.specs.keys() - self.topics.keys()

    def changed(self) -> None:
        """Tell the coordinator at once; each client hears with its next refresh of the metadata."""
        self.world.broker.update_topics(self.world.build.told(self.topics))
        for process in self.world.processes.values():
            self.world.kernel.after(
                self.refresh_due_ms(process, self.world.scenario.metadata_max_age_ms), self.refresh, process
            )

    def refresh_due_ms(self, process: Process, every_ms: int) -> int:
        """Return when the next refresh is due. Every fetch of metadata begins the age anew, so that has no pattern. An
        age of 0 is over with every poll, of which virtual time has one a millisecond at the most.
        """
        every_ms = max(every_ms, 1)
        phase_ms = Random(f"{self.world.seed} {process.name} {process.started_ms}").randrange(every_ms)
        return every_ms - (self.world.kernel.now_ms + phase_ms) % every_ms

    def was_missing(self, name: str) -> None:
        """Schedule a refresh for clients that missed the topic. A client that subscribes to it by name has asked for it
        all the time, and so has a leader for the others.
        """
        for process in self.world.processes.values():
            if name in process.machine.asked_topics:
                self.world.kernel.after(self.refresh_due_ms(process, ASKS_FOR_MISSING_MS), self.metadata_for, process)

    def refresh(self, process: Process) -> None:
        self.world.disturbed()
        process.deliver(MetadataChanged(dict(self.topics)))

    def metadata_for(self, process: Process) -> None:
        self.world.disturbed()
        self.world.kernel.after(
            2 * self.world.wire.latency_ms() + self.world.constants.metadata_ms, self.refresh, process
        )

    def wants(self, name: str, topics: Sequence[str], pattern: str | None) -> None:
        self.wishes.note(name, topics, pattern)
        self.tell_wanted()

    def tell_wanted(self) -> None:
        wanted = self.wishes.of_all(self.topics)
        if wanted != self.wanted:
            self.wanted = wanted
            self.world.trace.tell(self.world.kernel.now_ms, "wanted", topics=wanted)

    def unwanted(self) -> list[Stream]:
        """Return partitions of topics without a subscriber: records written there count as no lag."""
        if len(self.wanted) == len(self.topics):
            return []
        return [stream for (topic, _), stream in self.world.records.streams.items() if topic not in self.wanted]


def grown_racks(topic: Topic, partitions: int) -> tuple[tuple[str, ...], ...] | None:
    """Continue the pattern of the old partitions' racks for the new ones."""
    if topic.racks is None:
        return None
    racks = tuple(topic.racks)
    return tuple(tuple(racks[index % len(racks)]) for index in range(partitions))
