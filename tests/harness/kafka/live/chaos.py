"""Chaos: a classic and a consumer group at load on three nodes, while members come, go, die and stall, and brokers die.

The sequence oracle judges each: no record skipped, none committed before it was processed, nothing read again that was
known to be committed.

    python -m tests.harness.kafka.live.chaos --minutes 20 --seed 1
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from random import Random

from rebalance_lab.harness.kafka.brokers import BrokerConfig, Cluster, start
from rebalance_lab.harness.kafka.live.live_run import LiveRun, live_run
from rebalance_lab.harness.scenario.model import Event, FailOver, MemberSpec, Pause, Rate, Restart, Scenario, TopicSpec

STRATEGIES = ("classic/cooperative-sticky", "consumer/uniform")
MEMBERS = tuple(f"member-{number}" for number in range(1, 5))
RATE, PARTITIONS = 200.0, 12
COMMIT_S = 1.0
CALM_MS = 20_000
"""At the end nothing happens, so that whatever was broken can come back."""
NODE_DOWN_MS = 8_000


def chaos(random: Random, seconds: int, *, broker_kills: bool) -> Scenario:
    events: list[Event] = []
    at_ms = 8_000
    last_kill_ms = 0
    while at_ms < seconds * 1_000 - CALM_MS:
        if broker_kills and at_ms - last_kill_ms > 30_000:
            last_kill_ms = at_ms
            events.append(FailOver(at_ms=at_ms, down_ms=NODE_DOWN_MS))
        else:
            events.append(member_event(random, at_ms))
        at_ms += random.randint(2_000, 6_000)
    return Scenario(
        name="chaos",
        duration_ms=seconds * 1_000,
        topics=(TopicSpec(name="orders", partitions=PARTITIONS, rate=Rate(((0, RATE),))),),
        members=tuple(MemberSpec(name=name, topics=("orders",), record_ms=1.0) for name in MEMBERS),
        client={"session.timeout.ms": 6_000, "heartbeat.interval.ms": 500, "auto.commit.interval.ms": 1_000},
        timeline=tuple(events),
        metadata_max_age_ms=5_000,
    )


def member_event(random: Random, at_ms: int) -> Event:
    members = tuple(random.sample(MEMBERS, random.choice((1, 1, 2))))
    down_ms = random.choice((500, 3_000, 9_000))
    match random.choice(("restart", "kill", "pause", "stop for long")):
        case "restart":
            return Restart(at_ms=at_ms, members=members, downtime_ms=down_ms)
        case "kill":
            return Restart(at_ms=at_ms, members=members, downtime_ms=down_ms, kill=True)
        case "pause":
            return Pause(at_ms=at_ms, members=members, for_ms=random.choice((1_000, 4_000, 9_000)))
        case _:
            return Restart(at_ms=at_ms, members=members, downtime_ms=15_000)


async def run_chaos(cluster: Cluster, seconds: int, seed: int) -> list[LiveRun]:
    """Both groups at once; only the first one's timeline kills brokers, so that two of three always live."""
    scenarios = [chaos(Random(f"{seed}/{n}"), seconds, broker_kills=n == 0) for n in range(len(STRATEGIES))]
    return await asyncio.gather(
        *(live_run(scenario, strategy, cluster) for scenario, strategy in zip(scenarios, STRATEGIES, strict=True))
    )


def interruptions(run: LiveRun) -> int:
    """Each may cost what somebody had not committed. A broker's death interrupts everybody."""
    return sum(len(getattr(event, "members", MEMBERS)) for event in run.scenario.timeline)


def complaints(run: LiveRun) -> list[str]:
    """A member has at most its whole share uncommitted: what comes in within the interval, or in a broker's absence."""
    verdict = run.verdict
    window_s = COMMIT_S + NODE_DOWN_MS / 1_000 + run.scenario.client["session.timeout.ms"] / 1_000
    allowed = interruptions(run) * RATE * window_s
    found = [*verdict.gaps, *verdict.ahead, *verdict.old, *verdict.broken, *run.troubles]
    if verdict.twice > allowed:
        found.append(f"{verdict.twice} records twice, {allowed:.0f} can be explained")
    written = RATE * run.scenario.duration_ms / 1_000
    if verdict.records < 0.8 * (written - RATE * CALM_MS / 1_000):
        found.append(f"only {verdict.records} of about {written:.0f} records were processed")
    return [f"{run.strategy}: {line}" for line in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with start("auto", nodes=3, config=BrokerConfig(broker_session_timeout_ms=3_000)) as cluster:
        runs = asyncio.run(run_chaos(cluster, round(options.minutes * 60), options.seed))
    for run in runs:
        verdict, costs = run.verdict, run.costs
        print(
            f"{run.strategy}: {len(run.scenario.timeline)} events, {costs.rebalances} rebalances, "
            f"{verdict.records} records, {verdict.twice} read twice, {verdict.written_again} written twice, "
            f"{len(complaints(run))} complaints"
        )
    wrong = [line for run in runs for line in complaints(run)]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
