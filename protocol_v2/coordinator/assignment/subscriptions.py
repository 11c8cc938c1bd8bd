"""Track what members subscribe to: names, regular expressions, and topics that come and go.

Names      a set; a topic that does not exist may be named and simply has no partitions yet
Expression resolved apart from heartbeats, all of a group at once, at most every ten seconds; until then it matches
           nothing. A timer stands for the broker's background task, which sees the topics as they were when it began
Topics     a change of the topics that a group subscribes to is noticed by its next heartbeat, which compares a hash
Reference  maybeUpdateRegularExpressions, handleRegularExpressionsResult, updateSubscriptionMetadata in Apache Kafka
Start at   update_regex, refreshed
"""

from __future__ import annotations

from collections import Counter
from enum import Enum

from rebalance_lab.protocol_v1.common.effects import TimerKey
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v2.common.regex import compile_regex
from rebalance_lab.protocol_v2.common.regex_program import BadRegex
from rebalance_lab.protocol_v2.common.topic_image import MetadataHash, MetadataImage
from rebalance_lab.protocol_v2.coordinator.assignment.subscription_type import Subscriptions
from rebalance_lab.protocol_v2.coordinator.fencing import Refused
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup, RefreshDeadline, tally
from rebalance_lab.protocol_v2.coordinator.state.records import (
    ConsumerGroupMetadata,
    ConsumerGroupRegularExpression,
    GroupMetadata,
    GroupRecord,
)
from rebalance_lab.protocol_v2.coordinator.state.shard import Turn, ignore
from rebalance_lab.protocol_v2.coordinator.state.states import Event
from rebalance_lab.protocol_v2.coordinator.state.values import MemberMetadata, Resolution, ResolvedRegex

MIN_REFRESH_INTERVAL_MS = 10_000
REFRESH_INTERVAL_MS = 2**31 - 1
"""Kafka's 24.8 days: a refresh is due because topics changed, hardly ever because of its age."""
RESOLUTION_MS = 1
"""The broker's task takes a moment: its result never comes before the answer to the heartbeat that started it."""


class RegexUpdate(Enum):
    UNCHANGED = "unchanged"
    UNRESOLVED = "changed to one that is not resolved yet"
    RESOLVED = "changed to one that is resolved, or to none"


def regex_key(group_id: str) -> TimerKey:
    return ("consumer-regex", group_id)


def update_regex(
    turn: Turn, group: ConsumerGroup, before: MemberMetadata, after: MemberMetadata, records: list[GroupRecord]
) -> RegexUpdate:
    """Update a member's expression; a heartbeat starts a resolution of the group's expressions here too."""
    old, new = before.subscribed_topic_regex, after.subscribed_topic_regex
    update = RegexUpdate.UNCHANGED
    is_new_here = False
    if old != new:
        if old and group.regexes[old] == 1:
            records.append(ConsumerGroupRegularExpression(group_id=group.group_id, regex=old, value=None))
        is_new_here = bool(new) and not group.regexes[new]
        if is_new_here:
            check_regex(new)
        known = not new or new in group.resolved
        update = RegexUpdate.RESOLVED if known and not is_new_here else RegexUpdate.UNRESOLVED
    if is_new_here or group.regexes:
        maybe_resolve(turn, group, old, new, is_new_here)
    return update


def check_regex(regex: str) -> None:
    try:
        compile_regex(regex)
    except BadRegex as error:
        raise Refused(Error.INVALID_REGULAR_EXPRESSION, f"SubscribedTopicRegex is not valid: {error}.") from None


def maybe_resolve(turn: Turn, group: ConsumerGroup, old: str, new: str, is_new_here: bool) -> None:
    if group.group_id in turn.shard.resolving:
        return
    last = next(iter(group.resolved.values()), None)  # all are refreshed together
    if last is not None and turn.now_ms <= last.timestamp + MIN_REFRESH_INTERVAL_MS:
        return
    regexes = regexes_with(group, old, new)
    image = turn.shard.image
    old_age_ms = turn.config.group_consumer_regex_refresh_interval_ms
    due = (
        is_new_here
        or len(regexes) != len(group.resolved)
        or (last is not None and last.version < image.new_topics_at)
        or (last is not None and turn.now_ms > last.timestamp + old_age_ms)
    )
    if due and regexes:
        resolved = {regex: resolve(regex, image, turn.now_ms) for regex in sorted(regexes)}
        turn.shard.resolving[group.group_id] = Resolution(resolved=resolved)
        turn.set_timer(regex_key(group.group_id), RESOLUTION_MS)


