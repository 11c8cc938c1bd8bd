"""Refuse requests whose end is in doubt, and close their connections, as RFC 9112 6.3 wants it.

A proxy in between may have seen another end. What follows could then be a request that the proxy never saw.
Start at   StrictParser
"""

from __future__ import annotations

from typing import Any

import h11


class StrictParser(h11.Connection):
    fault: str | None = None
    """Why the last request was refused."""

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.fault = find_framing_fault(event)
            if self.fault is not None:
                raise h11.RemoteProtocolError(self.fault)
        return event


def find_framing_fault(request: h11.Request) -> str | None:
    names = {name for name, _ in request.headers}
    if b"transfer-encoding" not in names:
        return None
    if b"content-length" in names:
        return "send Content-Length or Transfer-Encoding, and not both"
    if request.http_version < b"1.1":
        return "HTTP/1.0 has no Transfer-Encoding"
    return None
