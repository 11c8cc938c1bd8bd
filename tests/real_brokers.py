"""A real cluster for as long as a fixture lives, or a skip that says why there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rebalance_lab.harness.kafka.brokers import BrokerConfig, BrokerError, Cluster, start


def cluster_of(nodes: int, config: BrokerConfig | None = None) -> Iterator[Cluster]:
    try:
        cluster = start("jvm", nodes=nodes, config=config)
    except BrokerError as error:
        pytest.skip(f"no broker can be had here: {error}; this turns off the tests on real brokers")
    with cluster:
        yield cluster
