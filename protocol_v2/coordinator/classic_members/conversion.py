"""Convert groups between the protocols: upgrades, downgrades, and empty groups that become the other kind.

Upgrade    a KIP-848 consumer joins a classic group: the classic members become members of a consumer group, with the
           classic generation as their epoch
Downgrade  the last member that speaks the consumer protocol leaves. The group becomes classic again, with the group
           epoch as its generation and the targets as assignments
Policy     group.consumer.migration.policy allows either, both or none; groups without members convert in any case
Reference  convertToConsumerGroup, convertToClassicGroup, validateOnlineUpgrade in Apache Kafka
Start at   open_group, downgrade
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_lab.protocol_v1.common.errors import Error, MalformedBytes
from rebalance_lab.protocol_v2.common.topic_image import TopicPartition
from rebalance_lab.protocol_v2.coordinator.classic_members.classic_side import (
    ClassicGroupImage,
    ClassicMemberImage,
    TakeBack,
)
from rebalance_lab.protocol_v2.coordinator.classic_members.member_assignment import partitions_by_topic
from rebalance_lab.protocol_v2.coordinator.config import CoordinatorConfig
from rebalance_lab.protocol_v2.coordinator.fencing import Refused
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup
from rebalance_lab.protocol_v2.coordinator.state.records import (
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMetadata,
    GroupMetadata,
    GroupRecord,
    TargetMetadata,
    apply_to,
    ending,
)
from rebalance_lab.protocol_v2.coordinator.state.shard import SESSION, Done, Turn
from rebalance_lab.protocol_v2.coordinator.state.states import Event, MemberState
from rebalance_lab.protocol_v2.coordinator.state.values import (
    ClassicMetadata,
    ConsumerMember,
    CurrentAssignment,
    MemberMetadata,
    Target,
)

PROTOCOL_TYPE = "consumer"


@dataclass(slots=True)
class Opened:
    """Hold the group that a heartbeat is about: an existing one, or one that will exist if the heartbeat is
    accepted.
    """

    group: ConsumerGroup
    before: list[Any]
    """Records that make it so."""
    event: Event = Event.HEARTBEAT
    is_draft: bool = False
    was_classic: bool = False

    def commit(self, turn: Turn, records: Sequence[Any], done: Done, *, member_id: str) -> None:
        group_id = self.group.group_id
        if not self.is_draft:
            turn.commit(group_id, records, self.event, done, member_id=member_id)
            return
        undo: Callable[[Turn], None] = nothing
        if group_id in turn.shard.groups:
            undo = remembering(turn.shard.groups.pop(group_id))
            turn.shard.forgotten.discard(group_id)
        if self.was_classic:
            effects, take_back = turn.shard.classic.forget(group_id, turn.now_ms)
            turn.from_classic(effects)
            undo = having_back(take_back)
        turn.commit(group_id, [*self.before, *records], self.event, done, member_id=member_id, on_undo=undo)
        group = turn.shard.groups[group_id]
        group.deadline, group.view = self.group.deadline, self.group.view


def nothing(turn: Turn) -> None:
    pass


def remembering(erased: ConsumerGroup) -> Callable[[Turn], None]:
    """Return a function that restores an empty, forgotten group if its successor cannot be stored."""

    def undo(turn: Turn) -> None:
        turn.shard.groups[erased.group_id] = erased
        turn.shard.forgotten.add(erased.group_id)

    return undo


def having_back(take_back: TakeBack) -> Callable[[Turn], None]:
    return lambda turn: turn.from_classic(take_back(turn.now_ms))


def unadopt(group_id: str) -> Callable[[Turn], None]:
    def undo(turn: Turn) -> None:
        effects, _ = turn.shard.classic.forget(group_id, turn.now_ms)
        turn.from_classic(effects)

    return undo


def open_group(turn: Turn, group_id: str, *, joins: bool) -> Opened:
    group = turn.shard.in_memory(group_id)
    if group is not None:
        return Opened(group, [])
    if not joins:
        raise Refused(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    fresh = ConsumerGroup(group_id=group_id)
    match turn.shard.classic.phase(group_id):
        case None:
            return Opened(group=fresh, before=[], is_draft=True)
        case "Empty":
            gone = turn.shard.classic.tombstone(group_id)
            return Opened(group=fresh, before=[gone], is_draft=True, was_classic=True)
    records = upgraded(turn, group_id)
    for record in records:
        apply_to(fresh, record)
    before = [turn.shard.classic.tombstone(group_id), *records]
    return Opened(group=fresh, before=before, event=Event.UPGRADED, is_draft=True, was_classic=True)


def upgraded(turn: Turn, group_id: str) -> list[GroupRecord]:
    """Upgrade a group. Waiting members are told to join again before anything can go wrong, which is not taken back."""
    image = turn.shard.classic.image_of(group_id)
    check_upgrade(turn.config, image)
    turn.from_classic(turn.shard.classic.answer_parked(group_id, Error.REBALANCE_IN_PROGRESS, turn.now_ms))
    if image.protocol_name is None and image.members:
        raise Refused(Error.UNKNOWN_SERVER_ERROR)  # a first join phase: Kafka trips over the missing protocol
    try:
        members = [upgraded_member(turn, image, member) for member in image.members]
    except MalformedBytes:
        message = f"Cannot upgrade classic group {group_id}: the embedded consumer protocol is malformed."
        raise Refused(Error.GROUP_ID_NOT_FOUND, message) from None
    for member in image.members:
        turn.set_timer((SESSION, group_id, member.member_id), member.session_timeout_ms)
    return conversion_records(turn, image, members)


def check_upgrade(config: CoordinatorConfig, image: ClassicGroupImage) -> None:
    reason = None
    if not config.group_consumer_migration_policy.upgrades:
        reason = "online upgrade is disabled"
    elif image.protocol_type != PROTOCOL_TYPE:
        reason = "the group does not use the consumer embedded protocol"
    elif len(image.members) > config.group_consumer_max_size:
        reason = "the group size exceeds the consumer group maximum size"
    if reason is not None:
        message = f"Cannot upgrade classic group {image.group_id} to consumer group because {reason}."
        raise Refused(Error.GROUP_ID_NOT_FOUND, message)


def upgraded_member(turn: Turn, image: ClassicGroupImage, member: ClassicMemberImage) -> ConsumerMember:
    """Convert a member as the classic group left it; an assignment that was never given is empty."""
    partitions: list[TopicPartition] = []
    if member.assignment:
        assignment = turn.shard.codec.assignment(member.assignment)
        if assignment.has_user_data:
            message = f"Cannot upgrade classic group {image.group_id} because an unsupported custom assignor is in use."
            raise Refused(Error.GROUP_ID_NOT_FOUND, message)
        for name, listed in assignment.partitions.items():
            if name in turn.shard.image.topics:
                partitions += [(turn.shard.image.topics[name].topic_id, partition) for partition in listed]
    data = next((protocol.metadata for protocol in member.protocols if protocol.name == image.protocol_name), None)
    if data is None:
        # The member joined during this rebalance, and does not support the protocol of the generation before.
        raise Refused(Error.UNKNOWN_SERVER_ERROR)
    subscription = turn.shard.codec.subscription(data)
    metadata = MemberMetadata(
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(set(subscription.topics))),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMetadata(session_timeout_ms=member.session_timeout_ms, protocols=member.protocols),
    )
    current = CurrentAssignment(
        member_epoch=image.generation_id,
        previous_member_epoch=image.generation_id,
        state=MemberState.STABLE,
        assigned=dict.fromkeys(partitions, image.generation_id),
    )
    return ConsumerMember(member.member_id, metadata, current)


def conversion_records(turn: Turn, image: ClassicGroupImage, members: list[ConsumerMember]) -> list[GroupRecord]:
    group_id, epoch = image.group_id, image.generation_id
    topics = {name for member in members for name in member.metadata.subscribed_topic_names}
    group = GroupMetadata(epoch=epoch, metadata_hash=turn.shard.image.hash_of(topics))
    target = TargetMetadata(assignment_epoch=epoch, assignment_timestamp=None)
    records: list[GroupRecord] = [
        ConsumerGroupMemberMetadata(group_id=group_id, member_id=member.member_id, value=member.metadata)
        for member in members
    ]
    records.append(ConsumerGroupMetadata(group_id=group_id, value=group))
    records += [
        ConsumerGroupTargetAssignmentMember(
            group_id=group_id, member_id=member.member_id, value=Target.of(frozenset(member.current.assigned))
        )
        for member in members
    ]
    records.append(ConsumerGroupTargetAssignmentMetadata(group_id=group_id, value=target))
    records += [
        ConsumerGroupCurrentMemberAssignment(group_id=group_id, member_id=member.member_id, value=member.current)
        for member in members
    ]
    return records


def may_downgrade_without(config: CoordinatorConfig, group: ConsumerGroup, leaving: Sequence[ConsumerMember]) -> bool:
    """Tell whether members are left, and all of them speak the classic protocol."""
    left = len(group.members) - len(leaving)
    classic_left = group.classic_members - sum(member.metadata.classic is not None for member in leaving)
    return 0 < left == classic_left and may_be_classic(config, left)


def may_be_classic(config: CoordinatorConfig, size: int) -> bool:
    return config.group_consumer_migration_policy.downgrades and size <= config.group_max_size


def downgrade(
    turn: Turn,
    group: ConsumerGroup,
    *,
    done: Done,
    leaving: Iterable[ConsumerMember] = (),
    joining: ConsumerMember | None = None,
    replaced: str | None = None,
    before: Sequence[GroupRecord] = (),
    rebalance: bool = True,
) -> None:
    """Convert the group to a classic one. `joining` takes the place of the static member `replaced`; `before` are the
    records that say so.
    """
    group_id = group.group_id
    gone = {member.member_id for member in leaving}
    stays = [group.members[member_id] for member_id in group.order if member_id not in gone and member_id != replaced]
    if joining is not None:
        stays.append(joining)
    image = downgraded(turn, group, stays, {joining.member_id: replaced} if joining and replaced else {})
    records = [*before, *(with_id(record, replaced, joining) for record in ending(group))]
    adopted, effects = turn.shard.classic.adopt(image, turn.now_ms, rebalance=rebalance)
    # Timers run on, as in Kafka: nobody heeds them in a classic group, but if it is upgraded again before they are due,
    # a member that never sent its SyncGroup is removed after all.
    turn.commit(group_id, [*records, *adopted], Event.DOWNGRADED, done, on_undo=unadopt(group_id))
    turn.from_classic(effects)


def with_id(record: GroupRecord, replaced: str | None, joining: ConsumerMember | None) -> GroupRecord:
    """Write the successor's end instead of the replaced member's, which is already written."""
    if joining is None or getattr(record, "member_id", None) != replaced:
        return record
    kind: Any = type(record)
    ended: GroupRecord = kind(group_id=record.group_id, member_id=joining.member_id, value=None)
    return ended


def downgraded(
    turn: Turn, group: ConsumerGroup, members: Sequence[ConsumerMember], former: dict[str, str]
) -> ClassicGroupImage:
    """Describe the group after a downgrade; `former` maps new member ids to those that they replace."""
    return ClassicGroupImage(
        group_id=group.group_id,
        generation_id=group.group_epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=None,  # the classic side lets its members vote
        members=tuple(
            classic_member(turn, group, member, former.get(member.member_id, member.member_id)) for member in members
        ),
    )


def classic_member(turn: Turn, group: ConsumerGroup, member: ConsumerMember, target_of: str) -> ClassicMemberImage:
    metadata = member.metadata
    assert metadata.classic is not None
    target = group.target_of(target_of)
    by_topic = partitions_by_topic(turn.shard.image, target.partitions, order=target.order, copied=True)
    return ClassicMemberImage(
        member_id=member.member_id,
        instance_id=metadata.instance_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        session_timeout_ms=metadata.classic.session_timeout_ms,
        rebalance_timeout_ms=metadata.rebalance_timeout_ms,
        protocols=metadata.classic.protocols,
        assignment=turn.shard.codec.encode(by_topic, like=metadata.classic.protocols[0].metadata),
    )
