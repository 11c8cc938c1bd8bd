"""Name what a class may promise. contract.py decides which property holds a class to which promise."""

from __future__ import annotations

from collections.abc import Collection

PROMISES = (
    "balanced",
    "per-topic-balanced",
    "load-balanced",
    "sticky",
    "minimal-moves",
    "cooperative",
    "rack-aware",
)
ALWAYS_PROMISED = ("valid", "deterministic", "pure", "order-independent", "bounded-time", "churn", "survives-churn")
"""Allowed among a class's promises, and held anyway."""


def unknown_promises(promises: Collection[str]) -> list[str]:
    return [promise for promise in promises if promise not in PROMISES and promise not in ALWAYS_PROMISED]
