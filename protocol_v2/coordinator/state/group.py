"""Hold a consumer group: what the log says about it, and the indices that keep every message cheap.

Given      values from records.apply, the one place where a group changes; it decides nothing by itself
Invariant  `partition_epochs` is {p: epoch of m} for every p that a member m holds or is giving up. No other member
           holds p. `stable_at`, `names`, `regexes`, `assignors` and the classic counters count over members. `static`
           maps each instance id to its one holder
Cost       what a heartbeat touches is the size of its member's share, whatever the size of the group. A heartbeat that
           changes membership or a subscription also sums over the counts of the group's topics
Reference  ConsumerGroup and ModernGroup in Apache Kafka
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from rebalance_lab.assignors.model import Assignment, Group
from rebalance_lab.protocol_v1.common.errors import InvariantBroken
from rebalance_lab.protocol_v2.common.topic_image import MetadataHash, TopicPartition, topic_name
from rebalance_lab.protocol_v2.coordinator.assignment.subscription_type import Subscriptions
from rebalance_lab.protocol_v2.coordinator.state.member_order import TimelineOrder
from rebalance_lab.protocol_v2.coordinator.state.states import GroupState, MemberState, group_state
from rebalance_lab.protocol_v2.coordinator.state.values import (
    GONE,
    JUST_ARRIVED,
    NO_TARGET,
    ConsumerMember,
    CurrentAssignment,
    MemberMetadata,
    ResolvedRegex,
    Target,
)

FIRST_EPOCH = 1
Key = TypeVar("Key", str, int)


@dataclass(slots=True)
class RefreshDeadline:
    """Hold when the group's topics are looked at again, and the group epoch at which that was settled."""

    at_ms: int = 0
    group_epoch: int = 0


@dataclass(slots=True)
class AssignorView:
    """Hold the topics of the last assignor call with their layout, kept so that the next call can reuse its shares."""

    group: Group
    topic_ids: tuple[str, ...]
    answer: Assignment | None = None


