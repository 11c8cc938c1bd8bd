"""Serve OffsetCommit and OffsetFetch: decide which member may commit in which state, and what a fetch returns.

Commit     first each partition's topic, then the group's rule for all that is left, then each partition's metadata
Fetch      any client may fetch, in any state. It sees durable offsets, or stable ones where the request asks for those
Reference  ClassicGroup.validateOffsetCommit, OffsetMetadataManager in Apache Kafka
Start at   offset_commit, offset_fetch
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache

from rebalance_lab.protocol_v1.common.errors import NONE, Error, append_error
from rebalance_lab.protocol_v1.common.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from rebalance_lab.protocol_v1.common.txn_messages import TxnOffsetCommitRequestPartition
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup
from rebalance_lab.protocol_v1.coordinator.state.records import GroupOffsets, OffsetCommit, PendingOffset, apply_offset
from rebalance_lab.protocol_v1.coordinator.state.shard import Turn
from rebalance_lab.protocol_v1.coordinator.state.states import State

UNKNOWN_GROUP_SINCE = 9
TOPIC_IDS_SINCE = 10
ONE_ERROR_PER_GROUP_SINCE = 2
MANY_GROUPS_SINCE = 8

Results = dict[str, list[OffsetCommitResponsePartition]]
Wanted = list[tuple[str, OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition]]


def offset_commit(turn: Turn, request: OffsetCommitRequest) -> None:
    """Serve OffsetCommit. An entry that names no existing partition is refused before the group is even looked at."""
    results: Results = {}
    wanted: Wanted = []
    for topic in request.topics:
        name, size = topic.name, partitions_of(turn, topic.name)
        for partition in topic.partitions:
            index = partition.partition_index
            if size is None or 0 <= index < size:
                wanted.append((name, partition))
            else:
                add_result(results, name, index, check_partition(turn, request.version, name, index))
    if not wanted:
        turn.reply(request, commit_response(results))
        return
    group = turn.shard.groups.get(request.group_id)
    error = check_commit(group, request)
    if error is not NONE:
        for name, refused in wanted:
            add_result(results, name, refused.partition_index, error)
        turn.reply(request, commit_response(results))
        return
    created = None
    if group is None:
        created = turn.create_group(request.group_id)
    elif group.state is not State.EMPTY:
        turn.restart_session(group, group.members[request.member_id])
    retention_ms = request.retention_time_ms
    store_offsets(
        turn,
        created,
        request.group_id,
        wanted,
        results,
        lambda turn: turn.reply(request, commit_response(results)),
        expires_ms=None if retention_ms == -1 else turn.now_ms + retention_ms,
    )


def partitions_of(turn: Turn, topic: str) -> int | None:
    """Return the topic's partition count; None where this coordinator does not look at topics."""
    topics = turn.shard.topics
    return topics.get(topic, 0) if topics is not None else None


def check_partition(turn: Turn, version: int, topic: str, partition: int) -> Error:
    topics = turn.shard.topics
    if topics is None or 0 <= partition < topics.get(topic, 0):
        return NONE
    if topic not in topics and version >= TOPIC_IDS_SINCE:
        return Error.UNKNOWN_TOPIC_ID
    return Error.UNKNOWN_TOPIC_OR_PARTITION


def check_commit(group: ClassicGroup | None, request: OffsetCommitRequest) -> Error:
    """Check a commit. The current generation may commit in Stable, and in Preparing so that members commit before they
    rejoin.
    """
    generation_id = request.generation_id_or_member_epoch
    if generation_id < 0 and (group is None or group.state is State.EMPTY):
        return NONE
    if group is None:
        return Error.GROUP_ID_NOT_FOUND if request.version >= UNKNOWN_GROUP_SINCE else Error.ILLEGAL_GENERATION
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not NONE:
        return error
    if generation_id != group.generation_id:
        return Error.ILLEGAL_GENERATION
    return Error.REBALANCE_IN_PROGRESS if group.state is State.COMPLETING_REBALANCE else Error.NONE


def store_offsets(
    turn: Turn,
    created: ClassicGroup | None,
    group_id: str,
    wanted: Wanted,
    results: Results,
    answer: Callable[[Turn], None],
    *,
    expires_ms: int | None = None,
    written_as: Callable[[OffsetCommit], OffsetCommit | PendingOffset] = lambda commit: commit,
) -> None:
    """Append all offsets that their metadata does not forbid, in one append; the answer follows it."""
    records: list[OffsetCommit | PendingOffset] = []
    accepted: list[Error] = []
    for name, partition in wanted:
        metadata = partition.committed_metadata or ""
        if metadata and utf16_length(metadata) > turn.config.offset_metadata_max_bytes:
            accepted.append(Error.OFFSET_METADATA_TOO_LARGE)
        else:
            accepted.append(NONE)
            offset, leader_epoch = partition.committed_offset, partition.committed_leader_epoch
            commit = OffsetCommit(
                group_id, name, partition.partition_index, offset, leader_epoch, metadata, turn.now_ms, expires_ms
            )
            records.append(written_as(commit))

    def written(turn: Turn, error: Error) -> None:
        if error is Error.NONE:
            for record in records:
                apply_offset(turn.shard.image, record)
        if created is not None and records:
            turn.settle_birth(created, error)
        elif created is not None:
            turn.shard.unrecorded.append(created)
        refused = append_error(error)
        for (name, partition), result in zip(wanted, accepted, strict=True):
            add_result(results, name, partition.partition_index, refused or result)
        answer(turn)

    if records:
        turn.append(tuple(records), written)
    else:
        turn.when_durable(written)


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def add_result(results: Results, topic: str, partition: int, error: Error) -> None:
    results.setdefault(topic, []).append(result_of(partition, error))


