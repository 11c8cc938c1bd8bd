"""Brokers for these tests: one node with short timers, and three nodes; each started once, when first asked for."""

from __future__ import annotations

import pytest

from harness.brokers import BrokerConfig, BrokerError, start
from tests.wire.differential import CONFIG


def cluster_of(nodes: int, config: BrokerConfig):
    try:
        cluster = start("jvm", nodes=nodes, config=config)
    except BrokerError as error:
        pytest.skip(f"no broker can be had here: {error}; this turns off the tests on real brokers")
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def broker():
    """A single node, set up as the differential test wants it."""
    yield from cluster_of(1, CONFIG)
