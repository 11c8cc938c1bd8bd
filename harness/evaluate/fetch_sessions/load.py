"""Run a broker's clients against its cache of fetch sessions, in virtual time: which have one, which lose one.

Given      the clients of one broker, each with the number of partitions it fetches there
Returns    an Outcome
Way        clients with a session use it; a client without one asks again with every fetch, each time at another shard.
           While no shard would take the best waiting client, nothing changes until sessions are older, so time leaps.
           Fetches of waiting clients begin with another client each time: real ones have no fixed order
Start at   deploy
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.harness.evaluate.fetch_sessions.session_cache import EVICTION_MS, FetchSessionCache

FETCH_MS = 500
"""How often a client with nothing new to read asks: fetch.max.wait.ms."""
LEAP_MS = EVICTION_MS // 2
"""No longer: a session must not look unused because the simulation left its fetches out."""
WARM_UP_MS = 10 * EVICTION_MS
DOWNTIME_MS = 5_000
GAP_MS = 5_000
MOST_RESTARTS = 200
"""Of a larger deploy as many are played, evenly chosen, and the losses scaled."""


@dataclass(frozen=True, slots=True)
class Client:
    name: str
    size: int
    """Partitions in its session."""
    privileged: bool
    """A follower."""


@dataclass(frozen=True, slots=True)
class Outcome:
    without_session: int
    not_found: float
    """In one rolling deploy of all consumers."""


def deploy(clients: Sequence[Client], *, slots: int, fetch_ms: int = FETCH_MS) -> Outcome:
    """Run a deploy: followers are there first, then all consumers come; once that is at rest, one after the other
    restarts.
    """
    broker = Broker(clients, slots, fetch_ms)
    broker.arrive(sorted(range(len(clients)), key=lambda i: not clients[i].privileged))
    broker.advance(WARM_UP_MS)
    without_session = len(broker.waiting)
    broker.not_found = 0
    consumers = [i for i, client in enumerate(clients) if not client.privileged]
    step = max(1, -(-len(consumers) // MOST_RESTARTS))
    restarted = consumers[::step]
    for i in restarted:
        broker.leave(i)
        broker.advance(broker.now_ms + DOWNTIME_MS)
        broker.arrive([i])
        broker.advance(broker.now_ms + GAP_MS)
    broker.advance(broker.now_ms + WARM_UP_MS)
    scale = len(consumers) / len(restarted) if restarted else 0.0
    return Outcome(without_session, broker.not_found * scale)


class Broker:
    def __init__(self, clients: Sequence[Client], slots: int, fetch_ms: int) -> None:
        self.clients = clients
        self.cache = FetchSessionCache(slots)
        self.fetch_ms = fetch_ms
        self.now_ms = 0
        self.waiting: list[int] = []
        """Live clients without a session, by their place in `clients`."""
        self.not_found = 0
        self.session_of: dict[int, int] = {}
        self.client_of: dict[int, int] = {}
        self.used_ms = 0

    def arrive(self, clients: Sequence[int]) -> None:
        self.waiting += clients

    def leave(self, client: int) -> None:
        """Free the slot of a consumer that closes, at once."""
        session = self.session_of.pop(client, None)
        if session is None:
            self.waiting.remove(client)
        else:
            del self.client_of[session]
            self.cache.close(session)

    def advance(self, to_ms: int) -> None:
        while self.now_ms < to_ms:
            if self.now_ms - self.used_ms >= LEAP_MS:
                self.use_all()
            if self.somebody_gets_in():
                self.round()
                self.now_ms = min(to_ms, self.now_ms + self.fetch_ms)
            else:
                self.now_ms = min(to_ms, self.used_ms + LEAP_MS)

    def somebody_gets_in(self) -> bool:
        """Tell whether any waiting client gets a session. Where the best of them has no chance, none has."""
        if not self.waiting:
            return False
        privileged, size = max((self.clients[i].privileged, self.clients[i].size) for i in self.waiting)
        return any(shard.takes(self.now_ms, privileged, size) for shard in self.cache.shards)

    def use_all(self) -> None:
        for session, client in self.client_of.items():
            self.cache.touch(session, self.now_ms, self.clients[client].size)
        self.used_ms = self.now_ms

    def round(self) -> None:
        """Let every waiting client ask once. A client that was put out hears of it with its next fetch and waits from
        then on.
        """
        first = self.now_ms // self.fetch_ms % len(self.waiting)
        still = []
        for client in self.waiting[first:] + self.waiting[:first]:
            session = self.cache.maybe_create(self.now_ms, self.clients[client].privileged, self.clients[client].size)
            if session is None:
                still.append(client)
            else:
                self.session_of[client] = session
                self.client_of[session] = client
        self.waiting = still + self.put_out()

    def put_out(self) -> list[int]:
        lost = []
        for shard in self.cache.shards:
            for session in shard.evicted:
                client = self.client_of.pop(session)
                del self.session_of[client]
                lost.append(client)
            shard.evicted.clear()
        self.not_found += len(lost)
        return lost
