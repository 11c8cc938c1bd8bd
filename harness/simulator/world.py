"""Hold the world of one run: processes, a network, one group's coordinator, topics and records, in virtual time.

Parts      topic_catalogue.py has the topics, network.py carries messages, rest.py leaps over idle time, broker.py has
           the coordinator, consumer_process.py a member
Random     one generator, seeded by the run: same scenario, strategy and seed, same facts
Start at   World.run
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from rebalance_lab.assignors.model import Topic
from rebalance_lab.harness.measure.lag_curve import SAMPLES
from rebalance_lab.harness.measure.trace import Fact, Trace, by_topic, offsets_by_topic
from rebalance_lab.harness.scenario.application import Application
from rebalance_lab.harness.scenario.constants import Constants
from rebalance_lab.harness.scenario.model import Callbacks, DeleteTopic, MemberSpec, Poison, Scenario, TopicSpec
from rebalance_lab.harness.simulator.broker import Broker, Coordinator
from rebalance_lab.harness.simulator.consumer_process import Process
from rebalance_lab.harness.simulator.kernel import Kernel
from rebalance_lab.harness.simulator.network import Wire
from rebalance_lab.harness.simulator.record_flow import RECORD, Reader, Records
from rebalance_lab.harness.simulator.request_sizes import offset_commit_bytes
from rebalance_lab.harness.simulator.rest import Rest
from rebalance_lab.harness.simulator.surroundings import GROUP, Machine
from rebalance_lab.harness.simulator.topic_catalogue import Catalogue
from rebalance_lab.harness.timeline.lifecycle import Lasting, start_now
from rebalance_lab.harness.timeline.replica_names import ReplicaNames
from rebalance_lab.harness.timeline.subscription_wishes import SubscriptionWishes
from rebalance_lab.protocol_v1.common.effects import TimerKey
from rebalance_lab.protocol_v1.common.member_effects import TopicPartition
from rebalance_lab.protocol_v1.common.messages import Request
from rebalance_lab.protocol_v1.coordinator import config as v1_config
from rebalance_lab.protocol_v1.coordinator.state.records import OffsetCommit
from rebalance_lab.protocol_v1.member.member import POLL
from rebalance_lab.protocol_v1.member.member import Member as ClassicMember
from rebalance_lab.protocol_v2.coordinator.config import CoordinatorConfig

QUIET_MS = 400_000
"""Longer than max.poll.interval.ms and a session by default: by then a group has come to rest."""
LOOK_MS = 2_000
"""Points are no further apart than that while something does: what a deploy leaves behind is over in a minute."""
MOMENT_MS = 10
"""The curve is sampled where it bends, unless it was sampled a moment ago, and again a moment later."""
FINER = 50
"""While records wait and nothing happens, points are apart a fiftieth of the time that it has been so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Make what the world does not know: the members and coordinators of the run's strategy."""

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
        messages: bool = False,
        leaps: bool = True,
    ) -> None:
        self.scenario = scenario
        self.build = build
        self.constants = constants or Constants()
        self.seed = seed
        self.random = Random(seed)
        self.kernel = Kernel()
        self.trace = Trace(watch, messages=messages)
        self.records = Records()
        self.rest = Rest(self, leaps)
        broker = v1_config.CoordinatorConfig.from_properties(
            {name: value for name, value in scenario.broker.items() if name in v1_config.PROPERTIES}
        )
        self.retention_ms = broker.offsets_retention_minutes * 60_000
        self.check_offsets_every_ms = broker.offsets_retention_check_interval_ms
        self.wire = Wire(self)
        self.callbacks: Callbacks = scenario.callbacks
        self.poison: Mapping[TopicPartition, Sequence[Poison]] = {
            where: [poison for poison in scenario.poison if (poison.topic, poison.partition) == where]
            for where in {(poison.topic, poison.partition) for poison in scenario.poison}
        }
        self.replica_names = ReplicaNames(spec.name for spec in scenario.members)
        self.catalogue = Catalogue(self)
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
            expired=self.expired,
            heard_meanwhile=self.heard_meanwhile,
        )
        self.assignment_cpu_s = 0.0
        """Of the leaders; measured, so it is not a part of the trace."""
        self.starts = 0
        """Processes, again and again."""
        self.removed: set[int] = set()
        self.starting: dict[str, int] = {}
        self.lasting: Lasting = {}
        self.down_until_ms = 0
        """The coordinator's broker, if it is down."""
        self.timeline_over_ms = 0
        """When the timeline, or a step of it, last did something."""
        self.held_up_until_ms = 0
        """When an application is through with what takes it longer than its timeouts allow."""
        self.sample_every_ms = max(1, scenario.duration_ms // SAMPLES)
        self.look_every_ms = min(self.sample_every_ms, LOOK_MS)
        self.until_ms = scenario.duration_ms
        self.next_sample_ms = self.last_sample_ms = 0

    # The run

    def prepare(self) -> None:
        self.trace.tell(0, "wanted", topics=self.catalogue.wanted)  # until a member subscribes
        for spec in self.scenario.topics:
            self.catalogue.add(spec)
        self.broker.start()

    def run(self, until_ms: int) -> None:
        """Run in slices between the points of the lag curve, because what a reader has done is only known up to now."""
        self.rest.plan_check(self.rest.window_ms)
        self.until_ms = until_ms
        while self.kernel.now_ms < until_ms:
            self.kernel.run(min(self.next_sample_ms, until_ms))
            self.sample(self.kernel.now_ms)
        if self.last_sample_ms < until_ms:
            self.next_sample_ms = until_ms
            self.sample(until_ms)

    def finish(self) -> None:
        """Write down what is still going on; `quiet` tells whether there was time to come to rest."""
        last_ms = max(self.timeline_over_ms, self.held_up_until_ms)
        settling_ms = self.settling_ms()
        quiet = settling_ms is not None and self.kernel.now_ms - last_ms >= settling_ms
        subscribed = {
            topic
            for process in self.processes.values()
            if not process.paused and not process.cut_off and not process.stopping
            for topic in process.machine.subscribed_topics
        }
        subscribed.update(self.wishes.of(self.starting, self.topics))  # of who fails again and again, too
        unread = [tp for tp, stream in self.records.streams.items() if not stream.readers and tp[0] in subscribed]
        for process in self.processes.values():
            process.hand_commits.before_silence()
        self.trace.tell(self.kernel.now_ms, "end", quiet=quiet, unread=by_topic(unread))
        for process in list(self.processes.values()):
            process.reading.stop_all()
        requests = self.broker.requests
        self.trace.tell(
            self.kernel.now_ms,
            "requests",
            count=dict(sorted(requests.count.items())),
            bytes=dict(sorted(requests.bytes.items())),
        )

    def settling_ms(self) -> int | None:
        """Return how long a group may take to come to rest after the last trouble. A silence is noticed, other members
        are waited for, and clients hear of new partitions, each over the slowest of networks. None: it may never rest,
        where messages are lost, or take longer than any timeout.
        """
        scenario, applications = (
            self.scenario,
            [Application.from_settings(self.build.settings(one)) for one in self.members.values()],
        )
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

    # Topics

    @property
    def topics(self) -> Mapping[str, Topic]:
        return self.catalogue.topics

    @property
    def wishes(self) -> SubscriptionWishes:
        return self.catalogue.wishes

    def wants(self, name: str, topics: Sequence[str], pattern: str | None) -> None:
        self.catalogue.wants(name, topics, pattern)

    def create_topic(self, spec: TopicSpec) -> None:
        self.catalogue.create(spec)

    def grow_topic(self, name: str, partitions: int) -> None:
        self.catalogue.grow(name, partitions)

    def delete_topic(self, name: str) -> None:
        self.catalogue.delete(name)

    # What things take

    def fetch_ms(self) -> int:
        """Return what a fetch takes at the most; a heartbeat that is sent beside it has been answered by then."""
        network = self.scenario.network
        return 2 * (network.latency_ms + network.jitter_ms) + self.constants.append_ms

    def round_trip_ms(self) -> int:
        """Return the usual time from a commit to its answer."""
        network = self.scenario.network
        return 2 * network.latency_ms + network.jitter_ms + self.constants.append_ms

    # Processes

    def start(self, name: str, spec: MemberSpec | None = None) -> None:
        self.sample_bend()
        spec = spec or self.members[name]
        self.members[name] = spec
        settings = self.build.settings(spec)
        machine, instance_id = self.build.member(spec, name, self.strategies.get(name))
        now_ms = self.kernel.now_ms
        process = self.processes[name] = Process(
            name, spec, machine, Application.from_settings(settings), self, now_ms, instance_id
        )
        process.has_background = not isinstance(machine, ClassicMember)
        if not process.has_background:
            process.routine.look_ms = self.constants.heartbeat_look_ms
            process.routine.commits_key = POLL
        self.starts += 1
        self.disturbed()
        self.catalogue.wants(name, spec.topics, spec.pattern)
        process.start(dict(self.topics))

    def start_delay_ms(self) -> int:
        return self.constants.start_ms + self.random.randint(0, self.constants.start_spread_ms)

    def send(self, process: Process, request: Request) -> None:
        self.wire.send(process, request)

    def ended(self, process: Process) -> None:
        self.disturbed()
        self.sample_bend()
        if self.processes.get(process.name) is process:
            del self.processes[process.name]

    def failed(self, process: Process) -> None:
        """Note a failed process that waits to be started again: it is about to start, and no other code starts it
        meanwhile.

        A process that was stopping anyway stays down, or comes up when its restart says so.
        """
        if process.stopping:
            return
        self.starting[process.name] = at_ms = self.kernel.now_ms + self.constants.restart_failed_ms
        self.kernel.at(at_ms, start_now, self, process.name, at_ms, None)

    def commit_late(self, process: Process, offsets: Mapping[TopicPartition, int], at_ms: int) -> bool:
        """Commit without an event and without an answer, and return whether the commit was accepted."""
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

    def expired(self, partitions: Sequence[TopicPartition]) -> None:
        """Note offsets that the coordinator has deleted. Those of a deleted topic went with the topic."""
        gone = [tp for tp in partitions if tp in self.records.streams and self.records.streams[tp].committed]
        if not gone:
            return
        self.sample_bend()
        for tp in gone:
            self.records.expire(self.records.streams[tp])
        self.trace.tell(self.kernel.now_ms, "expired", partitions=by_topic(gone))

    def heard_meanwhile(self, key: TimerKey) -> bool:
        """Tell whether a session that seems to be over goes on, because of a commit without an event of its own."""
        for process in self.processes.values():
            if process.machine.member_id == key[-1]:
                process.hand_commits.before_silence()
                return self.broker.timers.runs(key)
        return False

    def will_accept(self, process: Process) -> bool:
        """Tell whether a commit of this process is accepted if it is sent now: it will not be lost, nor refused."""
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
        """Count so many commits of the same partitions, of which the last is made."""
        self.broker.store(process.name, offsets, at_ms)
        coordinator = self.broker.coordinator
        session = self.build.session(coordinator, process.machine) if coordinator is not None else None
        if session is not None:
            key, lasts_ms = session
            self.broker.timers.put_off(key, at_ms + lasts_ms)
        self.broker.requests.add_sized(
            "OffsetCommit",
            offset_commit_bytes(process.name, process.machine.member_id, process.instance_id, GROUP, offsets),
            times,
        )

    def routine(self, request: Request, times: int) -> None:
        self.broker.requests.add(request, times)

    def about_to_read(self, process: Process, partitions: Sequence[TopicPartition]) -> bool:
        """Report other readers that are not in the group any more. Return False if this process has been removed
        itself, and heard where to begin before it heard of that. Any client may fetch the offsets of a classic group.
        """
        self.sample_bend()
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
        self.down_until_ms = max(self.down_until_ms, self.kernel.now_ms + down_ms)
        self.kernel.after(down_ms, self.come_back)
        if self.broker.coordinator is None:
            return
        for process in self.processes.values():
            process.hand_commits.before_silence()
        self.broker.die()
        self.wire.parked.clear()
        self.trace.tell(self.kernel.now_ms, "coordinator", **{"is": "down"})
        for process in list(self.processes.values()):
            process.lose_connection()

    def come_back(self) -> None:
        """Bring the coordinator back, unless another broker has died meanwhile, or the group has been loaded at this
        very moment.
        """
        if self.kernel.now_ms < self.down_until_ms or self.broker.coordinator is not None:
            return
        self.broker.start()
        self.disturbed()
        self.trace.tell(self.kernel.now_ms, "coordinator", **{"is": "up"})

    def cut_off(self, name: str) -> None:
        self.wire.cut_off(self.processes[name])

    def reconnect(self, name: str) -> None:
        self.wire.reconnect(self.processes[name])

    def out_of_reach(self, process: Process) -> bool:
        """Tell whether the coordinator is out of this process's reach."""
        return process.cut_off or self.broker.coordinator is None

    def disturbed(self) -> None:
        self.rest.disturbed_at_ms = self.kernel.now_ms

    # Looking

    def lag_records(self) -> float:
        return self.lag(self.kernel.now_ms, self.behind()) / RECORD

    def behind(self) -> list[Reader]:
        """Return readers that are not where the writers are, or will not be for long."""
        return [process.reader for process in self.processes.values() if not process.reader.keeps_up]

    def lag(self, now_ms: int, behind: Sequence[Reader]) -> int:
        lag = self.records.waiting(now_ms) + sum([reader.lag_at(now_ms) for reader in behind])
        lag -= sum([stream.written(now_ms) - stream.read for stream in self.catalogue.unwanted() if not stream.readers])
        for tp, stream in self.records.shared.items():
            # By a process that has not heard that it is out: records wait for the one that is further.
            readers = [process.reader for process in self.processes.values() if tp in process.reader.streams]
            lags = [reader.lag_of(stream, now_ms) for reader in readers]
            lag -= sum(lags) - min(lags, default=0)
        return lag

    def sample_leap(self, to_ms: int) -> None:
        """Sample the points until before then, where a leap ends: fewer, as nothing happens, and one just before an
        event.
        """
        self.sample(to_ms - 1, leaping=True)
        if to_ms < self.until_ms:
            self.next_sample_ms = max(to_ms - 1, self.last_sample_ms + 1)
            self.sample(to_ms - 1)

    def sample_bend(self) -> None:
        """Sample the lag curve before reading begins or ends, or its speed changes: until now the curve went on as
        before.
        """
        now_ms, moment_ms = self.kernel.now_ms, min(MOMENT_MS, self.look_every_ms)
        if now_ms - self.last_sample_ms >= moment_ms:
            self.next_sample_ms = now_ms
            self.sample(now_ms)
        self.next_sample_ms = min(self.next_sample_ms, now_ms + moment_ms)
        self.kernel.run_until(self.next_sample_ms)

    def sample(self, until_ms: int, *, leaping: bool = False) -> None:
        """Add the points of the lag curve up to then; nothing has changed since the last event."""
        if self.next_sample_ms > until_ms:
            return
        rates = [process.reader.rate for process in self.processes.values()]
        skew = round(max(rates) * len(rates) / sum(rates), 3) if any(rates) else 0
        wanted_rate = self.records.rate - sum([stream.rate for stream in self.catalogue.unwanted()])
        rate, behind = round(wanted_rate * 1_000 / RECORD), self.behind()
        since_ms = self.next_sample_ms
        while self.next_sample_ms <= until_ms:
            self.last_sample_ms = at_ms = self.next_sample_ms
            records = self.lag(at_ms, behind) // RECORD
            self.trace.tell(at_ms, "lag", records=records, rate=rate, skew=skew)
            step_ms = self.look_every_ms
            if leaping and (records or behind):
                step_ms = min(self.sample_every_ms, max(step_ms, (at_ms - since_ms) // FINER))
            elif leaping:
                step_ms = self.sample_every_ms
            self.next_sample_ms = self.bend_before(at_ms + step_ms, at_ms, behind)

    def bend_before(self, next_ms: int, now_ms: int, behind: Sequence[Reader]) -> int:
        """Return when the first lagging process has caught up, if that is earlier: the rest is not done as fast."""
        after_ms = now_ms + MOMENT_MS
        level_ms = [at_ms for reader in behind if (at_ms := reader.level_ms()) is not None and at_ms >= after_ms]
        return min([next_ms, *level_ms])
