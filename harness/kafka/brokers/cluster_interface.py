"""Define what every provider of a Kafka cluster offers, so that a caller need not know which provider it has.

Given      a number of nodes, a BrokerConfig, a Kafka version
Returns    a Cluster: an address to connect to, and faults to inject into single nodes
Invariant  closing a cluster leaves nothing behind: no process, container, network or temp folder
Start at   Cluster; the providers are jvm.py, containers.py, external.py and mock.py in providers/
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self


class BrokerError(Exception):
    """Report that there is no cluster, or that a fault could not be injected, in one line, to show with exit code 2."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class Cluster(ABC):
    """Represent a running Kafka cluster; it is also a context manager that closes it."""

    provider: str
    """Which provider it came from: `jvm`, `testcontainers`, `external` or `mock`."""

    choice: str = "as asked"
    """Which provider was taken and why the others were not, where `auto` chose."""

    kafka_version: str | None
    """What it runs, where the provider knows."""

    lacks: Mapping[str, str] = MappingProxyType({})
    """Features it cannot do, each with the reason: the keys are those of FEATURES."""

    @property
    @abstractmethod
    def bootstrap(self) -> str:
        """Return `host:port,...` of every node, for `bootstrap.servers`; it stays the same when nodes restart."""

    @property
    @abstractmethod
    def node_ids(self) -> tuple[int, ...]: ...

    def stop(self, node: int) -> None:
        """Stop the node in order, with leadership handed over first, and return when it is down."""
        raise self._no_faults("stop", node)

    def kill(self, node: int) -> None:
        """Kill the node with kill -9, and return when it is dead."""
        raise self._no_faults("kill", node)

    def pause(self, node: int) -> None:
        """Pause the node: its connections stay open and no request is answered, as in a long garbage collection."""
        raise self._no_faults("pause", node)

    def resume(self, node: int) -> None:
        raise self._no_faults("resume", node)

    def restart(self, node: int) -> None:
        """Start a stopped or killed node again on its old storage (a running one is stopped first).

        Returns when the cluster is ready, that is as wait_ready does.
        """
        raise self._no_faults("restart", node)

    def _no_faults(self, verb: str, node: int) -> BrokerError:
        return BrokerError(f"cannot {verb} node {node}: provider {self.provider} lacks faults ({self.lacks['faults']})")

    @abstractmethod
    def coordinator_of(self, group: str, timeout_s: float = 120.0) -> int:
        """Return the id of the running node that coordinates this group; wait for a fail-over that is under way."""

    @abstractmethod
    def wait_ready(self, timeout_s: float = 120.0) -> None:
        """Wait until all nodes that should run are in the metadata and every partition is back in full ISR."""

    @abstractmethod
    def close(self) -> None:
        """Remove everything; safe to call twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


FEATURES = {
    "faults": "stop, kill, pause, resume and restart a node",
    "fail-over": "a group goes on when the node that coordinates it dies",
    "durable": "records survive the restart of a node",
    "server-assignors": "target assignments are made by Kafka's own uniform and range assignors",
    "config": "broker settings (BrokerConfig) are applied",
    "create-topics": "topics can be created with a given number of partitions",
}
