"""Pool connections to one node that are idle, and note how busy that node has been of late.

A broker serves one request of a connection at a time, so a request that may be parked takes a connection of its own.
"""

from __future__ import annotations

import asyncio
from collections import deque

from rebalance_lab.harness.kafka.wire.addresses import Address
from rebalance_lab.harness.kafka.wire.broker_connection import Connection, connect

STALL_S = 0.03
"""What an answer takes at most on a machine that is not busy."""


class Pool:
    """Pool connections to one node that are idle."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.usual_s = 0.0
        """How long answers take at present: the slowest of late, fading."""
        self.took: deque[tuple[float, float]] = deque(maxlen=20_000)
        """When an answer came, and how long it had taken; for all users of this pool."""
        self.idle: list[Connection] = []
        self.all: list[Connection] = []

    async def take(self) -> Connection:
        while self.idle:
            connection = self.idle.pop()
            if connection.open:
                return connection
        connection = await connect(self.address, "rebalance-lab")
        self.all.append(connection)
        return connection

    def note(self, now: float, took_s: float) -> None:
        self.usual_s = max(took_s, 0.9 * self.usual_s)
        self.took.append((now, took_s))

    def stalls(self, since: float) -> list[tuple[int, int]]:
        """Return the stalls in milliseconds since then."""
        slow = [(at - since, took_s) for at, took_s in self.took if at >= since and took_s > STALL_S]
        return [(round((at - took_s) * 1000), round(at * 1000)) for at, took_s in slow]

    def give_back(self, connection: Connection) -> None:
        self.idle.append(connection)

    async def close(self) -> None:
        await asyncio.gather(*(connection.close() for connection in self.all))
