"""Fetch committed offsets inside poll(), to find where newly assigned partitions are read from.

Epoch      the request carries member id and epoch while the member has one; on STALE_MEMBER_EPOCH it is sent again
Answers    count only for what is still owned and has no position yet
Reference  OffsetsRequestManager.updateFetchPositions and CommitRequestManager in Apache Kafka 4.3.1
Start at   want_offsets, on_offset_fetch
"""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import Fetched, TopicPartition
from rebalance_lab.protocol_v1.common.messages import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from rebalance_lab.protocol_v2.member.commits import by_topic
from rebalance_lab.protocol_v2.member.error_reactions import OF_ONE_PARTITION, Reaction, reaction
from rebalance_lab.protocol_v2.member.memory import MemberTurn, PendingFetch, QueuedError, Sent


def want_offsets(turn: MemberTurn) -> None:
    memory = turn.memory
    if len(memory.looked_up) == len(memory.owned):
        return  # only owned partitions are looked up, so that is all of them
    without = memory.owned.difference(memory.pending_revocation, memory.looked_up, memory.positions)
    if not without:
        return
    if memory.fetching is None or memory.fetching.partitions != without:
        memory.fetching = PendingFetch(without, turn.now_ms + turn.config.default_api_timeout_ms)


def drive_fetch(turn: MemberTurn) -> None:
    memory = turn.memory
    fetch = memory.fetching
    if fetch is None or fetch.in_flight or not memory.coordinator_known or turn.now_ms < fetch.retry_at_ms:
        return
    epoch = memory.offset_epoch
    group = OffsetFetchRequestGroup(
        group_id=turn.config.group_id,
        member_id=None if epoch is None else memory.offset_member_id,
        member_epoch=-1 if epoch is None else epoch,
        topics=tuple(
            OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
            for name, indexes in by_topic(fetch.partitions).items()
        ),
    )
    fetch.in_flight = True
    turn.send(OffsetFetchRequest(groups=(group,), require_stable=True, **turn.header()), fetch=fetch)


def on_offset_fetch(turn: MemberTurn, sent: Sent, response: OffsetFetchResponse) -> None:
    fetch, group = sent.fetch, response.groups[0]
    assert fetch is not None
    if group.error_code is not Error.NONE:
        how = reaction(OffsetFetchRequest, group.error_code)
        if how is Reaction.COORDINATOR_UNKNOWN:
            turn.coordinator_unknown()
        fetch_failed(turn, fetch, how, group.error_code)
        return
    partitions = {(topic.name, one.partition_index): one for topic in group.topics for one in topic.partitions}
    error = worst({one.error_code for one in partitions.values()} - {Error.NONE})
    late = turn.now_ms + turn.config.retry_backoff_ms >= fetch.deadline_ms
    if error in (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID) and late:
        error = Error.NONE  # there is nothing to be found, then
    if error is Error.NONE:
        offsets = {tp: -1 if one.error_code else one.committed_offset for tp, one in partitions.items()}
        fetched(turn, fetch, offsets)
    else:
        fetch_failed(turn, fetch, OF_ONE_PARTITION.get(error, Reaction.RAISE), error)


def worst(errors: set[Error]) -> Error:
    """Return the worst error: fatal ones come first, then forbidden topics, then those that may pass."""
    order = (Reaction.RAISE, Reaction.UNAUTHORIZED, Reaction.RETRY)
    return min(
        errors,
        key=lambda error: (order.index(OF_ONE_PARTITION.get(error, Reaction.RAISE)), -error.value),
        default=Error.NONE,
    )


def fetched(turn: MemberTurn, fetch: PendingFetch, found: dict[TopicPartition, int]) -> None:
    memory = turn.memory
    if memory.fetching is fetch:
        memory.fetching = None
    owned, positions = memory.owned, memory.positions
    offsets = {tp: offset for tp, offset in found.items() if tp in owned and tp not in positions}
    memory.looked_up |= offsets.keys()
    positions |= {tp: offset for tp, offset in offsets.items() if offset >= 0}
    if offsets:
        turn.tell(Fetched(offsets))


def fetch_failed(turn: MemberTurn, fetch: PendingFetch, how: Reaction, error: Error | None = None) -> None:
    """Handle a failed fetch. One that is too late is not raised: the next poll() asks anew."""
    memory = turn.memory
    if memory.fetching is not fetch:
        return  # others are wanted by now
    fetch.in_flight = False
    repeated = how in (Reaction.RETRY, Reaction.COORDINATOR_UNKNOWN)
    if repeated or (how is Reaction.STALE and memory.offset_epoch is not None):
        fetch.retry_at_ms = turn.now_ms + turn.backoff_ms(fetch.attempts)
        fetch.attempts += 1
        if turn.now_ms >= fetch.deadline_ms:
            memory.fetching = None
    else:
        memory.fetching = None
        turn.enqueue(QueuedError(error, "committed offsets cannot be fetched"))
