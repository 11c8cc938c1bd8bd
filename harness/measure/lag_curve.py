"""Compute the lag curve: how many records wait, for how long they are too many, and how unequal the members' loads are.

Points     are where the curve bends; from one to the next the lag changes evenly, and after the last one it stays
Waits      records that are written and not processed; also those that a reader is to process again, once it begins
Behind     more than one second's worth of records waits
Start-up   records that wait when it is over do not count as long as they become fewer and nothing happens. A lag that
           stays or rises counts
Start at   LagCurve.add, finish
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.harness.measure.trace import Fact

SAMPLES = 400
"""Points of the lag curve, however long the run is, while nothing happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    peak: int
    p99: int
    behind_ms: int
    recover_ms: int
    """The longest time behind at a stretch."""
    skew: float


class LagCurve:
    def __init__(self) -> None:
        self._points: list[Fact] = []
        self._works_off = False
        """What the start-up has left, and nothing else has happened."""
        self._worked_off = 0
        """So many points were before the lowest: what waited then was the start-up's."""

    def begin(self, *, at_rest: bool) -> None:
        """Begin to count: the start-up is over."""
        self._points.clear()
        self._works_off, self._worked_off = at_rest, 0

    def add(self, point: Fact) -> None:
        if self._works_off:
            records, before = point["records"], self._points[-1]["records"] if self._points else point["records"]
            if records < before or not records:
                self._worked_off = len(self._points)
            self._works_off = 0 < records <= before
        self._points.append(point)

    def something_happens(self, now_ms: int) -> None:
        """Count what is left from now on, because an event happens or the run ends. A lag that stopped falling, for
        longer than it had fallen before, is not being worked off any more, and counts all along.
        """
        if self._works_off and self._worked_off:
            lowest_ms = self._points[self._worked_off]["t"]
            if now_ms - lowest_ms < lowest_ms - self._points[0]["t"]:
                self._worked_off = len(self._points)
        self._works_off = False

    def finish(self, end_ms: int) -> Lag:
        self.something_happens(end_ms)
        first = self._worked_off
        waiting = [0] * first + [point["records"] for point in self._points[first:]]
        ends_ms = [*(point["t"] for point in self._points[1:]), end_ms]
        lasts_ms = [next_ms - point["t"] for point, next_ms in zip(self._points, ends_ms, strict=False)]
        stretches_ms = times_behind(self._points[first:], lasts_ms[first:])
        skews = [(to_milli(point["skew"]), ms) for point, ms in zip(self._points, lasts_ms, strict=True)]
        return Lag(
            peak=max(waiting, default=0),
            p99=most_of_the_time(waiting, lasts_ms),
            behind_ms=sum(stretches_ms),
            recover_ms=max(stretches_ms),
            skew=mean([one for one in skews if one[0]]),
        )


def times_behind(points: Sequence[Fact], lasts_ms: Sequence[int]) -> list[int]:
    """Return the times behind, each at a stretch."""
    too_many = [point["records"] - max(point["rate"], 1) for point in points]
    stretches_ms = [0]
    for before, after, ms in zip(too_many, [*too_many[1:], *too_many[-1:]], lasts_ms, strict=True):
        most, least = max(before, after), min(before, after)
        if most > 0:
            stretches_ms[-1] += ms if least > 0 else ms * most // (most - least)
        if after <= 0:
            stretches_ms.append(0)
    return stretches_ms


def most_of_the_time(waiting: Sequence[int], lasts_ms: Sequence[int]) -> int:
    """Return the lag that is not exceeded in 99 % of the time. The search goes from the top down. Between its two ends
    a stretch adds evenly to the time above a level, and all of it at once if both ends are equal.
    """
    left_ms, level = sum(lasts_ms) / 100, 0.0
    # At which level, what is added at once, and how much more is added with each record below it.
    steps: list[tuple[int, float, float]] = []
    for one, other, ms in zip(waiting, [*waiting[1:], *waiting[-1:]], lasts_ms, strict=True):
        low, high = min(one, other), max(one, other)
        if low < high:
            steps += [(high, 0.0, ms / (high - low)), (low, 0.0, -ms / (high - low))]
        elif high:
            steps.append((high, ms, 0.0))
    steepness = 0.0
    for at, at_once_ms, more in sorted(steps, reverse=True):
        passed_ms = (level - at) * steepness
        if steepness and passed_ms >= left_ms:
            return round(level - left_ms / steepness)
        left_ms -= passed_ms + at_once_ms
        if left_ms < 0:
            return at
        level, steepness = at, steepness + more
    return 0


def mean(lasting: Sequence[tuple[int, int]]) -> float:
    """Return the mean of thousandths, each with how long it lasts."""
    lasts_ms = sum(ms for _, ms in lasting)
    return round(sum(milli * ms for milli, ms in lasting) / 1_000 / lasts_ms, 3) if lasts_ms else 0.0


def to_milli(value: float) -> int:
    """Return whole thousandths, whose sum does not depend on Python's way of adding floats."""
    return round(value * 1_000)
