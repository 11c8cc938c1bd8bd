"""One KIP-848 member without a group: a test answers its requests by hand, and looks at what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from assignors.model import Topic
from protocol_v1.effects import CancelTimer, SetTimer
from protocol_v1.effects.member import (
    Call,
    CallbackDone,
    Committed,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MemberEffect,
    MetadataChanged,
    Moved,
    Poll,
    Raise,
    Responded,
    Send,
    TimerFired,
    Told,
)
from protocol_v1.errors import Error
from protocol_v1.messages import (
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
from protocol_v2.member import Member
from protocol_v2.member_config import MemberConfig
from protocol_v2.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
    TopicPartitions,
)

R = TypeVar("R", bound=Request)
E = TypeVar("E", bound=MemberEffect)
INTERVAL_MS = 5_000


def share(*indexes: int, topic: str = "t") -> HeartbeatAssignment:
    listed = (TopicPartitions(topic_name=topic, partitions=indexes),) if indexes else ()
    return HeartbeatAssignment(topic_partitions=listed)


class Alone:
    def __init__(self, *, pattern: str | None = None, regex: str | None = None, **settings: Any) -> None:
        topics = () if pattern or regex else ("t",)
        self.member = Member(MemberConfig(**settings), member_id="me", topics=topics, pattern=pattern, regex=regex)
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

    @property
    def heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        return self.pending(ConsumerGroupHeartbeatRequest)

    def beat(self, epoch: int, given: HeartbeatAssignment | None = None, **fields: Any) -> list[MemberEffect]:
        answer = ConsumerGroupHeartbeatResponse(
            **{"member_epoch": epoch, "heartbeat_interval_ms": INTERVAL_MS, "assignment": given, **fields}
        )
        return self.answer(ConsumerGroupHeartbeatRequest, answer)

    def refuse(self, error: Error, message: str | None = None) -> list[MemberEffect]:
        answer = ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)
        return self.answer(ConsumerGroupHeartbeatRequest, answer)

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

    def joining(self) -> Alone:
        """In poll, with the heartbeat of epoch 0 on its way."""
        self.tell(Poll())
        self.find()
        return self

    def assigned(self, *indexes: int) -> Alone:
        """In poll and reconciled; the acknowledgement is on its way."""
        self.joining().beat(2, share(*(indexes or (0, 1))))
        self.done()
        return self

    def stable(self, *indexes: int) -> Alone:
        """Owns t-0 and t-1 at epoch 2, has consumed five records of each, and is in poll."""
        self.assigned(*indexes).beat(2)
        self.fetched(dict.fromkeys(indexes or (0, 1), 5))
        self.effects.clear()
        return self

    def due(self) -> list[MemberEffect]:
        """Until the next heartbeat goes out."""
        return self.run(INTERVAL_MS)


def of(kind: type[E], effects: Sequence[MemberEffect]) -> list[E]:
    return [effect for effect in effects if isinstance(effect, kind)]


def raised(effects: Sequence[MemberEffect]) -> list[Error | None]:
    return [effect.error for effect in of(Raise, effects)]


def called(effects: Sequence[MemberEffect]) -> list[tuple[str, list[int]]]:
    return [(call.callback.name, [index for _, index in call.partitions]) for call in of(Call, effects)]


def sent(effects: Sequence[MemberEffect]) -> list[str]:
    return [type(send.request).__name__.removesuffix("Request") for send in of(Send, effects)]


def moves(effects: Sequence[MemberEffect]) -> list[str]:
    return [move.state for move in of(Moved, effects)]


def outcomes(effects: Sequence[MemberEffect]) -> list[tuple[str, str]]:
    return [(end.by, end.outcome.name) for end in of(Committed, effects)]


def owns(request: ConsumerGroupHeartbeatRequest) -> list[int] | None:
    """The partitions it reports, or None where it says nothing."""
    if request.topic_partitions is None:
        return None
    return [index for topic in request.topic_partitions for index in topic.partitions]
