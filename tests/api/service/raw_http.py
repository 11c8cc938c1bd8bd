"""HTTP by hand, for requests that no decent client sends: a socket, a head, and all that comes back."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from typing import Any

from tests.api.service.conftest import Running


def connect(service: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", service.port), timeout=30)


def head(path: str, length: int, method: str = "POST", **headers: str) -> bytes:
    given = {"host": "127.0.0.1", "content-type": "application/json", "content-length": str(length), **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def request(path: str, value: Any, headers: Mapping[str, str] | None = None) -> bytes:
    body = json.dumps(value).encode()
    return head(path, len(body), **(headers or {})) + body


def read_all(end: socket.socket) -> bytes:
    """Read until the service closes the connection."""
    parts = b""
    try:
        while part := end.recv(65_536):
            parts += part
    except ConnectionResetError:
        return parts
    return parts


def read_answer(end: socket.socket) -> bytes:
    """Read one answer that says its length."""
    parts = b""
    while b"\r\n\r\n" not in parts:
        parts += receive(end)
    text, _, body = parts.partition(b"\r\n\r\n")
    length = int(text.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
    while len(body) < length:
        body += receive(end)
    return text + b"\r\n\r\n" + body


def receive(end: socket.socket) -> bytes:
    part = end.recv(65_536)
    assert part, "the service closed the connection"
    return part


def statuses(text: bytes) -> list[int]:
    """Return the statuses of the final answers in a stream; interim ones, such as 100, are left out."""
    found = [int(status) for status in re.findall(rb"HTTP/1\.1 ([0-9]{3})", text)]
    return [status for status in found if status >= 200]
