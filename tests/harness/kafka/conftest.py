"""Brokers for these tests: one node that can refuse, and three that can fail; each started when first asked for."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from rebalance_lab.harness.kafka.brokers import BrokerConfig, Cluster
from tests.real_brokers import cluster_of

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="session")
def node() -> Iterator[Cluster]:
    yield from cluster_of(1, BrokerConfig(extra=AUTHORIZER))


@pytest.fixture(scope="session")
def three_nodes() -> Iterator[Cluster]:
    yield from cluster_of(3, BrokerConfig(broker_session_timeout_ms=3_000))


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
