"""How a conversation tells what happened: one short line for a message, an answer or a callback."""

from __future__ import annotations

from collections.abc import Iterable

from protocol_v1.effects.member import Call, FindCoordinatorRequest, TopicPartition
from protocol_v1.errors import Error
from protocol_v1.messages import HeartbeatRequest, JoinGroupRequest, Request, Response, SyncGroupRequest


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
        case _:
            return f"-> {name_of(request)}"


def answer_shown(request: Request, response: Response) -> str | None:
    if hasattr(response, "error_code"):
        errors = [response.error_code]
    else:
        parts = [part for topic in getattr(response, "topics", ()) for part in topic.partitions]
        errors = [part.error_code for part in parts]
    error = next((error for error in errors if error is not Error.NONE), Error.NONE)
    quiet = isinstance(request, HeartbeatRequest) and error is Error.NONE
    return None if quiet or isinstance(request, FindCoordinatorRequest) else f"<- {name_of(request)} {error.value}"
