"""One KIP-848 member without a group: a test answers its requests by hand, and looks at what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    Committed,
    MemberEffect,
    Moved,
    Poll,
)
from rebalance_lab.protocol_v2.common.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
    TopicPartitions,
)
from rebalance_lab.protocol_v2.member.config import MemberConfig
from rebalance_lab.protocol_v2.member.member import Member
from tests.members.alone import AloneMember, of

INTERVAL_MS = 5_000


def share(*indexes: int, topic: str = "t") -> HeartbeatAssignment:
    listed = (TopicPartitions(topic_name=topic, partitions=indexes),) if indexes else ()
    return HeartbeatAssignment(topic_partitions=listed)


class Alone(AloneMember):
    def __init__(self, *, pattern: str | None = None, regex: str | None = None, **settings: Any) -> None:
        topics = () if pattern or regex else ("t",)
        super().__init__(Member(MemberConfig(**settings), member_id="me", topics=topics, pattern=pattern, regex=regex))

    # The usual answers

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


def moves(effects: Sequence[MemberEffect]) -> list[str]:
    return [move.state for move in of(Moved, effects)]


def outcomes(effects: Sequence[MemberEffect]) -> list[tuple[str, str]]:
    return [(end.by, end.outcome.name) for end in of(Committed, effects)]


def owns(request: ConsumerGroupHeartbeatRequest) -> list[int] | None:
    """The partitions it reports, or None where it says nothing."""
    if request.topic_partitions is None:
        return None
    return [index for topic in request.topic_partitions for index in topic.partitions]
