"""Serve the classic groups of one partition of __consumer_offsets, as a machine without I/O.

Given      requests, timers that fired, appends that finished, topics that changed, transactions that ended; each with
           the time
Returns    effects, in the order in which they are to be done (protocol_v1/common/effects.py)
Contract   a timer that was replaced or cancelled does not fire. Every Append is answered by one on_append, in order.
           What was appended durably, in order, is what `load` of the next coordinator is given
Waits      answers that depend on a record leave only after its on_append. A driver that has no log of its own uses
           `at_once`, which treats every append as durable at once
Reference  GroupCoordinatorShard and GroupMetadataManager in Apache Kafka 4.3.1
Start at   Coordinator.handle; then join.py for joining members, and rebalance.py for the rebalance itself
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from itertools import count
from typing import Any

from rebalance_lab.protocol_v1.common.effects import Append, Effect, TimerKey
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    Request,
    SyncGroupRequest,
    SyncGroupResponse,
)
from rebalance_lab.protocol_v1.common.request_form import form_error
from rebalance_lab.protocol_v1.common.txn_messages import TxnOffsetCommitRequest
from rebalance_lab.protocol_v1.coordinator.admin import (
    EXPIRY_KEY,
    delete_groups,
    describe_groups,
    first_expiry_ms,
    list_groups,
    offset_delete,
    on_expiry_timer,
    topics_deleted,
)
from rebalance_lab.protocol_v1.coordinator.config import CoordinatorConfig
from rebalance_lab.protocol_v1.coordinator.gate import refusal
from rebalance_lab.protocol_v1.coordinator.heartbeat import heartbeat, on_session_timer
from rebalance_lab.protocol_v1.coordinator.join import join_group
from rebalance_lab.protocol_v1.coordinator.leave import leave_group
from rebalance_lab.protocol_v1.coordinator.offsets import offset_commit, offset_fetch
from rebalance_lab.protocol_v1.coordinator.rebalance import on_join_timer, prepare_rebalance
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup
from rebalance_lab.protocol_v1.coordinator.state.records import Record, replay
from rebalance_lab.protocol_v1.coordinator.state.shard import Shard, Turn
from rebalance_lab.protocol_v1.coordinator.state.states import Event
from rebalance_lab.protocol_v1.coordinator.sync import on_sync_timer, sync_group
from rebalance_lab.protocol_v1.coordinator.transactions import complete_transaction, txn_offset_commit

HANDLERS: Mapping[type[Request], Callable[[Turn, Any], None]] = {
    JoinGroupRequest: join_group,
    SyncGroupRequest: sync_group,
    HeartbeatRequest: heartbeat,
    LeaveGroupRequest: leave_group,
    OffsetCommitRequest: offset_commit,
    OffsetFetchRequest: offset_fetch,
    TxnOffsetCommitRequest: txn_offset_commit,
    DescribeGroupsRequest: describe_groups,
    ListGroupsRequest: list_groups,
    DeleteGroupsRequest: delete_groups,
    OffsetDeleteRequest: offset_delete,
}


class Status(Enum):
    """Tell whether the coordinator serves the partition; the value is the error that requests get meanwhile."""

    LOADING = Error.COORDINATOR_LOAD_IN_PROGRESS
    ACTIVE = Error.NONE
    UNLOADED = Error.NOT_COORDINATOR


def numbered() -> Callable[[str], str]:
    """Return a source of member ids that a reader can tell apart: `client-1`, `client-2`."""
    numbers = count(1)
    return lambda prefix: f"{prefix}-{next(numbers)}"


class Coordinator:
    def __init__(
        self,
        config: CoordinatorConfig | None = None,
        *,
        new_member_id: Callable[[str], str] | None = None,
        topics: Mapping[str, int] | None = None,
        status: Status = Status.ACTIVE,
    ) -> None:
        """Take `new_member_id`, which gets the client id or instance id that a fresh id begins with; Kafka adds a
        UUID.
        """
        self.shard = Shard(
            config=config or CoordinatorConfig(), new_member_id=new_member_id or numbered(), topics=topics
        )
        self.status = status

    @property
    def groups(self) -> Mapping[str, ClassicGroup]:
        """Return the groups to look at, not to change."""
        return self.shard.groups

    def handle(self, request: Request, now_ms: int) -> list[Effect]:
        turn = Turn(self.shard, now_ms)
        config = self.shard.config
        error = form_error(request, config.group_min_session_timeout_ms, config.group_max_session_timeout_ms)
        if error is not Error.NONE:
            turn.reply(request, refusal(request, error))
        elif self.status is Status.ACTIVE:
            HANDLERS[type(request)](turn, request)
        else:
            turn.reply(request, refusal(request, self.status.value))
        return turn.effects

    def on_timer(self, key: TimerKey, now_ms: int) -> list[Effect]:
        turn = Turn(self.shard, now_ms)
        match key:
            case ("session", group_id, member_id):
                on_session_timer(turn, self.shard.groups[group_id], member_id)
            case ("join", group_id):
                on_join_timer(turn, self.shard.groups[group_id])
            case ("sync", group_id):
                on_sync_timer(turn, self.shard.groups[group_id])
            case _:
                on_expiry_timer(turn)
        return turn.effects

    def first_expiry_ms(self) -> int | None:
        """Return from when on a check of offsets deletes something if nothing else happens; None for never."""
        return first_expiry_ms(self.shard)

    def on_append(self, append_id: int, now_ms: int, error: Error = Error.NONE) -> list[Effect]:
        turn = Turn(self.shard, now_ms)
        pending = self.shard.pending.pop(append_id)
        if error is Error.NONE:
            self.shard.show_unrecorded()
        pending.done(turn, error)
        for waiting in pending.waiting:
            waiting(turn, error)
        return turn.effects

    def update_topics(self, topics: Mapping[str, int], now_ms: int) -> list[Effect]:
        """Take in new metadata. More partitions mean nothing to a classic coordinator: its members watch them."""
        turn = Turn(self.shard, now_ms)
        before, self.shard.topics = self.shard.topics or {}, topics
        deleted = frozenset(before) - frozenset(topics)
        if deleted:
            topics_deleted(turn, deleted)
        return turn.effects

    def complete_transaction(self, producer_id: int, committed: bool, now_ms: int) -> list[Effect]:
        """End a transaction as the transaction coordinator decided: the producer's pending offsets count, or are
        dropped.
        """
        turn = Turn(self.shard, now_ms)
        complete_transaction(turn, producer_id, committed=committed)
        return turn.effects

    def load(self, records: Iterable[Record], now_ms: int) -> list[Effect]:
        """Become active with what the log holds. Every member is given a full session; no rebalance is resumed."""
        turn = Turn(self.shard, now_ms)
        self.shard.image = replay(records)
        self.status = Status.ACTIVE
        turn.set_timer(EXPIRY_KEY, self.shard.config.offsets_retention_check_interval_ms)
        for group in self.shard.groups.values():
            turn.tell(group, Event.LOADED_WITH_MEMBERS if group.members else Event.LOADED_WITHOUT_MEMBERS)
            for member in group.in_order():
                turn.restart_session(group, member)
            if len(group.members) > self.shard.config.group_max_size:
                prepare_rebalance(turn, group, Event.OVER_CAPACITY)
        return turn.effects

    def unload(self, now_ms: int) -> list[Effect]:
        """Give up the partition in good order: parked requests are answered, to make members look for the new
        coordinator.
        """
        turn = Turn(self.shard, now_ms)
        self.status = Status.UNLOADED
        moved = Error.NOT_COORDINATOR
        for group in self.shard.groups.values():
            for member in group.in_order():
                join = group.unpark_join(member)
                if join is not None:
                    turn.reply(join, JoinGroupResponse(error_code=moved, member_id=member.member_id))
                sync, member.parked_sync = member.parked_sync, None
                if sync is not None:
                    turn.reply(sync, SyncGroupResponse(error_code=moved))
            turn.cancel_timers(group)
            turn.move(group, Event.UNLOADED)
        turn.cancel_timer(EXPIRY_KEY)
        return turn.effects


def at_once(coordinator: Coordinator, effects: Iterable[Effect], now_ms: int) -> list[Effect]:
    """Return the effects, and what follows from them if every append is durable at once."""
    done: list[Effect] = []
    for effect in effects:
        done.append(effect)
        if isinstance(effect, Append):
            done += at_once(coordinator, coordinator.on_append(effect.append_id, now_ms), now_ms)
    return done
