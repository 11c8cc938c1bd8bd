"""Bound the bytes of all bodies that the service holds, of one client and in all.

Bytes count from their arrival until the request that they belong to is over.
Start at   Share.grow
"""

from __future__ import annotations

from rebalance_lab.api.service.connection.problems import Problem

RETRY_S = 2


class BodyRoom:
    def __init__(self, *, in_all: int, per_client: int) -> None:
        self.in_all, self.per_client = in_all, per_client
        self.taken = 0
        self.clients: dict[str, int] = {}

    def take(self, client: str, size: int) -> None:
        """Refuse a client that holds its share, with 429, and every client when the room is full, with 503."""
        held = self.clients.get(client, 0)
        if held + size > self.per_client:
            detail = f"the bodies of this client's open requests are more than {self.per_client:,} bytes"
            raise Problem("rate", detail, limit="bodies_bytes_per_client", retry_after_s=RETRY_S)
        if self.taken + size > self.in_all:
            detail = f"the bodies of all open requests are more than {self.in_all:,} bytes"
            raise Problem("busy", detail, limit="bodies_bytes", retry_after_s=RETRY_S)
        self.clients[client] = held + size
        self.taken += size

    def give_back(self, client: str, size: int) -> None:
        self.taken -= size
        self.clients[client] -= size
        if not self.clients[client]:
            del self.clients[client]


class Share:
    """Hold what the body of one request takes."""

    def __init__(self, room: BodyRoom, client: str) -> None:
        self.room, self.client = room, client
        self.held = 0

    def grow(self, size: int) -> None:
        self.room.take(self.client, size)
        self.held += size

    def release(self) -> None:
        if self.held:
            self.room.give_back(self.client, self.held)
            self.held = 0
