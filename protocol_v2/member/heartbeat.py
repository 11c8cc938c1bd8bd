"""Send heartbeats: decide when one goes out, what it says, and what its answer changes.

Full       while joining, and after any failure: the coordinator may have missed something. Otherwise only what changed
Interval   the broker's, told in every answer; joining, acknowledging and leaving do not wait for it
One        heartbeat is in flight at a time, except that a leave does not wait for an earlier answer
Failures   back off and double, up to the maximum. After a lost coordinator or a fencing, the next heartbeat waits only
           for the coordinator, or for the member to join again
Poll       max.poll.interval is checked whenever a heartbeat could be sent, so without a coordinator no member expires.
           Java's thread checks it only when a heartbeat is due, which is up to one interval later
Reference  AbstractHeartbeatRequestManager and ConsumerHeartbeatRequestManager in Apache Kafka 4.3.1
Start at   tick, build, on_heartbeat
"""

from __future__ import annotations

from typing import Any

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import CloseOption, TopicPartition
from rebalance_lab.protocol_v2.common.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from rebalance_lab.protocol_v2.member.commits import by_topic
from rebalance_lab.protocol_v2.member.error_reactions import Reaction, reaction
from rebalance_lab.protocol_v2.member.membership import expire, fail, fence, leave_done, left, skip_leave
from rebalance_lab.protocol_v2.member.memory import NOWHERE, MemberMemory, MemberTurn, QueuedError, Sent, SentFields
from rebalance_lab.protocol_v2.member.reconciliation import receive
from rebalance_lab.protocol_v2.member.states import HURRIED, IN_GROUP, NOT_IN_GROUP, MemberEvent, MemberState

NOT_SURE = "\0"
"""In place of an expression that the coordinator may or may not hold; no expression is equal to it."""


def tick_at(memory: MemberMemory) -> int | None:
    """Return when `tick` has something to do next."""
    if not memory.coordinator_known or memory.state in NOT_IN_GROUP:
        return None
    poll_at_ms = memory.poll_at_ms if memory.state in IN_GROUP and not memory.in_poll else None
    if memory.heartbeats.in_flight is not None:
        return poll_at_ms
    heartbeat_at_ms = next_heartbeat_at(memory)
    if poll_at_ms is None or memory.config.quirks_of_java:
        return heartbeat_at_ms
    return min(heartbeat_at_ms, poll_at_ms)


def next_heartbeat_at(memory: MemberMemory) -> int:
    due_ms, retry_at_ms = memory.heartbeats.due_ms, memory.heartbeats.retry_at_ms
    if memory.state in HURRIED:
        return 0 if memory.config.quirks_of_java else retry_at_ms
    return due_ms if due_ms > retry_at_ms else retry_at_ms


def tick(turn: MemberTurn) -> int | None:
    """Do what is due, and return when there is something to do next."""
    memory = turn.memory
    if memory.state is MemberState.LEAVING:
        leave(turn)
        return tick_at(memory)
    due_ms = tick_at(memory)
    if due_ms is None or turn.now_ms < due_ms:
        return due_ms
    if memory.state in IN_GROUP and turn.now_ms >= memory.poll_at_ms and not memory.in_poll:
        expire(turn, lambda turn: send(turn, unheard=True))
        memory.heartbeats.forgive()
        forget_what_was_sent(memory)
        return tick_at(memory)
    send(turn)
    if memory.state is MemberState.ACKNOWLEDGING:
        reached = memory.current == memory.target
        turn.move(MemberEvent.ACKNOWLEDGED if reached else MemberEvent.ACKNOWLEDGED_OLD)
    return tick_at(memory)


def leave(turn: MemberTurn) -> None:
    memory = turn.memory
    remains = memory.closing is not None and memory.closing.option is CloseOption.REMAIN_IN_GROUP
    remains = remains and turn.config.group_instance_id is None
    if not memory.coordinator_known or (remains and not turn.config.quirks_of_java):
        skip_leave(turn)
    elif not remains or memory.heartbeats.in_flight is None:
        send(turn)
        turn.move(MemberEvent.LEAVE_SENT)
        left(turn, sent=True)


def send(turn: MemberTurn, *, unheard: bool = False) -> None:
    heartbeats = turn.memory.heartbeats
    request = build(turn)
    heartbeats.in_flight = request.correlation_id
    heartbeats.due_ms = turn.now_ms + heartbeats.interval_ms
    turn.send(request, unheard=unheard)


# What it says


