"""Run a scenario live: a scenario, a strategy and a cluster give a trace, measured as simulated runs are.

Given      those three; the scenario takes as long as it says
Returns    LiveRun: facts in order of time, the oracle's verdict, and what went wrong with the run itself
Start at   live
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

from rebalance_lab.harness.kafka.brokers import Cluster
from rebalance_lab.harness.kafka.live.group_facts import group_facts
from rebalance_lab.harness.kafka.live.librdkafka_settings import check_live
from rebalance_lab.harness.kafka.live.live_lag import lag_facts
from rebalance_lab.harness.kafka.live.live_world import LiveWorld
from rebalance_lab.harness.kafka.live.sequence_oracle import Verdict, judge
from rebalance_lab.harness.kafka.offsets_topic.topic_reader import read_offsets_topic
from rebalance_lab.harness.measure.costs import Costs, costs
from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.harness.scenario.model import Scenario

KEPT_OUT = ("processed", "durable", "written again", "broken")
"""Facts for the oracle; a trace has the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRun:
    scenario: Scenario
    strategy: str
    provider: str
    facts: Sequence[Fact]
    costs: Costs
    verdict: Verdict
    troubles: Sequence[str]
    """Of the run itself: a topic that could not be created, a record that was not written."""
    lasted_s: float


def live(scenario: Scenario, strategy: str, cluster: Cluster, *, seed: int = 0) -> LiveRun:
    check_live(scenario, strategy)
    return asyncio.run(live_run(scenario, strategy, cluster, seed=seed))


async def live_run(scenario: Scenario, strategy: str, cluster: Cluster, *, seed: int = 0) -> LiveRun:
    """Run a scenario live. Several can run at once on one cluster: each has topics and a group of its own."""
    began = time.monotonic()
    world = LiveWorld(scenario, strategy, cluster, f"lab-{uuid4().hex[:8]}-", seed)
    await world.run()
    log = await asyncio.to_thread(lambda: list(read_offsets_topic(cluster.bootstrap, timeout_s=60)))
    facts = [
        {"t": 0, "fact": "run", "scenario": scenario.name, "strategy": strategy, "seed": seed, "live": True},
        *sorted(
            [
                *world.trace.facts,
                *group_facts(log, world.group, world.kernel.epoch_s),
                *lag_facts(world.trace.facts, world.written, scenario.duration_ms),
            ],
            key=lambda fact: fact["t"],
        ),
    ]
    kept = [fact for fact in facts if fact["fact"] not in KEPT_OUT]
    return LiveRun(
        scenario=scenario,
        strategy=strategy,
        provider=cluster.provider,
        facts=kept,
        costs=costs(kept),
        verdict=judge(facts),
        troubles=world.troubles,
        lasted_s=time.monotonic() - began,
    )
