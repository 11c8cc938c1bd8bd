"""Describe a route: what it takes, what it gives, which problems it may have, and where a client goes from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from rebalance_lab.api.service.connection.problems import CONTENT_TYPE, TITLES
from rebalance_lab.api.service.openapi.examples import example
from rebalance_lab.api.service.openapi.query_parameters import Parameter, documented
from rebalance_lab.api.service.openapi.schemas import ref

JSON, YAML = "application/json", "application/yaml"
IF_NONE_MATCH = Parameter(
    name="if-none-match",
    place="header",
    schema={"type": "string"},
    description="An ETag that was given before: the answer is 304 without a body where nothing has changed.",
)
ALWAYS = ("unauthorized", "method", "wrong-host", "rate")
ASKING = ("slow", "body-too-large", "media-type", "invalid", "busy")
ETAG = {"etag": {"required": True, "description": "A hash of the answer.", "schema": {"type": "string"}}}


def operation(
    name: str,
    summary: str,
    *,
    tag: str,
    description: str = "",
    takes: Mapping[str, Any] | None = None,
    takes_yaml: bool = False,
    gives: Mapping[str, Any] | None = None,
    media: str = JSON,
    status: int = 200,
    parameters: Sequence[Parameter] = (),
    problems: Sequence[str] = (),
    cached: bool = False,
    links: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return keyword arguments for a FastAPI route. `name` is its id, and under it stand its examples."""
    extra: dict[str, Any] = {
        "parameters": documented([*parameters, *([IF_NONE_MATCH] if cached and not takes else [])]),
    }
    kinds = [*ALWAYS, *(ASKING if takes else ()), *problems]
    responses: dict[int | str, Any] = {}
    for kind in kinds:
        code, title = TITLES[kind]
        told = responses.setdefault(code, problem_response(code))
        told["description"] = f"{told['description']}; {title}" if told["description"] else title
    if takes:
        media_types = {JSON: {"schema": takes, "examples": examples_of(f"{name}.request")}}
        if takes_yaml:
            same = {"type": "object", "description": "The same as YAML, as scenario files are written."}
            media_types[YAML] = {**media_types[JSON], "schema": same}
        extra["requestBody"] = {"required": True, "content": media_types}
    responses[status] = {"description": "As asked", **answer_response(name, gives, media)}
    if cached:
        responses[status]["headers"] = ETAG
        if not takes:
            responses[304] = {"description": "Nothing has changed since If-None-Match"}
    if links:
        responses[status]["links"] = dict(links)
    return {
        "operation_id": name,
        "summary": summary,
        "description": description or summary,
        "tags": [tag],
        "status_code": status,
        "response_class": Response,
        "responses": responses,
        "openapi_extra": extra,
    }


def problem_response(code: int) -> dict[str, Any]:
    made: dict[str, Any] = {"description": "", "content": {CONTENT_TYPE: {"schema": ref("Problem")}}}
    if code in (429, 503):
        made["headers"] = {"retry-after": {"description": "Seconds", "schema": {"type": "integer", "minimum": 0}}}
    return made


def answer_response(name: str, gives: Mapping[str, Any] | None, media: str) -> dict[str, Any]:
    if gives is None:
        return {}
    shown = example(f"{name}.response")
    return {"content": {media: {"schema": gives, **({} if shown is None else {"example": shown})}}}


def examples_of(prefix: str) -> dict[str, Any]:
    found = example(prefix) or {}
    return {title: {"value": value} for title, value in found.items()}