def build(turn: MemberTurn) -> ConsumerGroupHeartbeatRequest:
    """Build a heartbeat; fields that are not set say "as before"."""
    memory, config, memo = turn.memory, turn.config, turn.memory.heartbeats.memo
    subscribed = memory.subscribed
    full = memory.state is MemberState.JOINING
    fields: dict[str, Any] = {}
    if full or memo.rebalance_timeout_ms != config.max_poll_interval_ms:
        fields["rebalance_timeout_ms"] = memo.rebalance_timeout_ms = config.max_poll_interval_ms
    if full or memo.names != subscribed.topics:
        fields["subscribed_topic_names"] = tuple(sorted(subscribed.topics))
        memo.names = subscribed.topics
    if (full and subscribed.regex is not None) or memo.regex != subscribed.regex:
        fields["subscribed_topic_regex"] = subscribed.regex or ""
        memo.regex = subscribed.regex
        memory.heartbeats.regex_told = True
    if config.group_remote_assignor is not None and (full or memo.assignor is None):
        fields["server_assignor"] = memo.assignor = config.group_remote_assignor
    owned = memory.current, claimed(memory)
    if full or memo.owned != owned:
        fields["topic_partitions"] = listed(owned[1])
        memo.owned = owned
    if full:
        fields["rack_id"] = config.client_rack
    return ConsumerGroupHeartbeatRequest(
        group_id=config.group_id,
        member_id=memory.member_id,
        member_epoch=memory.member_epoch,
        instance_id=config.group_instance_id,
        **fields,
        **turn.header(),
    )


def claimed(memory: MemberMemory) -> frozenset[TopicPartition]:
    """Return what is owned until the coordinator hears otherwise; without Java's quirks, also what may be owned
    soon.
    """
    if memory.config.quirks_of_java or memory.state not in IN_GROUP:
        return memory.current.partitions
    this = memory.reconciling
    taking = this.resolved.partitions if this is not None and this.life == memory.life else NOWHERE
    return memory.current.partitions | memory.target.partitions | taking


def listed(partitions: frozenset[TopicPartition]) -> tuple[TopicPartitions, ...]:
    return tuple(TopicPartitions(name, indexes) for name, indexes in by_topic(partitions).items())


def forget_what_was_sent(memory: MemberMemory) -> None:
    """Make the next heartbeat say everything. Java does not know any more whether there was an expression to clear."""
    static = memory.config.group_instance_id is not None
    unsure = (memory.heartbeats.regex_told or static) and not memory.config.quirks_of_java
    memory.heartbeats.memo = SentFields(regex=NOT_SURE if unsure else None)


# What comes back


def on_heartbeat(turn: MemberTurn, sent: Sent, response: ConsumerGroupHeartbeatResponse) -> None:
    memory = turn.memory
    answered(memory, sent)
    if sent.unheard or sent.life != memory.life:
        return
    if response.error_code is Error.NONE:
        accepted(turn, response)
        return
    refused(turn, response.error_code, response.error_message)
    if memory.state is MemberState.UNSUBSCRIBED:
        leave_done(turn)


def answered(memory: MemberMemory, sent: Sent) -> None:
    if memory.heartbeats.in_flight == sent.request.correlation_id:
        memory.heartbeats.in_flight = None


def accepted(turn: MemberTurn, response: ConsumerGroupHeartbeatResponse) -> None:
    memory, heartbeats = turn.memory, turn.memory.heartbeats
    heartbeats.attempts, heartbeats.retry_at_ms = 0, 0
    if response.member_epoch < 0:
        leave_done(turn)
        return
    if 0 < response.heartbeat_interval_ms != heartbeats.interval_ms:
        heartbeats.interval_ms = response.heartbeat_interval_ms
        heartbeats.due_ms = turn.now_ms + heartbeats.interval_ms
    turn.set_epoch(response.member_epoch)
    if response.assignment is not None and memory.state in IN_GROUP:
        topics = response.assignment.topic_partitions
        given = frozenset((topic.topic_name, index) for topic in topics for index in topic.partitions)
        receive(turn, memory.target.updated(given))


def refused(turn: MemberTurn, error: Error, message: str | None) -> None:
    memory, heartbeats = turn.memory, turn.memory.heartbeats
    failed(turn)
    match reaction(ConsumerGroupHeartbeatRequest, error):
        case Reaction.COORDINATOR_UNKNOWN:
            turn.coordinator_unknown()
            heartbeats.forgive()
        case Reaction.FENCE:
            fence(turn)
        case Reaction.REPORT:
            turn.enqueue(QueuedError(error, message or error.name))
        case Reaction.FATAL:
            if error is not Error.GROUP_ID_NOT_FOUND or memory.state is not MemberState.UNSUBSCRIBED:
                fail(turn, error, message or error.name)


def failed(turn: MemberTurn) -> None:
    heartbeats = turn.memory.heartbeats
    forget_what_was_sent(turn.memory)
    heartbeats.due_ms = turn.now_ms
    heartbeats.retry_at_ms = turn.now_ms + turn.backoff_ms(heartbeats.attempts)
    heartbeats.attempts += 1


def connection_broke(turn: MemberTurn, sent: Sent) -> None:
    """Give up the awaited answer: none will come."""
    memory = turn.memory
    answered(memory, sent)
    if sent.unheard or sent.life != memory.life:
        return
    failed(turn)
    if memory.state is MemberState.UNSUBSCRIBED:
        leave_done(turn)
