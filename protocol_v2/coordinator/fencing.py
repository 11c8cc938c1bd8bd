"""Check the form of a heartbeat, the member that sends it, and the epoch that it claims.

Given      a request and the group as it is
Returns    nothing, or raises Refused with the error that the client is told; a refused request changes nothing
Lost       one lost answer is forgiven: the previous epoch is accepted if the member says what it owns and owns nothing
           but what it was given. Epoch 0 of a known dynamic member is always accepted and resets nothing
Reference  throwIfConsumerGroupHeartbeatRequestIsInvalid, throwIfConsumerGroupMemberEpochIsInvalid in Apache Kafka
Start at   check_form, check_member_epoch
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rebalance_lab.assignors.java.hash_order import string_order
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v2.common.messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STEP_OUT_EPOCH,
    UNCHANGED_TIMEOUT,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from rebalance_lab.protocol_v2.common.topic_image import MetadataImage, TopicPartition, topic_name
from rebalance_lab.protocol_v2.coordinator.config import CoordinatorConfig
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup
from rebalance_lab.protocol_v2.coordinator.state.values import ConsumerMember, CurrentAssignment

MEMBER_ID_FROM_CLIENT_SINCE = 1


class Refused(Exception):
    """Refuse a peer's mistake; the coordinator turns this exception into an answer."""

    def __init__(self, error: Error, message: str | None = None) -> None:
        super().__init__(message or error.name)
        self.error = error
        self.message = message


def check_form(request: ConsumerGroupHeartbeatRequest, assignors: Collection[str]) -> None:
    epoch = request.member_epoch
    needs_id = request.version >= MEMBER_ID_FROM_CLIENT_SINCE or epoch > 0 or epoch == LEAVE_EPOCH
    refuse_if(needs_id and not request.member_id.strip(), "MemberId can't be empty.")
    refuse_if(not request.group_id.strip(), "GroupId can't be empty.")
    refuse_if(request.instance_id is not None and not request.instance_id.strip(), "InstanceId can't be empty.")
    refuse_if(request.rack_id is not None and not request.rack_id.strip(), "RackId can't be empty.")
    if epoch == JOIN_EPOCH:
        no_timeout = request.rebalance_timeout_ms == UNCHANGED_TIMEOUT
        refuse_if(no_timeout, "RebalanceTimeoutMs must be provided in first request.")
        owns = request.topic_partitions is None or len(request.topic_partitions) > 0
        refuse_if(owns, "TopicPartitions must be empty when (re-)joining.")
        nothing = request.subscribed_topic_names is None and request.subscribed_topic_regex is None
        refuse_if(nothing, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    elif epoch < 0:
        refuse_if(epoch == STEP_OUT_EPOCH and request.instance_id is None, "InstanceId can't be null.")
        refuse_if(epoch < STEP_OUT_EPOCH, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        known = ", ".join(string_order(list(assignors)))  # Kafka keeps their names in a HashSet
        message = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {known}."
        raise Refused(Error.UNSUPPORTED_ASSIGNOR, message)


def refuse_if(wrong: bool, message: str) -> None:
    if wrong:
        raise Refused(Error.INVALID_REQUEST, message)


def check_room(group: ConsumerGroup, config: CoordinatorConfig, member_id: str) -> None:
    """Check that the group has room before any check of members: in a full group a new id of a static member finds
    none.
    """
    if len(group.members) >= config.group_consumer_max_size and member_id not in group.members:
        message = f"The consumer group has reached its maximum capacity of {config.group_consumer_max_size} members."
        raise Refused(Error.GROUP_MAX_SIZE_REACHED, message)


def known_member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    member = group.members.get(member_id)
    if member is None:
        raise Refused(Error.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
    return member


def static_member(group: ConsumerGroup, instance_id: str) -> ConsumerMember:
    holder = group.static.get(instance_id)
    if holder is None:
        raise Refused(Error.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    return group.members[holder]


def check_instance(holder: ConsumerMember, member_id: str) -> None:
    if holder.member_id != member_id:
        instance_id = holder.metadata.instance_id
        message = f"Static member {member_id} with instance id {instance_id} was fenced by member {holder.member_id}."
        raise Refused(Error.FENCED_INSTANCE_ID, message)


def identified(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """Return the member that a request names; with an instance id, only if that is the member's own."""
    if instance_id is None:
        return known_member(group, member_id)
    holder = static_member(group, instance_id)
    check_instance(holder, member_id)
    return holder


def check_member_epoch(current: CurrentAssignment, epoch: int, owned: Collection[TopicPartition] | None) -> None:
    """Check the member's epoch; `owned` is None when the request does not say."""
    if epoch > current.member_epoch:
        raise Refused(Error.FENCED_MEMBER_EPOCH, "The member epoch is larger than the one the coordinator knows.")
    if epoch < current.member_epoch:
        not_told_yet = epoch == current.previous_member_epoch
        if not not_told_yet or owned is None or not all(partition in current.assigned for partition in owned):
            raise Refused(Error.FENCED_MEMBER_EPOCH, "The member epoch is smaller than the one the coordinator knows.")


def owned_partitions(
    image: MetadataImage, current: CurrentAssignment, listed: Iterable[TopicPartitions] | None
) -> list[TopicPartition] | None:
    """Return the request's names as ids: the incarnation that the member holds, else the one that exists."""
    if listed is None:
        return None
    held: dict[str, str] = {}
    last = None
    for topic_id, _ in (*current.assigned, *current.revoking):
        if topic_id != last:
            held[topic_name(topic_id)] = last = topic_id
    owned: list[TopicPartition] = []
    for entry in listed:
        topic = image.topics.get(entry.topic_name)
        topic_id = held.get(entry.topic_name) or (topic.topic_id if topic else entry.topic_name)
        owned += [(topic_id, partition) for partition in entry.partitions]
    return owned
