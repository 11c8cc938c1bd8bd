"""List how a KIP-848 member reacts to each error code, by the request that was refused, as one table.

Missing    a code that the table does not name for a request has that request's reaction in OTHERWISE
Heartbeat  GROUP_ID_NOT_FOUND is fatal too, except as the answer to a leave: then the group is gone, as it may be
Offsets    STALE_MEMBER_EPOCH never moves the member; only heartbeats do
Reference  AbstractHeartbeatRequestManager, ConsumerHeartbeatRequestManager, CommitRequestManager and
           CoordinatorRequestManager in Apache Kafka 4.3.1
Start at   REACTIONS, reaction
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import FindCoordinatorRequest
from rebalance_lab.protocol_v1.common.messages import OffsetCommitRequest, OffsetFetchRequest, Request
from rebalance_lab.protocol_v2.common.messages import ConsumerGroupHeartbeatRequest


class Reaction(Enum):
    RAISE = "out of poll, or of the commit"
    RETRY = "again after a back-off"
    COORDINATOR_UNKNOWN = "look for the coordinator, then again"
    FENCE = "give everything up as lost and join again"
    FATAL = "give everything up as lost, raise, and never speak again"
    REPORT = "raise out of poll, and try again all the same"
    STALE = "again with the new epoch, where there is one"
    REMOVED = "no longer in the group: the commit fails"
    UNAUTHORIZED = "raise, once all partitions were looked at"


LOADING, UNAVAILABLE, MOVED = (
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
)
RETRIABLE = (
    LOADING,
    UNAVAILABLE,
    MOVED,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.UNKNOWN_TOPIC_ID,
    Error.NOT_LEADER_OR_FOLLOWER,
    Error.REQUEST_TIMED_OUT,
    Error.NOT_ENOUGH_REPLICAS,
    Error.KAFKA_STORAGE_ERROR,
    Error.UNSTABLE_OFFSET_COMMIT,
)
"""Java's RetriableExceptions, for the requests that go by the exception's kind."""

REACTIONS: Mapping[type[Request], Mapping[Error, Reaction]] = {
    ConsumerGroupHeartbeatRequest: {
        LOADING: Reaction.RETRY,
        UNAVAILABLE: Reaction.COORDINATOR_UNKNOWN,
        MOVED: Reaction.COORDINATOR_UNKNOWN,
        Error.FENCED_MEMBER_EPOCH: Reaction.FENCE,
        Error.UNKNOWN_MEMBER_ID: Reaction.FENCE,
        Error.TOPIC_AUTHORIZATION_FAILED: Reaction.REPORT,
    },
    OffsetCommitRequest: {
        LOADING: Reaction.RETRY,
        Error.UNKNOWN_TOPIC_OR_PARTITION: Reaction.RETRY,
        Error.UNKNOWN_TOPIC_ID: Reaction.RETRY,
        UNAVAILABLE: Reaction.COORDINATOR_UNKNOWN,
        MOVED: Reaction.COORDINATOR_UNKNOWN,
        Error.REQUEST_TIMED_OUT: Reaction.COORDINATOR_UNKNOWN,
        Error.STALE_MEMBER_EPOCH: Reaction.STALE,
        Error.UNKNOWN_MEMBER_ID: Reaction.REMOVED,
        Error.TOPIC_AUTHORIZATION_FAILED: Reaction.UNAUTHORIZED,
    },
    OffsetFetchRequest: {
        **dict.fromkeys(RETRIABLE, Reaction.RETRY),
        UNAVAILABLE: Reaction.COORDINATOR_UNKNOWN,
        MOVED: Reaction.COORDINATOR_UNKNOWN,
        Error.STALE_MEMBER_EPOCH: Reaction.STALE,
    },
    FindCoordinatorRequest: dict.fromkeys(RETRIABLE, Reaction.RETRY),
}

OF_ONE_PARTITION: Mapping[Error, Reaction] = {
    Error.UNKNOWN_TOPIC_OR_PARTITION: Reaction.RETRY,
    Error.UNKNOWN_TOPIC_ID: Reaction.RETRY,
    Error.UNSTABLE_OFFSET_COMMIT: Reaction.RETRY,
    Error.TOPIC_AUTHORIZATION_FAILED: Reaction.UNAUTHORIZED,
}
"""In an OffsetFetch's answer, beside the codes that stand for the whole of it; others are raised."""

OTHERWISE: Mapping[type[Request], Reaction] = {
    ConsumerGroupHeartbeatRequest: Reaction.FATAL,
    OffsetCommitRequest: Reaction.RAISE,
    OffsetFetchRequest: Reaction.RAISE,
    FindCoordinatorRequest: Reaction.RAISE,
}


def reaction(request: type[Request], error: Error) -> Reaction:
    return REACTIONS[request].get(error, OTHERWISE[request])
