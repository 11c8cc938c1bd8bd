"""Build a run's machines from its strategy: the members and the coordinator.

Lists      `classic/range,cooperative-sticky` configures two assignors, as the first step of a migration does
Static     `+static` gives every member that has no group.instance.id its name as one
Start at   Strategies.build
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, cast

from rebalance_lab.assignors.interface import Assignor
from rebalance_lab.assignors.model import Topic
from rebalance_lab.assignors.strategies import Strategy, load_named
from rebalance_lab.harness.hosts.dual_coordinator import make_dual_coordinator
from rebalance_lab.harness.scenario.instance_ids import InstanceIds
from rebalance_lab.harness.scenario.model import MemberSpec, RollingRestart, Scenario
from rebalance_lab.harness.scenario.strategy_lists import (
    broker_assignors,
    check_broker_lists,
    load_all,
    load_strategies,
    parse_strategies,
)
from rebalance_lab.harness.simulator.broker import Coordinator
from rebalance_lab.harness.simulator.surroundings import GROUP, Machine
from rebalance_lab.harness.simulator.world import Build
from rebalance_lab.protocol_v1.common.effects import TimerKey
from rebalance_lab.protocol_v1.common.member_effects import TopicPartition
from rebalance_lab.protocol_v1.coordinator import config as v1_config
from rebalance_lab.protocol_v1.coordinator.coordinator import Coordinator as ClassicCoordinator
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup
from rebalance_lab.protocol_v1.coordinator.state.records import OffsetCommit, apply_offset
from rebalance_lab.protocol_v1.coordinator.state.shard import session_key
from rebalance_lab.protocol_v1.coordinator.state.states import State
from rebalance_lab.protocol_v1.member.config import MemberConfig as ClassicConfig
from rebalance_lab.protocol_v1.member.member import Member as ClassicMember
from rebalance_lab.protocol_v2.common.regex import compile_regex
from rebalance_lab.protocol_v2.coordinator.coordinator import BUILT_IN
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup
from rebalance_lab.protocol_v2.coordinator.state.states import MemberState
from rebalance_lab.protocol_v2.member.config import MemberConfig as ConsumerConfig
from rebalance_lab.protocol_v2.member.member import Member as ConsumerMember

COMMIT_INTERVAL = "auto.commit.interval.ms"
SHARED_SETTINGS = (
    "max.poll.interval.ms",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "request.timeout.ms",
    "default.api.timeout.ms",
    "enable.auto.commit",
    COMMIT_INTERVAL,
    "exclude.internal.topics",
)
CLASSIC_SETTINGS = (*SHARED_SETTINGS, "session.timeout.ms", "heartbeat.interval.ms")
"""In the consumer protocol these two are the broker's: group.consumer.session.timeout.ms, ...heartbeat.interval.ms."""


def fields(settings: Mapping[str, Any], known: Sequence[str]) -> dict[str, Any]:
    return {name.replace(".", "_"): settings[name] for name in known if name in settings}


def drawn(random: Random) -> Callable[[str], str]:
    """Member ids with a random part, as Kafka's have. A broker's hash tables are in the order of these ids, and that
    decides, for one, who leads a group after its leader: that is a matter of the seed, and not of what members are
    called."""
    return lambda prefix: f"{prefix}-{random.getrandbits(32):08x}"


class Strategies:
    """One run's choice, and what single members are migrated to."""

    def __init__(self, scenario: Scenario, strategy: str, random: Random) -> None:
        self.scenario = scenario
        self.default = strategy
        self.random = random
        self.instance_ids = InstanceIds(scenario)
        self.new_member_id = drawn(Random(random.getrandbits(32)))
        later = [event.strategy for event in scenario.timeline if isinstance(event, RollingRestart) and event.strategy]
        for text in dict.fromkeys((strategy, *later)):
            load_strategies(text)  # what cannot run is refused before anything does
            check_broker_lists(text, scenario.broker)
        offered = [one for text in (strategy, *later) for one in parse_strategies(text)]
        self.classic_only = all(one.protocol == "classic" for one in offered)
        consumer = [one for one in offered if one.protocol == "consumer"]
        self.assignors_of_the_broker = of_the_broker(consumer, broker_assignors(scenario.broker))

    def build(self) -> Build:
        return Build(
            member=self.member,
            coordinator=self.coordinator,
            told=self.told,
            settings=self.settings,
            stable=stable_classic if self.classic_only else stable_consumer,
            knows=knows,
            will_accept=will_accept,
            holds=self.holds,
            session=session,
            epoch=epoch,
            store=store,
        )

    def settings(self, spec: MemberSpec) -> Mapping[str, Any]:
        settings = {**self.scenario.client, **spec.client}
        if settings.get(COMMIT_INTERVAL) == 0:
            settings[COMMIT_INTERVAL] = 1  # with every poll, of which virtual time has one a millisecond at the most
        return settings

    def member(self, spec: MemberSpec, name: str, strategy: str | None) -> tuple[Machine, str | None]:
        chosen = parse_strategies(strategy or self.default)
        instance_id = self.instance_ids.of(spec, name, static=chosen[0].static)
        settings = self.settings(spec)
        who: dict[str, Any] = {
            "group_id": GROUP,
            "client_id": name,
            "group_instance_id": instance_id,
            "client_rack": spec.rack,
        }
        whats: dict[str, Any] = {"topics": spec.topics, "pattern": spec.pattern, "jitter": self.jitter}
        machine: ClassicMember | ConsumerMember
        if chosen[0].protocol == "consumer":
            remote = load_named(chosen[0]).name
            config = ConsumerConfig(**who, group_remote_assignor=remote, **fields(settings, SHARED_SETTINGS))
            machine = ConsumerMember(config, member_id=self.new_member_id(name), **whats)
        else:
            assignors = [load_named(one) for one in chosen]
            machine = ClassicMember(
                ClassicConfig(**who, **fields(settings, CLASSIC_SETTINGS)),
                assignors=assignors,
                engine=compile_regex,
                **whats,
            )
        return cast(Machine, machine), instance_id

    def jitter(self) -> float:
        return self.random.uniform(0.8, 1.2)

    def coordinator(self, topics: Mapping[str, Topic]) -> Coordinator:
        if self.classic_only:
            known = {name: value for name, value in self.scenario.broker.items() if name in v1_config.PROPERTIES}
            config = v1_config.CoordinatorConfig.from_properties(known)
            return cast(
                Coordinator, ClassicCoordinator(config, new_member_id=self.new_member_id, topics=self.told(topics))
            )
        told = self.told(topics)
        return cast(
            Coordinator,
            make_dual_coordinator(self.scenario.broker, self.new_member_id, told, self.assignors_of_the_broker),
        )

    def holds(self, coordinator: Any, machine: Machine, partition: TopicPartition) -> bool:
        """A classic group has names only, so they are always the present ones."""
        if self.classic_only:
            return True
        group, (name, index) = group_in(coordinator) if coordinator is not None else None, partition
        if not isinstance(group, ConsumerGroup):
            return group is not None
        member, topic = group.members.get(machine.member_id), coordinator.shard.image.topics.get(name)
        return member is not None and topic is not None and (topic.topic_id, index) in member.current.assigned

    def told(self, topics: Mapping[str, Topic]) -> Mapping[str, Any]:
        """Return the topics as the coordinator is told them; only the KIP-848 coordinator knows of ids."""
        if self.classic_only:
            return {name: topic.partitions for name, topic in topics.items()}
        return {
            name: Topic(topic.partitions, id=topic.id) if topic.id else topic.partitions
            for name, topic in topics.items()
        }


