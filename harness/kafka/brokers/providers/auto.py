"""Choose a provider: `auto` takes the first that can serve, and says why it passed over the others.

The order is from the most real to the least demanding: the address you configured, the official image, Kafka's own
artifacts as processes, and librdkafka's mock cluster, which is always there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError, Cluster
from rebalance_lab.harness.kafka.brokers.providers import containers, external, jvm, mock

if TYPE_CHECKING:
    from rebalance_lab.harness.kafka.brokers.cluster_config import BrokerConfig


def start(
    *, nodes: int = 1, config: BrokerConfig | None = None, kafka_version: str | None = None, port: int | None = None
) -> Cluster:
    """Start the first that can serve; the cluster's `choice` tells what was taken and why."""
    provider, passed_over = choose(config=config, kafka_version=kafka_version, port=port)
    cluster: Cluster
    match provider:
        case "external":
            cluster = external.start(config=config, kafka_version=kafka_version, port=port)
        case "testcontainers":
            cluster = containers.start(nodes=nodes, config=config, kafka_version=kafka_version, port=port)
        case "jvm":
            cluster = jvm.start(nodes=nodes, config=config, kafka_version=kafka_version, port=port)
        case _:
            cluster = mock.start(nodes=nodes)
    cluster.choice = f"took {provider}" + "".join(f"; not {name}: {reason}" for name, reason in passed_over.items())
    return cluster


def choose(
    *, config: BrokerConfig | None = None, kafka_version: str | None = None, port: int | None = None
) -> tuple[str, dict[str, str]]:
    """Return the provider's name, and the reason for each that was passed over."""
    # A user who configured an address means it: if it does not answer, that is an error and no reason to go on.
    if external.configured() is not None:
        return "external", {}
    passed_over = {"external": external.available() or ""}
    for name, reason in (
        ("testcontainers", containers.available),
        ("jvm", jvm.available),
    ):
        why_not = reason(kafka_version)
        if why_not is None:
            return name, passed_over
        passed_over[name] = why_not
    passed_over["mock"] = mock.available() or mock.cannot(config=config, kafka_version=kafka_version, port=port) or ""
    if passed_over["mock"]:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in passed_over.items())
        raise BrokerError(f"no provider can serve a cluster: {reasons}")
    del passed_over["mock"]
    return "mock", passed_over
