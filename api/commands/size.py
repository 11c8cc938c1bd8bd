"""`rebalance-lab size`: partitions and consumers for a throughput, from rates that somebody measured."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from api.terminal import console, print_json
from assignors.json_contract import ContractError
from harness.units import duration_ms, duration_text, quoted, share, size_bytes, throughput

if TYPE_CHECKING:
    from harness.sizing import Needs, Plan, Sizing

T = TypeVar("T")
YEARS = {"y": 1.0, "mo": 1 / 12, "d": 1 / 365}
BYTE_NAMES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def size_command(
    *,
    target: str,
    per_consumer: str,
    per_partition: str | None,
    record_size: str | None,
    growth: str,
    horizon: str,
    headroom: str,
    outage: str,
    partitions: int | None,
    consumers: int | None,
    brokers: int | None,
    replication: int,
    broker_limit: int,
    as_json: bool,
) -> None:
    from harness.sizing import Needs, size

    counts = {"partitions": partitions, "consumers": consumers, "brokers": brokers, "replication": replication}
    for name, count in {**counts, "broker-limit": broker_limit}.items():
        if count is not None and not 1 <= count <= 10_000_000:
            raise ContractError(f"--{name}", f"must be between 1 and 10,000,000, got {count}")
    rates = {"--target": target, "--per-consumer": per_consumer, "--per-partition": per_partition}
    values, unit = in_one_unit({option: text for option, text in rates.items() if text is not None}, record_size)
    needs = Needs(
        target=values["--target"],
        per_consumer=values["--per-consumer"],
        per_partition=values.get("--per-partition", math.inf),
        growth=read(share, growth, "--growth"),
        horizon_years=read(years, horizon, "--horizon"),
        headroom=read(share, headroom, "--headroom"),
        outage_s=read(duration_ms, outage, "--outage") / 1_000,
        partitions=partitions,
        consumers=consumers,
        brokers=brokers,
        replication=replication,
        broker_limit=broker_limit,
    )
    try:
        sizing = size(needs)
    except ValueError as error:
        raise ContractError("--target", str(error)) from None
    if as_json:
        print_json({"unit": unit, **sizing.to_json()})
    else:
        show(needs, sizing, unit)


def read(reader: Callable[[object], T], text: str, option: str) -> T:
    try:
        return reader(text)
    except ValueError as error:
        raise ContractError(option, str(error)) from None


def years(text: object) -> float:
    """`2y`, `18mo` or `90d`."""
    found = re.fullmatch(r"(\d{1,4}(?:\.\d{1,3})?)\s*(y|mo|d)", str(text))
    if found is None:
        raise ValueError(f"{quoted(text)} is not a horizon: say 2y, 18mo or 90d")
    length = float(found[1]) * YEARS[found[2]]
    if length > 100:
        raise ValueError(f"{quoted(text)} is more than a hundred years")
    return length


def in_one_unit(rates: dict[str, str], record_size: str | None) -> tuple[dict[str, float], str]:
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


def show(needs: Needs, sizing: Sizing, unit: str) -> None:
    from rich import box
    from rich.table import Table

    out = console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    plans = [sizing.now] if needs.horizon_years == 0 else [sizing.now, sizing.horizon]
    for title in ("now", f"in {needs.horizon_years:.3g} years")[: len(plans)]:
        table.add_column(title, justify="right")
    rows: list[tuple[str, Callable[[Plan], str]]] = [
        ("demand", lambda plan: rate_text(plan.demand, unit)),
        (f"with {needs.headroom:.0%} headroom", lambda plan: rate_text(plan.with_headroom, unit)),
        ("partitions needed", lambda plan: f"{plan.partitions:,}"),
        (f"consumers on {sizing.partitions:,} partitions", lambda plan: number_text(plan.consumers)),
        ("partitions of the fullest", lambda plan: f"{plan.most_partitions_a_consumer or ''}"),
        ("how busy it is", lambda plan: "" if plan.utilisation is None else f"{plan.utilisation:.0%}"),
    ]
    if needs.outage_s:
        outage = duration_text(round(needs.outage_s * 1_000))
        rows.append((f"caught up after {outage} down", lambda plan: time_text(plan.catch_up_s)))
    for title, cell in rows:
        table.add_row(title, *(cell(plan) for plan in plans))
    out.print(f"[bold]{sizing.partitions:,} partitions[/bold], {why(needs, sizing, unit)}", soft_wrap=True)
    out.print(table)
    out.print(brokers_text(needs, sizing), soft_wrap=True)
    if sizing.lasts_years is not None:
        out.print(f"{sizing.partitions:,} partitions suffice for {sizing.lasts_years:.1f} years", soft_wrap=True)
    for note in sizing.notes:
        out.print(f"note: {note}", soft_wrap=True, markup=False, style="yellow")


def why(needs: Needs, sizing: Sizing, unit: str) -> str:
    if needs.partitions is not None:
        return "as there are"
    if sizing.limited_by == "consumer":
        return f"because one consumer does {rate_text(needs.per_consumer, unit)}"
    return f"because one partition takes {rate_text(needs.per_partition, unit)}"


def brokers_text(needs: Needs, sizing: Sizing) -> str:
    text = f"{sizing.replicas:,} replicas ({needs.replication} of each partition)"
    if sizing.replicas_a_broker is not None:
        return (
            f"{text}, {sizing.replicas_a_broker:,} on each of {needs.brokers:,} brokers; at most {needs.broker_limit:,}"
        )
    return f"{text} need at least {sizing.brokers_needed:,} brokers at {needs.broker_limit:,} replicas each"


def rate_text(rate: float, unit: str) -> str:
    if unit == "records":
        return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.3g}/s"
    scale, name = next((one for one in BYTE_NAMES if rate >= one[0]), BYTE_NAMES[-1])
    return f"{rate / scale:.3g} {name}/s"


def number_text(number: int | None) -> str:
    return "never enough" if number is None else f"{number:,}"


def time_text(seconds: float | None) -> str:
    if seconds is None:
        return "never"
    parts = [(int(seconds // 3600), "h"), (int(seconds % 3600 // 60), "m"), (round(seconds % 60), "s")]
    return " ".join(f"{count}{unit}" for count, unit in parts if count)[:20] or "at once"
