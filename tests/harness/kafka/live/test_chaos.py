"""A minute of chaos; twenty of them are `python -m tests.harness.kafka.live.chaos`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from rebalance_lab.harness.kafka.brokers import Cluster
from tests.harness.kafka.live.chaos import complaints, run_chaos

SECONDS = 60


@pytest.mark.xdist_group("live")
def test_no_record_is_lost_while_members_and_brokers_die(
    three_nodes: Cluster, record_property: Callable[[str, object], None]
) -> None:
    runs = asyncio.run(run_chaos(three_nodes, SECONDS, seed=1))
    rows = [
        f"{run.strategy:28} {len(run.scenario.timeline):3} events {run.costs.rebalances:4} rebalances "
        f"{run.verdict.records:8,} records {run.verdict.twice:6,} twice"
        for run in runs
    ]
    record_property("table: a minute of chaos on three nodes", "\n".join(rows))
    assert [line for run in runs for line in complaints(run)] == []
