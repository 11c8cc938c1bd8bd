"""One member without a group: a test answers its requests by hand, and looks at what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rebalance_lab.assignors.interface import Assignor
from rebalance_lab.assignors.strategies import load_assignor, parse_strategy
from rebalance_lab.protocol_v1.common.consumer_protocol import (
    Assignment,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    Cause,
    MemberEffect,
    Poll,
    RejoinNeeded,
)
from rebalance_lab.protocol_v1.common.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupRequest,
    SyncGroupResponse,
)
from rebalance_lab.protocol_v1.member.config import MemberConfig
from rebalance_lab.protocol_v1.member.member import Member
from tests.members.alone import AloneMember, of


def assignor(name: str) -> Assignor:
    return load_assignor(parse_strategy(f"classic/{name}"))


def share(*indexes: int, topic: str = "t") -> bytes:
    return encode_assignment(Assignment(assigned_partitions={topic: indexes} if indexes else {}))


class Alone(AloneMember):
    def __init__(self, *assignors: str | Assignor, pattern: str | None = None, **settings: Any) -> None:
        chosen = [assignor(one) if isinstance(one, str) else one for one in assignors or ("range",)]
        topics = () if pattern else ("t",)
        super().__init__(Member(MemberConfig(**settings), assignors=chosen, topics=topics, pattern=pattern))

    # The usual answers

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


def causes(effects: Sequence[MemberEffect]) -> list[tuple[Cause, str]]:
    return [(fact.cause, fact.reason) for fact in of(RejoinNeeded, effects)]


def subscription(*topics: str, owned: Sequence[int] = (), generation: int = -1, **more: Any) -> Subscription:
    held = {"t": tuple(owned)} if owned else {}
    return Subscription(topics=topics, owned_partitions=held, generation_id=generation, **more)
