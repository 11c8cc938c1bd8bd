"""Connect to a cluster that the user runs, by its bootstrap address: the `external` provider.

The provider is only a client: it starts, configures and breaks nothing there.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError, Cluster
from rebalance_lab.harness.kafka.brokers.probe import READY_WITHIN_S, metadata, wait_for_coordinator, wait_for_nodes

if TYPE_CHECKING:
    from rebalance_lab.harness.kafka.brokers.cluster_config import BrokerConfig

BOOTSTRAP_VARIABLE = "REBALANCE_LAB_BOOTSTRAP"

LACKS = {
    "faults": "the cluster is somebody else's",
    "fail-over": "the lab cannot make its nodes fail",
    "config": "the cluster is already running with its own settings",
}


def configured(bootstrap: str | None = None) -> str | None:
    return bootstrap or os.environ.get(BOOTSTRAP_VARIABLE) or None


def available(bootstrap: str | None = None) -> str | None:
    address = configured(bootstrap)
    if address is None:
        return f"no address is configured ({BOOTSTRAP_VARIABLE} is not set)"
    try:
        _first_answer(address)
    except BrokerError as error:
        return str(error)
    return None


def start(
    *,
    bootstrap: str | None = None,
    config: BrokerConfig | None = None,
    kafka_version: str | None = None,
    port: int | None = None,
) -> ExternalCluster:
    address = configured(bootstrap)
    if address is None:
        raise BrokerError(f"provider external needs an address: set {BOOTSTRAP_VARIABLE} to host:port")
    given = {"broker settings": config, "Kafka version": kafka_version, "port": port}
    if taken := next((what for what, value in given.items() if value is not None), None):
        raise BrokerError(f"provider external takes no {taken}: the cluster at {address} is already running")
    return ExternalCluster(_first_answer(address))


class ExternalCluster(Cluster):
    provider = "external"
    kafka_version = None
    lacks = LACKS

    def __init__(self, addresses: dict[int, str]) -> None:
        self._addresses = addresses

    @property
    def bootstrap(self) -> str:
        return ",".join(self._addresses.values())

    @property
    def node_ids(self) -> tuple[int, ...]:
        return tuple(sorted(self._addresses))

    def coordinator_of(self, group: str, timeout_s: float = READY_WITHIN_S) -> int:
        return wait_for_coordinator(group, self._addresses.values(), set(self._addresses), timeout_s)

    def wait_ready(self, timeout_s: float = READY_WITHIN_S) -> None:
        wait_for_nodes(self._addresses, timeout_s, alive=lambda: None, in_sync=True)

    def close(self) -> None:
        """Do nothing: no part of this cluster is ours."""


def _first_answer(bootstrap: str) -> dict[int, str]:
    """Return every node's advertised address, from the first address in the list that answers."""
    problems = []
    for address in filter(None, (part.strip() for part in bootstrap.split(","))):
        if not re.fullmatch(r".+:\d{1,5}", address):
            raise BrokerError(f"bootstrap address {address!r} is not host:port")
        try:
            return metadata(address, timeout_s=5.0).nodes
        except OSError as error:
            problems.append(f"{address}: {error}")
    raise BrokerError(f"no broker answers at {'; '.join(problems) or repr(bootstrap)}")
