"""Raise an invariant that does not hold to the code that watches the run."""

from __future__ import annotations


class Broken(Exception):
    """Report that an invariant does not hold; the run's facts end with the one that broke it."""

    def __init__(self, invariant: str, message: str, now_ms: int) -> None:
        super().__init__(f"{invariant}: {message} (at {now_ms / 1_000:.3f} s)")
        self.invariant = invariant
        self.now_ms = now_ms
