"""Order keys as Java walks a HashMap or HashSet, for the few choices of Kafka's assignors that depend on it.

Given      keys with their 32-bit hash codes, in the order of insertion, and the table's first size
Returns    the keys, or their positions, in Java's iteration order
Model      bucket = (h ^ h >>> 16) & (capacity - 1); buckets ascending, inside a bucket the order of the chain.
           Doubling a table keeps the relative order inside every chain. So the order of a map that was only put into
           is a stable sort of the insertions by bucket, at the final capacity
Reference  java.util.HashMap of JDK 17 (from JDK 19 on, copies of 12, 24, 48... elements get smaller tables)
Start at   put_order for many keys at once, HashTable where keys also leave or come by computeIfAbsent
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, Generic, TypeVar

from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.java.string_order import java_string_order
from rebalance_lab.assignors.java.tree_bin import Node, TreeBin

DEFAULT_CAPACITY = 16
TREEIFY_THRESHOLD = 8
"""A chain that would grow beyond this becomes a red-black tree, which is walked in another order..."""
MIN_TREEIFY_CAPACITY = 64
"""...but only in a table of at least this size; a smaller one doubles instead."""
UNTREEIFY_THRESHOLD = 6
"""When a table doubles, a tree that is left with this many keys or fewer becomes a chain again."""

MASK = 0xFFFF_FFFF
_POWERS_OF_31 = [pow(31, exponent, 1 << 32) for exponent in range(256)]


def string_hash(text: str) -> int:
    """Compute java.lang.String.hashCode, unsigned: 31 * h + unit over the UTF-16 units."""
    if text.isascii():
        units: Iterable[int] = text.encode()
    else:
        data = text.encode("utf-16-le", "surrogatepass")
        units = struct.unpack(f"<{len(data) // 2}H", data)
    return reduce(lambda h, unit: (31 * h + unit) & MASK, units, 0)


def string_hashes(texts: Sequence[str]) -> list[int]:
    """Return the hashes of many strings, remembered: a Java String keeps its hash code too, and members outlive a
    rebalance.
    """
    try:
        return [_hashes[text] for text in texts]
    except KeyError:
        hashes = _string_hashes(texts)
    if len(_hashes) + len(texts) > MAX_REMEMBERED:
        _hashes.clear()
    _hashes.update(zip(texts, hashes, strict=True))
    return hashes


MAX_REMEMBERED = 1 << 17
_hashes: dict[str, int] = {}


def _string_hashes(texts: Sequence[str]) -> list[int]:
    """Hash a group of 10,000 members in one go.

    Strings of one length lie side by side in 64-bit lanes of one large int, so that a single multiplication by 31^k
    serves the k-th last character of all of them. No lane overflows: 255 characters give less than 2^48.
    """
    by_length: dict[int, list[int]] = {}
    hashes = [0] * len(texts)
    for i, text in enumerate(texts):
        if text.isascii() and len(text) < len(_POWERS_OF_31):
            by_length.setdefault(len(text), []).append(i)
        else:
            hashes[i] = string_hash(text)
    for length, positions in by_length.items():
        if len(positions) < 8:
            for i in positions:
                hashes[i] = string_hash(texts[i])
            continue
        data = "".join([texts[i] for i in positions]).encode()
        lanes = bytearray(8 * len(positions))
        total = 0
        for column in range(length):
            lanes[::8] = data[column::length]
            total += int.from_bytes(lanes, "little") * _POWERS_OF_31[length - 1 - column]
        words = struct.unpack(f"<{2 * len(positions)}I", total.to_bytes(len(lanes), "little"))
        for i, low_word in zip(positions, words[::2], strict=True):
            hashes[i] = low_word
    return hashes


def topic_partition_hash(topic_hash: int, partition: int) -> int:
    """Compute org.apache.kafka.common.TopicPartition.hashCode, unsigned."""
    return (961 + 31 * partition + topic_hash) & MASK


def uuid_hash(most_significant: int, least_significant: int) -> int:
    """Compute org.apache.kafka.common.Uuid.hashCode, unsigned."""
    mixed = most_significant ^ least_significant
    return (mixed >> 32 ^ mixed) & MASK


def integer_hash(value: int) -> int:
    return value & MASK


def power_of_two_above(size: int) -> int:
    """Return the table size of `new HashMap(size)` and `new HashSet(size)`."""
    return 1 << (size - 1).bit_length() if size > 1 else 1


def capacity_for(size: int) -> int:
    """Return the table size of `new HashMap(map of this size)`, and of Kafka's `new HashMap((int) (size / 0.75f +
    1))`.
    """
    return power_of_two_above(size * 4 // 3 + 1)


def capacity_of_set_copy(size: int) -> int:
    """Return the table size of `new HashSet(collection of this size)`."""
    return max(capacity_for(size), DEFAULT_CAPACITY)


Key = TypeVar("Key")


class OrderNotReproducible(AssignorError):
    """Report that Java's own order depends on object addresses, or on a tree that has lost keys."""


class HashTable(Generic[Key]):
    """Model a HashSet, or the keys of a HashMap, key by key: put, computeIfAbsent and remove."""

    def __init__(
        self,
        hash_of: Callable[[Key], int],
        capacity: int = DEFAULT_CAPACITY,
        sort_key: Callable[[Key], Any] | None = None,
    ) -> None:
        self.hash_of = hash_of
        self.capacity = capacity
        self.sort_key = sort_key
        self.keys: dict[Key, int] = {}
        self.buckets: dict[int, list[Node[Key]] | TreeBin[Key]] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def __contains__(self, key: Key) -> bool:
        return key in self.keys

    def __iter__(self) -> Iterator[Key]:
        for bucket in sorted(self.buckets):
            yield from [node.key for node in chain_of(self.buckets[bucket])]

    def put(self, key: Key) -> None:
        """Put a key, as putIfAbsent and HashSet.add do: a new key goes to the tail, and the table grows afterwards."""
        if key in self.keys:
            return
        self._insert(key, at_head=False)
        if len(self.keys) > self.capacity * 3 // 4:
            self._double()

    def compute_if_absent(self, key: Key) -> None:
        """Add a key, as compute and merge do: a new key goes to the head, and the table grows before, even for a known
        key.
        """
        if len(self.keys) > self.capacity * 3 // 4:
            self._double()
        if key not in self.keys:
            self._insert(key, at_head=True)

    def remove(self, key: Key) -> None:
        h = self.keys.pop(key)
        bucket = h & (self.capacity - 1)
        nodes = self.buckets[bucket]
        if isinstance(nodes, TreeBin):
            raise OrderNotReproducible("a key leaves a bucket that has become a tree")
        nodes[:] = [node for node in nodes if node.key != key]
        if not nodes:
            del self.buckets[bucket]

    def _insert(self, key: Key, at_head: bool) -> None:
        h = self.hash_of(key)
        h ^= h >> 16
        self.keys[key] = h
        node = Node(key, h)
        bucket = h & (self.capacity - 1)
        nodes = self.buckets.setdefault(bucket, [])
        if isinstance(nodes, TreeBin):
            nodes.insert(node)
            return
        nodes.insert(0 if at_head else len(nodes), node)
        # The compute family counts the chain before the insertion, put counts the keys that it passed.
        if len(nodes) > TREEIFY_THRESHOLD - at_head:
            if self.capacity < MIN_TREEIFY_CAPACITY:
                self._double()
            else:
                self.buckets[bucket] = self._tree(nodes)

    def _double(self) -> None:
        old, self.buckets = self.buckets, {}
        for bucket, nodes in old.items():
            halves: tuple[list[Node[Key]], list[Node[Key]]] = ([], [])
            for node in chain_of(nodes):
                halves[bool(node.hash & self.capacity)].append(node)
            for half, moved in zip(halves, (bucket, bucket + self.capacity), strict=True):
                if half:
                    stays_tree = isinstance(nodes, TreeBin) and len(half) > UNTREEIFY_THRESHOLD
                    self.buckets[moved] = self._split_tree(nodes, half) if stays_tree else half
        self.capacity *= 2

    def _split_tree(self, nodes: list[Node[Key]] | TreeBin[Key], half: list[Node[Key]]) -> TreeBin[Key]:
        assert isinstance(nodes, TreeBin)
        return nodes if len(half) == len(nodes.chain) else self._tree(half)

    def _tree(self, nodes: list[Node[Key]]) -> TreeBin[Key]:
        if self.sort_key is None:
            if len({node.hash for node in nodes}) < len(nodes):
                raise OrderNotReproducible("equal hash codes of keys that cannot be compared")
            return TreeBin(nodes, lambda key: 0)
        return TreeBin(nodes, self.sort_key)


def chain_of(nodes: list[Node[Key]] | TreeBin[Key]) -> list[Node[Key]]:
    return nodes.chain if isinstance(nodes, TreeBin) else nodes


def put_order(
    hashes: Sequence[int], capacity: int = DEFAULT_CAPACITY, sort_key: Callable[[int], Any] | None = None
) -> list[int]:
    """Return positions of the keys in iteration order, the keys being distinct and put one after the other.

    `sort_key` says how the key at a position compares; it is asked only when colliding keys form a tree.
    """
    spread = [h ^ h >> 16 for h in hashes]
    final_capacity = _capacity_after_puts(spread, capacity)
    if final_capacity is None:
        return _put_one_by_one(hashes, capacity, sort_key)
    mask = final_capacity - 1
    return sorted(range(len(spread)), key=[h & mask for h in spread].__getitem__)


def _capacity_after_puts(spread: Sequence[int], capacity: int) -> int | None:
    """Return the capacity, or None when a chain gets so long on the way that the sort by bucket no longer tells the
    order.
    """
    size = len(spread)
    filled = 0
    while filled < size:
        # The put that takes the table over its threshold still finds the old table.
        threshold = capacity * 3 // 4
        filled = min(size, threshold + 1)
        if filled > TREEIFY_THRESHOLD:
            mask = capacity - 1
            buckets = Counter([h & mask for h in (spread if filled == size else spread[:filled])])
            if max(buckets.values()) > TREEIFY_THRESHOLD:
                return None
        if filled > threshold:
            capacity *= 2
    return capacity


def _put_one_by_one(hashes: Sequence[int], capacity: int, sort_key: Callable[[int], Any] | None) -> list[int]:
    table: HashTable[int] = HashTable(hashes.__getitem__, capacity, sort_key)
    for position in range(len(hashes)):
        table.put(position)
    return list(table)


def string_order(keys: Iterable[str]) -> list[str]:
    """Return distinct strings as `new HashMap()` or `new HashSet()` lists them after they were put in this order."""
    keys = list(keys)
    order = put_order(string_hashes(keys), sort_key=lambda i: java_string_order(keys[i]))
    return [keys[i] for i in order]


def string_order_of_second_map(keys: Iterable[str]) -> list[str]:
    """Return the order of a `new HashMap()` into which the keys of another one, so filled, were put as it lists them.
    The same order, unless keys collide so much that the tables or the trees in them grow differently.
    """
    once = string_order(keys)
    order = put_order(string_hashes(once), sort_key=lambda i: java_string_order(once[i]))
    return [once[i] for i in order]
