"""Brokers for these tests: one node with short timers, and three nodes; each started once, when first asked for."""

from __future__ import annotations

import pytest

from tests.harness.kafka.wire.differential import CONFIG
from tests.real_brokers import cluster_of


@pytest.fixture(scope="session")
def broker():
    """A single node, set up as the differential test wants it."""
    yield from cluster_of(1, CONFIG)
