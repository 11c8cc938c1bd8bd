"""Compute a group's size: measured rates to partitions and consumers.

Given      rates, shares and times as people write them: `5k/s`, `30%`, `2y`
Returns    Sized: the needs in one unit, the sizing, what a deploy of that group costs, and which unit that is;
           ContractError with the option's name
Start at   size_of
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.scenario.units import duration_ms, quoted, share, size_bytes, throughput

if TYPE_CHECKING:
    from rebalance_lab.harness.evaluate.deploy_cost import DeployCost
    from rebalance_lab.harness.evaluate.sizing import Needs, Sizing

T = TypeVar("T")
YEARS = {"y": 1.0, "mo": 1 / 12, "d": 1 / 365}
NO_HORIZON = "0y"
MOST = 10_000_000
MOST_DEPLOYS = 1_000
LONGEST_DOWNTIME_MS = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeAsked:
    target: str
    per_consumer: str
    per_partition: str | None = None
    record_size: str | None = None
    growth: str | int | float = "0%"
    """A percentage; a number other than 0 is refused."""
    horizon: str = NO_HORIZON
    headroom: str | int | float = "20%"
    outage: str = "0s"
    partitions: int | None = None
    consumers: int | None = None
    brokers: int | None = None
    replication: int = 3
    broker_limit: int = 4_000
    strategies: str = "classic/range,classic/cooperative-sticky,consumer/uniform"
    """What a deploy is simulated with; the first one's standstill counts."""
    deploys: int = 1
    """A day; 0 leaves their cost out."""
    downtime: str = "10s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploy:
    """Describe a rolling deploy of the group as sized for now."""

    consumers: int
    takes_s: float
    """From the first consumer's going down until after the last is back."""
    a_day: int
    """As many as were asked for and fit into a day, whole; 0: one takes longer than a day."""
    assumed: str
    costs: Sequence[DeployCost]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "costs": [one.to_json() for one in self.costs]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    needs: Needs
    sizing: Sizing
    unit: str
    deploy: Deploy | None
    """None where it was left out, or no number of consumers suffices."""

    def to_json(self) -> dict[str, Any]:
        return {"unit": self.unit, **self.sizing.to_json(), "deploy": self.deploy and self.deploy.to_json()}


def size_of(asked: SizeAsked) -> Sized:
    from rebalance_lab.harness.evaluate.comparison import checked_strategies, split_strategies
    from rebalance_lab.harness.evaluate.deploy_cost import seconds_a_consumer
    from rebalance_lab.harness.evaluate.sizing import Needs, size

    for name in ("partitions", "consumers", "brokers", "replication", "broker_limit"):
        count = getattr(asked, name)
        if count is not None and not 1 <= count <= MOST:
            raise ContractError(f"--{name.replace('_', '-')}", f"must be between 1 and {MOST:,}, got {count}")
    if not 0 <= asked.deploys <= MOST_DEPLOYS:
        raise ContractError("--deploys", f"must be between 0 and {MOST_DEPLOYS:,}, got {asked.deploys}")
    strategies = checked_strategies(split_strategies(asked.strategies))
    downtime_ms = read(duration_ms, asked.downtime, "--downtime")
    if downtime_ms > LONGEST_DOWNTIME_MS:
        raise ContractError("--downtime", f"must be at most 1h, got {quoted(asked.downtime)}")
    rates = {
        "--target": asked.target, "--per-consumer": asked.per_consumer, "--per-partition": asked.per_partition
    }  # fmt: skip
    growth = read(share, asked.growth, "--growth")
    horizon_years = read(years, asked.horizon, "--horizon")
    if growth and not horizon_years:
        said = "is missing" if asked.horizon == NO_HORIZON else f"is {quoted(asked.horizon)}"
        raise ContractError("--horizon", f"{said}: --growth {asked.growth} for how long? Say 2y, 18mo or 90d")
    values, unit = in_one_unit({option: text for option, text in rates.items() if text is not None}, asked.record_size)
    needs = Needs(
        target=values["--target"],
        per_consumer=values["--per-consumer"],
        per_partition=values.get("--per-partition", math.inf),
        growth=growth,
        horizon_years=horizon_years,
        headroom=read(share, asked.headroom, "--headroom"),
        outage_s=read(duration_ms, asked.outage, "--outage") / 1_000,
        partitions=asked.partitions,
        consumers=asked.consumers,
        brokers=asked.brokers,
        replication=asked.replication,
        broker_limit=asked.broker_limit,
        rebalances_per_day=asked.deploys,
        rebalance_s_a_consumer=seconds_a_consumer(downtime_ms),
    )
    deploys: list[Deploy] = []

    def cost_of_a_deploy(partitions: int, consumers: int) -> float:
        deploys.append(deploy_of(needs, partitions, consumers, strategies, downtime_ms))
        return deploys[-1].costs[0].unowned_s

    try:
        sizing = size(needs, cost_of_a_deploy if asked.deploys else None)
    except ContractError:
        raise
    except ValueError as error:
        raise ContractError("--target", str(error)) from None
    if deploys and sizing.now.consumers not in (None, deploys[0].consumers):
        # The standstill made them more: the deploy that is told is theirs.
        cost_of_a_deploy(sizing.partitions, sizing.now.consumers or sizing.partitions)
    return Sized(needs=needs, sizing=sizing, unit=unit, deploy=deploys[-1] if deploys else None)


def deploy_of(needs: Needs, partitions: int, consumers: int, strategies: Sequence[str], downtime_ms: int) -> Deploy:
    from rebalance_lab.harness.evaluate.deploy_cost import SizedGroup, assumed, deploy_cost
    from rebalance_lab.harness.evaluate.sizing import rebalances_counted

    rates = needs.target, needs.per_consumer
    group = SizedGroup(partitions=partitions, consumers=consumers, demand=rates[0], per_consumer=rates[1])
    costs = []
    for strategy in strategies:
        try:
            costs.append(deploy_cost(strategy, group, downtime_ms))
        except ValueError as error:
            raise ContractError("--strategies", str(error)) from None
    return Deploy(
        consumers=consumers,
        takes_s=needs.rebalance_s_a_consumer * consumers,
        a_day=int(rebalances_counted(needs, consumers)),
        assumed=assumed(downtime_ms),
        costs=tuple(costs),
    )


def read(reader: Callable[[object], T], text: object, option: str) -> T:
    try:
        return reader(text)
    except ValueError as error:
        raise ContractError(option, str(error)) from None


def years(text: object) -> float:
    """Read `2y`, `18mo` or `90d`."""
    found = re.fullmatch(r"([0-9]{1,4}(?:\.[0-9]{1,3})?)\s*(y|mo|d)", str(text))
    if found is None:
        raise ValueError(f"{quoted(text)} is not a horizon: say 2y, 18mo or 90d")
    length = float(found[1]) * YEARS[found[2]]
    if length > 100:
        raise ValueError(f"{quoted(text)} is more than a hundred years")
    return length


def in_one_unit(rates: Mapping[str, str], record_size: str | None) -> tuple[dict[str, float], str]:
    """Return rates in records or bytes; with a record's size the two may be mixed."""
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
