"""Run one coordinator for groups of both protocols: protocol_v2's, with protocol_v1's beside it for classic groups.

Given      settings of both, a source of member ids, topics
Returns    protocol_v2's coordinator, which asks ClassicSide whenever a group is, or is to become, classic
Why here   neither protocol's coordinator imports the other; each is handed what it needs of the other
Start at   make_dual_coordinator
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rebalance_lab.assignors.interface import Assignor
from rebalance_lab.harness.hosts.coordinator_host import NewMemberId, Topics, partition_counts
from rebalance_lab.protocol_v1.common.consumer_protocol import (
    LATEST_VERSION,
    Assignment,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from rebalance_lab.protocol_v1.common.effects import Effect, TimerKey
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import JoinGroupResponse, Request, SyncGroupResponse
from rebalance_lab.protocol_v1.coordinator import config as v1_config
from rebalance_lab.protocol_v1.coordinator.coordinator import Coordinator as ClassicCoordinator
from rebalance_lab.protocol_v1.coordinator.rebalance import prepare_rebalance
from rebalance_lab.protocol_v1.coordinator.state import records as v1_records
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup, ClassicMember
from rebalance_lab.protocol_v1.coordinator.state.shard import Turn
from rebalance_lab.protocol_v1.coordinator.state.states import Event, State
from rebalance_lab.protocol_v2.coordinator import config as v2_config
from rebalance_lab.protocol_v2.coordinator.classic_members.classic_side import (
    ClassicGroupImage,
    ClassicMemberImage,
    EmbeddedAssignment,
    EmbeddedSubscription,
    TakeBack,
)
from rebalance_lab.protocol_v2.coordinator.coordinator import Coordinator
from rebalance_lab.protocol_v2.coordinator.state.offset_store import OffsetStore


def make_dual_coordinator(
    config: Mapping[str, Any],
    new_member_id: NewMemberId,
    topics: Topics | None,
    assignors: Sequence[Assignor] | None = None,
) -> Coordinator:
    """Make the dual coordinator; `assignors` are the broker's, best first, and Kafka's own unless others are given."""
    v1 = {name: value for name, value in config.items() if name in v1_config.PROPERTIES}
    v2 = {name: value for name, value in config.items() if name in v2_config.PROPERTIES}
    topics = topics or {}
    classic = ClassicCoordinator(
        v1_config.CoordinatorConfig.from_properties(v1), new_member_id=new_member_id, topics=partition_counts(topics)
    )
    settings = v2_config.CoordinatorConfig.from_properties(v2)
    return Coordinator(
        settings,
        new_member_id=new_member_id,
        topics=topics,
        assignors=assignors,
        classic=ClassicSide(classic, keeps_join_timers=settings.keeps_join_timers),
        codec=Codec(),
        offsets=OffsetStore(
            lambda: classic.shard.image.offsets,  # looked up each time: a load brings another image
            commit=v1_records.OffsetCommit,
            tombstone=v1_records.OffsetTombstone,
        ),
    )


class Codec:
    def subscription(self, data: bytes) -> EmbeddedSubscription:
        found = decode_subscription(data)
        return EmbeddedSubscription(topics=found.topics, owned=found.owned_partitions, rack_id=found.rack_id)

    def assignment(self, data: bytes) -> EmbeddedAssignment:
        found = decode_assignment(data)
        return EmbeddedAssignment(partitions=found.assigned_partitions, has_user_data=bool(found.user_data))

    def encode(self, partitions: Mapping[str, Sequence[int]], like: bytes) -> bytes:
        version = min(int.from_bytes(like[:2], signed=True), LATEST_VERSION)
        listed = {name: tuple(numbers) for name, numbers in partitions.items()}
        return encode_assignment(Assignment(assigned_partitions=listed), version)


class ClassicSide:
    """Offer protocol_v1's coordinator as protocol_v2 asks for it (ClassicGroups in its classic_members room)."""

    def __init__(self, coordinator: ClassicCoordinator, *, keeps_join_timers: bool = True) -> None:
        self.coordinator = coordinator
        self.keeps_join_timers = keeps_join_timers

    def handle(self, request: Request, now_ms: int) -> list[Effect]:
        return self.coordinator.handle(request, now_ms)

    def on_timer(self, key: TimerKey, now_ms: int) -> list[Effect]:
        # An append that was under way when the group was given away may have set a timer for it since.
        if len(key) > 1 and key[1] not in self.coordinator.groups:
            return []
        return self.coordinator.on_timer(key, now_ms)

    def first_expiry_ms(self) -> int | None:
        return self.coordinator.first_expiry_ms()

    def on_append(self, append_id: int, now_ms: int, error: Error = Error.NONE) -> list[Effect]:
        return self.coordinator.on_append(append_id, now_ms, error)

    def update_topics(self, topics: Mapping[str, int], now_ms: int) -> list[Effect]:
        return self.coordinator.update_topics(topics, now_ms)

    def load(self, records: Sequence[Any], now_ms: int) -> list[Effect]:
        return self.coordinator.load(records, now_ms)

    def unload(self, now_ms: int) -> list[Effect]:
        return self.coordinator.unload(now_ms)

    def phase(self, group_id: str) -> str | None:
        group = self.coordinator.groups.get(group_id)
        return group.state.value if group is not None else None

    def image_of(self, group_id: str) -> ClassicGroupImage:
        group = self.coordinator.groups[group_id]
        return ClassicGroupImage(
            group_id=group_id,
            generation_id=group.generation_id,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            members=tuple(member_image(member) for member in group.in_order()),
        )

    def answer_parked(self, group_id: str, error: Error, now_ms: int) -> list[Effect]:
        turn = Turn(self.coordinator.shard, now_ms)
        group = self.coordinator.groups[group_id]
        for member in group.in_order():
            join = group.unpark_join(member)
            if join is not None:
                turn.reply(join, JoinGroupResponse(error_code=error, member_id=member.member_id))
            sync, member.parked_sync = member.parked_sync, None
            if sync is not None:
                turn.reply(sync, SyncGroupResponse(error_code=error))
        return turn.effects

    def tombstone(self, group_id: str) -> Any:
        return v1_records.GroupTombstone(group=group_id)

    def forget(self, group_id: str, now_ms: int) -> tuple[list[Effect], TakeBack]:
        turn = Turn(self.coordinator.shard, now_ms)
        group = self.coordinator.shard.groups.pop(group_id)
        turn.cancel_timers(group, join=not self.keeps_join_timers)
        return turn.effects, lambda now_ms: self.have_back(group, now_ms)

    def have_back(self, group: ClassicGroup, now_ms: int) -> list[Effect]:
        turn = Turn(self.coordinator.shard, now_ms)
        self.coordinator.shard.groups[group.group_id] = group
        for member in group.in_order():
            turn.restart_session(group, member)
        return turn.effects

    def adopt(self, image: ClassicGroupImage, now_ms: int, *, rebalance: bool) -> tuple[list[Any], list[Effect]]:
        turn = Turn(self.coordinator.shard, now_ms)
        group = ClassicGroup(
            group_id=image.group_id,
            state=State.STABLE,
            state_since_ms=now_ms,
            generation_id=image.generation_id,
            durable=True,
        )
        for member in image.members:
            group.add(classic_member(member), image.protocol_type or "")
        group.protocol_name = group.select_protocol()
        group.remember_subscriptions()
        record = v1_records.group_metadata(group, {member.member_id: member.assignment for member in image.members})
        self.coordinator.shard.groups[image.group_id] = group
        turn.tell(group, Event.LOADED_WITH_MEMBERS)
        for adopted in group.in_order():
            turn.restart_session(group, adopted)
        if rebalance:
            prepare_rebalance(turn, group, Event.MEMBER_LEFT)
        return [record], turn.effects


def member_image(member: ClassicMember) -> ClassicMemberImage:
    return ClassicMemberImage(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=member.protocols,
        assignment=member.assignment,
    )


def classic_member(image: ClassicMemberImage) -> ClassicMember:
    return ClassicMember(
        member_id=image.member_id,
        group_instance_id=image.instance_id,
        client_id=image.client_id,
        client_host=image.client_host,
        session_timeout_ms=image.session_timeout_ms,
        rebalance_timeout_ms=image.rebalance_timeout_ms,
        protocols=image.protocols,
        assignment=image.assignment,
    )
