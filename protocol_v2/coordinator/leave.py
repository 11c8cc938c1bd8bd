"""End memberships: a member leaves, an administrator removes it, or one of its timers runs out.

Returns    tombstones for each member, one bump of the group epoch, or a downgrade if only classic members are left.
           The target is not touched: the next heartbeat of any member renews it
Reference  consumerGroupFenceMembers in Apache Kafka
Start at   remove_members
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v2.coordinator.assignment.subscriptions import bumped
from rebalance_lab.protocol_v2.coordinator.classic_members.conversion import downgrade, may_downgrade_without
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup, tally
from rebalance_lab.protocol_v2.coordinator.state.records import ConsumerGroupRegularExpression, GroupRecord, removal
from rebalance_lab.protocol_v2.coordinator.state.shard import JOIN, REBALANCE, SESSION, SYNC, Done, Turn, is_gone
from rebalance_lab.protocol_v2.coordinator.state.states import Event
from rebalance_lab.protocol_v2.coordinator.state.values import ConsumerMember

RETRY_MS = 500
"""When the log refuses what a timer wants written, the timer tries again."""


def remove_members(
    turn: Turn, group: ConsumerGroup, members: Sequence[ConsumerMember], event: Event, done: Done
) -> None:
    if may_downgrade_without(turn.config, group, members):
        downgrade(turn, group, leaving=members, done=done)
        return
    group_id = group.group_id
    records: list[GroupRecord] = []
    for member in members:
        records += removal(group_id, member.member_id)
    dropped = unused_regexes(group, members)
    records += [ConsumerGroupRegularExpression(group_id=group_id, regex=regex, value=None) for regex in dropped]
    records.append(bumped(turn, group, turn.shard.image.hash_of(topics_without(group, members, dropped))))
    turn.cancel_timers(group_id, [member.member_id for member in members])
    who = members[0].member_id if len(members) == 1 else None
    turn.commit(group_id, records, event, done, member_id=who)


def unused_regexes(group: ConsumerGroup, members: Iterable[ConsumerMember]) -> list[str]:
    left = Counter(group.regexes)
    used = [member.metadata.subscribed_topic_regex for member in members if member.metadata.subscribed_topic_regex]
    tally(left, used, -1)
    return [regex for regex in dict.fromkeys(used) if not left[regex]]


def topics_without(group: ConsumerGroup, members: Iterable[ConsumerMember], regexes: Iterable[str]) -> set[str]:
    gone: Counter[str] = Counter()
    for member in members:
        gone.update(member.metadata.subscribed_topic_names)
    unmatched: Counter[str] = Counter()
    for regex in regexes:
        if regex in group.resolved:
            unmatched.update(group.resolved[regex].topics)
    by_name = {name for name, count in group.names.items() if count > gone[name]}
    return by_name | {name for name, count in group.regex_topics.items() if count > unmatched[name]}


EXPIRIES = {
    SESSION: Event.SESSION_EXPIRED,
    REBALANCE: Event.REBALANCE_EXPIRED,
    JOIN: Event.JOIN_EXPIRED,
    SYNC: Event.SYNC_EXPIRED,
}


def on_member_timer(turn: Turn, kind: str, group_id: str, member_id: str) -> None:
    """Handle a timer, which may outlive its member and its group. The join and sync timers of a classic member outlive
    its change to the consumer protocol as well, and still remove it: so does Kafka.
    """
    shard = turn.shard
    group = shard.groups.get(group_id)
    started_at = shard.revoking_since.pop((group_id, member_id), None) if kind == REBALANCE else None
    if kind == JOIN:
        shard.join_timers.discard((group_id, member_id))
    if is_gone(group, member_id):
        return
    assert group is not None
    member = group.members[member_id]
    if kind == REBALANCE and member.current.member_epoch != started_at:
        return

    def durable(turn: Turn, error: Error) -> None:
        if error is not Error.NONE and not is_gone(turn.shard.groups.get(group_id), member_id):
            if started_at is not None:
                turn.shard.revoking_since[group_id, member_id] = started_at
            turn.set_timer((kind, group_id, member_id), RETRY_MS)

    remove_members(turn, group, [member], EXPIRIES[kind], durable)
