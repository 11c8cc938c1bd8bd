"""Record which records of one partition have been read, as ranges; concurrent readers may stop in any order."""

from __future__ import annotations


class ReadRanges:
    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        """They neither overlap nor touch."""

    def add(self, start: int, end: int) -> int:
        """Add records from `start` until before `end`, and return how many of these had been read before."""
        again, apart, low, high = 0, [], start, end
        for first, last in self._ranges:
            again += max(0, min(last, end) - max(first, start))
            if first > end or last < start:
                apart.append((first, last))
            else:
                low, high = min(low, first), max(high, last)
        self._ranges = [*apart, (low, high)]
        return again
