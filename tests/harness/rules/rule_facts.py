"""A handful of facts, put together by hand, for the rules of tests/harness/rules."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from rebalance_lab.harness.measure.broken_invariant import Broken
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeaveGroupResponseMember,
    MemberIdentity,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    Request,
    Response,
)
from rebalance_lab.protocol_v2.common.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
    TopicPartitions,
)
from tests.harness.rules import ProtocolChecker

Raises = AbstractContextManager[Any]


def breaks(wrong: bool, invariant: str) -> Raises:
    return pytest.raises(Broken, match=f"^{invariant}") if wrong else nullcontext()


class Group:
    """What a broker would whisper of one group."""

    def __init__(self) -> None:
        self.checker = ProtocolChecker()
        self.t = 0

    def feed(self, fact: str, **more: Any) -> None:
        self.checker.feed({"t": self.t, "fact": fact, **more})

    def exchange(self, request: Request, response: Response) -> None:
        self.feed("asks", request=request)
        self.feed("answers", request=request, response=response)

    def state(self, state: str, epoch: int, because: str = "") -> None:
        self.feed("group", state=state, epoch=epoch, because=because, member=None)

    # Classic

    def join(self, generation: int, *members: str, lists: tuple[str, ...] | None = None) -> None:
        """A join phase from its beginning to its end; the first leads."""
        self.state("PreparingRebalance", generation - 1, "member joined")
        self.state("CompletingRebalance", generation, "join phase completed")
        listed = tuple(JoinGroupResponseMember(member_id=one, metadata=b"") for one in lists or members)
        for one in members:
            request = JoinGroupRequest(
                group_id="g",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=60_000,
                member_id=one,
                protocol_type="consumer",
                protocols=(),
                client_id=one,
            )
            leads = one == members[0]
            answer = JoinGroupResponse(
                generation_id=generation, member_id=one, leader=members[0], members=listed if leads else ()
            )
            self.exchange(request, answer)

    def stable(self, generation: int) -> None:
        self.state("Stable", generation, "leader's assignment stored")

    def heartbeat(self, member: str, generation: int, error: Error = Error.NONE) -> None:
        request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member)
        self.exchange(request, HeartbeatResponse(error_code=error))

    def commit(self, member: str, epoch: int, error: Error = Error.NONE, partition: int = 0) -> None:
        asked = OffsetCommitRequestTopic(name="o", partitions=(OffsetCommitRequestPartition(partition, 5),))
        answer = OffsetCommitResponsePartition(partition_index=partition, error_code=error)
        taken = OffsetCommitResponseTopic(name="o", partitions=(answer,))
        self.exchange(
            OffsetCommitRequest(
                group_id="g", generation_id_or_member_epoch=epoch, member_id=member, topics=(asked,), client_id=member
            ),
            OffsetCommitResponse(topics=(taken,)),
        )

    def leave(self, member: str) -> None:
        gone = LeaveGroupResponseMember(member_id=member, group_instance_id=None)
        self.exchange(
            LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id=member),)),
            LeaveGroupResponse(members=(gone,)),
        )

    # KIP-848

    def beat(
        self,
        member: str,
        epoch: int,
        told: int,
        given: tuple[int, ...] | None = None,
        owns: tuple[int, ...] | None = None,
        instance_id: str | None = None,
        error: Error = Error.NONE,
    ) -> None:
        self.exchange(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=member,
                member_epoch=epoch,
                instance_id=instance_id,
                client_id=member,
                rebalance_timeout_ms=60_000,
                topic_partitions=None if owns is None else (TopicPartitions("o", owns),),
            ),
            ConsumerGroupHeartbeatResponse(
                error_code=error,
                member_id=member,
                member_epoch=told,
                heartbeat_interval_ms=5_000,
                assignment=None if given is None else HeartbeatAssignment((TopicPartitions("o", given),)),
            ),
        )
