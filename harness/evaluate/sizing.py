"""Compute how many partitions and consumers a throughput needs, as the books teach it.

Given      a target throughput and two measured rates: records that one partition takes, records that one consumer does
Returns    partitions, consumers, brokers, and the time to catch up after an outage: now and at a horizon
Partitions target / min(a partition's rate, a consumer's rate), for the demand at the horizon and with headroom: they
           are chosen once, because adding some later sends keys to other partitions
Consumers  the fewest that no share overloads. A partition is never split, so 10 partitions on 6 consumers give some 2
           and some 1, and the fullest decides. That is why dividing rates alone promises too much.
Units      records or bytes per second, the same for all three
Reference  Kafka: The Definitive Guide, "How to choose the number of partitions"
Start at   size
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

DAY_S = 86_400
MAX_PARTITIONS = 10_000_000

RebalanceCost: TypeAlias = Callable[[int, int], float]
"""Partitions and consumers to the partition-seconds without an owner that one rebalance costs, as simulated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    target: float
    """What comes in now at the busiest time."""
    per_consumer: float
    per_partition: float = math.inf
    """What producers can write to one partition; unknown is no limit."""
    growth: float = 0.0
    """A year; 0.3 is 30% more each year."""
    horizon_years: float = 0.0
    headroom: float = 0.0
    """0.2 plans for 20% more than the demand."""
    outage_s: float = 0.0
    partitions: int | None = None
    """Those there are."""
    consumers: int | None = None
    """Those there are."""
    brokers: int | None = None
    replication: int = 3
    broker_limit: int = 4_000
    """Replicas on one broker. Kafka's advice of the ZooKeeper days; KRaft carries more, if files and memory do."""
    rebalances_per_day: float = 0.0
    """Whatever `rebalance_cost` is the cost of: a rebalance, or a deploy of the whole group."""
    rebalance_s_a_consumer: float = 0.0
    """How long one takes, for each consumer of the group: no more are counted than fit into a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Hold the sizes for one time: now, or at the horizon."""

    demand: float
    with_headroom: float
    partitions: int
    """Needed then; what `Sizing.partitions` says is made for the horizon."""
    consumers: int | None
    """On the partitions of the sizing. None: no number suffices, because one partition is more than one consumer."""
    most_partitions_a_consumer: int | None
    utilisation: float | None
    """Of the consumer with the most partitions, without headroom."""
    catch_up_s: float | None
    """After the outage, with that many consumers; None when they never do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    partitions: int
    """Those there are, or else those that the horizon needs."""
    limited_by: str
    """"consumer" or "partition": whose rate decides."""
    now: Plan
    horizon: Plan
    idle_consumers: int | None
    """Of those there are: beyond one for each partition they have nothing to do."""
    lasts_years: float | None
    """How long the partitions that there are suffice; None when it is for ever, or when none were given."""
    replicas: int
    brokers_needed: int
    replicas_a_broker: int | None
    standstill: float | None
    """The part of its time for which a partition has no owner because of rebalances; None if not asked for."""
    notes: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "notes": list(self.notes)}


def size(needs: Needs, rebalance_cost: RebalanceCost | None = None) -> Sizing:
    """Compute the sizes. Rebalances make the rest of the time busier: with their cost known, consumers are counted for
    that.
    """
    unit_rate = min(needs.per_partition, needs.per_consumer)
    final = demand_at(needs, needs.horizon_years) * (1 + needs.headroom)
    partitions = needs.partitions or whole_up(final / unit_rate)
    if partitions > MAX_PARTITIONS:
        raise ValueError(f"that would take more than {MAX_PARTITIONS:,} partitions")
    replicas = partitions * needs.replication
    standstill = None
    first = plan(needs, 0.0, partitions, unit_rate, 0.0)
    if rebalance_cost is not None and first.consumers is not None:
        cost = rebalance_cost(partitions, first.consumers)
        standstill = min(cost * rebalances_counted(needs, first.consumers) / (partitions * DAY_S), 1.0)
    sizing = Sizing(
        partitions=partitions,
        limited_by="partition" if needs.per_partition < needs.per_consumer else "consumer",
        now=plan(needs, 0.0, partitions, unit_rate, standstill or 0.0),
        horizon=plan(needs, needs.horizon_years, partitions, unit_rate, standstill or 0.0),
        idle_consumers=None if needs.consumers is None else max(0, needs.consumers - partitions),
        lasts_years=lasts_years(needs, unit_rate),
        replicas=replicas,
        brokers_needed=max(needs.replication, math.ceil(replicas / needs.broker_limit)),
        replicas_a_broker=None if needs.brokers is None else math.ceil(replicas / needs.brokers),
        standstill=standstill,
        notes=(),
    )
    return replace(sizing, notes=tuple(notes(needs, sizing)))


def rebalances_counted(needs: Needs, consumers: int) -> float:
    """Return the rebalances that count in a day: whole ones, or the part of one that takes longer than a day."""
    takes_s = needs.rebalance_s_a_consumer * consumers
    if takes_s * needs.rebalances_per_day <= DAY_S:
        return needs.rebalances_per_day
    return DAY_S / takes_s if takes_s > DAY_S else math.floor(DAY_S / takes_s)


def demand_at(needs: Needs, years: float) -> float:
    try:
        return needs.target * math.pow(1 + needs.growth, years)
    except OverflowError:
        raise ValueError("it would grow beyond all numbers") from None


def plan(needs: Needs, years: float, partitions: int, unit_rate: float, standstill: float) -> Plan:
    demand = demand_at(needs, years)
    wanted = demand * (1 + needs.headroom)
    # What arrives while a partition stands still is done in the rest of its time, with what headroom there is.
    catching_up = demand / (1 - standstill) if standstill < 1 else math.inf
    consumers = consumers_needed(max(wanted, catching_up), partitions, needs)
    if math.isinf(consumers):
        consumers = consumers_needed(wanted, partitions, needs)
    if math.isinf(consumers):
        share = utilisation = catch_up = count = None
    else:
        count = int(consumers)
        share = math.ceil(partitions / count)
        utilisation = share * demand / partitions / needs.per_consumer
        catch_up = catch_up_seconds(demand, partitions, count, needs.per_consumer, needs.outage_s)
    return Plan(
        demand=demand,
        with_headroom=wanted,
        partitions=whole_up(wanted / unit_rate),
        consumers=count,
        most_partitions_a_consumer=share,
        utilisation=utilisation,
        catch_up_s=catch_up,
    )


def consumers_needed(demand: float, partitions: int, needs: Needs) -> float:
    """Return the fewest whose fullest share is no more than one consumer does; infinite when one partition already
    is.
    """
    if math.isinf(demand):
        return math.inf
    partitions_a_consumer = whole_down(min(needs.per_consumer * partitions / demand, partitions))
    return math.inf if partitions_a_consumer < 1 else math.ceil(partitions / partitions_a_consumer)


def catch_up_seconds(
    demand: float, partitions: int, consumers: int, per_consumer: float, outage_s: float
) -> float | None:
    """Return how long the outage's records take, by what the fullest consumer has to spare while records keep
    coming.
    """
    inflow = math.ceil(partitions / consumers) * demand / partitions
    spare = per_consumer - inflow
    return inflow * outage_s / spare if spare > per_consumer * 1e-9 else None


def lasts_years(needs: Needs, unit_rate: float) -> float | None:
    if needs.partitions is None:
        return None
    room = needs.partitions * unit_rate / (needs.target * (1 + needs.headroom))
    if room < 1:
        return 0.0
    return math.log(room) / math.log(1 + needs.growth) if needs.growth > 0 else None


def notes(needs: Needs, sizing: Sizing) -> list[str]:
    """Return what a reader should not overlook."""
    found = []
    if sizing.horizon.partitions > sizing.partitions:
        found.append(
            f"{sizing.partitions:,} partitions are {sizing.horizon.partitions - sizing.partitions:,} too few"
            f"{' for the horizon' if needs.horizon_years else ''}; adding some sends keys to other partitions"
        )
    if sizing.horizon.consumers is None:
        found.append("one partition brings more than one consumer can do: more consumers would not help")
    if needs.consumers is not None:
        if needs.consumers < (sizing.now.consumers or math.inf):
            found.append(f"{needs.consumers:,} consumers are too few today")
        if sizing.idle_consumers:
            found.append(f"{sizing.idle_consumers:,} of {needs.consumers:,} consumers would have no partition")
    if needs.outage_s and sizing.now.consumers is not None and sizing.now.catch_up_s is None:
        found.append("without room to spare an outage is never caught up: plan with headroom")
    if sizing.standstill is not None:
        found.extend(notes_on_deploys(needs, sizing.now, sizing.standstill))
    if needs.brokers is not None and needs.brokers < needs.replication:
        found.append(f"{needs.replication} replicas need at least {needs.replication} brokers")
    if sizing.replicas_a_broker is not None and sizing.replicas_a_broker > needs.broker_limit:
        found.append(
            f"{sizing.replicas_a_broker:,} replicas a broker are above the limit of {needs.broker_limit:,}: "
            f"{sizing.brokers_needed:,} brokers would do"
        )
    return found


def notes_on_deploys(needs: Needs, now: Plan, standstill: float) -> list[str]:
    found: list[str] = []
    if now.consumers is None or now.utilisation is None:
        return found
    takes_s = needs.rebalance_s_a_consumer * now.consumers
    counted = rebalances_counted(needs, now.consumers)
    if takes_s > DAY_S:
        found.append(f"a deploy takes {time_text(takes_s)}, more than a day: one after the other is counted")
    elif counted < needs.rebalances_per_day:
        found.append(
            f"{needs.rebalances_per_day:g} deploys of {time_text(takes_s)} each do not fit into a day: "
            f"{counted:g} {'is' if counted == 1 else 'are'} counted"
        )
    if standstill and now.utilisation > 1 - 1e-9:
        found.append("what waits after a deploy is never caught up without room to spare: plan with headroom")
    elif standstill and now.utilisation > 1 - standstill:
        found.append("deploys hold up more than can be caught up with between them: fewer, or more headroom")
    return found


def time_text(seconds: float) -> str:
    whole = round(seconds)
    parts = [(whole // 3600, "h"), (whole % 3600 // 60, "m"), (whole % 60, "s")]
    return " ".join(f"{count}{unit}" for count, unit in parts if count)[:20] or "at once"


def whole_up(number: float) -> int:
    """Round up, except for the last bits of a float: 1000 * 1.1 / 100 is 11, not 12."""
    if not math.isfinite(number):
        raise ValueError("that is beyond all numbers")
    return max(1, math.ceil(number * (1 - 1e-9)))


def whole_down(number: float) -> int:
    return math.floor(number * (1 + 1e-9))
