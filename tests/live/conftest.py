"""Brokers for these tests: one node that can refuse, and three that can fail; each started when first asked for."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from harness.brokers import BrokerConfig, BrokerError, Cluster, start

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


def cluster_of(nodes: int, config: BrokerConfig) -> Iterator[Cluster]:
    try:
        cluster = start("jvm", nodes=nodes, config=config)
    except BrokerError as error:
        pytest.skip(f"no broker can be had here: {error}; this turns off the tests on real brokers")
    with cluster:
        yield cluster


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