@dataclass(slots=True, kw_only=True)
class ConsumerGroup:
    group_id: str
    group_epoch: int = FIRST_EPOCH
    metadata_hash: MetadataHash = ()
    assignment_epoch: int = FIRST_EPOCH
    assignment_timestamp: int | None = None
    """When the target was computed; None (Kafka's 0): never, or before the group was upgraded."""
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    order: TimelineOrder = field(default_factory=TimelineOrder)
    static: dict[str, str] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    resolved: dict[str, ResolvedRegex] = field(default_factory=dict)
    partition_epochs: dict[TopicPartition, int] = field(default_factory=dict)

    stable_at: Counter[int] = field(default_factory=Counter)
    """How many members are STABLE at which epoch."""
    names: Counter[str] = field(default_factory=Counter)
    regexes: Counter[str] = field(default_factory=Counter)
    regex_topics: Counter[str] = field(default_factory=Counter)
    """By how many resolved expressions, not members, a topic is matched."""
    homogeneous: bool = True
    """As of the last record about a member: an expression that is resolved or dropped later is not looked at again."""
    regexes_moved: bool = False
    """An expression was, so the next record about a member is to look, whatever it says."""
    assignors: Counter[str] = field(default_factory=Counter)
    classic_members: int = 0
    classic_protocols: Counter[str] = field(default_factory=Counter)
    name_sets: dict[tuple[str, ...], tuple[tuple[str, ...], frozenset[str]]] = field(default_factory=dict)

    deadline: RefreshDeadline = field(default_factory=RefreshDeadline)
    """Not in the log: after a fail-over the first heartbeat looks."""
    view: AssignorView | None = None
    loading: bool = False
    """A log that is being compacted may show one partition with two owners for a moment; a live group may not."""

    @property
    def state(self) -> GroupState:
        return group_state(
            members=len(self.members),
            reconciled=self.stable_at.get(self.assignment_epoch, 0),
            group_epoch=self.group_epoch,
            assignment_epoch=self.assignment_epoch,
        )

    def target_of(self, member_id: str) -> Target:
        return self.targets.get(member_id, NO_TARGET)

    @property
    def subscriptions(self) -> Subscriptions:
        return Subscriptions(self.names, self.regexes, self.regex_topics)

    def interned(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return names sorted, each once, in one tuple for all members that subscribe alike: an assignor sees at once
        that they do.
        """
        ordered = tuple(sorted(set(names)))
        return self.name_sets.setdefault(ordered, (ordered, frozenset(ordered)))[0]

    def subscribed_names(self, metadata: MemberMetadata) -> frozenset[str]:
        names = metadata.subscribed_topic_names
        return self.name_sets.setdefault(names, (names, frozenset(names)))[1]

    def matched_topics(self, metadata: MemberMetadata) -> tuple[str, ...]:
        """Return the topics that an expression matches; one that is not resolved yet matches nothing."""
        resolved = self.resolved.get(metadata.subscribed_topic_regex)
        return resolved.topics if resolved is not None else ()

    def is_subscribed(self, metadata: MemberMetadata, topic_id: str) -> bool:
        name = topic_name(topic_id)
        return name in self.subscribed_names(metadata) or name in self.matched_topics(metadata)

    # What records change

    def set_metadata(self, member_id: str, metadata: MemberMetadata | None) -> None:
        before = self.members.get(member_id)
        if metadata is None:
            self._remove(before)
            return
        current = before.current if before else JUST_ARRIVED
        if before is not None:
            self._count(before.metadata, -1)
        else:
            self._count_state(current, +1)
        self._count(metadata, +1)
        self.members[member_id] = ConsumerMember(member_id, metadata, current)
        self.order.put(member_id)
        if before is not None and before.metadata.instance_id not in (None, metadata.instance_id):
            self._forget_instance(before)
        if metadata.instance_id is not None:
            self.static[metadata.instance_id] = member_id
        self._renew_subscription_type()

    def set_current(self, member_id: str, current: CurrentAssignment | None) -> None:
        before = self.members.get(member_id)
        is_new = before is None
        if before is None:
            if current is None:
                return
            before = ConsumerMember(member_id, MemberMetadata(), JUST_ARRIVED)
            self._count_state(JUST_ARRIVED, +1)
        after = current or GONE
        self._count_state(before.current, -1)
        self._count_state(after, +1)
        self._move_partitions(before.current, after)
        self.members[member_id] = ConsumerMember(member_id, before.metadata, after)
        self.order.put(member_id)
        if is_new or self.regexes_moved:
            self._renew_subscription_type()

    def set_target(self, member_id: str, target: Target | None) -> None:
        if target is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target

    def set_resolved(self, regex: str, resolved: ResolvedRegex | None) -> None:
        self.regexes_moved = True
        before = self.resolved.pop(regex, None)
        if before is not None:
            tally(self.regex_topics, before.topics, -1)
        if resolved is not None:
            self.resolved[regex] = resolved
            tally(self.regex_topics, resolved.topics, +1)

    def _remove(self, member: ConsumerMember | None) -> None:
        if member is None:
            return
        if not self.loading and (member.current is not GONE or member.member_id in self.targets):
            raise InvariantBroken(f"member {member.member_id} is removed while it still has an assignment")
        self._count(member.metadata, -1)
        self._count_state(member.current, -1)
        self._move_partitions(member.current, GONE)
        del self.members[member.member_id]
        self.order.remove(member.member_id)
        self._forget_instance(member)
        self._renew_subscription_type()

    def _renew_subscription_type(self) -> None:
        self.homogeneous = self.subscriptions.is_homogeneous(len(self.members))
        self.regexes_moved = False

    def _forget_instance(self, member: ConsumerMember) -> None:
        instance_id = member.metadata.instance_id
        if instance_id is not None and self.static.get(instance_id) == member.member_id:
            del self.static[instance_id]

    def _count(self, metadata: MemberMetadata, by: int) -> None:
        tally(self.names, metadata.subscribed_topic_names, by)
        if metadata.subscribed_topic_regex:
            tally(self.regexes, (metadata.subscribed_topic_regex,), by)
        if metadata.server_assignor is not None:
            tally(self.assignors, (metadata.server_assignor,), by)
        if metadata.classic is not None:
            self.classic_members += by
            tally(self.classic_protocols, {protocol.name for protocol in metadata.classic.protocols}, by)

    def _count_state(self, current: CurrentAssignment, by: int) -> None:
        if current.state is MemberState.STABLE:
            tally(self.stable_at, (current.member_epoch,), by)

    def _move_partitions(self, before: CurrentAssignment, after: CurrentAssignment) -> None:
        epochs = self.partition_epochs
        for held in (before.assigned, before.revoking):
            for partition in held:
                if epochs.get(partition) == before.member_epoch:
                    del epochs[partition]
                elif not self.loading:
                    raise InvariantBroken(f"{partition} left a member that did not hold it")
        for held in (after.assigned, after.revoking):
            for partition in held:
                if not self.loading and partition in epochs:
                    raise InvariantBroken(f"{partition} is given away while somebody else holds it")
                epochs[partition] = after.member_epoch


def tally(counter: Counter[Key], keys: Iterable[Key], by: int) -> None:
    """Add to a counter, and remove keys that count no member: code that iterates takes each key for a subscription."""
    for key in keys:
        count = counter.get(key, 0) + by
        if count:
            counter[key] = count
        else:
            del counter[key]
