"""Represent a share that is the same block of partitions in several topics, which is what range gives.

Compact    three values instead of one int a partition: an answer of range costs by members, not by partitions
Order      ascending, if the topics' starts are
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import overload


class BlockShare(Sequence[int]):
    """Hold partitions `begin` to `end` (without it) of each of the topics that start at `starts`."""

    __slots__ = ("_begin", "_end", "_starts")

    def __init__(self, starts: Sequence[int], begin: int, end: int) -> None:
        self._starts = starts
        self._begin = begin
        self._end = end

    def __len__(self) -> int:
        return len(self._starts) * (self._end - self._begin)

    def __iter__(self) -> Iterator[int]:
        begin, end = self._begin, self._end
        return chain.from_iterable([range(start + begin, start + end) for start in self._starts])

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        if isinstance(index, slice):
            return list(self)[index]
        topic, partition = divmod(range(len(self))[index], self._end - self._begin)
        return self._starts[topic] + self._begin + partition

    def __repr__(self) -> str:
        return f"BlockShare({list(self)})"
