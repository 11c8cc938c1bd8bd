"""Run `rebalance-lab broker up`: a real cluster for as long as the command runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rebalance_lab.api.terminal import BadInput, print_json

if TYPE_CHECKING:
    from rebalance_lab.harness.kafka.brokers.cluster_interface import Cluster


def broker_up_command(
    provider: str, nodes: int, kafka_version: str | None, port: int | None, bootstrap: str | None, *, as_json: bool
) -> None:
    from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError
    from rebalance_lab.harness.kafka.brokers.hold import hold

    def ready(cluster: Cluster) -> None:
        if as_json:
            print_json({"bootstrap": cluster.bootstrap, "provider": cluster.provider, "choice": cluster.choice})
        else:
            print(cluster.bootstrap)
            sys.stderr.write(f"{cluster.choice}\nCtrl-C ends it.\n")
        sys.stdout.flush()

    try:
        hold(ready, provider=provider, nodes=nodes, kafka_version=kafka_version, port=port, bootstrap=bootstrap)
    except BrokerError as error:
        raise BadInput(str(error)) from error
