"""List how a member reacts to each error code, by the request that was refused, as one table.

Missing    a code that the table does not name for a request has that request's reaction in OTHERWISE
Guarded    the handlers reset after Join, Sync and Heartbeat only while the member still has the generation in which the
           request was sent
Reference  the response handlers of AbstractCoordinator and ConsumerCoordinator in Apache Kafka 4.3.1
Start at   REACTIONS, reaction
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import FindCoordinatorRequest
from rebalance_lab.protocol_v1.common.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    Request,
    SyncGroupRequest,
)


class Reaction(Enum):
    RAISE = "out of poll, or of the commit"
    RETRY = "again after a back-off"
    COORDINATOR_UNKNOWN = "look for the coordinator, then again"
    REJOIN = "join again at once"
    ADOPT_ID = "take the id that came with it and join again at once"
    FULL_RESET = "forget generation and member id, join again at once"
    SOFT_RESET = "forget the generation, join again at once"
    FENCED = "another member holds the instance id: stop"
    FAILED = "count it as a heartbeat that failed"
    UNAUTHORIZED = "raise, once all partitions were looked at"
    IGNORE = "nothing to be done"


LOADING, UNAVAILABLE, MOVED = (
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
)

REACTIONS: Mapping[type[Request], Mapping[Error, Reaction]] = {
    JoinGroupRequest: {
        LOADING: Reaction.RETRY,
        UNAVAILABLE: Reaction.COORDINATOR_UNKNOWN,
        MOVED: Reaction.COORDINATOR_UNKNOWN,
        Error.UNKNOWN_MEMBER_ID: Reaction.FULL_RESET,
        Error.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
        Error.MEMBER_ID_REQUIRED: Reaction.ADOPT_ID,
    },
    SyncGroupRequest: {
        UNAVAILABLE: Reaction.COORDINATOR_UNKNOWN,
        MOVED: Reaction.COORDINATOR_UNKNOWN,
        Error.ILLEGAL_GENERATION: Reaction.SOFT_RESET,
        Error.UNKNOWN_MEMBER_ID: Reaction.FULL_RESET,
        Error.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
    },
    HeartbeatRequest: {
        UNAVAILABLE: Reaction.COORDINATOR_UNKNOWN,
        MOVED: Reaction.COORDINATOR_UNKNOWN,
        Error.ILLEGAL_GENERATION: Reaction.SOFT_RESET,
        Error.UNKNOWN_MEMBER_ID: Reaction.FULL_RESET,
        Error.FENCED_INSTANCE_ID: Reaction.FENCED,
        Error.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
    },
    OffsetCommitRequest: {
        LOADING: Reaction.RETRY,
        Error.UNKNOWN_TOPIC_OR_PARTITION: Reaction.RETRY,
        UNAVAILABLE: Reaction.COORDINATOR_UNKNOWN,
        MOVED: Reaction.COORDINATOR_UNKNOWN,
        Error.REQUEST_TIMED_OUT: Reaction.COORDINATOR_UNKNOWN,
        Error.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
        Error.ILLEGAL_GENERATION: Reaction.SOFT_RESET,
        Error.UNKNOWN_MEMBER_ID: Reaction.FULL_RESET,
        Error.FENCED_INSTANCE_ID: Reaction.FENCED,
        Error.TOPIC_AUTHORIZATION_FAILED: Reaction.UNAUTHORIZED,
    },
    OffsetFetchRequest: {
        LOADING: Reaction.RETRY,
        UNAVAILABLE: Reaction.COORDINATOR_UNKNOWN,
        MOVED: Reaction.COORDINATOR_UNKNOWN,
        Error.REQUEST_TIMED_OUT: Reaction.RETRY,
        Error.UNSTABLE_OFFSET_COMMIT: Reaction.RETRY,
    },
    FindCoordinatorRequest: {
        LOADING: Reaction.RETRY,
        UNAVAILABLE: Reaction.RETRY,
        MOVED: Reaction.RETRY,
        Error.REQUEST_TIMED_OUT: Reaction.RETRY,
        Error.UNKNOWN_TOPIC_OR_PARTITION: Reaction.RETRY,
    },
    LeaveGroupRequest: {},
}

OTHERWISE: Mapping[type[Request], Reaction] = {
    JoinGroupRequest: Reaction.RAISE,
    SyncGroupRequest: Reaction.RAISE,  # COORDINATOR_LOAD_IN_PROGRESS included: Kafka's client does not expect it here
    HeartbeatRequest: Reaction.FAILED,  # GROUP_AUTHORIZATION_FAILED included: it is tried again
    OffsetCommitRequest: Reaction.RAISE,
    OffsetFetchRequest: Reaction.RAISE,
    FindCoordinatorRequest: Reaction.RAISE,
    LeaveGroupRequest: Reaction.IGNORE,  # logged; nobody waits for it, and it is never sent twice
}


def reaction(request: type[Request], error: Error) -> Reaction:
    return REACTIONS[request].get(error, OTHERWISE[request])


def java_name(error: Error) -> str:
    """Return Java's exception name, such as UnknownMemberIdException: a Java client writes it into its next JoinGroup's
    reason.
    """
    return "".join(word.capitalize() for word in error.name.split("_")) + "Exception"
