"""Hand free processes to the questions that wait for one, so that no client waits for all questions of another.

Turns      the second question of a client in line comes after the first one of every other client
Share      a client has at most `most_per_client` processes at a time
Leaving    a question that is cancelled leaves the line; a process that it has just been given goes to the next one
Start at   Line.take
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Waiter(Generic[T]):
    client: str
    turn: int
    given: asyncio.Future[T]


class Line(Generic[T]):
    def __init__(self, most_per_client: float = math.inf) -> None:
        self.most_per_client = most_per_client
        self.free: deque[T] = deque()
        self._waiters: list[Waiter[T]] = []
        self._at_work: Counter[str] = Counter()
        self._turn = 0

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    def find_turn(self, client: str) -> int:
        """Return the turn that the next question of a client gets."""
        last = max((one.turn for one in self._waiters if one.client == client), default=0)
        return max(self._turn, last) + 1

    def count_ahead(self, client: str) -> int:
        """Return how many questions would come before the next one of a client."""
        turn = self.find_turn(client)
        return sum(one.turn <= turn for one in self._waiters)

    async def take(self, client: str) -> T:
        """Return a process when it is the client's turn; `leave` says that the client is done with it."""
        given: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        waiter = Waiter(client, self.find_turn(client), given)
        self._waiters.append(waiter)
        self._hand_out()
        try:
            return await given
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif not given.cancelled():
                self.leave(client)
                self.put(given.result())
            raise

    def put(self, one: T) -> None:
        """Add a free process, and hand it to the next question."""
        self.free.append(one)
        self._hand_out()

    def leave(self, client: str) -> None:
        """Take note that a client has a process less."""
        self._at_work[client] -= 1
        if not self._at_work[client]:
            del self._at_work[client]
        self._hand_out()

    def _hand_out(self) -> None:
        while self.free and (able := [one for one in self._waiters if not self._has_its_share(one.client)]):
            waiter = min(able, key=lambda one: one.turn)
            self._waiters.remove(waiter)
            if waiter.given.cancelled():
                continue
            self._turn = max(self._turn, waiter.turn)
            self._at_work[waiter.client] += 1
            waiter.given.set_result(self.free.popleft())

    def _has_its_share(self, client: str) -> bool:
        return self._at_work[client] >= self.most_per_client
