"""Provide the short language of tests and examples: real members, a real coordinator, and virtual time between them.

    group = classic_group(topics={"orders": 4}, assignor="cooperative-sticky")
    group.join("A").settle().show()  # generation 1  A: orders-0 orders-1 orders-2 orders-3

    group = consumer_group(topics={"orders": 4})  # KIP-848; join("C", protocol="classic") brings in a classic member
    group.join("A").settle().show()  # epoch 2  A: orders-0 orders-1 orders-2 orders-3

Time       moves only in run(), until() and settle(); stage.py has it, and the network
Stories    what a member sent, heard and was called with, in order; left out are lookups, and the heartbeats and
           auto-commits of the interval that hear nothing but 0
Start at   classic_group, consumer_group, join, settle, story
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, TypeAlias

from rebalance_lab.assignors.interface import Assignor
from rebalance_lab.assignors.strategies import load_assignor, parse_strategy
from rebalance_lab.harness.conversation.message_text import partitions_shown
from rebalance_lab.harness.conversation.stage import GROUP, Client, Stage
from rebalance_lab.harness.hosts.dual_coordinator import ClassicSide, make_dual_coordinator
from rebalance_lab.protocol_v1.coordinator.config import CoordinatorConfig
from rebalance_lab.protocol_v1.coordinator.coordinator import Coordinator
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup
from rebalance_lab.protocol_v1.coordinator.state.states import State
from rebalance_lab.protocol_v1.member.config import MemberConfig
from rebalance_lab.protocol_v1.member.member import Member
from rebalance_lab.protocol_v2.common.topic_image import topic_name
from rebalance_lab.protocol_v2.coordinator.coordinator import Coordinator as ConsumerCoordinator
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup
from rebalance_lab.protocol_v2.member.config import MemberConfig as ConsumerMemberConfig
from rebalance_lab.protocol_v2.member.member import Member as ConsumerMember
from rebalance_lab.protocol_v2.member.states import MemberState as ConsumerMemberState

AnyMember: TypeAlias = Member | ConsumerMember

__all__ = ["Client", "Conversation", "MixedConversation", "classic_group", "consumer_group", "instance_of"]


class Conversation(Stage[Member, Coordinator]):
    """Hold a conversation about a classic group."""

    def __init__(
        self,
        topics: Mapping[str, int],
        assignors: Sequence[str],
        coordinator_config: CoordinatorConfig,
        latency_ms: int,
        settings: Mapping[str, Any],
    ) -> None:
        self.assignors = assignors
        self.settings = settings
        self.config = coordinator_config
        super().__init__(topics, latency_ms)

    @property
    def group(self) -> ClassicGroup | None:
        return None if self.coordinator is None else self.coordinator.groups.get(GROUP)

    def new_coordinator(self) -> Coordinator:
        return Coordinator(self.config, new_member_id=self.new_member_id, topics=self.partition_counts())

    def join(
        self,
        name: str,
        *,
        topics: Iterable[str] | None = None,
        pattern: str | None = None,
        assignors: Sequence[str | Assignor] | None = None,
        callback_ms: int = 0,
        **settings: Any,
    ) -> Self:
        """Start a process, which polls. Settings are a consumer's, such as group_instance_id or session_timeout_ms."""
        config = MemberConfig(group_id=GROUP, client_id=name, **{**self.settings, **settings})
        subscribed = (() if pattern else tuple(self.topics)) if topics is None else topics
        chosen = loaded(self.assignors if assignors is None else assignors)
        self.enter(name, Member(config, assignors=chosen, topics=subscribed, pattern=pattern), callback_ms)
        return self

    def at_rest(self) -> bool:
        """Tell whether all members have what the group's one generation gave them, and nothing is under way."""
        members = [client.member for client in self.live]
        return classic_at_rest(self.group, members) and not any_closes(members)

    def __str__(self) -> str:
        generation = self.group.generation_id if self.group is not None else 0
        return shown(f"generation {generation}", self.live)


