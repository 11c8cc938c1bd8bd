"""Rates that somebody measured to partitions and consumers.

Given      rates, shares and times as people write them: `5k/s`, `30%`, `2y`
Returns    Sized: the needs in one unit, the sizing, and which unit that is; ContractError with the option's name
Start at   size_of
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from assignors.json_contract import ContractError
from harness.units import duration_ms, quoted, share, size_bytes, throughput

if TYPE_CHECKING:
    from harness.sizing import Needs, Sizing

T = TypeVar("T")
YEARS = {"y": 1.0, "mo": 1 / 12, "d": 1 / 365}
MOST = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeAsked:
    target: str
    per_consumer: str
    per_partition: str | None = None
    record_size: str | None = None
    growth: str | float = "0%"
    horizon: str = "0y"
    headroom: str | float = "20%"
    outage: str = "0s"
    partitions: int | None = None
    consumers: int | None = None
    brokers: int | None = None
    replication: int = 3
    broker_limit: int = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    needs: Needs
    sizing: Sizing
    unit: str

    def to_json(self) -> dict[str, Any]:
        return {"unit": self.unit, **self.sizing.to_json()}


def size_of(asked: SizeAsked) -> Sized:
    from harness.sizing import Needs, size

    for name in ("partitions", "consumers", "brokers", "replication", "broker_limit"):
        count = getattr(asked, name)
        if count is not None and not 1 <= count <= MOST:
            raise ContractError(f"--{name.replace('_', '-')}", f"must be between 1 and {MOST:,}, got {count}")
    rates = {
        "--target": asked.target, "--per-consumer": asked.per_consumer, "--per-partition": asked.per_partition
    }  # fmt: skip
    values, unit = in_one_unit({option: text for option, text in rates.items() if text is not None}, asked.record_size)
    needs = Needs(
        target=values["--target"],
        per_consumer=values["--per-consumer"],
        per_partition=values.get("--per-partition", math.inf),
        growth=read(share, asked.growth, "--growth"),
        horizon_years=read(years, asked.horizon, "--horizon"),
        headroom=read(share, asked.headroom, "--headroom"),
        outage_s=read(duration_ms, asked.outage, "--outage") / 1_000,
        partitions=asked.partitions,
        consumers=asked.consumers,
        brokers=asked.brokers,
        replication=asked.replication,
        broker_limit=asked.broker_limit,
    )
    try:
        return Sized(needs=needs, sizing=size(needs), unit=unit)
    except ValueError as error:
        raise ContractError("--target", str(error)) from None


def read(reader: Callable[[object], T], text: object, option: str) -> T:
    try:
        return reader(text)
    except ValueError as error:
        raise ContractError(option, str(error)) from None


def years(text: object) -> float:
    """`2y`, `18mo` or `90d`."""
    found = re.fullmatch(r"([0-9]{1,4}(?:\.[0-9]{1,3})?)\s*(y|mo|d)", str(text))
    if found is None:
        raise ValueError(f"{quoted(text)} is not a horizon: say 2y, 18mo or 90d")
    length = float(found[1]) * YEARS[found[2]]
    if length > 100:
        raise ValueError(f"{quoted(text)} is more than a hundred years")
    return length


def in_one_unit(rates: Mapping[str, str], record_size: str | None) -> tuple[dict[str, float], str]:
    """Records or bytes; with a record's size the two may be mixed."""
    size = None if record_size is None else read(size_bytes, record_size, "--record-size")
    if size is not None and size <= 0:
        raise ContractError("--record-size", f"must be above 0, got {quoted(record_size)}")
    values: dict[str, float] = {}
    unit = ""
    for option, text in rates.items():
        value, kind = read(throughput, text, option)
        if value <= 0:
            raise ContractError(option, f"must be above 0, got {quoted(text)}")
        if size is not None and kind == "records":
            value, kind = value * size, "bytes"
        unit = unit or kind
        if kind != unit:
            raise ContractError(option, f"is in {kind} and --target in {unit}: say --record-size, or use one of them")
        values[option] = value
    return values, unit
