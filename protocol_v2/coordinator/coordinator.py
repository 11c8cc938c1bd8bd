"""Serve the consumer groups of one partition of __consumer_offsets, as a machine without I/O.

Given      requests, timers that fired, appends that finished, topics that changed; each with the time
Returns    effects, in the order in which they are to be done (protocol_v1/common/effects.py)
Contract   a timer that was replaced or cancelled does not fire. Every Append is answered by one on_append, in order.
           What was appended durably, in order, is what `load` of the next coordinator is given
Alone      it serves consumer groups; next to a classic coordinator (classic_members/classic_side.py) it serves both
           kinds and their conversions
Reference  KIP-848; GroupCoordinatorShard and GroupMetadataManager in Apache Kafka 4.3.1
Start at   Coordinator.handle; then heartbeat.py for requests, and assignment/reconciliation.py for a member's steps
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import count
from typing import Any

from rebalance_lab.assignors.broker.range import ServerRangeAssignor
from rebalance_lab.assignors.broker.uniform import UniformAssignor
from rebalance_lab.assignors.interface import Assignor
from rebalance_lab.assignors.model import Topic
from rebalance_lab.protocol_v1.common import messages as v1
from rebalance_lab.protocol_v1.common.effects import Append, Effect, StateChanged, TimerKey
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import Request, Response
from rebalance_lab.protocol_v1.common.request_form import form_error
from rebalance_lab.protocol_v2.common.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    IncrementalAlterConfigsRequest,
)
from rebalance_lab.protocol_v2.common.topic_image import MetadataImage, TopicPartition
from rebalance_lab.protocol_v2.coordinator.admin import (
    EXPIRY_KEY,
    consumer_group_describe,
    delete_groups,
    first_expiry_ms,
    incremental_alter_configs,
    list_groups,
    offset_delete,
    on_expiry_timer,
)
from rebalance_lab.protocol_v2.coordinator.assignment.subscriptions import on_regex_timer, topics_changed
from rebalance_lab.protocol_v2.coordinator.classic_members import migration
from rebalance_lab.protocol_v2.coordinator.classic_members.classic_side import (
    ClassicGroups,
    ConsumerProtocolCodec,
    NoClassicGroups,
    NoCodec,
)
from rebalance_lab.protocol_v2.coordinator.config import SESSION_TIMEOUT, CoordinatorConfig
from rebalance_lab.protocol_v2.coordinator.gate import refusal
from rebalance_lab.protocol_v2.coordinator.heartbeat import consumer_group_heartbeat, refused_heartbeat_form
from rebalance_lab.protocol_v2.coordinator.leave import on_member_timer
from rebalance_lab.protocol_v2.coordinator.offsets import offset_commit, offset_fetch
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup
from rebalance_lab.protocol_v2.coordinator.state.offset_store import OffsetCommit, OffsetStore, OffsetTombstone
from rebalance_lab.protocol_v2.coordinator.state.records import GROUP_RECORDS, replay
from rebalance_lab.protocol_v2.coordinator.state.shard import MEMBER_TIMERS, REBALANCE, SESSION, Shard, Turn
from rebalance_lab.protocol_v2.coordinator.state.states import Event, MemberState

OWN: Mapping[type[Request], Callable[[Turn, Any], None]] = {
    ConsumerGroupHeartbeatRequest: consumer_group_heartbeat,
    ConsumerGroupDescribeRequest: consumer_group_describe,
    IncrementalAlterConfigsRequest: incremental_alter_configs,
    v1.ListGroupsRequest: list_groups,
    v1.DeleteGroupsRequest: delete_groups,
}
"""Served here whatever the group is."""

OF_KIP_848 = (ConsumerGroupHeartbeatRequest, ConsumerGroupDescribeRequest)

OF_A_GROUP: Mapping[type[Request], Callable[[Turn, ConsumerGroup, Any], None]] = {
    v1.SyncGroupRequest: migration.sync_group,
    v1.HeartbeatRequest: migration.heartbeat,
    v1.LeaveGroupRequest: migration.leave_group,
    v1.OffsetDeleteRequest: offset_delete,
    v1.OffsetCommitRequest: lambda turn, group, request: offset_commit(turn, request),
}
"""Served here if the group is a consumer group, and by the classic side if it is not."""


class Status(Enum):
    """Tell whether the coordinator serves the partition; the value is the error that requests get meanwhile."""

    LOADING = Error.COORDINATOR_LOAD_IN_PROGRESS
    ACTIVE = Error.NONE
    UNLOADED = Error.NOT_COORDINATOR


BUILT_IN: Mapping[str, Callable[[], Assignor]] = {"uniform": UniformAssignor, "range": ServerRangeAssignor}


def assignors_of(config: CoordinatorConfig) -> list[Assignor]:
    return [BUILT_IN[name]() for name in config.group_consumer_assignors]


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
        topics: Mapping[str, int | Topic] | None = None,
        assignors: Sequence[Assignor] | None = None,
        classic: ClassicGroups | None = None,
        codec: ConsumerProtocolCodec | None = None,
        offsets: OffsetStore | None = None,
        status: Status = Status.ACTIVE,
    ) -> None:
        """Take `assignors` in the place of group.consumer.assignors, best first: any object with a name and assign().

        `classic`, `codec` and `offsets` come together, from a driver that serves both protocols.
        """
        image, _ = MetadataImage().updated(topics or {})
        config = config or CoordinatorConfig()
        self.shard = Shard(
            config=config,
            new_member_id=new_member_id or numbered(),
            assignors={assignor.name: assignor for assignor in assignors or assignors_of(config)},
            offsets=offsets or OffsetStore.alone(),
            classic=classic or NoClassicGroups(),
            codec=codec or NoCodec(),
            image=image,
        )
        self.status = status

    @property
    def groups(self) -> Mapping[str, ConsumerGroup]:
        """Return the groups to look at, not to change."""
        return self.shard.groups

    def handle(self, request: Request, now_ms: int) -> list[Effect]:
        turn = Turn(self.shard, now_ms)
        if type(request) in OF_KIP_848 and "consumer" not in self.shard.config.group_coordinator_rebalance_protocols:
            turn.reply(request, refusal(request, Error.UNSUPPORTED_VERSION))  # the broker looks no further
        elif (refused := self.refused_form(request)) is not None:
            turn.reply(request, refused)
        elif self.status is not Status.ACTIVE:
            turn.reply(request, refusal(request, self.status.value))
        elif type(request) in OWN:
            OWN[type(request)](turn, request)
        elif isinstance(request, v1.JoinGroupRequest):
            self.join(turn, request)
        elif isinstance(request, v1.OffsetFetchRequest):
            self.fetch(turn, request)
        else:
            self.pass_on(turn, request)
        return turn.effects

    def refused_form(self, request: Request) -> Response | None:
        """A broker looks at a request's form first: also while it loads, whatever the group is."""
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            return refused_heartbeat_form(request, self.shard.assignors.keys())
        config = self.shard.config
        error = form_error(request, config.group_min_session_timeout_ms, config.group_max_session_timeout_ms)
        return None if error is Error.NONE else refusal(request, error)

    def pass_on(self, turn: Turn, request: Request) -> None:
        group = self.shard.in_memory(getattr(request, "group_id", ""))
        if group is not None and type(request) in OF_A_GROUP:
            OF_A_GROUP[type(request)](turn, group, request)
        elif isinstance(request, v1.OffsetCommitRequest) and isinstance(self.shard.classic, NoClassicGroups):
            offset_commit(turn, request)
        else:
            self.ask_classic(turn, request)

    def ask_classic(self, turn: Turn, request: Request) -> None:
        turn.from_classic(self.shard.classic.handle(request, turn.now_ms))

    def join(self, turn: Turn, request: v1.JoinGroupRequest) -> None:
        """Serve a JoinGroup in the group if it has members; an empty group becomes a classic group."""
        group = self.shard.groups.get(request.group_id)
        if group is None:
            self.ask_classic(turn, request)
            return
        if group.members:
            migration.join_group(turn, group, request)
        else:
            migration.join_empty_group(turn, group, request)

    def fetch(self, turn: Turn, request: v1.OffsetFetchRequest) -> None:
        asked = {group.group_id for group in request.groups} or {request.group_id}
        if asked & self.shard.groups.keys() or isinstance(self.shard.classic, NoClassicGroups):
            offset_fetch(turn, request)
        else:
            self.ask_classic(turn, request)

    def on_timer(self, key: TimerKey, now_ms: int) -> list[Effect]:
        turn = Turn(self.shard, now_ms)
        match key:
            case (kind, group_id, member_id) if kind in MEMBER_TIMERS:
                on_member_timer(turn, kind, group_id, member_id)
            case ("consumer-regex", group_id):
                on_regex_timer(turn, group_id)
            case ("consumer-expiry",):
                on_expiry_timer(turn)
            case _:
                turn.from_classic(self.shard.classic.on_timer(key, now_ms))
        return turn.effects

    def first_expiry_ms(self) -> int | None:
        """Return from when on a check of offsets deletes something if nothing else happens; None for never."""
        both = first_expiry_ms(self.shard), self.shard.classic.first_expiry_ms()
        return min((at_ms for at_ms in both if at_ms is not None), default=None)

    def on_append(self, append_id: int, now_ms: int, error: Error = Error.NONE) -> list[Effect]:
        turn = Turn(self.shard, now_ms)
        turn.settle(append_id, error)
        return turn.effects

    def on_metadata(self, topics: Mapping[str, int | Topic], now_ms: int) -> list[Effect]:
        """Take in new metadata. Groups take notice with their next heartbeat."""
        turn = Turn(self.shard, now_ms)
        self.shard.image, changed = self.shard.image.updated(topics)
        topics_changed(turn, changed)
        counts = {name: topic.topic.partitions for name, topic in self.shard.image.topics.items()}
        turn.from_classic(self.shard.classic.update_topics(counts, now_ms))
        return turn.effects

    def update_topics(self, topics: Mapping[str, int | Topic], now_ms: int) -> list[Effect]:
        """Take in new metadata under the name that protocol_v1 gives this call."""
        return self.on_metadata(topics, now_ms)

    def load(self, records: Iterable[Any], now_ms: int) -> list[Effect]:
        """Become active with what the log holds. Every deadline starts anew; no epoch moves."""
        turn = Turn(self.shard, now_ms)
        records = list(records)
        shard = self.shard
        shard.groups = replay(record for record in records if isinstance(record, GROUP_RECORDS))
        self.status = Status.ACTIVE
        for record in records:
            if isinstance(record, OffsetCommit | OffsetTombstone):
                shard.offsets.apply(record)
        ours = (*GROUP_RECORDS, OffsetCommit, OffsetTombstone)
        loaded = shard.classic.load([record for record in records if not isinstance(record, ours)], now_ms)
        # Offset records alone look like an empty group to the classic side: `resume` takes it away unreported.
        turn.from_classic(
            effect for effect in loaded if not (isinstance(effect, StateChanged) and effect.group_id in shard.groups)
        )
        seen = (partition for group in shard.groups.values() for partition in known_partitions(group))
        shard.image = newer_than(shard.image.with_incarnations(seen), shard.groups.values())
        turn.set_timer(EXPIRY_KEY, shard.config.offsets_retention_check_interval_ms)
        for group in shard.groups.values():
            self.resume(turn, group)
        return turn.effects

    def resume(self, turn: Turn, group: ConsumerGroup) -> None:
        """Resume groups after a load. A classic member too is given the consumers' session timeout, as Kafka does."""
        if self.shard.classic.phase(group.group_id) is not None:
            effects, _ = self.shard.classic.forget(group.group_id, turn.now_ms)
            turn.from_classic(effects)
        turn.tell(group.group_id, None, Event.LOADED)
        session_ms = turn.setting(group.group_id, SESSION_TIMEOUT)
        for member_id in group.order:
            member = group.members[member_id]
            turn.set_timer((SESSION, group.group_id, member_id), session_ms)
            if member.current.state is MemberState.UNREVOKED_PARTITIONS:
                self.shard.revoking_since[group.group_id, member_id] = member.current.member_epoch
                turn.set_timer((REBALANCE, group.group_id, member_id), max(0, member.metadata.rebalance_timeout_ms))

    def unload(self, now_ms: int) -> list[Effect]:
        """Give up the partition in good order."""
        turn = Turn(self.shard, now_ms)
        self.status = Status.UNLOADED
        groups, self.shard.groups = self.shard.groups, {}
        for group in groups.values():
            turn.cancel_timers(group.group_id, group.order)
            turn.cancel_timer(("consumer-regex", group.group_id))
            turn.tell(group.group_id, group.state, Event.UNLOADED)
        turn.cancel_timer(EXPIRY_KEY)
        turn.from_classic(self.shard.classic.unload(now_ms))
        return turn.effects


def known_partitions(group: ConsumerGroup) -> Iterator[TopicPartition]:
    yield from group.partition_epochs
    for target in group.targets.values():
        yield from target.partitions


def newer_than(image: MetadataImage, groups: Iterable[ConsumerGroup]) -> MetadataImage:
    """Return an image newer than the groups': after a load all topics are new, and expressions are resolved again."""
    seen = [resolved.version for group in groups for resolved in group.resolved.values()]
    version = max([image.version, *seen]) + 1
    return replace(image, version=version, new_topics_at=version)


def at_once(coordinator: Coordinator, effects: Iterable[Effect], now_ms: int) -> list[Effect]:
    """Return the effects, and what follows from them if every append is durable at once."""
    done: list[Effect] = []
    for effect in effects:
        done.append(effect)
        if isinstance(effect, Append):
            done += at_once(coordinator, coordinator.on_append(effect.append_id, now_ms), now_ms)
    return done