def resolve(regex: str, image: MetadataImage, now_ms: int) -> ResolvedRegex:
    matches = compile_regex(regex)
    topics = tuple(name for name in sorted(image.topics) if matches(name))
    return ResolvedRegex(topics=topics, version=image.version, timestamp=now_ms)


def on_regex_timer(turn: Turn, group_id: str) -> None:
    resolution = turn.shard.resolving.pop(group_id, None)
    group = turn.shard.groups.get(group_id)
    if resolution is None or group is None:
        return
    records: list[GroupRecord] = []
    regex_topics = Counter(group.regex_topics)
    changed = False
    for regex, resolved in resolution.resolved.items():
        if not group.regexes[regex]:
            continue  # no member wants it any more
        before = group.resolved.get(regex)
        old_topics = before.topics if before else ()
        if old_topics != resolved.topics:
            changed = True
            tally(regex_topics, old_topics, -1)
            tally(regex_topics, resolved.topics, +1)
        records.append(ConsumerGroupRegularExpression(group_id=group_id, regex=regex, value=resolved))
    metadata_hash = turn.shard.image.hash_of({*group.names, *regex_topics})
    if changed or metadata_hash != group.metadata_hash:
        records.append(bumped(turn, group, metadata_hash))
    turn.commit(group_id, records, Event.REGEX_RESOLVED, ignore)


def bumped(turn: Turn, group: ConsumerGroup, metadata_hash: MetadataHash) -> ConsumerGroupMetadata:
    epoch = group.group_epoch + 1
    group.deadline = RefreshDeadline(turn.now_ms + REFRESH_INTERVAL_MS, epoch)
    value = GroupMetadata(epoch=epoch, metadata_hash=metadata_hash)
    return ConsumerGroupMetadata(group_id=group.group_id, value=value)


def has_expired(group: ConsumerGroup, now_ms: int) -> bool:
    """Tell whether the deadline has expired. If the group epoch is below its own, the write that set it was taken
    back.
    """
    return now_ms >= group.deadline.at_ms or group.group_epoch < group.deadline.group_epoch


def refreshed(turn: Turn, group: ConsumerGroup, changed: Subscriptions, bump: bool, records: list[GroupRecord]) -> int:
    """Return the group epoch after a look at the topics; it moves if they changed or if `bump` says so."""
    metadata_hash = turn.shard.image.hash_of(changed.topics())
    if bump or metadata_hash != group.metadata_hash:
        records.append(bumped(turn, group, metadata_hash))
        return group.group_epoch + 1
    group.deadline = RefreshDeadline(turn.now_ms + REFRESH_INTERVAL_MS, group.group_epoch)
    return group.group_epoch


def subscriptions_with(group: ConsumerGroup, before: MemberMetadata, after: MemberMetadata) -> Subscriptions:
    """Return the group's subscriptions once one member has changed from `before` to `after`."""
    names, regex_topics = Counter(group.names), Counter(group.regex_topics)
    tally(names, before.subscribed_topic_names, -1)
    tally(names, after.subscribed_topic_names, +1)
    old, new = before.subscribed_topic_regex, after.subscribed_topic_regex
    if old and old != new and group.regexes[old] == 1 and old in group.resolved:
        tally(regex_topics, group.resolved[old].topics, -1)
    return Subscriptions(names, regexes_with(group, old, new), regex_topics)


def regexes_with(group: ConsumerGroup, old: str, new: str) -> Counter[str]:
    regexes = Counter(group.regexes)
    tally(regexes, [old] if old else [], -1)
    tally(regexes, [new] if new else [], +1)
    return regexes


def topics_changed(turn: Turn, changed: frozenset[str]) -> None:
    """Note that topics changed. Nothing is written now: the groups' next heartbeats look."""
    for group in turn.shard.groups.values():
        if any(name in group.names or name in group.regex_topics for name in changed):
            group.deadline = RefreshDeadline(turn.now_ms, group.group_epoch)
