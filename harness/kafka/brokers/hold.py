"""Hold a cluster until Ctrl-C, as `rebalance-lab broker up` does.

The cluster is closed on the way out of SIGINT and SIGTERM alike, so `broker down` is never needed.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

from rebalance_lab.harness.kafka.brokers import start

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from rebalance_lab.harness.kafka.brokers.cluster_config import BrokerConfig
    from rebalance_lab.harness.kafka.brokers.cluster_interface import Cluster


class _Ended(BaseException):
    """End the hold on a signal. It is not an Exception: a signal in the middle of a start must not look like a
    failure.
    """


def hold(
    on_ready: Callable[[Cluster], None],
    *,
    provider: str = "auto",
    nodes: int = 1,
    config: BrokerConfig | None = None,
    kafka_version: str | None = None,
    port: int | None = None,
    bootstrap: str | None = None,
) -> None:
    """Start, call `on_ready` with the cluster, hold until a signal, close. Raises BrokerError when it cannot start.

    To be called from the main thread, as Python delivers signals there.
    """
    before = {number: signal.signal(number, _end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with start(
            provider, nodes=nodes, config=config, kafka_version=kafka_version, port=port, bootstrap=bootstrap
        ) as cluster:
            on_ready(cluster)
            threading.Event().wait()
    except _Ended:
        return
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    # A second Ctrl-C while closing must not leave half a cluster behind.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Ended
