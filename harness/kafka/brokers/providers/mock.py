"""Start librdkafka's in-process cluster, the real protocol without a server: the `mock` provider.

It is the embedded default: confluent-kafka alone is enough, and it is there at once. The cluster lives inside one
librdkafka client handle; other clients, also of other processes, reach it by its bootstrap address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError, Cluster
from rebalance_lab.harness.kafka.brokers.probe import wait_for_coordinator

if TYPE_CHECKING:
    from rebalance_lab.harness.kafka.brokers.cluster_config import BrokerConfig

LACKS = {
    "faults": "its nodes are threads of this process: none can be stopped, killed or paused",
    "fail-over": "its nodes cannot fail",
    "durable": "records live in memory only",
    "server-assignors": "KIP-848 targets come from librdkafka's own simple assignor",
    "config": "broker settings have no effect on it",
    "create-topics": "it has no CreateTopics request; topics appear with four partitions when first used",
}


def available() -> str | None:
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        return "confluent-kafka is not installed (pip install 'rebalance-lab[kafka]')"
    return None


def cannot(*, config: BrokerConfig | None, kafka_version: str | None, port: int | None) -> str | None:
    """Return why it cannot do what is asked, or None: a setting without effect is refused rather than dropped in
    silence.
    """
    given = {"broker settings": config, "Kafka version": kafka_version, "port": port}
    return next((f"it takes no {what}" for what, value in given.items() if value is not None), None)


def start(
    *, nodes: int = 1, config: BrokerConfig | None = None, kafka_version: str | None = None, port: int | None = None
) -> MockCluster:
    if reason := available() or cannot(config=config, kafka_version=kafka_version, port=port):
        raise BrokerError(f"provider mock cannot serve: {reason}")
    return MockCluster(nodes)


class MockCluster(Cluster):
    provider = "mock"
    kafka_version = None
    lacks = LACKS

    def __init__(self, nodes: int) -> None:
        from confluent_kafka import Producer

        self._host: Producer | None = Producer({"test.mock.num.brokers": nodes, "log_level": 0})
        self._addresses: dict[int, str] = {}
        self.wait_ready()

    @property
    def bootstrap(self) -> str:
        return ",".join(self._addresses.values())

    @property
    def node_ids(self) -> tuple[int, ...]:
        return tuple(sorted(self._addresses))

    def coordinator_of(self, group: str, timeout_s: float = 10.0) -> int:
        return wait_for_coordinator(group, self._addresses.values(), set(self._addresses), timeout_s)

    def wait_ready(self, timeout_s: float = 10.0) -> None:
        from confluent_kafka import KafkaException

        if self._host is None:
            raise BrokerError("the cluster is closed")
        try:
            brokers = self._host.list_topics(timeout=timeout_s).brokers
        except KafkaException as error:
            raise BrokerError(f"librdkafka's mock cluster does not answer: {error}") from error
        self._addresses = {node: f"{broker.host}:{broker.port}" for node, broker in brokers.items()}

    def close(self) -> None:
        # The cluster ends with the last reference to the client that hosts it.
        self._host = None
        self._addresses = {}
