"""Build the ASGI application. Start at create_app."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp

from rebalance_lab.api.service.connection.bodies import problem_response
from rebalance_lab.api.service.connection.edge import OPEN, Edge
from rebalance_lab.api.service.connection.host_names import HostNames
from rebalance_lab.api.service.connection.problems import Problem
from rebalance_lab.api.service.openapi.schemas import components
from rebalance_lab.api.service.routes import about_routes, document_routes, group_routes, simulation_routes
from rebalance_lab.api.service.service import Service
from rebalance_lab.api.service.service_settings import Settings

ABOUT = """Assignments as Kafka makes them, simulations of a consumer group's life, and which strategy to take.

The JSON is the command line's (`rebalance-lab`), and so is the code beneath. Errors are RFC 9457 problem details with
the path of the bad field. A POST here computes and changes nothing, except for /v1/simulations, which keeps a job."""
OF_STARLETTE = {404: "not-found", 405: "method"}


def create_app(settings: Settings) -> tuple[ASGIApp, Service]:
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    app = FastAPI(
        title="Rebalance Lab",
        version=version("rebalance-lab"),
        description=ABOUT,
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,
    )
    routes: list[Route] = []
    for family in (document_routes, simulation_routes, group_routes, about_routes):
        made = family.router(service)
        routes += (route for route in made.routes if isinstance(route, Route))
        app.include_router(made)
    for kind in (Problem, HTTPException):
        app.add_exception_handler(kind, on_problem(service, routes))
    app.include_router(about_routes.document_router(document(app, settings)))
    guarded: ASGIApp = Edge(
        app, service.guard, service.metrics, HostNames(settings.host, settings.allowed_hosts), service.body_room
    )
    if settings.cors_origins:
        guarded = CORSMiddleware(
            guarded, allow_origins=settings.cors_origins, allow_methods=["*"], allow_headers=["authorization", "*"]
        )
    return guarded, service


def on_problem(service: Service, routes: Sequence[Route]) -> Any:
    async def answer(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            headers = dict(error.headers or {})
            if "Allow" in headers:  # Starlette names the methods of the first route of that path only
                headers["Allow"] = ", ".join(allowed(request, routes))
            error = Problem(OF_STARLETTE.get(error.status_code, "malformed"), error.detail, headers=headers)
        assert isinstance(error, Problem)
        service.metrics.refused.labels(error.kind).inc()
        return problem_response(request, error)

    return answer


def allowed(request: Request, routes: Sequence[Route]) -> list[str]:
    here = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for route in here for method in route.methods or ()})


def document(app: FastAPI, settings: Settings) -> dict[str, Any]:
    made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    parts = made.setdefault("components", {})
    parts["schemas"] = components()
    if settings.tokens:
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, item in made["paths"].items():
            for operation in item.values():
                operation["security"] = [] if path in OPEN else [{"token": []}]
    return made
