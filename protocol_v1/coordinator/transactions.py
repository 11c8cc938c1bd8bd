"""Serve TxnOffsetCommit and the end of a transaction: the offsets are written at once, and count when it commits.

Commit     the rules of OffsetCommit, except that the group's state does not matter. A producer that names no member
           may commit at any time, because older producers cannot name one. It keeps no session alive
Pending    the offsets are pending until the marker comes; a fetch that asks for stable offsets is told so
End        the caller plays the transaction coordinator and reports the end; it is not a request of these messages
Reference  OffsetMetadataManager.commitTransactionalOffset and replayEndTransactionMarker in Apache Kafka 4.3.1
Start at   txn_offset_commit, complete_transaction
"""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.txn_messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from rebalance_lab.protocol_v1.coordinator.offsets import (
    Results,
    Wanted,
    add_result,
    check_partition,
    commit_topics,
    store_offsets,
)
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup
from rebalance_lab.protocol_v1.coordinator.state.records import (
    OffsetCommit,
    PendingOffset,
    TransactionMarker,
    apply_offset,
)
from rebalance_lab.protocol_v1.coordinator.state.shard import Turn
from rebalance_lab.protocol_v1.coordinator.state.states import State


def txn_offset_commit(turn: Turn, request: TxnOffsetCommitRequest) -> None:
    results: Results = {}
    wanted: Wanted = []
    for topic in request.topics:
        for partition in topic.partitions:
            error = check_partition(turn, 0, topic.name, partition.partition_index)
            if error is Error.NONE:
                wanted.append((topic.name, partition))
            else:
                add_result(results, topic.name, partition.partition_index, error)

    def answer(turn: Turn) -> None:
        turn.reply(request, TxnOffsetCommitResponse(topics=commit_topics(results)))

    def pending(commit: OffsetCommit) -> PendingOffset:
        return PendingOffset(producer_id=request.producer_id, commit=commit)

    group = turn.shard.groups.get(request.group_id)
    error = check_txn_commit(group, request) if wanted else Error.NONE
    if error is not Error.NONE or not wanted:
        for name, refused in wanted:
            add_result(results, name, refused.partition_index, error)
        answer(turn)
        return
    created = turn.create_group(request.group_id) if group is None else None
    store_offsets(turn, created, request.group_id, wanted, results, answer, written_as=pending)


def check_txn_commit(group: ClassicGroup | None, request: TxnOffsetCommitRequest) -> Error:
    if not request.group_id:
        return Error.INVALID_GROUP_ID
    if request.generation_id < 0 and (group is None or group.state is State.EMPTY):
        return Error.NONE
    if group is None:
        return Error.ILLEGAL_GENERATION
    if request.generation_id < 0 and not request.member_id and request.group_instance_id is None:
        return Error.NONE
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not Error.NONE:
        return error
    return Error.NONE if request.generation_id == group.generation_id else Error.ILLEGAL_GENERATION


def refused_txn_commit(request: TxnOffsetCommitRequest, error: Error) -> TxnOffsetCommitResponse:
    results: Results = {}
    for topic in request.topics:
        for partition in topic.partitions:
            add_result(results, topic.name, partition.partition_index, error)
    return TxnOffsetCommitResponse(topics=commit_topics(results))


def complete_transaction(turn: Turn, producer_id: int, *, committed: bool) -> None:
    marker = TransactionMarker(producer_id=producer_id, committed=committed)

    def written(turn: Turn, error: Error) -> None:
        if error is Error.NONE:  # otherwise the sender of the marker sends it again
            apply_offset(turn.shard.image, marker)

    turn.append((marker,), written)
