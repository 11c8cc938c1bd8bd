"""Provide a generator's random choices: from a seeded random number generator, or from Hypothesis.

One generator serves both. The bulk search draws tens of thousands of groups with the first, which is some twenty times
faster. Hypothesis strategies draw the same groups with the second, and shrink them.
Direction  for Hypothesis a smaller draw is a simpler example, so `chance` falls to False, `integer` to its lower end,
           `choice` to the first option
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class RandomSource(Protocol):
    def chance(self, probability: float) -> bool: ...
    def integer(self, low: int, high: int) -> int: ...
    def choice(self, options: Sequence[T]) -> T: ...
    def choices(self, options: Sequence[T], count: int) -> list[T]: ...
    def sample(self, options: Sequence[T], count: int) -> list[T]: ...


class SeededSource:
    __slots__ = ("_random", "seed")

    def __init__(self, seed: int = 0) -> None:
        source = Random(seed)
        # of a whole number Random.seed() makes nothing else, in twice the time
        self.seed, self._random = super(Random, source).seed, source.random

    def start(self, seed: int, number: int) -> None:
        """Start anew for the family of this number: the same in every process."""
        self.seed(seed * 1_000_003 + number)

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def integer(self, low: int, high: int) -> int:
        return low + int(self._random() * (high - low + 1))

    def choice(self, options: Sequence[T]) -> T:
        return options[int(self._random() * len(options))]

    def choices(self, options: Sequence[T], count: int) -> list[T]:
        random, size = self._random, len(options)
        return [options[int(random() * size)] for _ in range(count)]

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """Take a sample by a few swaps: random.sample costs as much as the rest of a group."""
        left, random = list(options), self._random
        size = len(left)
        for place in range(min(count, size - 1)):
            other = place + int(random() * (size - place))
            left[place], left[other] = left[other], left[place]
        return left[:count]


class HypothesisSource:
    """Draw from Hypothesis; `draw` is what a composite strategy is given."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        from hypothesis import strategies as st

        self._draw, self._st = draw, st

    def chance(self, probability: float) -> bool:
        return bool(self._draw(self._st.integers(0, 99)) >= 100 - round(100 * probability))

    def integer(self, low: int, high: int) -> int:
        return int(self._draw(self._st.integers(low, high)))

    def choice(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def choices(self, options: Sequence[T], count: int) -> list[T]:
        return [self.choice(options) for _ in range(count)]

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        left = list(options)
        return [left.pop(self.integer(0, len(left) - 1)) for _ in range(count)]
