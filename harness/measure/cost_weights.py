"""Weigh what a run cost into one number, with weights that users set themselves.

Unit       1 is one partition standing still for one second; every weight says how many of those one unit of a cost is
Default    DEFAULT below, with the reason for each; what is not named there weighs nothing
Change     `unowned_s=1,moved=3` replaces those two and leaves the rest; `moved=0` takes one out
Start at   parse_weights, score
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.measure.costs import Costs, Row
from rebalance_lab.harness.scenario.units import is_number, quoted

Weights = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Weight:
    weight: float
    why: str


DEFAULT: Mapping[str, Weight] = {
    "unowned_s": Weight(1.0, "the unit: a partition without an owner for a second"),
    "stalled_s": Weight(1.0, "the same to those who wait: its owner exists but stands still"),
    "behind_s": Weight(1.0, "a second in which the group is more than a second's records behind"),
    "read_twice": Weight(0.01, "a hundred records processed again"),
    "moved": Weight(0.1, "ten partitions that change hands: caches are cold, connections new"),
    "needless_revocations": Weight(0.05, "twenty partitions given up and got back: state flushed for nothing"),
    "failed_processes": Weight(60.0, "a process that ended with an exception: a minute of somebody's day"),
}

NAMES = tuple(field.name for field in fields(Costs))
MOST = 1e9


def default_weights() -> dict[str, float]:
    return {name: one.weight for name, one in DEFAULT.items()}


def parse_weights(text: str | None, path: str = "--weights") -> dict[str, float]:
    """Read weights such as `unowned_s=1,moved=0.5`, over the default."""
    weights = default_weights()
    seen: set[str] = set()
    for part in (text or "").split(","):
        if not part.strip() and not (text or "").strip():
            continue
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ContractError(path, f"expected name=number such as unowned_s=1,moved=0.5, got {quoted(part)}")
        if name in seen:
            raise ContractError(path, f"{name} stands twice")
        seen.add(name)
        weights[name] = checked(name, value, path)
    return checked_whole(weights, path)


def checked(name: str, value: object, path: str) -> float:
    if name not in NAMES:
        raise ContractError(path, f"no cost is called {quoted(name)}; there are {', '.join(NAMES)}")
    plain = is_number(value) or (isinstance(value, str) and value.isascii() and "_" not in value)
    try:
        weight = float(value) if plain else math.nan  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        weight = math.nan
    if not 0 <= weight <= MOST:
        raise ContractError(path, f"{name} needs a number from 0 to {MOST:,.0f}, got {quoted(value)}")
    return weight


def checked_whole(weights: dict[str, float], path: str) -> dict[str, float]:
    if not any(weights.values()):
        raise ContractError(path, "everything weighs 0: there is nothing to rank by")
    return weights


def score(row: Row, weights: Weights) -> float:
    """Compute the score to a thousandth: sums of floats then read the same wherever they are computed."""
    return round(math.fsum(weight * row[name] for name, weight in weights.items()), 3)


def weights_text(weights: Weights) -> str:
    return ", ".join(f"{name}={weight:g}" for name, weight in weights.items() if weight)
