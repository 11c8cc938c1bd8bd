"""Burrow's judgement from two looks."""

from __future__ import annotations

import pytest

from rebalance_lab.harness.kafka.groups.lag_status import Offsets, lag_status


@pytest.mark.parametrize(
    ("before", "now", "owned", "status"),
    [
        ((0, 10, 10), (0, 30, 30), True, "working"),  # nothing waits
        ((0, 10, 5), (0, 20, 18), True, "working"),  # catching up
        ((0, 10, 5), (0, 20, 15), True, "working"),  # as far behind as before, and moving
        ((0, 10, 5), (0, 30, 8), True, "behind"),  # moving, and losing
        ((0, 10, 5), (0, 30, 5), True, "stalled"),
        ((0, 10, 5), (0, 10, 5), True, "stalled"),  # nothing new, and what is there is left
        ((0, 10, None), (0, 20, None), True, "stalled"),  # has never committed, though there is something
        ((20, 20, None), (20, 20, None), True, "working"),  # has never committed, and had nothing to
        ((0, 10, 10), (0, 10, 10), False, "stopped"),
        ((0, 10, 5), (0, 30, 5), False, "stopped"),
    ],
)
def test_two_looks_at_a_partition(
    before: tuple[int, int, int | None], now: tuple[int, int, int | None], owned: bool, status: str
) -> None:
    assert lag_status(Offsets(*before), Offsets(*now), owned=owned) == status