def of_the_broker(asked: Sequence[Strategy], listed: Sequence[str]) -> list[Assignor]:
    """Return the custom assignors, and those of Kafka's that the broker lists, in its order.

    A custom assignor takes the place of Kafka's of the same name, because members ask by name.
    """
    each = list(dict.fromkeys(replace(one, static=False) for one in asked))
    custom = [assignor for one, assignor in zip(each, load_all(each), strict=True) if one.is_custom]
    taken = {assignor.name for assignor in custom}
    return [*custom, *(BUILT_IN[name]() for name in listed if name not in taken)]


def group_in(coordinator: Any) -> ClassicGroup | ConsumerGroup | None:
    """Wherever it is served: a coordinator of both protocols has classic groups on its other side."""
    group: ClassicGroup | ConsumerGroup | None = coordinator.groups.get(GROUP)
    if group is None and not isinstance(coordinator, ClassicCoordinator):
        group = coordinator.shard.classic.coordinator.groups.get(GROUP)
    return group


def stable_classic(coordinator: Any, member_ids: Sequence[str], now_ms: int) -> bool:
    group = group_in(coordinator)
    if group is None or group.state is State.EMPTY:
        return not member_ids
    return group.state is State.STABLE and all(map(group.members.__contains__, member_ids))


def stable_consumer(coordinator: Any, member_ids: Sequence[str], now_ms: int) -> bool:
    """Absent static members do not count: they wait for their session's end, or to be back. But the next heartbeat may
    be one that looks at topics anew."""
    group = group_in(coordinator)
    if not isinstance(group, ConsumerGroup):
        return stable_classic(coordinator, member_ids, now_ms)
    if not member_ids:
        return True  # only heartbeats would bring its epochs together, and only timers will come
    if now_ms >= group.deadline.at_ms:
        return False
    epoch = group.group_epoch
    return group.assignment_epoch == epoch and all(
        member_id in group.members
        and group.members[member_id].current.member_epoch == epoch
        and group.members[member_id].current.state is MemberState.STABLE
        for member_id in member_ids
    )


def epoch(coordinator: Any) -> int:
    group = group_in(coordinator)
    if group is None:
        return 0
    return group.generation_id if isinstance(group, ClassicGroup) else group.group_epoch


def store(coordinator: Any, records: Sequence[OffsetCommit]) -> None:
    if isinstance(coordinator, ClassicCoordinator):
        for record in records:
            apply_offset(coordinator.shard.image, record)
    else:
        coordinator.shard.offsets.store(GROUP, records)


def knows(coordinator: Any, machine: Machine) -> bool:
    """A static member that misses a rebalance stays in a classic group, in a generation it has not heard of. And who
    has lost its generation, in a group that changed its protocol twice, is still listed, but in a callback about it."""
    group = group_in(coordinator)
    if group is None or machine.member_id not in group.members:
        return False
    return machine.epoch == group.generation_id if isinstance(group, ClassicGroup) else machine.epoch >= 0


def will_accept(coordinator: Any, machine: Machine) -> bool:
    """Tell whether the coordinator will accept the member's commit. A member that has not heard of its new epoch sends
    a real request.
    """
    group = group_in(coordinator)
    if isinstance(group, ConsumerGroup):
        member = group.members.get(machine.member_id)
        return member is not None and member.current.member_epoch == machine.epoch
    return knows(coordinator, machine)


def session(coordinator: Any, machine: Machine) -> tuple[TimerKey, int] | None:
    """Return the member's session timer. In a classic group a commit restarts it like a heartbeat; in a KIP-848 group
    not.
    """
    group = group_in(coordinator)
    if not isinstance(group, ClassicGroup) or machine.member_id not in group.members:
        return None
    return session_key(group, machine.member_id), group.members[machine.member_id].session_timeout_ms
