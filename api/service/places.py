"""Count the places for long work: recommendations, sizings and simulations that wait or run, of one client and in all.

Client     a token's name, or an address where there are no tokens
Start at   Places.take
"""

from __future__ import annotations

from collections import Counter

from rebalance_lab.api.service.connection.problems import Problem

RETRY_S = 5


class Places:
    def __init__(self, *, in_all: int, per_client: int) -> None:
        self.in_all = in_all
        self.per_client = max(1, min(per_client, in_all - 1))
        """At least one place stays for another client, whatever the settings say."""
        self._by_client: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        return self._by_client.total()

    def check(self, client: str) -> None:
        """Refuse a client that has its share, with 429, and every client when all places are taken, with 503."""
        if self._by_client[client] >= self.per_client:
            detail = f"{self.per_client} of this client's questions wait or run already"
            raise Problem("rate", detail, limit="jobs_per_client", retry_after_s=RETRY_S)
        if self.taken >= self.in_all:
            detail = f"{self.in_all} simulations and recommendations wait or run already"
            raise Problem("busy", detail, limit="jobs", retry_after_s=RETRY_S)

    def take(self, client: str) -> None:
        self.check(client)
        self._by_client[client] += 1

    def give_back(self, client: str) -> None:
        self._by_client[client] -= 1
        if not self._by_client[client]:
            del self._by_client[client]
