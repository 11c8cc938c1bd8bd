"""Serve OffsetCommit and OffsetFetch of consumer groups: decide which member may commit with which epoch.

Commit     with its own epoch a member may commit any partition. With an older epoch it may commit only partitions that
           it holds or is giving up, and that it was given by that epoch. Any other partition fails the whole request.
           With a newer epoch a member may commit nothing
Fetch      with the member's epoch exactly
Session    no commit keeps a member alive here, not even a classic one
Reference  ConsumerGroup.validateOffsetCommit and validateOffsetFetch, OffsetMetadataManager in Apache Kafka
Start at   offset_commit, offset_fetch
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from rebalance_lab.protocol_v1.common import messages as v1
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v2.common.topic_image import TopicPartition
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup
from rebalance_lab.protocol_v2.coordinator.state.shard import Turn
from rebalance_lab.protocol_v2.coordinator.state.states import Event
from rebalance_lab.protocol_v2.coordinator.state.values import ConsumerMember

MEMBER_EPOCH_SINCE = 9
TOPIC_IDS_SINCE = 10
MANY_GROUPS_SINCE = 8

NONE = Error.NONE
"""Under a name of its own, for what is asked of every partition."""

Results = dict[str, list[v1.OffsetCommitResponsePartition]]


def offset_commit(turn: Turn, request: v1.OffsetCommitRequest) -> None:
    """Serve OffsetCommit. An entry that names no existing partition is refused before the group is even looked at."""
    results: Results = {}
    wanted: list[tuple[str, v1.OffsetCommitRequestPartition]] = []
    for topic in request.topics:
        name, size = topic.name, partitions_of(turn, topic.name)
        for partition in topic.partitions:
            index = partition.partition_index
            if 0 <= index < size:
                wanted.append((name, partition))
            else:
                add_result(results, name, index, check_partition(turn, request.version, name, index))
    group = turn.shard.groups.get(request.group_id)
    error = check_commit(turn, group, request, wanted) if wanted else Error.NONE
    records: list[Any] = []
    record, retention_ms = turn.shard.offsets.commit, request.retention_time_ms
    expires_ms = None if retention_ms == -1 else turn.now_ms + retention_ms
    for name, partition in wanted:
        code, metadata = error, partition.committed_metadata or ""
        if metadata and code is NONE and utf16_length(metadata) > turn.config.offset_metadata_max_bytes:
            code = Error.OFFSET_METADATA_TOO_LARGE
        if code is NONE:
            index, offset = partition.partition_index, partition.committed_offset
            epoch = partition.committed_leader_epoch
            records.append(record(request.group_id, name, index, offset, epoch, metadata, turn.now_ms, expires_ms))
        add_result(results, name, partition.partition_index, code)

    def durable(turn: Turn, error: Error) -> None:
        if error is Error.NONE:
            if records:
                turn.shard.offsets.store(request.group_id, records)
            turn.reply(request, commit_response(results))
        else:
            turn.reply(request, refused_commit(request, error))

    turn.commit(request.group_id, records, Event.HEARTBEAT, durable)


def partitions_of(turn: Turn, topic: str) -> int:
    known = turn.shard.image.topics.get(topic)
    return known.topic.partitions if known is not None else 0


def check_partition(turn: Turn, version: int, topic: str, partition: int) -> Error:
    if 0 <= partition < partitions_of(turn, topic):
        return NONE
    if topic not in turn.shard.image.topics and version >= TOPIC_IDS_SINCE:
        return Error.UNKNOWN_TOPIC_ID
    return Error.UNKNOWN_TOPIC_OR_PARTITION


def check_commit(
    turn: Turn,
    group: ConsumerGroup | None,
    request: v1.OffsetCommitRequest,
    wanted: Iterable[tuple[str, v1.OffsetCommitRequestPartition]],
) -> Error:
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and (group is None or not group.members):
        return Error.NONE  # an administrator, or a consumer that assigns to itself
    if group is None:
        return Error.GROUP_ID_NOT_FOUND if request.version >= MEMBER_EPOCH_SINCE else Error.ILLEGAL_GENERATION
    member = group.members.get(request.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    if member.metadata.classic is None and request.version < MEMBER_EPOCH_SINCE:
        return Error.UNSUPPORTED_VERSION
    if epoch == member.current.member_epoch:
        return Error.NONE
    topics = turn.shard.image.topics
    named = ((topics[name].topic_id, partition.partition_index) for name, partition in wanted)
    if epoch > member.current.member_epoch or not all(given_by(member, partition, epoch) for partition in named):
        return stale(member)
    return Error.NONE


def given_by(member: ConsumerMember, partition: TopicPartition, epoch: int) -> bool:
    current = member.current
    given = current.assigned.get(partition, current.revoking.get(partition))
    return given is not None and given <= epoch


def stale(member: ConsumerMember) -> Error:
    return Error.STALE_MEMBER_EPOCH if member.metadata.classic is None else Error.ILLEGAL_GENERATION


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def add_result(results: Results, topic: str, partition: int, error: Error) -> None:
    results.setdefault(topic, []).append(result_of(partition, error))


@lru_cache(maxsize=1 << 16)
def result_of(partition: int, error: Error) -> v1.OffsetCommitResponsePartition:
    """Return a partition's result, nearly always one that was given before: every commit is answered partition by
    partition.
    """
    return v1.OffsetCommitResponsePartition(partition_index=partition, error_code=error)


def commit_response(results: Results) -> v1.OffsetCommitResponse:
    topics = (v1.OffsetCommitResponseTopic(name=name, partitions=tuple(found)) for name, found in results.items())
    return v1.OffsetCommitResponse(topics=tuple(topics))


def refused_commit(request: v1.OffsetCommitRequest, error: Error) -> v1.OffsetCommitResponse:
    results: Results = {}
    for topic in request.topics:
        for partition in topic.partitions:
            add_result(results, topic.name, partition.partition_index, error)
    return commit_response(results)


def offset_fetch(turn: Turn, request: v1.OffsetFetchRequest) -> None:
    def durable(turn: Turn, error: Error) -> None:
        turn.reply(request, fetch_response(turn, request, error))

    if request.require_stable:
        turn.when_durable(durable)
    else:
        durable(turn, Error.NONE)


def fetch_response(turn: Turn, request: v1.OffsetFetchRequest, error: Error) -> v1.OffsetFetchResponse:
    if error is not Error.NONE:
        return refused_fetch(request, error)
    if request.version >= MANY_GROUPS_SINCE:
        return v1.OffsetFetchResponse(
            groups=tuple(fetched_group(turn, asked, request.version) for asked in request.groups)
        )
    asked = v1.OffsetFetchRequestGroup(group_id=request.group_id, topics=request.topics)
    return v1.OffsetFetchResponse(topics=fetched_group(turn, asked, request.version).topics)


def refused_fetch(request: v1.OffsetFetchRequest, error: Error) -> v1.OffsetFetchResponse:
    groups = (v1.OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error) for asked in request.groups)
    return v1.OffsetFetchResponse(groups=tuple(groups), error_code=error)


def fetched_group(turn: Turn, asked: v1.OffsetFetchRequestGroup, version: int) -> v1.OffsetFetchResponseGroup:
    group = turn.shard.groups.get(asked.group_id)
    error = check_fetch(group, asked) if group is not None and version >= MEMBER_EPOCH_SINCE else Error.NONE
    if error is not Error.NONE:
        return v1.OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error)
    offsets = turn.shard.offsets.of(asked.group_id)
    topics: dict[str, list[int]] = {}
    if asked.topics is None:
        for name, partition in sorted(offsets):
            topics.setdefault(name, []).append(partition)
    else:
        topics = {topic.name: list(topic.partition_indexes) for topic in asked.topics}
    return v1.OffsetFetchResponseGroup(
        group_id=asked.group_id,
        topics=tuple(
            v1.OffsetFetchResponseTopic(
                name=name,
                partitions=tuple([fetched(offsets.get((name, partition)), partition) for partition in numbers]),
            )
            if version < TOPIC_IDS_SINCE or name in turn.shard.image.topics
            else unknown_topic(name, numbers)
            for name, numbers in topics.items()
        ),
    )


def unknown_topic(name: str, partitions: Iterable[int]) -> v1.OffsetFetchResponseTopic:
    """Answer for an unknown topic. Where topics go by id, it has no name under which to look for commits."""
    refused = (
        v1.OffsetFetchResponsePartition(partition_index=partition, error_code=Error.UNKNOWN_TOPIC_ID)
        for partition in partitions
    )
    return v1.OffsetFetchResponseTopic(name=name, partitions=tuple(refused))


def check_fetch(group: ConsumerGroup, asked: v1.OffsetFetchRequestGroup) -> Error:
    if asked.member_id is None:
        # With an epoch but without an id Kafka trips over the null.
        return Error.NONE if asked.member_epoch < 0 else Error.UNKNOWN_SERVER_ERROR
    member = group.members.get(asked.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    return Error.NONE if asked.member_epoch == member.current.member_epoch else stale(member)


def fetched(committed: Any, partition: int) -> v1.OffsetFetchResponsePartition:
    if committed is None:
        return v1.OffsetFetchResponsePartition(partition_index=partition)
    return v1.OffsetFetchResponsePartition(partition, committed.offset, committed.leader_epoch, committed.metadata)
