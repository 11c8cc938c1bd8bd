"""Hold a coordinator's memory, and define Turn: the work that one event causes.

Decide     a rule reads the shard and lists records; Turn.commit applies them and appends them. Nothing else changes a
           group, so what the log holds is what a failed-over coordinator will know
Durable    the answer leaves once the records are durable. If the log refuses them, the turn applies what they replaced,
           in reverse, and takes back everything that was appended after them. Timers do not come back.
           A time-out is no refusal: the records may still become durable, so they stay
Start at   Turn.commit
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from rebalance_lab.assignors.interface import Assignor
from rebalance_lab.protocol_v1.common.effects import (
    Append,
    CancelTimer,
    Effect,
    Reply,
    SetTimer,
    StateChanged,
    TimerKey,
)
from rebalance_lab.protocol_v1.common.errors import Error, append_error
from rebalance_lab.protocol_v1.common.messages import Request, Response
from rebalance_lab.protocol_v2.common.topic_image import MetadataImage
from rebalance_lab.protocol_v2.coordinator.config import (
    SESSION_TIMEOUT,
    CoordinatorConfig,
    GroupSettings,
    default_of,
    setting,
)
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup
from rebalance_lab.protocol_v2.coordinator.state.records import GROUP_RECORDS, GroupRecord, Groups, apply, stored
from rebalance_lab.protocol_v2.coordinator.state.states import Event, GroupState

if TYPE_CHECKING:
    from rebalance_lab.protocol_v2.coordinator.classic_members.classic_side import ClassicGroups, ConsumerProtocolCodec
    from rebalance_lab.protocol_v2.coordinator.state.offset_store import OffsetStore
    from rebalance_lab.protocol_v2.coordinator.state.values import Resolution

OF_GROUPS = frozenset(GROUP_RECORDS)
"""Offsets are in the log beside them, and change no group."""

Done: TypeAlias = "Callable[[Turn, Error], None]"
"""What follows an append; the error is NONE, or what a client is to be told."""


def ignore(turn: Turn, error: Error) -> None:
    """Ignore the end of work that no request waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Tell how the classic side's answer to `asked` becomes the answer to a client's request."""

    request: Request
    asked: Request
    change: Callable[[Response], Response]


@dataclass(slots=True)
class PendingAppend:
    undo: Callable[[Turn], None]
    done: Done
    waiting: list[Done] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Shard:
    config: CoordinatorConfig
    new_member_id: Callable[[str], str]
    """Given what the id should begin with; used where a client has not made its own."""
    assignors: Mapping[str, Assignor]
    """By name; the first is used where no member asks for one."""
    offsets: OffsetStore
    classic: ClassicGroups
    codec: ConsumerProtocolCodec
    image: MetadataImage = field(default_factory=MetadataImage)
    groups: Groups = field(default_factory=dict)
    settings: dict[str, GroupSettings] = field(default_factory=dict)
    resolving: dict[str, Resolution] = field(default_factory=dict)
    """Regular expressions that are being resolved, by group; lost with the coordinator."""
    revoking_since: dict[tuple[str, str], int] = field(default_factory=dict)
    """Group and member whose rebalance timer runs -> the member's epoch when it was started."""
    join_timers: set[tuple[str, str]] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    """Empty groups that a JoinGroup with a foreign id has erased from memory, though not from the log (quirk)."""
    classic_appends: dict[int, int] = field(default_factory=dict)
    """Appends of the classic side: our number -> its own."""
    rewrites: list[Rewrite] = field(default_factory=list)
    """Requests that both sides answer, and what to make of the classic side's answer."""
    next_append_id: int = 1
    pending: dict[int, PendingAppend] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    """Appends that went with an earlier one; what the log says about them is of no interest."""

    def in_memory(self, group_id: str) -> ConsumerGroup | None:
        """Return the group as writing requests see it. Views read what is committed, and still show a forgotten
        group.
        """
        group = self.groups.get(group_id)
        is_forgotten = group is not None and not group.members and group_id in self.forgotten
        return None if is_forgotten else group


