"""Hold a coordinator's memory, and define Turn: the work that one event causes.

Every rule of this package is a function of a Turn. It reads and changes the shard's groups. What has to happen
outside goes into the turn's effects, which the coordinator returns; nothing is performed here.

Durable     a turn may append records and name what follows once they are durable (`append`), or wait for all that was
            appended before (`when_durable`). With nothing outstanding the latter runs at once
Start at    Turn
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from rebalance_lab.protocol_v1.common.effects import (
    Append,
    CancelTimer,
    Effect,
    Reply,
    SetTimer,
    StateChanged,
    TimerKey,
)
from rebalance_lab.protocol_v1.common.errors import NONE, Error, append_error
from rebalance_lab.protocol_v1.common.messages import JoinGroupResponse, Request, Response
from rebalance_lab.protocol_v1.coordinator.config import CoordinatorConfig
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup, ClassicMember
from rebalance_lab.protocol_v1.coordinator.state.records import Image, Record
from rebalance_lab.protocol_v1.coordinator.state.states import Event, next_state

Done: TypeAlias = "Callable[[Turn, Error], None]"
"""What follows an append; the error is NONE, or why the records are not durable."""


def ignore(turn: Turn, error: Error) -> None:
    """Ignore the loss of records whose loss is harmless."""


@dataclass(slots=True)
class PendingAppend:
    done: Done
    waiting: list[Done] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Shard:
    config: CoordinatorConfig
    new_member_id: Callable[[str], str]
    """Given the client id or instance id that the id begins with."""
    topics: Mapping[str, int] | None = None
    """Partition counts by topic; None: every topic and partition is taken to exist."""
    image: Image = field(default_factory=Image)
    next_append_id: int = 1
    pending: dict[int, PendingAppend] = field(default_factory=dict)
    unrecorded: list[ClassicGroup] = field(default_factory=list)
    """Groups that came to be without a record. Views show them from the next durable append on, of whatever group."""

    @property
    def groups(self) -> dict[str, ClassicGroup]:
        return self.image.groups

    def show_unrecorded(self) -> None:
        for group in self.unrecorded:
            group.durable = True
        self.unrecorded.clear()


class Turn:
    __slots__ = ("effects", "now_ms", "shard")

    def __init__(self, shard: Shard, now_ms: int) -> None:
        self.shard = shard
        self.now_ms = now_ms
        self.effects: list[Effect] = []

    @property
    def config(self) -> CoordinatorConfig:
        return self.shard.config

    def reply(self, request: Request, response: Response) -> None:
        self.effects.append(Reply(request, response))

    def set_timer(self, key: TimerKey, delay_ms: int) -> None:
        self.effects.append(SetTimer(key, delay_ms))

    def cancel_timer(self, key: TimerKey) -> None:
        self.effects.append(CancelTimer(key))

    def append(self, records: tuple[Record, ...], done: Done) -> None:
        append_id = self.shard.next_append_id
        self.shard.next_append_id += 1
        self.shard.pending[append_id] = PendingAppend(done)
        self.effects.append(Append(append_id, records))

    def when_durable(self, done: Done) -> None:
        """Hold back the result of a write, as Kafka does, until all that was written before it is durable."""
        if not self.shard.pending:
            done(self, NONE)
        else:
            self.shard.pending[next(reversed(self.shard.pending))].waiting.append(done)

    def restart_session(self, group: ClassicGroup, member: ClassicMember, timeout_ms: int | None = None) -> None:
        delay_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        self.set_timer(session_key(group, member.member_id), delay_ms)

    def move(
        self, group: ClassicGroup, event: Event, *, member_id: str | None = None, client_reason: str | None = None
    ) -> None:
        """Change a group's state; no other code does."""
        group.previous_state, group.state = group.state, next_state(group.state, event)
        group.state_since_ms = self.now_ms
        self.tell(group, event, member_id, client_reason)

    def tell(
        self, group: ClassicGroup, event: Event, member_id: str | None = None, client_reason: str | None = None
    ) -> None:
        state, why = group.state.value, event.value
        self.effects.append(
            StateChanged(
                group_id=group.group_id, state=state, event=why, member_id=member_id, client_reason=client_reason
            )
        )

    def create_group(self, group_id: str) -> ClassicGroup:
        group = ClassicGroup(group_id=group_id, state=next_state(None, Event.CREATED), state_since_ms=self.now_ms)
        self.shard.groups[group_id] = group
        self.tell(group, Event.CREATED)
        return group

    def settle_birth(self, group: ClassicGroup, error: Error) -> None:
        """Note whether a group's first record, which came with a request, is durable."""
        if error in (NONE, Error.REQUEST_TIMED_OUT):
            # What timed out may become durable yet, and later records may already lie behind it: the group stays.
            group.durable = True
        elif self.shard.groups.get(group.group_id) is group:
            self.forget_group(group, append_error(error))

    def forget_group(self, group: ClassicGroup, error: Error) -> None:
        """Forget a group whose birth could not be written; requests that already wait in it are answered with the
        error.
        """
        del self.shard.groups[group.group_id]
        for member in group.in_order():
            request = group.unpark_join(member)
            if request is not None:
                self.reply(request, JoinGroupResponse(error_code=error))
        self.cancel_timers(group)
        self.move(group, Event.BIRTH_NOT_STORED)

    def cancel_timers(self, group: ClassicGroup, *, join: bool = True) -> None:
        """Cancel the group's timers; without `join` the one of the join phase runs on."""
        if join:
            self.cancel_timer(join_key(group))
        self.cancel_timer(sync_key(group))
        for member_id in [*group.order, *sorted(group.pending_join)]:
            self.cancel_timer(session_key(group, member_id))


def session_key(group: ClassicGroup, member_id: str) -> TimerKey:
    return ("session", group.group_id, member_id)


def join_key(group: ClassicGroup) -> TimerKey:
    return ("join", group.group_id)


def sync_key(group: ClassicGroup) -> TimerKey:
    return ("sync", group.group_id)
