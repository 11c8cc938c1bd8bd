"""Answer clients that end their side after their request, and notice those that are gone.

The end of a client's side looks the same in both cases. Only an attempt to write tells: a client that is gone answers
it with a reset. So an interim answer, 100 Continue, goes out every PROBE_S until the answer. Clients must accept it
(RFC 9110 15.2). The same is done where reading is paused, because more requests stand in line behind the present one.

HTTP/1.0   has no interim answers: a client that ends its side gets what is ready within GRACE_S
Start at   HalfClosed.eof_received
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PROBE_S = 0.3
GRACE_S = 0.5
CONTINUE = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")


class HalfClosed(H11Protocol):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.has_ended = False
        self.probing: asyncio.TimerHandle | None = None

    @property
    def is_answering(self) -> bool:
        """Tell whether a whole request is there, and its answer is not complete."""
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection open for the answer; half a request gets none."""
        self.has_ended = True
        self.probe_later()
        return self.is_answering

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.probe_later()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.has_ended and not self.is_answering:
            self.transport.close()
        else:
            self.probe_later()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.probing is not None:
            self.probing.cancel()
        super().connection_lost(exc)

    def probe_later(self) -> None:
        if self.probing is None and self.is_answering and (self.has_ended or self.flow.read_paused):
            self.probing = self.loop.call_later(PROBE_S if self.has_interim else GRACE_S, self.probe)

    @property
    def has_interim(self) -> bool:
        return self.scope["http_version"] != "1.0"

    def probe(self) -> None:
        self.probing = None
        if self.transport.is_closing() or not self.is_answering or self.conn.our_state is not h11.SEND_RESPONSE:
            return
        if self.has_interim:
            self.transport.write(self.conn.send(CONTINUE) or b"")
            self.probe_later()
        elif self.has_ended:
            self.transport.close()
