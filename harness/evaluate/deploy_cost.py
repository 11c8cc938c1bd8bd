"""Compute what a rolling deploy of a sized group costs, in the simulator.

Given      how many partitions and consumers, what comes in and what one consumer does, in any unit per second
Returns    DeployCost for a strategy: standstill, records that pile up meanwhile, partitions that move, records read
           twice
Assumed    one consumer after the other, down for `downtime_ms` and the next GAP_MS after it is back. Default settings;
           a poll takes at most a second's work; each figure is the mean of a few runs. `assumed` says so to users
Scaled     a group beyond MOST_CONSUMERS, or beyond MOST_PARTITIONS for each consumer, is not run. A smaller group that
           is as busy runs instead, and its costs are scaled up. Where each restart stops all members (an eager group),
           a partition's standstill grows with the number of restarts; where only some partitions move, it stays
Start at   deploy_cost
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from rebalance_lab.assignors.interface import RebalanceProtocol, supported_protocols_of
from rebalance_lab.assignors.strategies import load_assignor
from rebalance_lab.harness.evaluate.runs import sample_of
from rebalance_lab.harness.evaluate.sizing import catch_up_seconds
from rebalance_lab.harness.measure.costs import Row
from rebalance_lab.harness.scenario.model import MemberSpec, Rate, RollingRestart, Scenario, TopicSpec
from rebalance_lab.harness.scenario.strategy_lists import parse_strategies
from rebalance_lab.protocol_v1.member.config import MemberConfig

FORMING_MS, GAP_MS, AFTER_MS = 60_000, 20_000, 60_000
MOST_CONSUMERS, MOST_PARTITIONS = 20, 4
MOST_OF_THEM = 0.25
"""Of all partitions, with each restart: range and roundrobin deal anew, the others keep what they can."""
SEEDS = (1, 2, 3, 4, 5)
"""Where heartbeats fall decides how long a group waits for its last member: one run may have half of the next."""
RECORDS_PER_S = (10.0, 100_000.0)
"""What a simulated consumer does: bytes, and rates out of reach, are run as so many records, and as busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedGroup:
    partitions: int
    consumers: int
    demand: float
    per_consumer: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployCost:
    strategy: str
    unowned_s: float
    """Partition-seconds without an owner, in one deploy of the whole group."""
    unowned_longest_s: float
    """The longest that one partition stands still in one piece."""
    rebalances: int
    moved: int
    read_twice: float
    waiting: float
    """What waits at the worst moment, in the sizing's unit."""
    catch_up_s: float | None
    """From the worst moment until what waits is done, at the least; None: never, for want of room to spare."""
    estimated: bool
    """From a smaller group."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def assumed(downtime_ms: int) -> str:
    return (
        f"simulated: one consumer after the other, {downtime_ms / 1000:g} s down, the next {GAP_MS / 1000:g} s after "
        "it is back; default settings; polls of at most a second's work; the mean of five runs"
    )


def seconds_a_consumer(downtime_ms: int) -> float:
    """Return how long a deploy takes, for each consumer of the group."""
    return (downtime_ms + GAP_MS) / 1_000


def deploy_cost(strategy: str, group: SizedGroup, downtime_ms: int) -> DeployCost:
    """Compute the cost, or raise ValueError where a run does not get to its end, which only a custom assignor can
    cause.
    """
    each = math.ceil(group.partitions / group.consumers)
    consumers, partitions = min(group.consumers, MOST_CONSUMERS), group.partitions
    small = consumers == group.consumers and each <= MOST_PARTITIONS
    busy = group.demand / group.consumers
    if not small:
        # As uneven as the whole, with partitions as full: where all were as busy as its fullest, far more would wait.
        partitions = round(consumers * min(group.partitions / group.consumers, MOST_PARTITIONS))
        if each <= MOST_PARTITIONS:
            busy = group.demand / group.partitions * partitions / consumers
    rate = min(max(group.per_consumer, RECORDS_PER_S[0]), RECORDS_PER_S[1])
    demand = consumers * busy * rate / group.per_consumer
    row = mean_row(rolling_deploy(partitions, consumers, demand, rate, downtime_ms), strategy)
    more, part, records = group.consumers / consumers, group.partitions / partitions, group.demand / demand
    everybody = stops_everybody(strategy, downtime_ms)
    most_move = row["moved"] > partitions * consumers * MOST_OF_THEM
    waiting = round(row["lag_peak"] * records / (1 if everybody else more), 1)
    return DeployCost(
        strategy=strategy,
        unowned_s=round(row["unowned_s"] * part * (more if everybody else 1), 3),
        unowned_longest_s=row["unowned_longest_s"],
        rebalances=round(row["rebalances"] * more),
        moved=round(row["moved"] * part * (more if most_move else 1)),
        read_twice=round(row["read_twice"] * records, 1),
        waiting=waiting,
        catch_up_s=caught_up_s(group, waiting, row["unowned_longest_s"]),
        estimated=not small,
    )


def mean_row(scenario: Scenario, strategy: str) -> Row:
    """Return the mean of each figure. Runs with good and with bad luck may lie far apart, and the middle of a few jumps
    from the ones to the others.
    """
    rows = []
    for seed in SEEDS:
        run = sample_of(scenario, strategy, seed)
        if run.costs is None:
            raise ValueError(f"{strategy}: {run.broken}")
        rows.append(run.costs)
    return {name: fmean(row[name] for row in rows) for name in rows[0]}


def caught_up_s(group: SizedGroup, waiting: float, longest_s: float) -> float | None:
    """Compute when the group has caught up: all waiting records by all spare capacity. If that is later, it is the
    longest standstill by what the fullest consumer has to spare. Both are lower bounds: records need not wait where
    there is most to spare.
    """
    fullest = catch_up_seconds(group.demand, group.partitions, group.consumers, group.per_consumer, longest_s)
    spare = group.consumers * group.per_consumer - group.demand
    if fullest is None or spare <= 0:
        return None
    return max(fullest, waiting / spare)


def stops_everybody(strategy: str, downtime_ms: int) -> bool:
    """Tell whether a restart takes all partitions from all members. An eager group's does, unless it goes unnoticed
    because the member is static and back before its session ends.
    """
    strategies = parse_strategies(strategy)
    if strategies[0].protocol == "consumer":
        return False
    if strategies[0].static and downtime_ms < MemberConfig().session_timeout_ms:
        return False
    return not all(RebalanceProtocol.COOPERATIVE in supported_protocols_of(load_assignor(one)) for one in strategies)


def rolling_deploy(partitions: int, consumers: int, demand: float, rate: float, downtime_ms: int) -> Scenario:
    """Make the scenario. No records come in until the group has formed: what waits then is the deploy's doing."""
    return Scenario(
        name="a rolling deploy",
        duration_ms=FORMING_MS + consumers * (downtime_ms + GAP_MS) + AFTER_MS,
        topics=(TopicSpec(name="topic", partitions=partitions, rate=Rate(((0, 0.0), (FORMING_MS // 2, demand)))),),
        members=tuple(
            MemberSpec(name=f"consumer-{number}", topics=("topic",), record_ms=1_000 / rate)
            for number in range(1, consumers + 1)
        ),
        client={"max.poll.records": min(500, int(rate))},
        timeline=(RollingRestart(at_ms=FORMING_MS, downtime_ms=downtime_ms, gap_ms=GAP_MS),),
    )
