"""Compute medians with intervals that assume nothing about how runs are distributed.

A median lies between two order statistics with a probability that is a sum of binomials, whatever the distribution.
Sort n values, leave out the k lowest and the k highest: the rest holds it with 1 - 2 P(Binomial(n, 1/2) <= k).
Nothing is drawn, so the same runs give the same interval.

Few runs   below six no interval reaches 95 %; then it is the whole range, and `confidence` says what that is worth
Start at   median_interval
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    median: float
    low: float
    high: float

    def to_json(self) -> dict[str, Any]:
        return {"median": self.median, "low": self.low, "high": self.high}


@lru_cache
def cut(runs: int, confidence: float = CONFIDENCE) -> tuple[int, float]:
    """Return how many values to leave out at each end, and the confidence that the rest then has."""
    out, tail, ways = 0, 0, 1
    best = (0, 1 - 2 / 2**runs)
    while 2 * out < runs:
        tail += ways
        held = 1 - 2 * tail / 2**runs
        if held < confidence:
            break
        best = (out, held)
        ways = ways * (runs - out) // (out + 1)
        out += 1
    return best


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else round((ordered[middle - 1] + ordered[middle]) / 2, 6)


def median_interval(values: Sequence[float]) -> Interval:
    ordered = sorted(values)
    out, _ = cut(len(ordered))
    return Interval(median(ordered), ordered[out], ordered[len(ordered) - 1 - out])


def confidence_of(runs: int) -> float:
    """Return what an interval of so many runs is worth: 0.95 or a little more, less below six runs."""
    return round(max(0.0, cut(runs)[1]), 4)
