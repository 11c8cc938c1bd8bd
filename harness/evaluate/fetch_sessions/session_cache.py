"""Model a broker's cache of incremental fetch sessions (KIP-227), with the eviction rules of Kafka 4.3.1.

Given      fetches with the time in them: a full one asks for a session, an incremental one uses the one it has
Returns    a session's id, or None where none could be made; whether a session is still there
Shards     eight, each with an eighth of the slots (rounded down: fewer than eight slots are none). New sessions go
           round them in turn, and each evicts among its own only.
Eviction   a new session in a full shard puts out, in this order,
           1. The session unused for longest, if that is more than two minutes.
           2. The smallest session that it may, if the new one is worth more. A follower's session may put out any
              consumer's at once, and a smaller follower's that is older than two minutes. A consumer's session may put
              out only a smaller consumer's that is older than two minutes
Surprise   a session's size and age are taken when a client uses it, not when another client wants its slot
Reference  FetchSessionCacheShard, FetchSession.FetchSessionCache and FetchManager in Apache Kafka 4.3.1
Start at   FetchSessionCache
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count, takewhile
from typing import TypeAlias

SLOTS = 1_000
"""max.incremental.fetch.session.cache.slots, a broker's setting."""
SHARDS = 8
EVICTION_MS = 120_000
"""A constant of the broker: min.incremental.fetch.session.eviction.ms is not a setting that an operator can change."""
INT32_MAX = 2**31 - 1

Rank: TypeAlias = tuple[bool, int, int]
"""Privileged, size, id: the lower goes first."""
NewId: TypeAlias = Callable[[int], int]


@dataclass(slots=True)
class Session:
    id: int
    privileged: bool
    created_ms: int
    last_used_ms: int
    size: int
    by_privileged: bool = False
    """Whether a follower's session may put it out; `by_all`: also a consumer's."""
    by_all: bool = False

    @property
    def rank(self) -> Rank:
        return self.privileged, self.size, self.id


class Shard:
    """Time never goes back: sessions stand in the order of their last use, and what is old enough stays so."""

    def __init__(self, slots: int, eviction_ms: int = EVICTION_MS) -> None:
        self.slots = slots
        self.eviction_ms = eviction_ms
        self.sessions: OrderedDict[int, Session] = OrderedDict()
        self.evicted: list[int] = []
        """Ids put out so far, in that order."""
        # Heaps whose outdated entries are thrown away when they come to the top.
        self._by_all: list[Rank] = []
        self._by_privileged: list[Rank] = []

    def takes(self, now_ms: int, privileged: bool, size: int) -> bool:
        """Tell whether such a session would be let in now."""
        return len(self.sessions) < self.slots or self._victim(now_ms, privileged, size) is not None

    def maybe_create(self, now_ms: int, privileged: bool, size: int, new_id: Callable[[], int]) -> int | None:
        if len(self.sessions) >= self.slots:
            victim = self._victim(now_ms, privileged, size)
            if victim is None:
                return None
            del self.sessions[victim.id]
            self.evicted.append(victim.id)
        session = Session(new_id(), privileged, now_ms, now_ms, size)
        self.sessions[session.id] = session
        self._rank(session, now_ms)
        return session.id

    def touch(self, session_id: int, now_ms: int, size: int) -> bool:
        session = self.sessions.get(session_id)
        if session is None:
            return False
        session.last_used_ms = now_ms
        self.sessions.move_to_end(session_id)
        if session.size != size:
            session.size = size
            session.by_all = session.by_privileged = False
        self._rank(session, now_ms)
        return True

    def remove(self, session_id: int) -> bool:
        return self.sessions.pop(session_id, None) is not None

    def _rank(self, session: Session, now_ms: int) -> None:
        is_old = now_ms - session.created_ms > self.eviction_ms
        if not session.by_privileged and (is_old or not session.privileged):
            session.by_privileged = True
            heappush(self._by_privileged, session.rank)
        if not session.by_all and is_old:
            session.by_all = True
            heappush(self._by_all, session.rank)

    def _victim(self, now_ms: int, privileged: bool, size: int) -> Session | None:
        stale = self._stale(now_ms)
        if stale is not None:
            return stale
        lowest = self._first_by_privileged() if privileged else self._first_by_all()
        # As a newcomer it has no id yet, which counts as the lowest: an equal is not put out.
        return lowest if lowest is not None and (privileged, size, 0) >= lowest.rank else None

    def _stale(self, now_ms: int) -> Session | None:
        """Return the session used longest ago, and of several the one with the lowest id."""
        oldest = next(iter(self.sessions.values()), None)
        if oldest is None or now_ms - oldest.last_used_ms <= self.eviction_ms:
            return None
        alike: Iterator[Session] = takewhile(
            lambda session: session.last_used_ms == oldest.last_used_ms, self.sessions.values()
        )
        return min(alike, key=lambda session: session.id)

    def _first_by_all(self) -> Session | None:
        while self._by_all:
            session = self.sessions.get(self._by_all[0][2])
            if session is not None and session.by_all and session.rank == self._by_all[0]:
                return session
            heappop(self._by_all)
        return None

    def _first_by_privileged(self) -> Session | None:
        while self._by_privileged:
            session = self.sessions.get(self._by_privileged[0][2])
            if session is not None and session.by_privileged and session.rank == self._by_privileged[0]:
                return session
            heappop(self._by_privileged)
        return None


class FetchSessionCache:
    """Model the cache. Ids say which shard a session is in. Kafka draws them at random, here they are counted unless
    handed in.
    """

    def __init__(
        self, slots: int = SLOTS, *, eviction_ms: int = EVICTION_MS, shards: int = SHARDS, new_id: NewId | None = None
    ) -> None:
        self.shards = [Shard(slots // shards, eviction_ms) for _ in range(shards)]
        self._id_range = INT32_MAX // shards
        self._asked = 0
        self._new_id = new_id or self._counted()

    def _counted(self) -> NewId:
        counters = [count(max(1, number * self._id_range)) for number in range(len(self.shards))]
        return lambda shard: next(counters[shard])

    def maybe_create(self, now_ms: int, privileged: bool, size: int) -> int | None:
        """Do what a full fetch does. Its turn passes to the next shard also when there was no room in this one."""
        number = self._asked % len(self.shards)
        self._asked += 1
        return self.shards[number].maybe_create(now_ms, privileged, size, lambda: self._new_id(number))

    def touch(self, session_id: int, now_ms: int, size: int) -> bool:
        """Do what an incremental fetch does; False is FETCH_SESSION_ID_NOT_FOUND. A session that has become empty is
        closed.
        """
        shard = self.shard_of(session_id)
        if size == 0:
            return shard.remove(session_id)
        return shard.touch(session_id, now_ms, size)

    def close(self, session_id: int) -> bool:
        """Close a session, as a consumer's last fetch does."""
        return self.shard_of(session_id).remove(session_id)

    def shard_of(self, session_id: int) -> Shard:
        return self.shards[session_id // self._id_range]

    def __contains__(self, session_id: int) -> bool:
        return session_id in self.shard_of(session_id).sessions

    def __len__(self) -> int:
        return sum(len(shard.sessions) for shard in self.shards)

    @property
    def slots(self) -> int:
        return sum(shard.slots for shard in self.shards)
