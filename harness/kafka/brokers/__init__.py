"""Start a running Kafka cluster behind one small interface.

    with rebalance_lab.harness.kafka.brokers.start(nodes=3) as cluster:
        print(cluster.bootstrap, cluster.choice)
        cluster.kill(cluster.coordinator_of("orders"))

cluster_interface.py  Cluster, BrokerError: what every provider offers
cluster_config.py     BrokerConfig: the settings that decide how groups behave
versions.py           which Kafka, which image: the one place
providers/            ways to have a cluster; providers/auto.py takes the first that can serve
processes/            what providers run: Kafka's artifacts, processes with an owner, a Docker engine
faults.py, probe.py   what stop, kill, pause and restart mean; is a node ready, which node coordinates
hold.py               a cluster until Ctrl-C: `rebalance-lab broker up`
ports.py              free ports for nodes; start_failures.py reads the log of a node that did not start

Importing this package imports neither confluent-kafka nor testcontainers: each provider does when it starts.
"""

from rebalance_lab.harness.kafka.brokers.cluster_config import BrokerConfig
from rebalance_lab.harness.kafka.brokers.cluster_interface import FEATURES, BrokerError, Cluster

PROVIDERS = ("auto", "external", "testcontainers", "jvm", "mock")
NODE_COUNTS = (1, 3)
"""One node is quick; three are the smallest cluster that survives a dead node. Two would survive nothing."""

__all__ = ["FEATURES", "NODE_COUNTS", "PROVIDERS", "BrokerConfig", "BrokerError", "Cluster", "start"]


def start(
    provider: str = "auto",
    *,
    nodes: int = 1,
    config: BrokerConfig | None = None,
    kafka_version: str | None = None,
    port: int | None = None,
    bootstrap: str | None = None,
) -> Cluster:
    """Start a cluster and wait until it is ready; what cannot be had is a BrokerError of one line.

    `port` is the first node's client port (the next ones follow); `bootstrap` is for `external` only.
    """
    if provider not in PROVIDERS:
        raise BrokerError(f"unknown provider {provider!r}: it must be one of {', '.join(PROVIDERS)}")
    if nodes not in NODE_COUNTS:
        raise BrokerError(f"a cluster of {nodes} nodes is not offered: it must be 1 or 3")
    if kafka_version is not None:
        from rebalance_lab.harness.kafka.brokers.versions import kafka_version as check_version

        check_version(kafka_version)
    if bootstrap is not None and provider not in ("external", "auto"):
        raise BrokerError(f"a bootstrap address is for provider external, not for {provider}")

    from rebalance_lab.harness.kafka.brokers.providers import auto, containers, external, jvm, mock

    match "external" if bootstrap is not None else provider:
        case "external":
            return external.start(bootstrap=bootstrap, config=config, kafka_version=kafka_version, port=port)
        case "testcontainers":
            return containers.start(nodes=nodes, config=config, kafka_version=kafka_version, port=port)
        case "jvm":
            return jvm.start(nodes=nodes, config=config, kafka_version=kafka_version, port=port)
        case "mock":
            return mock.start(nodes=nodes, config=config, kafka_version=kafka_version, port=port)
        case _:
            return auto.start(nodes=nodes, config=config, kafka_version=kafka_version, port=port)
