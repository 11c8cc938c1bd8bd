"""Serve what the service says of itself: strategies, health, metrics, and the page."""

from __future__ import annotations

import json
import mimetypes
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from rebalance_lab.api.service.answer_cache import Answer
from rebalance_lab.api.service.connection.bodies import respond
from rebalance_lab.api.service.connection.problems import Problem
from rebalance_lab.api.service.openapi import query_parameters as parameters
from rebalance_lab.api.service.openapi.operations import JSON, operation
from rebalance_lab.api.service.openapi.schemas import listed, record, ref
from rebalance_lab.api.service.service import Service
from rebalance_lab.api.service.strategy_list import strategy_infos

PAGE = Path(__file__).parents[1] / "page"
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
STATUS = record({"status": {"type": "string"}}, ["status"])


def router(service: Service) -> APIRouter:
    made = APIRouter()
    known = Answer.of(json.dumps({"strategies": strategy_infos()}).encode())

    @made.get(
        "/v1/strategies",
        **operation(
            "strategies",
            "The strategies one can name",
            tag="about",
            gives=record({"strategies": listed(ref("StrategyInfo"))}, ["strategies"]),
            problems=("invalid",),
            cached=True,
        ),
    )
    async def strategies(request: Request) -> Response:
        parameters.read_query(request.query_params, ())
        return respond(request, known)

    @made.get("/healthz", **operation("healthz", "Whether the service lives", tag="about", gives=STATUS))
    async def healthz() -> Response:
        return told({"status": "ok"})

    @made.get(
        "/readyz",
        **operation(
            "readyz", "Whether it takes on work", tag="about", gives=STATUS, problems=("stopping",),
        ),
    )  # fmt: skip
    async def readyz() -> Response:
        if not service.ready:
            raise Problem("stopping", "it is starting or stopping", retry_after_s=1)
        return told({"status": "ready"})

    @made.get(
        "/metrics",
        **operation(
            "metrics", "Figures for Prometheus", tag="about", gives={"type": "string"}, media="text/plain",
        ),
    )  # fmt: skip
    async def metrics() -> Response:
        return Response(service.measure(), media_type="text/plain; version=0.0.4")

    add_page(made)
    return made


def document_router(document: dict[str, Any]) -> APIRouter:
    made = APIRouter()
    written = Answer.of(json.dumps(document, ensure_ascii=False).encode())

    @made.get("/openapi.json", include_in_schema=False)
    async def openapi(request: Request) -> Response:
        return respond(request, written)

    return made


def told(value: dict[str, Any]) -> Response:
    return Response(json.dumps(value), media_type=JSON)


def add_page(made: APIRouter) -> None:
    """Read once: a request names one of these and never a path."""
    files = {file.name: (kind_of(file.name), Answer.of(file.read_bytes())) for file in sorted(PAGE.iterdir())}

    @made.get("/", include_in_schema=False)
    async def index(request: Request) -> Response:
        return page_file(request, "index.html")

    @made.get("/page/{name}", include_in_schema=False)
    async def part(request: Request) -> Response:
        return page_file(request, request.path_params["name"])

    def page_file(request: Request, name: str) -> Response:
        if name not in files:
            raise Problem("not-found", "the page has no such part")
        kind, answer = files[name]
        response = respond(request, answer, kind)
        response.headers["content-security-policy"] = PAGE_POLICY
        response.headers["cache-control"] = "no-cache"
        return response


def kind_of(name: str) -> str:
    kind = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
