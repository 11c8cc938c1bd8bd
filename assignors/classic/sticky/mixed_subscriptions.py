"""Assign stickily where subscriptions differ: choose the builder that the members' claims allow."""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.assignors.classic.sticky.claims import Claims
from rebalance_lab.assignors.classic.sticky.mixed_builder import MixedBuilder
from rebalance_lab.assignors.classic.sticky.mixed_unknown_claims import MixedBesideNonexistent


def balance_mixed(claims: Claims, max_generation: int) -> dict[str, Sequence[int]]:
    builder = MixedBuilder(claims, max_generation)
    if builder.keeps_nonexistent():
        builder = MixedBesideNonexistent(claims, max_generation)
    return builder.build()
