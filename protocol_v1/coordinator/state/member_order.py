"""Order keys as a java.util.HashMap does, because a coordinator's choice can depend on that order.

Order     by bucket, (h ^ h >>> 16) mod capacity, and by insertion inside a bucket. The table doubles when it is more
          than three quarters full and never shrinks, so the order remembers how large the group has been
Cost      put, remove and first are logarithmic; iterating sorts
Left out  chains of nine ids in one bucket, which Java turns into a tree or answers with a larger table
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

from rebalance_lab.assignors.java.hash_order import DEFAULT_CAPACITY, string_hash


class HashOrder:
    def __init__(self) -> None:
        self.capacity = DEFAULT_CAPACITY
        self.inserted = 0
        self.spread: dict[str, tuple[int, int]] = {}
        """Key -> its spread hash and the number of its insertion."""
        self.heap: list[tuple[int, int, str]] = []
        """Bucket, insertion, key; removed keys linger until they come up or the heap is rebuilt."""

    def put(self, key: str) -> None:
        h = string_hash(key)
        h ^= h >> 16
        self.inserted += 1
        self.spread[key] = (h, self.inserted)
        heappush(self.heap, (h & (self.capacity - 1), self.inserted, key))
        if len(self.spread) > self.capacity * 3 // 4:
            self.capacity *= 2
            self._rebuild()

    def remove(self, key: str) -> None:
        del self.spread[key]
        if len(self.heap) > 2 * len(self.spread) + DEFAULT_CAPACITY:
            self._rebuild()

    def first(self) -> str | None:
        while self.heap:
            _, insertion, key = self.heap[0]
            if key in self.spread and self.spread[key][1] == insertion:
                return key
            heappop(self.heap)
        return None

    def __iter__(self) -> Iterator[str]:
        yield from [key for _, _, key in sorted(self._entries())]

    def _entries(self) -> Iterable[tuple[int, int, str]]:
        mask = self.capacity - 1
        return ((h & mask, insertion, key) for key, (h, insertion) in self.spread.items())

    def _rebuild(self) -> None:
        self.heap = list(self._entries())
        heapify(self.heap)


def in_hash_order(keys: Iterable[str]) -> list[str]:
    order = HashOrder()
    for key in keys:
        order.put(key)
    return list(order)
