"""Check every request on its way in, and complete its answer on the way out.

In         an id, the host it names, its token and that token's rate, and how much room its body may take
Out        headers that keep browsers from guessing, framing and running foreign content; a log line; a measurement
Bugs       end as a problem 500 with the request's id; the trace goes to the log
Start at   Edge.__call__
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rebalance_lab.api.service.connection.auth import Guard
from rebalance_lab.api.service.connection.body_room import BodyRoom, Share
from rebalance_lab.api.service.connection.clients import name_client
from rebalance_lab.api.service.connection.host_names import HostNames
from rebalance_lab.api.service.connection.json_logs import log
from rebalance_lab.api.service.connection.metrics import Metrics
from rebalance_lab.api.service.connection.problems import CONTENT_TYPE, Problem

OPEN = ("/", "/healthz", "/readyz", "/openapi.json", "/favicon.ico")
"""Without a token, like everything below /page/: there is no client's data in them."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
MOST_PATH = 200
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    "cache-control": "no-store",
}


class Edge:
    def __init__(self, app: ASGIApp, guard: Guard, metrics: Metrics, hosts: HostNames, room: BodyRoom) -> None:
        self.app, self.guard, self.metrics, self.hosts, self.room = app, guard, metrics, hosts, room

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await Passage(self, scope, send).go(receive)
        else:
            await send({"type": "websocket.close", "code": 1000})


class Passage:
    """Follow one request through the edge."""

    def __init__(self, edge: Edge, scope: Scope, send: Send) -> None:
        self.edge, self.scope, self.send = edge, scope, send
        self.headers = Headers(scope=scope)
        given = self.headers.get("x-request-id", "")
        self.id = given if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        self.status = 0
        self.sent = 0
        self.address = (scope.get("client") or ("",))[0]
        self.share = Share(edge.room, "")
        scope.setdefault("state", {}).update(request_id=self.id, owner=None)

    async def go(self, receive: Receive) -> None:
        started = time.perf_counter()
        try:
            self.check()
            await self.edge.app(self.scope, receive, self.on_send)
        except Problem as problem:
            await self.refuse(problem)
        except asyncio.CancelledError:  # the service stops, and waits for this request no longer
            if not self.status:
                await self.refuse(Problem("stopping", "try another one", retry_after_s=5))
        except Exception:  # whatever it is, the client hears of it and the log has the trace
            logging.getLogger("rebalance_lab.service").exception("bug", extra={"fields": {"request_id": self.id}})
            if self.status:
                raise
            await self.refuse(Problem("failed", "the log of the service has more under this request_id"))
        finally:
            self.share.release()
            self.note(time.perf_counter() - started)

    def check(self) -> None:
        self.edge.hosts.check(self.headers.get("host", ""), (self.scope.get("server") or ("",))[0])
        path = self.scope["path"]
        if path not in OPEN and not path.startswith("/page/") and self.scope["method"] != "OPTIONS":
            self.scope["state"]["owner"] = self.edge.guard.admit(self.headers.get("authorization"))
        client = name_client(self.scope["state"]["owner"], self.address)
        self.share.client = client
        self.scope["state"].update(client=client, body_share=self.share)

    async def on_send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers["x-request-id"] = self.id
        else:
            self.sent += len(message.get("body", b""))
        await self.send(message)

    async def refuse(self, problem: Problem) -> None:
        self.edge.metrics.refused.labels(problem.kind).inc()
        body = problem.body(self.id)
        headers = {"content-type": CONTENT_TYPE, "content-length": str(len(body)), **problem.headers}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self.on_send({"type": "http.response.start", "status": problem.status, "headers": raw})
        await self.on_send({"type": "http.response.body", "body": body})

    def note(self, seconds: float) -> None:
        route = getattr(self.scope.get("route"), "path", "unknown")
        # Labels are kept for ever: neither paths nor methods may be somebody's own.
        method = self.scope["method"] if self.scope["method"] in METHODS else "other"
        self.edge.metrics.requests.labels(route, method, self.status).inc()
        self.edge.metrics.seconds.labels(route).observe(seconds)
        log(
            "request",
            request_id=self.id,
            method=method,
            path=self.scope["path"][:MOST_PATH],
            status=self.status,
            ms=round(seconds * 1_000, 2),
            bytes=self.sent,
            token=self.scope["state"]["owner"],
            client=self.address,
        )
