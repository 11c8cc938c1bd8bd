"""Compute a target assignment for a group epoch, through an assignor.

Given      the group, the member whose request is being served as it will be, and the topics
Returns    records for every target that changes and for the new assignment epoch, and that member's own target
When       the group epoch is ahead of the assignment epoch and the assignment interval is over. Nothing is scheduled
           for the interval's end: the next heartbeat of any member computes the target
Cost       the assignor's, plus one look at every member; shares that stay are recognised without a look inside
Reference  TargetAssignmentBuilder, maybeUpdateTargetAssignment in Apache Kafka
Start at   is_due, next_target
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_lab.assignors.broker.range import ServerRangeAssignor
from rebalance_lab.assignors.java.hash_order import HashTable, capacity_for, string_hash
from rebalance_lab.assignors.model import EMPTY, Assignment, Group, Layout, Member, Share
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.fast_dataclass import fast_dataclass
from rebalance_lab.protocol_v2.common.topic_image import MetadataImage, topic_name
from rebalance_lab.protocol_v2.coordinator.assignment.subscription_type import assigned
from rebalance_lab.protocol_v2.coordinator.assignment.subscriptions import subscriptions_with
from rebalance_lab.protocol_v2.coordinator.assignment.topic_order import TopicOrders
from rebalance_lab.protocol_v2.coordinator.config import ASSIGNMENT_INTERVAL
from rebalance_lab.protocol_v2.coordinator.fencing import Refused
from rebalance_lab.protocol_v2.coordinator.state.group import AssignorView, ConsumerGroup, tally
from rebalance_lab.protocol_v2.coordinator.state.member_order import timeline_order
from rebalance_lab.protocol_v2.coordinator.state.records import (
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMetadata,
    GroupRecord,
    TargetMetadata,
)
from rebalance_lab.protocol_v2.coordinator.state.shard import Turn
from rebalance_lab.protocol_v2.coordinator.state.values import ConsumerMember, MemberMetadata, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """Hold the member whose request is served: before, after, and the member that it replaces."""

    before: MemberMetadata
    after: ConsumerMember
    names_as_sent: tuple[str, ...] | None = None
    """In the request's order, if it lists names: a broker's assignor sees them so."""
    replaces: str | None = None
    """The former id of this static member."""
    homogeneous: bool
    """Kafka's subscription type: see subscription_type.py."""


@fast_dataclass()
class CurrentTarget:
    assignment_epoch: int
    target: Target


def is_due(turn: Turn, group: ConsumerGroup, group_epoch: int) -> bool:
    return group.assignment_epoch < group_epoch and interval_is_over(turn, group)


def next_target(
    turn: Turn, group: ConsumerGroup, group_epoch: int, joining: Joining, records: list[GroupRecord]
) -> CurrentTarget:
    view, orders = compute(turn, group, joining)
    answer = orders.answer
    records += changed_targets(group, joining, view, orders)
    value = TargetMetadata(assignment_epoch=group_epoch, assignment_timestamp=turn.now_ms)
    records.append(ConsumerGroupTargetAssignmentMetadata(group_id=group.group_id, value=value))
    group.view = AssignorView(view.group, view.topic_ids, answer)
    return CurrentTarget(group_epoch, target_in(answer, joining.after.member_id, view))


def interval_is_over(turn: Turn, group: ConsumerGroup) -> bool:
    interval_ms = turn.setting(group.group_id, ASSIGNMENT_INTERVAL)
    last_ms = group.assignment_timestamp
    return interval_ms == 0 or last_ms is None or turn.now_ms >= last_ms + interval_ms


def compute(turn: Turn, group: ConsumerGroup, joining: Joining) -> tuple[AssignorView, TopicOrders]:
    view = assignor_view(group, turn.shard.image, joining)
    described = view.group.with_members(described_members(group, joining, view, turn.shard.image))
    assignor = turn.shard.assignors[preferred_assignor(turn, group, joining)]
    try:
        orders = TopicOrders(described, by_range=type(assignor) is ServerRangeAssignor)
        answer = assigned(assignor, described, homogeneous=joining.homogeneous, moves=orders.moves)
        orders.answer = checked(answer, described)
        return view, orders
    except Exception as error:
        raise Refused(Error.UNKNOWN_SERVER_ERROR, f"Failed to compute a new target assignment: {error}") from error


def assignor_view(group: ConsumerGroup, image: MetadataImage, joining: Joining) -> AssignorView:
    """Return the topics that are subscribed and exist. The layout stays as long as they do."""
    names = subscriptions_with(group, joining.before, joining.after.metadata).topics()
    names.update(group.matched_topics(joining.after.metadata))
    topics = {name: image.topics[name].topic for name in names if name in image.topics}
    view = group.view
    if view is not None and view.group.topics == topics and view.topic_ids == ids_of(view.group.layout, image):
        return view
    fresh = Group(topics, {})
    return AssignorView(fresh, ids_of(fresh.layout, image))


def ids_of(layout: Layout, image: MetadataImage) -> tuple[str, ...]:
    return tuple(image.topics[name].topic_id if name in image.topics else "" for name in layout.names)


