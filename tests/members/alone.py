"""One member of either protocol without a group: a test answers its requests by hand, and looks at what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from rebalance_lab.assignors.model import Topic
from rebalance_lab.protocol_v1.common.effects import CancelTimer, SetTimer
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    Call,
    CallbackDone,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MemberEffect,
    MetadataChanged,
    Raise,
    Responded,
    Send,
    TimerFired,
    Told,
)
from rebalance_lab.protocol_v1.common.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    Request,
    Response,
)

R = TypeVar("R", bound=Request)
E = TypeVar("E", bound=MemberEffect)


class AloneMember:
    def __init__(self, member: Any) -> None:
        self.member = member
        self.now_ms = 0
        self.timers: dict[Any, int] = {}
        self.effects: list[MemberEffect] = []
        self.open: list[Request] = []
        self.tell(MetadataChanged({"t": Topic(4)}))

    @property
    def memory(self) -> Any:
        return self.member.memory

    def tell(self, event: Told) -> list[MemberEffect]:
        """What follows from this one event; everything is also kept in `effects`."""
        effects = self.member.handle(event, self.now_ms)
        self.effects += effects
        for effect in effects:
            match effect:
                case SetTimer():
                    self.timers[effect.key] = self.now_ms + effect.delay_ms
                case CancelTimer():
                    del self.timers[effect.key]
                case Send():
                    self.open.append(effect.request)
        return effects

    def run(self, delay_ms: int) -> list[MemberEffect]:
        """Timers fire; nothing is answered."""
        end_ms, begin = self.now_ms + delay_ms, len(self.effects)
        while self.timers and min(self.timers.values()) <= end_ms:
            key = min(self.timers, key=self.timers.__getitem__)
            self.now_ms = self.timers.pop(key)
            self.tell(TimerFired(key))
        self.now_ms = end_ms
        return self.effects[begin:]

    def pending(self, kind: type[R]) -> R:
        return next(request for request in self.open if isinstance(request, kind))

    def asked(self, kind: type[Request]) -> bool:
        return any(isinstance(request, kind) for request in self.open)

    def answer(self, kind: type[Request], response: Response) -> list[MemberEffect]:
        request = self.pending(kind)
        self.open.remove(request)
        return self.tell(Responded(request, response))

    # The usual answers

    def find(self, error: Error = Error.NONE) -> list[MemberEffect]:
        return self.answer(FindCoordinatorRequest, FindCoordinatorResponse(error_code=error))

    def committed(self, *errors: Error) -> list[MemberEffect]:
        parts = tuple(OffsetCommitResponsePartition(partition_index=i, error_code=e) for i, e in enumerate(errors))
        topic = OffsetCommitResponseTopic(name="t", partitions=parts)
        return self.answer(OffsetCommitRequest, OffsetCommitResponse(topics=(topic,)))

    def fetched(self, offsets: dict[int, int], error: Error = Error.NONE, partition: Error = Error.NONE) -> Any:
        parts = tuple(
            OffsetFetchResponsePartition(partition_index=i, committed_offset=offset, error_code=partition)
            for i, offset in offsets.items()
        )
        topic = OffsetFetchResponseTopic(name="t", partitions=parts)
        group = OffsetFetchResponseGroup(group_id="g", topics=(topic,), error_code=error)
        return self.answer(OffsetFetchRequest, OffsetFetchResponse(groups=(group,)))

    def done(self, error: str | None = None) -> list[MemberEffect]:
        return self.tell(CallbackDone(error))


def of(kind: type[E], effects: Sequence[MemberEffect]) -> list[E]:
    return [effect for effect in effects if isinstance(effect, kind)]


def raised(effects: Sequence[MemberEffect]) -> list[Error | None]:
    return [effect.error for effect in of(Raise, effects)]


def called(effects: Sequence[MemberEffect]) -> list[tuple[str, list[int]]]:
    return [(call.callback.name, [index for _, index in call.partitions]) for call in of(Call, effects)]


def sent(effects: Sequence[MemberEffect]) -> list[str]:
    return [type(send.request).__name__.removesuffix("Request") for send in of(Send, effects)]