@lru_cache(maxsize=1 << 16)
def result_of(partition: int, error: Error) -> OffsetCommitResponsePartition:
    """Return a partition's result, nearly always one that was given before: every commit is answered partition by
    partition.
    """
    return OffsetCommitResponsePartition(partition_index=partition, error_code=error)


def commit_response(results: Results) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=commit_topics(results))


def commit_topics(results: Results) -> tuple[OffsetCommitResponseTopic, ...]:
    """List results by topic. Kafka lists first what it refused before it asked the group."""
    return tuple(OffsetCommitResponseTopic(name=name, partitions=tuple(results[name])) for name in results)


def refused_commit(request: OffsetCommitRequest, error: Error) -> OffsetCommitResponse:
    results: Results = {}
    for topic in request.topics:
        for partition in topic.partitions:
            add_result(results, topic.name, partition.partition_index, error)
    return commit_response(results)


def offset_fetch(turn: Turn, request: OffsetFetchRequest) -> None:
    def durable(turn: Turn, error: Error) -> None:
        turn.reply(request, fetch_response(turn, request, fetch_error(error)))

    if request.require_stable:
        turn.when_durable(durable)
    else:
        durable(turn, NONE)


def fetch_error(error: Error) -> Error:
    """Return the error of a fetch. A new coordinator could overtake a commit that is not known to be durable: ask that
    one.
    """
    mapped = append_error(error)
    return Error.NOT_COORDINATOR if mapped is Error.COORDINATOR_NOT_AVAILABLE else mapped


def fetch_response(turn: Turn, request: OffsetFetchRequest, error: Error) -> OffsetFetchResponse:
    if error is not NONE:
        return refused_fetch(request, error)
    if request.version >= MANY_GROUPS_SINCE:
        groups = (known_and_unknown(turn, group, request) for group in request.groups)
        return OffsetFetchResponse(groups=tuple(groups))
    asked = OffsetFetchRequestGroup(group_id=request.group_id, topics=request.topics)
    return OffsetFetchResponse(topics=fetched_group(turn, asked, stable=request.require_stable).topics)


def known_and_unknown(
    turn: Turn, asked: OffsetFetchRequestGroup, request: OffsetFetchRequest
) -> OffsetFetchResponseGroup:
    """Answer for known and unknown topics. Where topics go by id, an unknown one has no name under which to find
    commits.
    """
    topics, known = asked.topics, turn.shard.topics
    if request.version < TOPIC_IDS_SINCE or topics is None or known is None:
        return fetched_group(turn, asked, stable=request.require_stable)
    there = tuple(topic for topic in topics if topic.name in known)
    found = fetched_group(turn, replace(asked, topics=there), stable=request.require_stable)
    unknown = refused_topics((topic for topic in topics if topic.name not in known), Error.UNKNOWN_TOPIC_ID)
    return replace(found, topics=(*found.topics, *unknown))


def refused_fetch(request: OffsetFetchRequest, error: Error) -> OffsetFetchResponse:
    if request.version >= MANY_GROUPS_SINCE:
        groups = (OffsetFetchResponseGroup(group_id=group.group_id, error_code=error) for group in request.groups)
        return OffsetFetchResponse(groups=tuple(groups))
    if request.version >= ONE_ERROR_PER_GROUP_SINCE:
        return OffsetFetchResponse(error_code=error)
    return OffsetFetchResponse(topics=refused_topics(request.topics or (), error))


def refused_topics(topics: Iterable[OffsetFetchRequestTopic], error: Error) -> tuple[OffsetFetchResponseTopic, ...]:
    return tuple(
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=tuple(
                OffsetFetchResponsePartition(partition_index=partition, error_code=error)
                for partition in topic.partition_indexes
            ),
        )
        for topic in topics
    )


def fetched_group(turn: Turn, asked: OffsetFetchRequestGroup, *, stable: bool) -> OffsetFetchResponseGroup:
    offsets = turn.shard.image.offsets.get(asked.group_id, {})
    unstable = turn.shard.image.pending_in(asked.group_id) if stable else frozenset()
    topics = every_topic(offsets) if asked.topics is None else asked.topics
    return OffsetFetchResponseGroup(
        group_id=asked.group_id,
        topics=tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    [
                        OffsetFetchResponsePartition(partition_index=partition, error_code=Error.UNSTABLE_OFFSET_COMMIT)
                        if (topic.name, partition) in unstable
                        else fetched(offsets.get((topic.name, partition)), partition)
                        for partition in topic.partition_indexes
                    ]
                ),
            )
            for topic in topics
        ),
    )


def every_topic(offsets: GroupOffsets) -> list[OffsetFetchRequestTopic]:
    """List every topic, sorted for a reader; Kafka's order here is that of a hash map."""
    partitions: dict[str, list[int]] = {}
    for topic, partition in sorted(offsets):
        partitions.setdefault(topic, []).append(partition)
    return [OffsetFetchRequestTopic(name=topic, partition_indexes=tuple(partitions[topic])) for topic in partitions]


def fetched(committed: OffsetCommit | None, partition: int) -> OffsetFetchResponsePartition:
    if committed is None:
        return OffsetFetchResponsePartition(partition_index=partition)
    return OffsetFetchResponsePartition(partition, committed.offset, committed.leader_epoch, committed.metadata)