class Turn:
    __slots__ = ("effects", "now_ms", "shard")

    def __init__(self, shard: Shard, now_ms: int) -> None:
        self.shard = shard
        self.now_ms = now_ms
        self.effects: list[Effect] = []

    @property
    def config(self) -> CoordinatorConfig:
        return self.shard.config

    def setting(self, group_id: str, name: str) -> int:
        own = self.shard.settings.get(group_id)
        return default_of(self.shard.config, name) if own is None else setting(self.shard.config, own, name)

    def reply(self, request: Request, response: Response) -> None:
        self.effects.append(Reply(request, response))

    def set_timer(self, key: TimerKey, delay_ms: int) -> None:
        self.effects.append(SetTimer(key, delay_ms))

    def cancel_timer(self, key: TimerKey) -> None:
        self.effects.append(CancelTimer(key))

    def commit(
        self,
        group_id: str,
        records: Sequence[Any],
        event: Event,
        done: Done,
        *,
        member_id: str | None = None,
        on_undo: Callable[[Turn], None] = lambda turn: None,
    ) -> None:
        """Apply and append. `on_undo` takes back what lies outside of the group's own records."""
        if not records:
            self.when_durable(done)
            return
        groups = self.shard.groups
        existed = group_id in groups
        replaced: list[GroupRecord] = []
        changes = [record for record in records if type(record) in OF_GROUPS]
        if changes:
            before = groups[group_id].state if existed else None
            for record in changes:
                replaced.append(stored(groups, record))
                apply(groups, record)
            self.tell(group_id, before, event, member_id)

        def undo(turn: Turn) -> None:
            there = set(turn.member_ids(group_id))
            turn.take_back(group_id, replaced if existed else None)
            # Kafka does not do this: who is a member again, without a session, stays so until the coordinator moves.
            for member_id in turn.member_ids(group_id):
                if member_id not in there:
                    turn.restart_session(group_id, member_id)
            on_undo(turn)

        append_id = self.new_append_id()
        self.shard.pending[append_id] = PendingAppend(undo, done)
        self.effects.append(Append(append_id, tuple(records)))

    def new_append_id(self) -> int:
        append_id = self.shard.next_append_id
        self.shard.next_append_id += 1
        return append_id

    def from_classic(self, effects: Iterable[Effect]) -> None:
        """Pass on the classic side's effects, under append numbers of this coordinator."""
        for effect in effects:
            if isinstance(effect, Append):
                append_id = self.new_append_id()
                self.shard.classic_appends[append_id] = effect.append_id
                self.effects.append(Append(append_id, effect.records))
            elif isinstance(effect, Reply) and (found := self.take_rewrite(effect.request)) is not None:
                self.reply(found.request, found.change(effect.response))
            else:
                self.effects.append(effect)

    def take_rewrite(self, asked: Request) -> Rewrite | None:
        """Two clients may ask the same at once, so a request is found by its identity."""
        for place, rewrite in enumerate(self.shard.rewrites):
            if rewrite.asked is asked:
                return self.shard.rewrites.pop(place)
        return None

    def take_back(self, group_id: str, replaced: list[GroupRecord] | None) -> None:
        """Take records back; `replaced` is None where the group did not exist before, and then it is removed."""
        groups = self.shard.groups
        before = groups[group_id].state if group_id in groups else GroupState.DEAD
        if replaced is None:
            groups.pop(group_id, None)
        else:
            for record in reversed(replaced):
                apply(groups, record)
        self.tell(group_id, before, Event.NOT_STORED)

    def member_ids(self, group_id: str) -> tuple[str, ...]:
        group = self.shard.groups.get(group_id)
        return tuple(group.order) if group is not None else ()

    def when_durable(self, done: Done) -> None:
        """Hold back the result of a write, as Kafka does, until all that was written before it is durable."""
        if not self.shard.pending:
            done(self, Error.NONE)
        else:
            self.shard.pending[next(reversed(self.shard.pending))].waiting.append(done)

    def settle(self, append_id: int, error: Error) -> None:
        """Act on what the log says about an append."""
        if append_id in self.shard.failed:
            self.shard.failed.discard(append_id)
        elif error not in (Error.NONE, Error.REQUEST_TIMED_OUT):
            self.fail_from(append_id, error)
        elif append_id in self.shard.classic_appends:
            self.settle_classic(append_id, error)
        else:
            finish(self, self.shard.pending.pop(append_id), append_error(error))

    def settle_classic(self, append_id: int, error: Error) -> None:
        own = self.shard.classic_appends.pop(append_id)
        self.from_classic(self.shard.classic.on_append(own, self.now_ms, error))

    def fail_from(self, append_id: int, error: Error) -> None:
        """Fail an append and all later ones, the last first, because groups may have changed their protocol
        meanwhile.
        """
        lost = [n for n in sorted({*self.shard.pending, *self.shard.classic_appends}) if n >= append_id]
        appends = {n: self.shard.pending.pop(n) for n in lost if n in self.shard.pending}
        self.shard.failed.update(lost[1:])
        for number in reversed(lost):
            if number in appends:
                appends[number].undo(self)
            else:
                self.settle_classic(number, error)
        for append in appends.values():
            finish(self, append, append_error(error))

    def tell(
        self, group_id: str, before: GroupState | None, event: Event, member_id: str | None = None
    ) -> GroupState | None:
        group = self.shard.groups.get(group_id)
        after = group.state if group is not None else GroupState.DEAD
        if after is not before and not (before is None and group is None):
            self.effects.append(
                StateChanged(group_id=group_id, state=after.value, event=event.value, member_id=member_id)
            )
        return after

    def restart_session(self, group_id: str, member_id: str) -> None:
        group = self.shard.groups.get(group_id)
        if group is not None and member_id in group.members:
            classic = group.members[member_id].metadata.classic
            timeout_ms = classic.session_timeout_ms if classic else self.setting(group_id, SESSION_TIMEOUT)
            self.set_timer((SESSION, group_id, member_id), timeout_ms)

    def cancel_timers(self, group_id: str, member_ids: Iterable[str]) -> None:
        for member_id in member_ids:
            for kind in MEMBER_TIMERS:
                self.cancel_timer((kind, group_id, member_id))
            self.shard.revoking_since.pop((group_id, member_id), None)
            self.shard.join_timers.discard((group_id, member_id))


def finish(turn: Turn, append: PendingAppend, error: Error) -> None:
    append.done(turn, error)
    for waiting in append.waiting:
        waiting(turn, error)


SESSION = "consumer-session"
REBALANCE = "consumer-rebalance"
JOIN = "consumer-join"
SYNC = "consumer-sync"
MEMBER_TIMERS = (SESSION, REBALANCE, JOIN, SYNC)
"""Timer kinds of one member; the keys are (kind, group id, member id), apart from those of classic groups."""


def is_gone(group: ConsumerGroup | None, member_id: str) -> bool:
    return group is None or member_id not in group.members
