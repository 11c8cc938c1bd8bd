"""A failing list of steps, made as short as it goes: for every random driver that finds one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Step = TypeVar("Step")


def shortened(steps: list[Step], fails: Callable[[list[Step]], bool]) -> list[Step]:
    """Drop what the failure does not need: halves first, then smaller pieces, then single steps."""
    size = len(steps)
    while size:
        start = 0
        while start < len(steps):
            fewer = steps[:start] + steps[start + size :]
            if fails(fewer):
                steps = fewer
            else:
                start += size
        size //= 2
    return steps
