"""Define TxnOffsetCommit, request and response: the offsets that a transactional producer commits for a consumer.

It is apart from messages.py because only the coordinator of classic groups serves it. protocol_v2 uses all messages
of messages.py.
Reference  Kafka 4.3.1, clients/src/main/resources/common/message
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from rebalance_lab.protocol_v1.common.fast_dataclass import fast_dataclass
from rebalance_lab.protocol_v1.common.messages import OffsetCommitResponseTopic, Request, Response, wire


@fast_dataclass(kw_only=True)
class TxnOffsetCommitRequestPartition:
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int = wire(since=2, default=-1, ignorable=True)
    committed_metadata: str | None = ""


@fast_dataclass(kw_only=True)
class TxnOffsetCommitRequestTopic:
    name: str
    partitions: tuple[TxnOffsetCommitRequestPartition, ...]


@fast_dataclass(kw_only=True)
class TxnOffsetCommitRequest(Request):
    """Commit offsets of a transactional producer for a consumer; they count once the transaction has ended."""

    versions: ClassVar[range] = range(0, 6)
    latest: ClassVar[int] = 5

    version: int = 5
    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int = wire(since=3, default=-1)
    member_id: str = wire(since=3, default="")
    group_instance_id: str | None = wire(since=3, default=None)
    topics: tuple[TxnOffsetCommitRequestTopic, ...]


@fast_dataclass(kw_only=True)
class TxnOffsetCommitResponse(Response):
    throttle_time_ms: int = 0
    topics: tuple[OffsetCommitResponseTopic, ...] = ()
    """Kafka has types of its own for these, with the same fields."""


TXN_REQUESTS: Mapping[str, type[Request]] = MappingProxyType({"TxnOffsetCommit": TxnOffsetCommitRequest})
