"""Print what happened in a conversation: one short line for a message, an answer or a callback."""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import Call, FindCoordinatorRequest, TopicPartition
from rebalance_lab.protocol_v1.common.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    Request,
    Response,
    SyncGroupRequest,
)
from rebalance_lab.protocol_v2.common.messages import (
    UNCHANGED_TIMEOUT,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


def partitions_shown(partitions: Iterable[TopicPartition]) -> str:
    return " ".join(f"{topic}-{index}" for topic, index in sorted(partitions))


def call_shown(call: Call) -> str:
    return f"{call.callback.value}({partitions_shown(call.partitions)})"


def name_of(request: Request) -> str:
    return type(request).__name__.removesuffix("Request")


def request_shown(request: Request) -> str | None:
    match request:
        case HeartbeatRequest() | FindCoordinatorRequest():
            return None
        case JoinGroupRequest():
            return f"-> JoinGroup({request.member_id})"
        case SyncGroupRequest():
            return f"-> SyncGroup(generation {request.generation_id}, {len(request.assignments)} assignments)"
        case ConsumerGroupHeartbeatRequest():
            said = [part for part in heartbeat_parts(request) if part]
            says_nothing = not said and request.member_epoch > 0
            return None if says_nothing else " ".join(["-> Heartbeat", str(request.member_epoch), *said])
        case _:
            return f"-> {name_of(request)}"


def heartbeat_parts(request: ConsumerGroupHeartbeatRequest) -> list[str | None]:
    """Print only what a heartbeat says; "as before" is left out. A timeout marks a heartbeat that repeats
    everything.
    """
    names, owned = request.subscribed_topic_names, request.topic_partitions
    return [
        "full" if request.rebalance_timeout_ms != UNCHANGED_TIMEOUT else None,
        None if names is None else f"[{' '.join(names)}]",
        None if request.subscribed_topic_regex is None else f"regex '{request.subscribed_topic_regex}'",
        None if request.server_assignor is None else f"by {request.server_assignor}",
        None if request.rack_id is None else f"rack {request.rack_id}",
        None if owned is None else f"own {{{partitions_shown(flat(owned))}}}",
    ]


def flat(topics: Iterable[TopicPartitions]) -> list[TopicPartition]:
    return [(topic.topic_name, index) for topic in topics for index in topic.partitions]


def heartbeat_answer(response: ConsumerGroupHeartbeatResponse) -> str:
    if response.error_code is not Error.NONE:
        return f"<- Heartbeat {response.error_code.name}"
    given = response.assignment
    shown = "" if given is None else f" {{{partitions_shown(flat(given.topic_partitions))}}}"
    return f"<- Heartbeat {response.member_epoch}{shown}"


def answer_shown(request: Request, response: Response) -> str | None:
    if isinstance(request, ConsumerGroupHeartbeatRequest) and isinstance(response, ConsumerGroupHeartbeatResponse):
        news = response.error_code or response.member_epoch != request.member_epoch or response.assignment is not None
        return heartbeat_answer(response) if news or request_shown(request) is not None else None
    if hasattr(response, "error_code"):
        errors = [response.error_code]
    else:
        parts = [part for topic in getattr(response, "topics", ()) for part in topic.partitions]
        errors = [part.error_code for part in parts]
    error = next((error for error in errors if error is not Error.NONE), Error.NONE)
    quiet = isinstance(request, HeartbeatRequest) and error is Error.NONE
    return None if quiet or isinstance(request, FindCoordinatorRequest) else f"<- {name_of(request)} {error.value}"
