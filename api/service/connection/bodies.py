"""Read a request's body within its size and time, and send an answer or a problem."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from rebalance_lab.api.service.answer_cache import Answer
from rebalance_lab.api.service.connection.problems import CONTENT_TYPE, Problem
from rebalance_lab.api.service.openapi.operations import JSON, YAML
from rebalance_lab.api.service.service_settings import Limits

YAML_NAMES = (YAML, "application/x-yaml", "text/yaml", "text/x-yaml")


def media_of(request: Request, *, yaml: bool = False) -> str:
    """Return the media type, which a body must state: a foreign page cannot send application/json without asking
    first.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem("media-type", "send the body as it is, without content-encoding")
    if kind == JSON:
        return "json"
    if yaml and kind in YAML_NAMES:
        return "yaml"
    raise Problem("media-type", f"send content-type: {JSON}{f' or {YAML}' if yaml else ''}")


async def read_body(request: Request, limits: Limits) -> bytes:
    """Read a body. One that is too large is refused by its announced length, or by what has come when it announces
    none.
    """
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > limits.body_bytes:
        raise too_large(limits)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_s):
            async for part in request.stream():
                request.state.body_share.grow(len(part))
                body += part
                if len(body) > limits.body_bytes:
                    raise too_large(limits)
    except TimeoutError:
        detail = f"the body did not arrive in {limits.body_s:g} s"
        raise Problem("slow", detail, limit="body_s", headers={"connection": "close"}) from None
    except ClientDisconnect:
        raise Problem("gone", "the client went away before the end of its body") from None
    return bytes(body)


def too_large(limits: Limits) -> Problem:
    return Problem("body-too-large", f"at most {limits.body_bytes:,} bytes are read", limit="body_bytes")


def respond(request: Request, answer: Answer, media: str = JSON) -> Response:
    """Send an answer with an ETag. A GET for what its client has already is answered 304.

    A POST never is (RFC 9110 13.1.2). What it computes is no representation of its path, so If-None-Match always holds.
    """
    headers = {"etag": answer.etag, "cache-control": "private, no-cache"}
    if request.method in ("GET", "HEAD") and not {answer.etag, "*"}.isdisjoint(known_tags(request)):
        return Response(status_code=304, headers=headers)
    return Response(answer.body, media_type=media, headers=headers)


def known_tags(request: Request) -> list[str]:
    given = request.headers.get("if-none-match", "")
    return [one.strip().removeprefix("W/") for one in given.split(",")]


def problem_response(request: Request, problem: Problem) -> Response:
    body = problem.body(request.state.request_id)
    return Response(body, problem.status, headers=problem.headers, media_type=CONTENT_TYPE)
