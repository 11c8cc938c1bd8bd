"""Run the steps that a heartbeat and a JoinGroup share: store the member, look at topics, renew the target, reconcile.

Given      a Step: the group, the member before and after the request, and what the member says it owns
Returns    records, in Kafka's order, and the member's new CurrentAssignment; only this member moves
Bump       at most one per request, however many reasons there are
Reference  consumerGroupHeartbeat, classicGroupJoinToConsumerGroup in Apache Kafka
Start at   Step
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from rebalance_lab.protocol_v2.common.topic_image import TopicPartition
from rebalance_lab.protocol_v2.coordinator.assignment.reconciliation import Circumstances, next_assignment
from rebalance_lab.protocol_v2.coordinator.assignment.subscriptions import (
    RegexUpdate,
    has_expired,
    refreshed,
    subscriptions_with,
    update_regex,
)
from rebalance_lab.protocol_v2.coordinator.assignment.target_assignment import (
    CurrentTarget,
    Joining,
    is_due,
    next_target,
)
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup
from rebalance_lab.protocol_v2.coordinator.state.records import (
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    GroupRecord,
)
from rebalance_lab.protocol_v2.coordinator.state.shard import REBALANCE, Turn
from rebalance_lab.protocol_v2.coordinator.state.states import MemberState
from rebalance_lab.protocol_v2.coordinator.state.values import ConsumerMember, CurrentAssignment, MemberMetadata


@dataclass(slots=True, kw_only=True)
class Step:
    turn: Turn
    group: ConsumerGroup
    """As it is; for a group that this request creates, one that no other request can see yet."""
    member: ConsumerMember
    metadata: MemberMetadata
    owned: Collection[TopicPartition] | None
    names_as_sent: tuple[str, ...] | None = None
    replaces: str | None = None
    """The member id that this static member had until now, if it is another one."""
    records: list[GroupRecord] = field(default_factory=list)
    names_changed: bool = False
    regex: RegexUpdate = RegexUpdate.UNCHANGED
    group_epoch: int = 0
    homogeneous: bool = True

    @property
    def subscription_changed(self) -> bool:
        return self.names_changed or self.regex is not RegexUpdate.UNCHANGED

    @property
    def joining(self) -> Joining:
        return Joining(
            before=self.member.metadata,
            after=ConsumerMember(self.member.member_id, self.metadata, self.member.current),
            names_as_sent=self.names_as_sent,
            replaces=self.replaces,
            homogeneous=self.homogeneous,
        )

    def store_member(self) -> None:
        before, after = self.member.metadata, self.metadata
        if after is not before and after != before:
            group_id, member_id = self.group.group_id, self.member.member_id
            self.records.append(ConsumerGroupMemberMetadata(group_id=group_id, member_id=member_id, value=after))
        self.names_changed = before.subscribed_topic_names != after.subscribed_topic_names
        self.regex = update_regex(self.turn, self.group, before, after, self.records)

    def refresh(self, *, bump: bool) -> None:
        """Look at the topics again if it is time. Otherwise the subscription type is the one without this member, as in
        Kafka.
        """
        group = self.group
        self.group_epoch, self.homogeneous = group.group_epoch, group.homogeneous
        if bump or has_expired(group, self.turn.now_ms):
            changed = subscriptions_with(group, self.member.metadata, self.metadata)
            self.group_epoch = refreshed(self.turn, group, changed, bump, self.records)
            known = self.member.member_id in group.members or self.metadata.instance_id in group.static
            self.homogeneous = changed.is_homogeneous(len(group.members) + (not known))

    def renew_target(self) -> CurrentTarget:
        if not is_due(self.turn, self.group, self.group_epoch):
            return self.kept_target()
        return next_target(self.turn, self.group, self.group_epoch, self.joining, self.records)

    def kept_target(self) -> CurrentTarget:
        """Return the present target, by instance id where there is one.

        A new member id gets what the old one had, but a member that was dynamic until now gets nothing before the next
        target.
        """
        group, instance_id = self.group, self.metadata.instance_id
        owner = self.member.member_id if instance_id is None else group.static.get(instance_id, "")
        return CurrentTarget(group.assignment_epoch, group.target_of(owner))

    def reconcile(self, goal: CurrentTarget) -> CurrentAssignment:
        group, image, metadata = self.group, self.turn.shard.image, self.metadata
        before = self.member.current
        if not self.subscription_changed and before.is_reconciled_to(goal.assignment_epoch):
            return before
        after = next_assignment(
            before,
            Circumstances(
                assignment_epoch=goal.assignment_epoch,
                target=goal.target,
                partition_epochs=group.partition_epochs,
                is_subscribed=lambda topic_id: image.exists(topic_id) and group.is_subscribed(metadata, topic_id),
                wants_anything=lambda: any(
                    name in image.topics for name in (*metadata.subscribed_topic_names, *group.matched_topics(metadata))
                ),
                owned=self.owned,
                subscription_changed=self.subscription_changed,
            ),
        )
        if after != before:
            member_id = self.member.member_id
            self.records.append(ConsumerGroupCurrentMemberAssignment(group.group_id, member_id, after))
            if metadata.classic is None:
                self.watch_revocation(after)
        return after

    def watch_revocation(self, current: CurrentAssignment) -> None:
        """Watch the revocation's deadline. Every new order to revoke starts the clock anew; a heartbeat without
        progress does not.
        """
        key = (self.group.group_id, self.member.member_id)
        if current.state is MemberState.UNREVOKED_PARTITIONS:
            self.turn.shard.revoking_since[key] = current.member_epoch
            self.turn.set_timer((REBALANCE, *key), max(0, self.metadata.rebalance_timeout_ms))
        else:
            self.turn.cancel_timer((REBALANCE, *key))
