"""Keep static membership: an instance id outlives the member ids that use it.

Steps out  with epoch -2: the member's partitions stay reserved (what it was giving up is free at once). The group epoch
           stays, and the session runs on from the last regular heartbeat
Returns    under any member id while stepped out: the new id takes over everything, at epoch 0
Fenced     while the holder has not stepped out, no other member can take the instance id, nor can the holder with epoch
           0. A takeover from the other protocol is not checked
Reference  KIP-345, KIP-848; getOrMaybeSubscribeStaticConsumerGroupMember in Apache Kafka
Start at   joining_static_member
"""

from __future__ import annotations

from dataclasses import replace

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v2.common.messages import JOIN_EPOCH, STEP_OUT_EPOCH
from rebalance_lab.protocol_v2.coordinator.fencing import Refused, check_instance, static_member
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup
from rebalance_lab.protocol_v2.coordinator.state.records import (
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupTargetAssignmentMember,
    GroupRecord,
    removal,
)
from rebalance_lab.protocol_v2.coordinator.state.values import (
    NOTHING,
    ConsumerMember,
    CurrentAssignment,
    MemberMetadata,
)


def joining_static_member(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str,
    *,
    takes_over: bool,
    classic: bool,
    records: list[GroupRecord],
) -> ConsumerMember:
    """Return the static member that joins. `takes_over`: the request may become the instance id's holder (epoch 0, or a
    JoinGroup without a member id).
    """
    holder = group.static.get(instance_id)
    if not takes_over:
        member = static_member(group, instance_id)
        check_instance(member, member_id)
        return member
    if holder is None:
        return group.members.get(member_id) or ConsumerMember(member_id, MemberMetadata())
    member = group.members[holder]
    if not classic and member.metadata.classic is None and not member.current.stepped_out:
        message = f"Static member {member_id} with instance id {instance_id} cannot join: {holder} has not left yet."
        raise Refused(Error.UNRELEASED_INSTANCE_ID, message)
    taken_over = replace(member.current, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH)
    records += replacement(group, member, member_id, taken_over)
    return ConsumerMember(member_id, member.metadata, taken_over)


def replacement(
    group: ConsumerGroup, old: ConsumerMember, member_id: str, current: CurrentAssignment
) -> list[GroupRecord]:
    group_id = group.group_id
    return [
        *removal(group_id, old.member_id),
        ConsumerGroupMemberMetadata(group_id=group_id, member_id=member_id, value=old.metadata),
        ConsumerGroupTargetAssignmentMember(
            group_id=group_id, member_id=member_id, value=group.target_of(old.member_id)
        ),
        ConsumerGroupCurrentMemberAssignment(group_id=group_id, member_id=member_id, value=current),
    ]


def stepped_out(current: CurrentAssignment) -> CurrentAssignment:
    """Set the assignment epochs to 0, so that the next holder may commit what the holder before had read."""
    return replace(current, member_epoch=STEP_OUT_EPOCH, revoking=NOTHING, assigned=dict.fromkeys(current.assigned, 0))
