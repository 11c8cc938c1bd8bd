"""From a strategy to machines: the members and the coordinator that a run is made of.

Lists      `classic/range,cooperative-sticky` configures two assignors, as the first step of a migration does
Static     `+static` gives every member that has no group.instance.id its name as one
Start at   Strategies.build
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, cast

from assignors.model import Topic
from assignors.strategies import load_assignor, parse_strategy
from harness.both_protocols import both_protocols
from harness.scenario.model import MemberSpec, Scenario
from harness.sim.broker import Coordinator
from harness.sim.parts import GROUP, Machine
from harness.sim.world import Build
from protocol_v1 import config as v1_config
from protocol_v1.coordinator import Coordinator as ClassicCoordinator
from protocol_v1.coordinator import numbered
from protocol_v1.group import ClassicGroup
from protocol_v1.member import Member as ClassicMember
from protocol_v1.member_config import MemberConfig as ClassicConfig
from protocol_v1.records import OffsetCommit, apply_offset
from protocol_v1.states import State
from protocol_v2.member import Member as ConsumerMember
from protocol_v2.member_config import MemberConfig as ConsumerConfig
from protocol_v2.states import MemberState


@dataclass(frozen=True, slots=True)
class RunStrategy:
    protocol: str
    assignors: tuple[str, ...]
    static: bool


@lru_cache
def parse_run_strategy(text: str, path: str = "strategy") -> RunStrategy:
    bare = text.removesuffix("+static")
    first, *others = bare.split(",")
    strategy = parse_strategy(first, path)
    names = [strategy.assignor, *(parse_strategy(f"{strategy.protocol}/{name}", path).assignor for name in others)]
    return RunStrategy(strategy.protocol, tuple(names), text.endswith("+static"))


SHARED_SETTINGS = (
    "max.poll.interval.ms",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "request.timeout.ms",
    "default.api.timeout.ms",
    "enable.auto.commit",
    "auto.commit.interval.ms",
    "exclude.internal.topics",
)
CLASSIC_SETTINGS = (*SHARED_SETTINGS, "session.timeout.ms", "heartbeat.interval.ms")
"""In the consumer protocol these two are the broker's: group.consumer.session.timeout.ms, ...heartbeat.interval.ms."""


def fields(settings: Mapping[str, Any], known: Sequence[str]) -> dict[str, Any]:
    return {name.replace(".", "_"): settings[name] for name in known if name in settings}


class Strategies:
    """One run's choice, and what single members were migrated to."""

    def __init__(self, scenario: Scenario, strategy: str, random: Random) -> None:
        self.scenario = scenario
        self.default = parse_run_strategy(strategy)
        self.random = random
        self.new_member_id = numbered()
        later = [getattr(event, "strategy", None) for event in scenario.timeline]
        protocols = {self.default.protocol, *(parse_run_strategy(one).protocol for one in later if one)}
        self.classic_only = protocols == {"classic"}

    def build(self) -> Build:
        return Build(
            machine=self.machine,
            coordinator=self.coordinator,
            settings=self.settings,
            instance_id=self.instance_id,
            stable=stable_classic if self.classic_only else stable_consumer,
            knows=knows,
            epoch=epoch,
            store=store,
        )

    def settings(self, spec: MemberSpec) -> Mapping[str, Any]:
        return {**self.scenario.client, **spec.client}

    def instance_id(self, spec: MemberSpec, name: str) -> str | None:
        return spec.instance_id or (name if self.default.static else None)

    def machine(self, spec: MemberSpec, name: str, strategy: str | None) -> Machine:
        chosen = parse_run_strategy(strategy) if strategy else self.default
        settings = self.settings(spec)
        jitter = lambda: self.random.uniform(0.8, 1.2)  # noqa: E731 - handed in
        instance_id = spec.instance_id or (name if chosen.static else None)
        member: ClassicMember | ConsumerMember
        if chosen.protocol == "consumer":
            member = ConsumerMember(
                ConsumerConfig(
                    group_id=GROUP,
                    client_id=name,
                    group_instance_id=instance_id,
                    client_rack=spec.rack,
                    group_remote_assignor=chosen.assignors[0],
                    **fields(settings, SHARED_SETTINGS),
                ),
                member_id=self.new_member_id(name),
                topics=spec.topics,
                pattern=spec.pattern,
                jitter=jitter,
            )
        else:
            assignors = [load_assignor(parse_strategy(f"classic/{one}")) for one in chosen.assignors]
            config = ClassicConfig(
                group_id=GROUP,
                client_id=name,
                group_instance_id=instance_id,
                client_rack=spec.rack,
                **fields(settings, CLASSIC_SETTINGS),
            )
            member = ClassicMember(config, assignors=assignors, topics=spec.topics, pattern=spec.pattern, jitter=jitter)
        return cast(Machine, member)

    def coordinator(self, topics: Mapping[str, Topic]) -> Coordinator:
        counts = {name: topic.partitions for name, topic in topics.items()}
        if self.classic_only:
            known = {name: value for name, value in self.scenario.broker.items() if name in v1_config.PROPERTIES}
            config = v1_config.CoordinatorConfig.from_properties(known)
            return cast(Coordinator, ClassicCoordinator(config, new_member_id=self.new_member_id, topics=counts))
        return cast(Coordinator, both_protocols(self.scenario.broker, self.new_member_id, counts))


def stable_classic(coordinator: Any, member_ids: Sequence[str], now_ms: int) -> bool:
    group = coordinator.groups.get(GROUP)
    if group is None or group.state is State.EMPTY:
        return not member_ids
    return group.state is State.STABLE and all(map(group.members.__contains__, member_ids))


def stable_consumer(coordinator: Any, member_ids: Sequence[str], now_ms: int) -> bool:
    """Absent static members do not count: they wait for their session's end, or to be back. But the next heartbeat may
    be one that looks at topics anew."""
    group = coordinator.groups.get(GROUP)
    if group is None:
        return stable_classic(coordinator.shard.classic.coordinator, member_ids, now_ms)
    if now_ms >= group.deadline.at_ms and member_ids:
        return False
    epoch = group.group_epoch
    return group.assignment_epoch == epoch and all(
        member_id in group.members
        and group.members[member_id].current.member_epoch == epoch
        and group.members[member_id].current.state is MemberState.STABLE
        for member_id in member_ids
    )


def epoch(coordinator: Any) -> int:
    group = coordinator.groups.get(GROUP)
    if group is None and not isinstance(coordinator, ClassicCoordinator):
        group = coordinator.shard.classic.coordinator.groups.get(GROUP)
    if group is None:
        return 0
    return int(group.generation_id if isinstance(group, ClassicGroup) else group.group_epoch)


def store(coordinator: Any, records: Sequence[OffsetCommit]) -> None:
    classic = isinstance(coordinator, ClassicCoordinator)
    for record in records:
        if classic:
            apply_offset(coordinator.shard.image, record)
        else:
            coordinator.shard.offsets.apply(record)


def knows(coordinator: Any, machine: Machine) -> bool:
    """A static member that misses a rebalance stays in a classic group, in a generation it has not heard of."""
    group = coordinator.groups.get(GROUP)
    if group is None and not isinstance(coordinator, ClassicCoordinator):
        group = coordinator.shard.classic.coordinator.groups.get(GROUP)
    if group is None or machine.member_id not in group.members:
        return False
    return not isinstance(group, ClassicGroup) or machine.epoch == group.generation_id
