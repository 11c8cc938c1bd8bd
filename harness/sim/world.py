"""The world of one run: processes, a network, one group's coordinator, topics and records, in virtual time.

Rooms      network.py carries messages, rest.py leaps over idle time, broker.py has the coordinator, process.py a member
Random     one generator, seeded by the run: same scenario, strategy and seed, same facts
Start at   World.run
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from random import Random
from typing import Any

from assignors.model import Topic
from harness.scenario.model import Callbacks, DeleteTopic, MemberSpec, Poison, Rate, Scenario, TopicSpec
from harness.sim.broker import Broker, Coordinator
from harness.sim.kernel import Kernel
from harness.sim.network import Wire
from harness.sim.parts import Machine, options
from harness.sim.process import Process
from harness.sim.records import RECORD, Reader, Records, Stream, per_ms
from harness.sim.rest import Rest
from harness.sim.sizes import offset_commit_bytes
from harness.sim.trace import Fact, Trace, by_topic, offsets_by_topic
from protocol_v1.effects import TimerKey
from protocol_v1.effects.member import MetadataChanged, TopicPartition
from protocol_v1.member import POLL
from protocol_v1.member import Member as ClassicMember
from protocol_v1.messages import Request
from protocol_v1.records import OffsetCommit
from protocol_v2.config import CoordinatorConfig
from protocol_v2.topics import numbered_id

QUIET_MS = 400_000
"""Longer than max.poll.interval.ms and a session by default: by then a group has come to rest."""
FIRST_ID = 1 << 32
"""Of topic ids given here: coordinators number from one the topics that have none."""
BEGIN_AGAIN_MS = 1_000
"""How often a member that owns partitions of a topic under its old id looks whether it has been given the new one."""
ASKS_FOR_MISSING_MS = 1_000
"""How often a client asks for a topic that it subscribes to and that does not exist: retry.backoff.max.ms."""
SAMPLES = 400
"""Points of the lag curve, however long the run is, while nothing happens."""
LOOK_MS = 2_000
"""Points are no further apart than that while something does: what a deploy leaves behind is over in a minute."""
FINER = 50
"""While records wait and nothing happens, points are apart a fiftieth of the time that it has been so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """What a scenario does not say: how long brokers and clients take for what they do."""

    append_ms: int = 2
    """Until a record of the coordinator is durable."""
    heartbeat_look_ms: int = 100
    """A classic Java consumer's heartbeat thread looks at the clock only so often (retry.backoff.ms): every heartbeat
    is late by up to that, and members that began together drift apart."""
    start_ms: int = 0
    """From when a process is started until its consumer polls for the first time, at the least."""
    start_spread_ms: int = 1_000
    """And up to so much longer, drawn for each."""
    restart_failed_ms: int = 10_000
    """A process that ended with an exception is started again after so long, as by a supervisor."""
    metadata_ms: int = 2
    """Beyond the network, until a client has fresh metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What the world does not know: how members and coordinators of the run's strategy are made."""

    member: Callable[[MemberSpec, str, str | None], tuple[Machine, str | None]]
    """A consumer for this member, under this name, and its group.instance.id; the last argument is another strategy
    where a migration gives one."""
    coordinator: Callable[[Mapping[str, Topic]], Coordinator]
    told: Callable[[Mapping[str, Topic]], Mapping[str, Any]]
    """What a coordinator is told of the topics."""
    settings: Callable[[MemberSpec], Mapping[str, Any]]
    stable: Callable[[Coordinator, Sequence[str], int], bool]
    """Whether the group is at rest as far as these members are concerned."""
    knows: Callable[[Coordinator, Machine], bool]
    """Whether this member is in the group as it is now."""
    will_accept: Callable[[Coordinator, Machine], bool]
    """Whether it may commit."""
    session: Callable[[Coordinator, Machine], tuple[TimerKey, int] | None]
    """The timer of this member's session, and how long it lasts from a commit on; None: commits do not put it off."""
    holds: Callable[[Coordinator | None, Machine, TopicPartition], bool]
    """Whether a partition that a member owns is, for the coordinator, one of the topic that has this name now."""
    epoch: Callable[[Coordinator], int]
    """The group's generation or epoch."""
    store: Callable[[Coordinator, Sequence[OffsetCommit]], None]
    """Put committed offsets where the coordinator has them."""


