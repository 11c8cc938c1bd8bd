"""One member without a group: a test answers its requests by hand, and looks at what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from assignors.interface import Assignor
from assignors.model import Topic
from assignors.strategies import load_assignor, parse_strategy
from protocol_v1.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from protocol_v1.effects import CancelTimer, SetTimer
from protocol_v1.effects.member import (
    Call,
    CallbackDone,
    Cause,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MemberEffect,
    MetadataChanged,
    Poll,
    Raise,
    RejoinNeeded,
    Responded,
    Send,
    TimerFired,
    Told,
)
from protocol_v1.errors import Error
from protocol_v1.member import Member
from protocol_v1.member_config import MemberConfig
from protocol_v1.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
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
    SyncGroupRequest,
    SyncGroupResponse,
)

R = TypeVar("R", bound=Request)
E = TypeVar("E", bound=MemberEffect)


def assignor(name: str) -> Assignor:
    return load_assignor(parse_strategy(f"classic/{name}"))


def share(*indexes: int, topic: str = "t") -> bytes:
    return encode_assignment(Assignment(assigned_partitions={topic: indexes} if indexes else {}))


class Alone:
    def __init__(self, *assignors: str | Assignor, pattern: str | None = None, **settings: Any) -> None:
        chosen = [assignor(one) if isinstance(one, str) else one for one in assignors or ("range",)]
        topics = () if pattern else ("t",)
        self.member = Member(MemberConfig(**settings), assignors=chosen, topics=topics, pattern=pattern)
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

    def joined(self, generation: int = 1, leader: str = "other", **fields: Any) -> list[MemberEffect]:
        given: dict[str, Any] = {
            "generation_id": generation,
            "protocol_type": "consumer",
            "protocol_name": next(iter(self.memory.assignors)),
            "leader": leader,
            "member_id": "me",
        }
        return self.answer(JoinGroupRequest, JoinGroupResponse(**{**given, **fields}))

    def led(self, members: Sequence[tuple[str, Subscription]], **fields: Any) -> list[MemberEffect]:
        listed = tuple(JoinGroupResponseMember(member_id=m, metadata=encode_subscription(s)) for m, s in members)
        return self.joined(leader="me", members=listed, **fields)

    def join_error(self, error: Error, member_id: str = "") -> list[MemberEffect]:
        return self.answer(JoinGroupRequest, JoinGroupResponse(error_code=error, member_id=member_id))

    def synced(self, assignment: bytes | None = None, error: Error = Error.NONE, **fields: Any) -> list[MemberEffect]:
        given = share(0, 1) if assignment is None else assignment
        return self.answer(SyncGroupRequest, SyncGroupResponse(error_code=error, assignment=given, **fields))

    def heartbeat(self, error: Error = Error.NONE) -> list[MemberEffect]:
        return self.answer(HeartbeatRequest, HeartbeatResponse(error_code=error))

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
        """In poll, with JoinGroup sent under the id `me`."""
        self.tell(Poll())
        self.find()
        self.join_error(Error.MEMBER_ID_REQUIRED, "me")
        return self

    def syncing(self) -> Alone:
        self.joining().joined()
        return self

    def stable(self, *indexes: int) -> Alone:
        """Owns t-0 and t-1 in generation 1, has consumed five records of each, and is in poll."""
        self.syncing().synced(share(*(indexes or (0, 1))))
        self.done()
        self.fetched(dict.fromkeys(indexes or (0, 1), 5))
        self.effects.clear()
        return self


def of(kind: type[E], effects: Sequence[MemberEffect]) -> list[E]:
    return [effect for effect in effects if isinstance(effect, kind)]


def raised(effects: Sequence[MemberEffect]) -> list[Error | None]:
    return [effect.error for effect in of(Raise, effects)]


def called(effects: Sequence[MemberEffect]) -> list[tuple[str, list[int]]]:
    return [(call.callback.name, [index for _, index in call.partitions]) for call in of(Call, effects)]


def sent(effects: Sequence[MemberEffect]) -> list[str]:
    return [type(send.request).__name__.removesuffix("Request") for send in of(Send, effects)]


def causes(effects: Sequence[MemberEffect]) -> list[tuple[Cause, str]]:
    return [(fact.cause, fact.reason) for fact in of(RejoinNeeded, effects)]


def subscription(*topics: str, owned: Sequence[int] = (), generation: int = -1, **more: Any) -> Subscription:
    held = {"t": tuple(owned)} if owned else {}
    return Subscription(topics=topics, owned_partitions=held, generation_id=generation, **more)