def described_members(
    group: ConsumerGroup, joining: Joining, view: AssignorView, image: MetadataImage
) -> dict[str, Member]:
    """Describe the members in the order in which the broker's assignor gets to see them."""
    after = joining.after
    described: dict[str, Member] = {}
    topics_seen: dict[tuple[int, str], tuple[str, ...]] = {}
    for member_id in group.order:
        if member_id != joining.replaces:
            metadata = group.members[member_id].metadata
            alike = (id(metadata.subscribed_topic_names), metadata.subscribed_topic_regex)
            topics = topics_seen.get(alike)
            if topics is None:
                topics = topics_seen[alike] = subscribed(group, metadata, metadata.subscribed_topic_names)
            owned = previous_share(group, view, image, member_id)
            described[member_id] = Member(topics, owned, None, metadata.instance_id, metadata.rack_id)
    metadata = after.metadata
    names = metadata.subscribed_topic_names
    sent = joining.names_as_sent
    described[after.member_id] = Member(
        topics=subscribed(group, metadata, names if sent is None or sent == names else sent),
        owned=previous_share(group, view, image, joining.replaces or after.member_id),
        instance_id=metadata.instance_id,
        rack=metadata.rack_id,
    )
    return described


def subscribed(group: ConsumerGroup, metadata: MemberMetadata, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names and matches; where a member has both, the larger set goes first, as in Kafka's UnionSet."""
    matched = group.matched_topics(metadata)
    if not names or not matched:
        return names or matched
    first, second = (matched, names) if len(matched) >= len(set(names)) else (names, matched)
    return tuple(dict.fromkeys((*first, *second)))


def previous_share(
    group: ConsumerGroup, view: AssignorView, image: MetadataImage, member_id: str
) -> Mapping[str, Sequence[int]]:
    """Return the member's target, where possible as a share of the last answer: then the assignor need not look into
    it.
    """
    target = group.targets.get(member_id)
    if target is None:
        return EMPTY
    share, answer = target.share, view.answer
    if share is not None and target.topic_ids is view.topic_ids and share.layout is view.group.layout:
        if target.order is not None:
            return {name: share[name] for name in target.order}
        if answer is not None and answer.numbers.get(member_id) is share.numbers:
            return answer[member_id]
        return share
    owned: dict[str, list[int]] = {}
    for topic_id, partition in sorted(target.partitions):
        if image.exists(topic_id):
            owned.setdefault(topic_name(topic_id), []).append(partition)
    return owned if target.order is None else {name: owned[name] for name in target.order if name in owned}


def preferred_assignor(turn: Turn, group: ConsumerGroup, joining: Joining) -> str:
    """Return what most members ask for. A tie falls to the order of the HashMap into which Kafka copies the group's
    counts.
    """
    wanted = Counter(group.assignors)
    table = HashTable(string_hash, capacity_for(len(wanted)))
    for name in timeline_order(wanted):
        table.put(name)
    before, after = joining.before.server_assignor, joining.after.metadata.server_assignor
    tally(wanted, [before] if before else [], -1)
    if before and before not in wanted:
        table.remove(before)
    tally(wanted, [after] if after else [], +1)
    if after:
        table.compute_if_absent(after)
    return first_of_the_most(wanted, table) or next(iter(turn.shard.assignors))


def most_wanted(wanted: Mapping[str, int]) -> str | None:
    """Return the assignor that most members want as the group's description shows it, with ties in the order of its own
    table.
    """
    return first_of_the_most(wanted, timeline_order(wanted))


def first_of_the_most(wanted: Mapping[str, int], order: Iterable[str]) -> str | None:
    return max(order, key=lambda name: wanted[name], default=None)


def checked(answer: Any, described: Group) -> Assignment:
    """Check a custom assignor's answer, which may be any mapping: each partition once, to members that exist."""
    if type(answer) is Assignment and not answer.beyond and answer.layout is described.layout:
        return answer
    layout = described.layout
    numbers: dict[str, Sequence[int]] = dict.fromkeys(described.members, ())
    for member_id, share in answer.items():
        if member_id not in numbers:
            raise ValueError(f"{member_id} is not a member")
        found = layout.numbers_of(share)
        if found is None:
            raise ValueError(f"{member_id} is given a partition that does not exist")
        numbers[member_id] = found
    given = [number for share in numbers.values() for number in share]
    if len(set(given)) < len(given):
        raise ValueError("a partition is given to two members")
    return Assignment(layout, numbers)


def target_in(answer: Assignment, member_id: str, view: AssignorView) -> Target:
    share = answer[member_id] if member_id in answer.numbers else Share(answer.layout, ())
    assert isinstance(share, Share)
    return Target(share, view.topic_ids)


def changed_targets(
    group: ConsumerGroup, joining: Joining, view: AssignorView, orders: TopicOrders
) -> list[GroupRecord]:
    changed: list[GroupRecord] = []
    answer = orders.answer
    numbers, ids = answer.numbers, view.topic_ids
    joined = joining.after.member_id
    newcomer = [] if joined in group.members else [joined]
    for member_id in [*group.order, *newcomer]:
        if member_id == joining.replaces:
            continue
        old = group.targets.get(member_id)
        if old is not None:
            share = old.share
            if share is not None and old.topic_ids is ids and share.numbers is numbers.get(member_id):
                continue
            new = target_in(answer, member_id, view)
            if new == old:
                continue
        else:
            new = target_in(answer, member_id, view)
        new.order = orders.of(member_id)
        changed.append(ConsumerGroupTargetAssignmentMember(group_id=group.group_id, member_id=member_id, value=new))
    return changed