class MixedConversation(Stage[AnyMember, ConsumerCoordinator]):
    """Hold a conversation about a group that KIP-848 serves: consumers, classic members, and conversions."""

    def __init__(
        self,
        topics: Mapping[str, int],
        classic_assignors: Sequence[str],
        properties: Mapping[str, Any],
        latency_ms: int,
        settings: Mapping[str, Any],
    ) -> None:
        self.classic_assignors = classic_assignors
        self.settings = settings
        self.properties = properties
        super().__init__(topics, latency_ms)

    @property
    def group(self) -> ConsumerGroup | None:
        return None if self.coordinator is None else self.coordinator.groups.get(GROUP)

    @property
    def classic(self) -> ClassicGroup | None:
        """Return the same group while it is a classic one."""
        side = None if self.coordinator is None else self.coordinator.shard.classic
        return side.coordinator.groups.get(GROUP) if isinstance(side, ClassicSide) else None

    def new_coordinator(self) -> ConsumerCoordinator:
        return make_dual_coordinator(self.properties, self.new_member_id, self.partition_counts())

    def join(
        self,
        name: str,
        *,
        protocol: str = "consumer",
        topics: Iterable[str] | None = None,
        pattern: str | None = None,
        regex: str | None = None,
        assignors: Sequence[str | Assignor] | None = None,
        callback_ms: int = 0,
        **settings: Any,
    ) -> Self:
        """Start a process, which polls. Settings that the protocol does not have are left out of the conversation's."""
        subscribed = (() if pattern or regex else tuple(self.topics)) if topics is None else topics
        kind = MemberConfig if protocol == "classic" else ConsumerMemberConfig
        common = {key: value for key, value in self.settings.items() if key in kind.__dataclass_fields__}
        values = {"group_id": GROUP, "client_id": name, **common, **settings}
        member: AnyMember
        if protocol == "classic":
            chosen = loaded(self.classic_assignors if assignors is None else assignors)
            member = Member(MemberConfig(**values), assignors=chosen, topics=subscribed, pattern=pattern)
        else:
            member = ConsumerMember(
                ConsumerMemberConfig(**values),
                member_id=self.new_member_id(name),
                topics=subscribed,
                pattern=pattern,
                regex=regex,
            )
        self.enter(name, member, callback_ms)
        return self

    def at_rest(self) -> bool:
        """Tell whether all members have arrived at the group's target, and know it."""
        members = [client.member for client in self.live]
        group = self.group
        if any_closes(members):
            return False
        if group is None:
            return all(isinstance(one, Member) for one in members) and classic_at_rest(
                self.classic, [one for one in members if isinstance(one, Member)]
            )
        if group.members and group.group_epoch != group.assignment_epoch:
            return False
        away = {one.member_id for one in group.members.values() if one.current.stepped_out}
        if group.members.keys() - away != {id_of(member) for member in members}:
            return False
        return all(arrived(group, member) for member in members)

    def __str__(self) -> str:
        if self.group is not None or self.classic is None:
            return shown(f"epoch {0 if self.group is None else self.group.group_epoch}", self.live)
        return shown(f"generation {self.classic.generation_id}", self.live)


def classic_group(
    topics: Mapping[str, int],
    assignor: str | Sequence[str] = "range",
    *,
    coordinator: CoordinatorConfig | None = None,
    latency_ms: int = 1,
    **settings: Any,
) -> Conversation:
    assignors = [assignor] if isinstance(assignor, str) else assignor
    return Conversation(topics, assignors, coordinator or CoordinatorConfig(), latency_ms, settings)


def consumer_group(
    topics: Mapping[str, int],
    assignor: str | None = None,
    *,
    classic_assignor: str | Sequence[str] = "range",
    properties: Mapping[str, Any] | None = None,
    latency_ms: int = 1,
    **settings: Any,
) -> MixedConversation:
    """Start a group of KIP-848; `assignor` is what members ask the coordinator for, its first without one. `properties`
    are the broker's, under Kafka's names; targets are computed at once unless they say otherwise.
    """
    broker = {"group.consumer.assignment.interval.ms": 0, **(properties or {})}
    classic = [classic_assignor] if isinstance(classic_assignor, str) else classic_assignor
    return MixedConversation(topics, classic, broker, latency_ms, {"group_remote_assignor": assignor, **settings})


def loaded(assignors: Sequence[str | Assignor]) -> list[Assignor]:
    return [load_assignor(parse_strategy(f"classic/{one}")) if isinstance(one, str) else one for one in assignors]


def shown(head: str, clients: Iterable[Client[Any]]) -> str:
    return "  ".join([head, *(f"{client.name}: {partitions_shown(client.owned)}".rstrip() for client in clients)])


# At rest: asked after every event, so what is quickly seen comes first


def any_closes(members: Iterable[AnyMember]) -> bool:
    return any(member.memory.closing is not None for member in members)


def classic_at_rest(group: ClassicGroup | None, members: Sequence[Member]) -> bool:
    if group is None:
        return not members
    if members and group.state is not State.STABLE:
        return False
    absent = {id for instance, id in group.static.items() if instance not in map(instance_of, members)}
    if set(group.members) - absent != {member.generation.member_id for member in members}:
        return False
    return not members or (all(member.settled for member in members) and one_generation(members))


def one_generation(members: Sequence[Member]) -> bool:
    return len({member.generation.generation_id for member in members}) == 1


def arrived(group: ConsumerGroup, member: AnyMember) -> bool:
    """Tell whether the member is at the target epoch on both sides, with the same partitions."""
    current = group.members[id_of(member)].current
    if not current.is_reconciled_to(group.assignment_epoch):
        return False
    if isinstance(member, Member):
        there = member.settled and member.generation.generation_id == group.assignment_epoch
    else:
        memory = member.memory
        acknowledged = member.state is ConsumerMemberState.STABLE and memory.heartbeats.in_flight is None
        there = acknowledged and memory.coordinator_known and member.member_epoch == group.assignment_epoch
    return there and member.owned == {(topic_name(topic), number) for topic, number in current.assigned}


def id_of(member: AnyMember) -> str:
    return member.generation.member_id if isinstance(member, Member) else member.member_id


def instance_of(member: AnyMember) -> str | None:
    return member.memory.config.group_instance_id
