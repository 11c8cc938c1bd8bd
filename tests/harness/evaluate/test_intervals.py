"""Medians with intervals: known order statistics, and coverage measured."""

from __future__ import annotations

from random import Random

import pytest

from rebalance_lab.harness.evaluate.intervals import Interval, confidence_of, cut, median_interval


@pytest.mark.parametrize(
    ("runs", "left_out", "confidence"),
    [
        (1, 0, 0.0),
        (5, 0, 0.9375),  # the whole range is not enough
        (6, 0, 0.9688),  # the first that is
        (10, 1, 0.9785),  # the second to the ninth, as in every table
        (20, 5, 0.9586),
        (100, 39, 0.9648),
    ],
)
def test_as_many_values_are_left_out_as_95_percent_allow(runs: int, left_out: int, confidence: float) -> None:
    assert (cut(runs)[0], confidence_of(runs)) == (left_out, confidence)


def test_an_interval_is_made_of_values_that_were_seen() -> None:
    values = [5.0, 1.0, 9.0, 3.0, 7.0, 2.0, 8.0, 4.0, 6.0, 10.0]
    assert median_interval(values) == Interval(5.5, 2.0, 9.0)


def test_the_true_median_lies_inside_as_often_as_said_whatever_the_distribution() -> None:
    random = Random(1)
    held = 0
    for _ in range(2_000):
        found = median_interval([random.expovariate(1.0) ** 3 for _ in range(20)])
        held += found.low <= 0.6931471805599453**3 <= found.high
    assert 0.94 < held / 2_000 < 0.975  # 0.9586 is the truth