class World:
    def __init__(
        self,
        scenario: Scenario,
        build: Build,
        seed: int,
        *,
        constants: Constants | None = None,
        watch: Callable[[Fact], None] | None = None,
        leaps: bool = True,
    ) -> None:
        self.scenario = scenario
        self.build = build
        self.constants = constants or Constants()
        self.seed = seed
        self.random = Random(seed)
        self.kernel = Kernel()
        self.trace = Trace(watch)
        self.records = Records()
        self.rest = Rest(self, leaps)
        self.wire = Wire(self)
        self.callbacks: Callbacks = scenario.callbacks
        self.poison: Mapping[TopicPartition, Sequence[Poison]] = {
            where: [poison for poison in scenario.poison if (poison.topic, poison.partition) == where]
            for where in {(poison.topic, poison.partition) for poison in scenario.poison}
        }
        self.topics: dict[str, Topic] = {}
        self.specs: dict[str, TopicSpec] = {}
        """Also of topics that are gone."""
        self.created_again: dict[str, int] = {}
        """Topics of a name that another had before, and since when."""
        self.ids_given = 0
        self.processes: dict[str, Process] = {}
        """Those that live, by name."""
        self.members = {spec.name: spec for spec in scenario.members}
        self.strategies: dict[str, str] = {}
        """Members that a migration has brought to another strategy."""
        self.deployed: dict[str, str] = {}
        self.scalings: Counter[str] = Counter()
        self.broker = Broker(
            self.kernel,
            self.trace,
            lambda: build.coordinator(self.topics),
            self.wire.answer,
            append_ms=self.constants.append_ms,
            disturbed=self.disturbed,
            epoch=build.epoch,
            committed=self.committed,
            store=build.store,
            heard_meanwhile=self.heard_meanwhile,
        )
        self.assignment_cpu_s = 0.0
        """Of the leaders; measured, so it is not a part of the trace."""
        self.starts = 0
        """Processes, again and again."""
        self.subscribed: dict[str, tuple[frozenset[str], str | None]] = {}
        """By member, the names and the pattern."""
        self.wanted: list[str] = []
        self.removed: set[int] = set()
        self.starting: dict[str, int] = {}
        self.timeline_over_ms = 0
        """When the timeline, or a step of it, last did something."""
        self.held_up_until_ms = 0
        """When an application is through with what takes it longer than its timeouts allow."""
        self.sample_every_ms = max(1, scenario.duration_ms // SAMPLES)
        self.look_every_ms = min(self.sample_every_ms, LOOK_MS)
        self.until_ms = scenario.duration_ms
        self.next_sample_ms = 0

    # The run

    def prepare(self) -> None:
        self.trace.tell(0, "wanted", topics=self.wanted)  # until somebody subscribes
        for spec in self.scenario.topics:
            self.create_topic(spec)
        self.broker.start()

    def run(self, until_ms: int) -> None:
        """In slices between the points of the lag curve, because what a reader has done is only known up to now."""
        self.rest.plan_check(self.rest.window_ms)
        self.until_ms = until_ms
        while self.kernel.now_ms < until_ms:
            self.kernel.run(min(self.next_sample_ms, until_ms))
            self.sample(self.kernel.now_ms)

    def finish(self) -> None:
        """What is still going on is written down; `quiet` tells whether there was time to come to rest."""
        last_ms = max(self.timeline_over_ms, self.held_up_until_ms)
        settling_ms = self.settling_ms()
        quiet = settling_ms is not None and self.kernel.now_ms - last_ms >= settling_ms
        subscribed = {
            topic
            for process in self.processes.values()
            if not process.paused and not process.cut_off and not process.stopping
            for topic in process.machine.subscribed_topics
        }
        unread = [tp for tp, stream in self.records.streams.items() if not stream.readers and tp[0] in subscribed]
        for process in self.processes.values():
            process.hand_commits.before_silence()
        self.trace.tell(self.kernel.now_ms, "end", quiet=quiet, unread=by_topic(unread))
        for process in list(self.processes.values()):
            process.stop_reading(list(process.reader.streams))
        requests = self.broker.requests
        self.trace.tell(
            self.kernel.now_ms,
            "requests",
            count=dict(sorted(requests.count.items())),
            bytes=dict(sorted(requests.bytes.items())),
        )

    def wants(self, name: str, topics: Sequence[str], pattern: str | None) -> None:
        """What a process subscribes to, or the one that has its place after a surge: it is wanted beyond its end."""
        self.subscribed[name.partition("~")[0]] = (frozenset(topics), pattern)
        self.tell_wanted()

    def tell_wanted(self) -> None:
        subscribed = set(self.subscribed.values())
        wanted = [
            topic
            for topic in sorted(self.topics)
            if any(topic in names or (pattern and re.fullmatch(pattern, topic)) for names, pattern in subscribed)
        ]
        if wanted != self.wanted:
            self.wanted = wanted
            self.trace.tell(self.kernel.now_ms, "wanted", topics=wanted)

    def settling_ms(self) -> int | None:
        """How long a group may take to come to rest after the last trouble: somebody's silence is noticed, others are
        waited for, and clients hear of new partitions, each over the slowest of networks. None: it may never do, where
        messages are lost, or take longer than anybody waits for them."""
        scenario, applications = self.scenario, [options(self.build.settings(one)) for one in self.members.values()]
        message_ms = scenario.network.latency_ms + scenario.network.jitter_ms + self.constants.append_ms
        if scenario.network.loss or any(one.max_poll_interval_ms < 10 * message_ms for one in applications):
            return None
        brokers_ms = CoordinatorConfig().group_consumer_session_timeout_ms
        brokers_ms = int(scenario.broker.get("group.consumer.session.timeout.ms", brokers_ms))
        session_ms = max([brokers_ms, *(one.session_timeout_ms for one in applications)])
        poll_ms = max([one.max_poll_interval_ms for one in applications], default=0)
        if any(isinstance(event, DeleteTopic) for event in scenario.timeline):
            poll_ms *= 2  # an eager leader waits so long for its commit, and then the others do for theirs
        waits_ms = max(session_ms + poll_ms, scenario.metadata_max_age_ms)
        return max(QUIET_MS, 50_000 + waits_ms + 100 * message_ms)

    # Topics and records

    def create_topic(self, spec: TopicSpec) -> None:
        again = spec.name in self.specs
        self.specs[spec.name] = spec
        topic_id = self.new_topic_id() if again else None
        self.topics[spec.name] = Topic(spec.partitions, racks=spec.racks, id=topic_id)
        self.trace.tell(self.kernel.now_ms, "topic", topic=spec.name, partitions=spec.partitions)
        self.tell_wanted()
        for index in range(spec.partitions):
            self.records.add((spec.name, index), self.rate_of(spec, index, self.kernel.now_ms), self.kernel.now_ms)
        for at_ms, _ in spec.rate.steps:
            if at_ms > self.kernel.now_ms:
                self.kernel.at(at_ms, self.change_rates, spec.name)
        if again:
            self.topic_is_another(spec.name)

    def new_topic_id(self) -> str:
        """Of a topic whose name another had; the others can be told by their names."""
        self.ids_given += 1
        return numbered_id(FIRST_ID + self.ids_given)

    def topic_is_another(self, name: str) -> None:
        """What members read, and have not committed, was of the topic that had this name before."""
        self.created_again[name] = self.kernel.now_ms
        for process in self.processes.values():
            process.of_old_topics |= {tp for tp in process.machine.owned if tp[0] == name}
            process.starts = {tp: offset for tp, offset in process.starts.items() if tp[0] != name}
        self.old_owners_begin_again(name)

    def old_owners_begin_again(self, name: str) -> None:
        """After a fetch that fails, and one that asks where the new topic begins."""
        for process in self.processes.values():
            if any(tp[0] == name for tp in process.of_old_topics):
                self.kernel.after(2 * self.fetch_ms(), self.begin_again, process)

    def begin_again(self, process: Process) -> None:
        """Who owns partitions by their old name finds its position out of range, and resets it; but not in close(), nor
        if somebody else has them by now: a KIP-848 coordinator tells topics by their ids, and gives out the new one."""
        left = sorted(process.of_old_topics & process.machine.owned & self.records.streams.keys())
        if not left or not process.alive or process.closing or id(process) in self.removed:
            return
        held = [tp for tp in left if self.build.holds(self.broker.coordinator, process.machine, tp)]
        process.starts |= {tp: self.records.streams[tp].committed for tp in held}
        process.read_what_is_fetchable()
        self.kernel.after(BEGIN_AGAIN_MS, self.begin_again, process)

    def rate_of(self, spec: TopicSpec, index: int, now_ms: int) -> int:
        total = rate_at(spec.rate, now_ms)
        if spec.weights is None or index >= len(spec.weights):
            return per_ms(total / self.topics[spec.name].partitions)
        return per_ms(total * spec.weights[index])

    def change_rates(self, name: str) -> None:
        if name not in self.topics:
            return
        now_ms = self.kernel.now_ms
        for process in self.processes.values():
            process.reader.advance(now_ms)
        for index in range(self.topics[name].partitions):
            stream = self.records.streams[name, index]
            self.records.set_rate(stream, self.rate_of(self.specs[name], index, now_ms), now_ms)
        for process in self.processes.values():
            process.reader.rates_changed(now_ms)

    def grow_topic(self, name: str, partitions: int) -> None:
        now_ms, before = self.kernel.now_ms, self.topics[name]
        self.topics[name] = Topic(partitions, racks=grown_racks(before, partitions), id=before.id)
        self.trace.tell(now_ms, "topic", topic=name, partitions=partitions)
        for index in range(before.partitions, partitions):
            self.records.add((name, index), 0, now_ms)
        self.old_owners_begin_again(name)
        self.change_rates(name)
        self.topics_changed()

    def delete_topic(self, name: str) -> None:
        self.broker.flush()
        partitions = [(name, index) for index in range(self.topics.pop(name).partitions)]
        readers = []
        for process in list(self.processes.values()):
            if not process.reader.streams.keys().isdisjoint(partitions):
                readers.append(process)
                process.stop_reading([tp for tp in partitions if tp in process.reader.streams])
        for tp in partitions:
            self.records.remove(tp)
        self.trace.tell(self.kernel.now_ms, "topic", topic=name, partitions=0)
        self.tell_wanted()
        for process in readers:
            self.kernel.after(self.fetch_ms(), self.metadata_for, process)  # because its next fetch fails
        self.topics_changed()
        self.broker.log.forget(name)

    @property
    def deleted(self) -> Set[str]:
        return self.specs.keys() - self.topics.keys()

    def topics_changed(self) -> None:
        """The coordinator knows at once; each client with its next refresh of the metadata."""
        self.broker.update_topics(self.build.told(self.topics))
        for process in self.processes.values():
            self.kernel.after(self.refresh_due_ms(process, self.scenario.metadata_max_age_ms), self.refresh, process)

    def refresh_due_ms(self, process: Process, every_ms: int) -> int:
        """Every fetch of metadata begins the age anew, so when the next one is due has no pattern."""
        phase_ms = Random(f"{self.seed} {process.name} {process.started_ms}").randrange(every_ms)
        return every_ms - (self.kernel.now_ms + phase_ms) % every_ms

    def topic_was_missing(self, name: str) -> None:
        """A client that subscribes to it by name has asked for it all the time."""
        for process in self.processes.values():
            if name in process.machine.subscribed_topics:
                self.kernel.after(self.refresh_due_ms(process, ASKS_FOR_MISSING_MS), self.metadata_for, process)

    def refresh(self, process: Process) -> None:
        self.disturbed()
        process.deliver(MetadataChanged(dict(self.topics)))

    def metadata_for(self, process: Process) -> None:
        self.disturbed()
        self.kernel.after(2 * self.wire.latency_ms() + self.constants.metadata_ms, self.refresh, process)

    def fetch_ms(self) -> int:
        """What a fetch takes at the most; a heartbeat that is sent beside it has been answered by then."""
        network = self.scenario.network
        return 2 * (network.latency_ms + network.jitter_ms) + self.constants.append_ms

    def round_trip_ms(self) -> int:
        """From a commit to its answer, as a rule."""
        network = self.scenario.network
        return 2 * network.latency_ms + network.jitter_ms + self.constants.append_ms

    # Processes

    def start(self, name: str, spec: MemberSpec | None = None) -> None:
        spec = spec or self.members[name]
        self.members[name] = spec
        settings = self.build.settings(spec)
        machine, instance_id = self.build.member(spec, name, self.strategies.get(name))
        now_ms = self.kernel.now_ms
        process = self.processes[name] = Process(name, spec, machine, options(settings), self, now_ms, instance_id)
        process.has_background = not isinstance(machine, ClassicMember)
        if not process.has_background:
            process.routine.look_ms = self.constants.heartbeat_look_ms
            process.routine.commits_key = POLL
        self.starts += 1
        self.disturbed()
        self.wants(name, spec.topics, spec.pattern)
        process.start(dict(self.topics))

    def start_delay_ms(self) -> int:
        return self.constants.start_ms + self.random.randint(0, self.constants.start_spread_ms)

    def send(self, process: Process, request: Request) -> None:
        self.wire.send(process, request)

    def ended(self, process: Process) -> None:
        self.disturbed()
        if self.processes.get(process.name) is process:
            del self.processes[process.name]

    def failed(self, process: Process) -> None:
        """Who waits to be started again is about to start, and not missing: nobody else starts it meanwhile.

        Who was stopping anyway stays down, or comes up when its restart says so.
        """
        if process.stopping:
            return
        self.starting[process.name] = at_ms = self.kernel.now_ms + self.constants.restart_failed_ms
        self.kernel.at(at_ms, self.supervise, process.name, at_ms)

    def supervise(self, name: str, at_ms: int) -> None:
        if self.starting.get(name) == at_ms:
            del self.starting[name]
            if name not in self.processes:
                self.start(name)

    def commit_late(self, process: Process, offsets: Mapping[TopicPartition, int], at_ms: int) -> bool:
        """A commit that was not worth an event of its own; nobody hears the answer. Whether it was accepted."""
        if self.broker.coordinator is None:
            return False
        request = process.commit_of(offsets)
        accepted = self.broker.receive_late(request, at_ms)
        if accepted:
            self.broker.requests.add(request)
        return accepted

    def committed(self, name: str, offsets: Mapping[TopicPartition, int], at_ms: int) -> None:
        streams = self.records.streams
        for tp, offset in offsets.items():
            stream = streams.get(tp)
            if stream is not None:
                stream.committed = offset
        if self.trace.is_watched:
            partitions, committed = offsets_by_topic(offsets)
            self.trace.whisper(at_ms, "durable", member=name, partitions=partitions, offsets=committed)

    def heard_meanwhile(self, key: TimerKey) -> bool:
        """Whether a session that seems to be over goes on, because of a commit that was not worth an event."""
        for process in self.processes.values():
            if process.machine.member_id == key[-1]:
                process.hand_commits.before_silence()
                return self.broker.timers.runs(key)
        return False

    def will_accept(self, process: Process) -> bool:
        """A commit of this process, if it is sent now: it will not be lost, nor refused."""
        coordinator = self.broker.coordinator
        return (
            self.rest.allowed
            and coordinator is not None
            and not self.scenario.network.loss
            and self.build.will_accept(coordinator, process.machine)
        )

    def committed_at_rest(
        self, process: Process, offsets: Mapping[TopicPartition, int], at_ms: int, times: int = 1
    ) -> None:
        """The last of so many, all of the same partitions."""
        self.broker.store(process.name, offsets, at_ms)
        coordinator = self.broker.coordinator
        session = self.build.session(coordinator, process.machine) if coordinator is not None else None
        if session is not None:
            key, lasts_ms = session
            self.broker.timers.put_off(key, at_ms + lasts_ms)
        self.broker.requests.add_sized(
            "OffsetCommit", offset_commit_bytes(process.name, process.machine.member_id, offsets), times
        )

    def routine(self, request: Request, times: int) -> None:
        self.broker.requests.add(request, times)

    def about_to_read(self, process: Process, partitions: Sequence[TopicPartition]) -> bool:
        """Say who else reads them without being in the group any more. False: it is this one that has been removed, and
        heard where to begin before it heard of that; anybody may ask for the offsets of a classic group."""
        self.removed.discard(id(process))
        coordinator = self.broker.coordinator
        if coordinator is None or not any(self.records.streams[tp].readers for tp in partitions):
            return True
        for other in self.processes.values():
            if other is process or id(other) in self.removed or other.reader.streams.keys().isdisjoint(partitions):
                continue
            if not self.build.knows(coordinator, other.machine):
                self.removed.add(id(other))
                self.trace.tell(self.kernel.now_ms, "removed", member=other.name)
        return self.build.knows(coordinator, process.machine)

    # The coordinator's broker

    def fail_over(self, down_ms: int) -> None:
        for process in self.processes.values():
            process.hand_commits.before_silence()
        self.broker.die()
        self.wire.parked.clear()
        self.trace.tell(self.kernel.now_ms, "coordinator", **{"is": "down"})
        for process in list(self.processes.values()):
            process.lose_connection()
        self.kernel.after(down_ms, self.come_back)

    def come_back(self) -> None:
        self.broker.start()
        self.disturbed()
        self.trace.tell(self.kernel.now_ms, "coordinator", **{"is": "up"})

    def isolate(self, name: str, for_ms: int) -> None:
        process = self.processes[name]
        self.wire.cut_off(process)
        self.kernel.after(for_ms, self.wire.reconnect, process)

    def disturbed(self) -> None:
        self.rest.disturbed_at_ms = self.kernel.now_ms

    # Looking

    def lag_records(self) -> float:
        return self.lag(self.kernel.now_ms, self.behind()) / RECORD

    def behind(self) -> list[Reader]:
        """Readers that are not where the writers are, or will not be for long."""
        return [process.reader for process in self.processes.values() if not process.reader.keeps_up]

    def unwanted(self) -> list[Stream]:
        """Partitions of topics that nobody subscribes to: what is written there waits for nobody."""
        if len(self.wanted) == len(self.topics):
            return []
        return [stream for (topic, _), stream in self.records.streams.items() if topic not in self.wanted]

    def lag(self, now_ms: int, behind: Sequence[Reader]) -> int:
        lag = self.records.waiting(now_ms) + sum([reader.lag_at(now_ms) for reader in behind])
        lag -= sum([stream.written(now_ms) - stream.read for stream in self.unwanted() if not stream.readers])
        for tp, stream in self.records.shared.items():
            # By somebody who has not heard that it is out: records wait for whoever is further.
            readers = [process.reader for process in self.processes.values() if tp in process.reader.streams]
            lags = [reader.lag_of(stream, now_ms) for reader in readers]
            lag -= sum(lags) - min(lags, default=0)
        return lag

    def sample_leap(self, to_ms: int) -> None:
        """The points until before then, where a leap ends: fewer, as nothing happens, and soon again after it."""
        self.sample(to_ms - 1, leaping=True)
        self.next_sample_ms = min(self.next_sample_ms, to_ms + self.look_every_ms)

    def sample(self, until_ms: int, *, leaping: bool = False) -> None:
        """The points of the lag curve up to then; nothing has changed since the last event."""
        if self.next_sample_ms > until_ms:
            return
        rates = [process.reader.rate for process in self.processes.values()]
        skew = round(max(rates) * len(rates) / sum(rates), 3) if any(rates) else 0
        wanted_rate = self.records.rate - sum([stream.rate for stream in self.unwanted()])
        rate, behind = round(wanted_rate * 1_000 / RECORD), self.behind()
        since_ms = self.next_sample_ms
        while self.next_sample_ms <= until_ms:
            at_ms = self.next_sample_ms
            records = self.lag(at_ms, behind) // RECORD
            self.trace.tell(at_ms, "lag", records=records, rate=rate, skew=skew)
            if not leaping:
                self.next_sample_ms += self.look_every_ms
            elif records or behind:
                seldom_ms = (at_ms - since_ms) // FINER
                self.next_sample_ms += min(self.sample_every_ms, max(self.look_every_ms, seldom_ms))
            else:
                self.next_sample_ms += self.sample_every_ms


def rate_at(rate: Rate, now_ms: int) -> float:
    return next(value for at_ms, value in reversed(rate.steps) if at_ms <= now_ms)


def grown_racks(topic: Topic, partitions: int) -> tuple[tuple[str, ...], ...] | None:
    """New partitions continue the pattern of the old ones."""
    if topic.racks is None:
        return None
    racks = tuple(topic.racks)
    return tuple(tuple(racks[index % len(racks)]) for index in range(partitions))
