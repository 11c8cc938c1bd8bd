"""Order the members of a group as a broker walks them: as Kafka's TimelineHashMap does, key by key.

Order     slots ascending, inside a slot the last one first. A slot is the top bits of the hash times a constant. The
          table doubles when it would hold more than one and a third keys per slot, walking old slots first to last. A
          put of a key that is there already keeps its place, but can make the table double
Matters   the uniform assignor puts members into a HashMap in this order, and ties inside a bucket follow it
Reference TimelineHashMap and BaseHashTable in Apache Kafka
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rebalance_lab.assignors.java.hash_order import string_hash

GOLDEN = 0x9E37_79B9_7F4A_7C15
MASK64 = (1 << 64) - 1


class TimelineOrder:
    def __init__(self) -> None:
        self.bits = 1
        self.slots: list[list[str]] = [[], []]
        self.products: dict[str, int] = {}
        """Key -> its hash, spread over 64 bits."""

    def __contains__(self, key: str) -> bool:
        return key in self.products

    def __len__(self) -> int:
        return len(self.products)

    def __iter__(self) -> Iterator[str]:
        for slot in self.slots:
            yield from reversed(slot)

    def put(self, key: str) -> None:
        if (len(self.products) + 1) * 3 > 4 * len(self.slots):
            self._double()
        if key not in self.products:
            h = string_hash(key)
            signed = h - (1 << 32) if h >> 31 else h
            self.products[key] = signed * GOLDEN & MASK64
            self._slot(key).append(key)

    def remove(self, key: str) -> None:
        self._slot(key).remove(key)
        del self.products[key]

    def _slot(self, key: str) -> list[str]:
        return self.slots[self.products[key] >> (64 - self.bits)]

    def _double(self) -> None:
        keys = [key for slot in self.slots for key in slot]
        self.bits += 1
        self.slots = [[] for _ in range(1 << self.bits)]
        for key in keys:
            self._slot(key).append(key)


def timeline_order(keys: Iterable[str]) -> list[str]:
    order = TimelineOrder()
    for key in keys:
        order.put(key)
    return list(order)
