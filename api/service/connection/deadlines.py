"""Give each connection deadlines, because uvicorn waits for ever for the head of a request.

A thousand clients that never finish a request would otherwise use up all connections.

Head       must be there in `header_s` after its first byte, or after the connection was made
Rest       what is left of a body when its answer is sent is read and thrown away, for `body_s` at most
End        a service that stops waits for `STOP_S` for requests that are still arriving
Room       beyond `connections` a connection is answered 503 and closed
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from rebalance_lab.api.service.connection.framing import StrictParser
from rebalance_lab.api.service.connection.half_closed import HalfClosed
from rebalance_lab.api.service.connection.problems import CONTENT_TYPE, Problem
from rebalance_lab.api.service.service_settings import Limits

LINGER_S = 0.5
STOP_S = 2.0


def protocol_class(limits: Limits) -> type[H11Protocol]:
    class WithDeadlines(Deadlines):
        held_to = limits

    return WithDeadlines


class Deadlines(HalfClosed):
    held_to: Limits

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn: StrictParser = StrictParser(h11.SERVER)
        self.deadline: asyncio.TimerHandle | None = None
        self.is_away = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.held_to.connections:
            self.turn_away(Problem("busy", "there are too many connections", limit="connections", retry_after_s=1))
        else:
            self.arm(self.held_to.header_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self.disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.is_away:
            return
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self.disarm()
        elif self.deadline is None and not self.transport.is_closing():
            self.arm(self.held_to.header_s)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self.arm(self.held_to.body_s)

    def shutdown(self) -> None:
        super().shutdown()
        self.loop.call_later(STOP_S, self.stop_arrival)

    def stop_arrival(self) -> None:
        if self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self.turn_away(Problem("malformed", self.conn.fault or msg))

    def arm(self, after_s: float) -> None:
        self.disarm()
        self.deadline = self.loop.call_later(after_s, self.too_late)

    def disarm(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def too_late(self) -> None:
        self.turn_away(Problem("slow", "the request did not arrive in time", limit="header_s"))

    def turn_away(self, problem: Problem) -> None:
        """Send a problem without the application: there is no request yet, or only half of one."""
        self.disarm()
        self.is_away = True
        if self.transport.is_closing():
            return
        is_between = self.conn.their_state is not h11.SEND_BODY or self.conn.fault is not None
        if self.cycle is None or (self.cycle.response_complete and is_between):
            self.transport.write(as_http(problem))
            self.transport.write_eof()
            # A connection that is closed with bytes unread is reset, and the client would never see the answer.
            self.loop.call_later(LINGER_S, self.transport.close)
        else:
            self.transport.close()


def as_http(problem: Problem) -> bytes:
    body = problem.body()
    head = [f"HTTP/1.1 {problem.status} {problem.title}", f"content-type: {CONTENT_TYPE}"]
    head += [f"content-length: {len(body)}", "connection: close"]
    head += [f"{name}: {value}" for name, value in problem.headers.items()]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body
