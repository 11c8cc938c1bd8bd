"""Every answer of ours beside Java's: 5,000 random groups per assignor, 36 large ones in all, not one may differ.

`make test-deep` runs the same for as long as it is told to (deep.py).
"""

from __future__ import annotations

import pytest

from tests.conformance.differential import ORACLES, Mismatch, compare_large, compare_random, shrink
from tests.conformance.java_oracle import why_not

REASON = why_not()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))

LARGE = 6
"""For each of six assignors: two groups, each through two more rebalances."""
PARTS = 5
"""In parts, so that both of pytest's workers have something to do."""


def smallest(mismatches: list[Mismatch]) -> str:
    return (
        "" if not mismatches else f"{len(mismatches)} groups differ; one of them, made small:\n{shrink(mismatches[0])}"
    )


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("strategy", ORACLES)
def test_a_random_group_gets_the_same_assignment_from_us_as_from_java(strategy: str, part: int) -> None:
    compared, mismatches = compare_random(strategy, part, 5_000 // PARTS)
    assert not mismatches, smallest(mismatches)
    assert compared >= 5_000 // PARTS


@pytest.mark.parametrize("strategy", ORACLES)
def test_a_large_group_that_lives_on_gets_the_same_assignments_from_us_as_from_java(strategy: str) -> None:
    compared, mismatches = compare_large(strategy, seed=1, count=LARGE)
    assert not mismatches, smallest(mismatches)
    assert compared == LARGE
