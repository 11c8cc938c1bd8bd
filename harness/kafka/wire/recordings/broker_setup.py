"""Prepare a broker for a comparison: read its settings, and create the topics of the sequence.

Given      a bootstrap address; topics with their partitions
Returns    the settings that a coordinator obeys, as the broker has them; topics that are missing are created
Errors     WireError in one line: no broker, no permission, a topic of another size
Through    confluent-kafka's AdminClient
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from rebalance_lab.harness.hosts.served_protocols import PROTOCOLS
from rebalance_lab.harness.kafka.wire.addresses import WireError

TIMEOUT_S = 10.0
SERVED = PROTOCOLS["consumer"]


def kafka_admin() -> Any:
    """Import the module when it is needed, and untyped: it exports more than its stubs say."""
    return import_module("confluent_kafka.admin")


def admin_of(bootstrap: str) -> Any:
    """Return an AdminClient to hold until its futures are done: they fail when it is collected."""
    return kafka_admin().AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "socket.timeout.ms": 5_000})


def broker_settings(bootstrap: str, node: int) -> dict[str, Any]:
    """Return the settings that our coordinators know, by Kafka's names."""
    resource = kafka_admin().ConfigResource(kafka_admin().ResourceType.BROKER, str(node))
    admin = admin_of(bootstrap)
    future = admin.describe_configs([resource], request_timeout=TIMEOUT_S)[resource]
    entries = result_of(future, f"the settings of node {node}")
    found = {name: entries[name].value for name in SERVED.properties if name in entries}
    return {name: read_setting(name, value) for name, value in found.items()}


def read_setting(name: str, value: str) -> Any:
    if name in SERVED.words:
        return value
    return list(SERVED.lists[name].read(value)) if name in SERVED.lists else int(value)


def ensure_topics(bootstrap: str, wanted: Mapping[str, int], there: Mapping[str, int], replicas: int) -> None:
    """Create missing topics; `there` are the cluster's own, with their partitions."""
    for name, partitions in wanted.items():
        if name in there and there[name] != partitions:
            raise WireError(f"topic {name} has {there[name]} partitions on the broker, not {partitions}")
    new_topic = kafka_admin().NewTopic
    missing = [new_topic(name, partitions, replicas) for name, partitions in wanted.items() if name not in there]
    if missing:
        admin = admin_of(bootstrap)
        for name, future in admin.create_topics(missing, operation_timeout=TIMEOUT_S).items():
            result_of(future, f"topic {name}")


def delete_topics(bootstrap: str, names: Sequence[str]) -> None:
    if names:
        admin = admin_of(bootstrap)
        for name, future in admin.delete_topics(list(names), operation_timeout=TIMEOUT_S).items():
            result_of(future, f"topic {name}")


def result_of(future: Any, what: str) -> Any:
    from confluent_kafka import KafkaException

    try:
        return future.result(timeout=2 * TIMEOUT_S)
    except (KafkaException, TimeoutError) as error:
        reason = error.args[0].str() if isinstance(error, KafkaException) else "no answer"
        raise WireError(f"{what}: {reason}") from None
