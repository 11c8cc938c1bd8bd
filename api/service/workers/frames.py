"""Frame the messages between the service and its processes on a socket: a kind, a length, and that many bytes.

A question is a head (JSON) and a body as it came over the network. An answer's body goes back over the network as it
is. So the event loop neither reads nor writes a client's JSON.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

PREFIX = struct.Struct("!BI")


class Kind(IntEnum):
    HEAD = 1
    BODY = 2
    PROGRESS = 3
    DONE = 4
    REFUSED = 5
    FAILED = 6
    READY = 7
    TAKEN = 8
    """The question has been read: from now on it may be what kills the process."""


def frame(kind: Kind, payload: bytes = b"") -> bytes:
    return PREFIX.pack(kind, len(payload)) + payload


def frame_json(kind: Kind, payload: Mapping[str, Any]) -> bytes:
    return frame(kind, json.dumps(payload).encode())


def receive(end: socket.socket) -> tuple[Kind, bytes]:
    """Receive a frame, blocking: for the process's side. EOFError when the service is gone."""
    kind, length = PREFIX.unpack(exactly(end, PREFIX.size))
    return Kind(kind), exactly(end, length)


def exactly(end: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = end.recv(min(length - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)
