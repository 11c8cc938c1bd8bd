"""Record one sequence on a broker that a user names: read its settings, create missing topics and remove them again.

Given      the sequence as decoded JSON, a bootstrap address, and how long to wait for the broker
Returns    the outcome, and the steps that could not be sent with the reason
Errors     WireError in one line
Start at   record_one
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from rebalance_lab.harness.conversation.sequence_file import parse_sequence
from rebalance_lab.harness.hosts.coordinator_host import partition_counts
from rebalance_lab.harness.hosts.served_protocols import PROTOCOLS
from rebalance_lab.harness.kafka.wire.addresses import WireError, parse_bootstrap
from rebalance_lab.harness.kafka.wire.cluster import Cluster
from rebalance_lab.harness.kafka.wire.recordings.broker_setup import broker_settings, delete_topics, ensure_topics
from rebalance_lab.harness.kafka.wire.recordings.differential import Bench, Outcome

POLL_S = 0.05


async def record_one(value: Mapping[str, Any], bootstrap: str, timeout_s: float) -> tuple[Outcome, dict[str, str]]:
    wanted = partition_counts(parse_sequence(value, PROTOCOLS).topics or {})
    addresses = parse_bootstrap(bootstrap)
    cluster = await Cluster.open(addresses, timeout_s=timeout_s)
    bench = None
    there = {name: len(topic.leaders) for name, topic in cluster.metadata.topics.items()}
    try:
        await asyncio.to_thread(ensure_topics, bootstrap, wanted, there, replicas_on(cluster))
        await wait_for_topics(cluster, wanted, timeout_s)
        node = next(iter(cluster.metadata.nodes))
        config = await asyncio.to_thread(broker_settings, bootstrap, node)
        bench = Bench(cluster, config, await cluster.coordinator_of("rebalance-lab"))
        await bench.warm_up()
        recorded = await bench.record(bench.prepared(value))
        return recorded.outcome(), recorded.recording.unsent
    finally:
        await (bench or cluster).close()
        await asyncio.to_thread(delete_topics, bootstrap, [name for name in wanted if name not in there])


def replicas_on(cluster: Cluster) -> int:
    return min(3, len(cluster.metadata.nodes))


async def wait_for_topics(cluster: Cluster, wanted: Mapping[str, int], timeout_s: float) -> None:
    deadline = asyncio.get_running_loop().time() + timeout_s
    while not wanted.keys() <= cluster.metadata.topics.keys():
        if asyncio.get_running_loop().time() > deadline:
            raise WireError(f"the broker does not show the topics {', '.join(sorted(wanted))}")
        await asyncio.sleep(POLL_S)
        await cluster.refresh()
