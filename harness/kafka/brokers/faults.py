"""Inject faults into single nodes, for the providers that run their nodes themselves.

Given      a provider's six verbs on one node: launch, terminate, kill, freeze, thaw, and a check that it lives
Returns    the Cluster that callers see: faults that make sense are injected, others refused, readiness waited for
Invariant  a node is running, paused or down, and only what is meant to run is waited for
Start at   NodesCluster; STATES_FOR is the whole state machine
"""

from __future__ import annotations

from abc import abstractmethod
from enum import Enum
from typing import TYPE_CHECKING

from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError, Cluster
from rebalance_lab.harness.kafka.brokers.probe import READY_WITHIN_S, wait_for_coordinator, wait_for_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable


class State(Enum):
    RUNNING = "running"
    PAUSED = "paused"
    DOWN = "down"


STATES_FOR = {
    "stop": (State.RUNNING,),  # a paused node could not leave in good order
    "kill": (State.RUNNING, State.PAUSED),
    "pause": (State.RUNNING,),
    "resume": (State.PAUSED,),
    "restart": (State.RUNNING, State.PAUSED, State.DOWN),
}


class NodesCluster(Cluster):
    """Run nodes 1, 2, ... at the addresses given; all are down until a subclass launches them."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self._addresses = dict(enumerate(addresses, start=1))
        self._states = dict.fromkeys(self._addresses, State.DOWN)
        if len(self._addresses) == 1:
            self.lacks = {"fail-over": "a single node has nobody to fail over to"}

    @abstractmethod
    def _launch(self, node: int) -> None: ...

    @abstractmethod
    def _terminate(self, node: int) -> None:
        """Stop the node in order, and return when it is down."""

    @abstractmethod
    def _kill(self, node: int) -> None:
        """Kill the node at once, also a frozen one, and return when it is down."""

    @abstractmethod
    def _freeze(self, node: int) -> None: ...

    @abstractmethod
    def _thaw(self, node: int) -> None: ...

    @abstractmethod
    def _check_alive(self, node: int) -> None:
        """Raise a BrokerError with the node's last words if it has ended by itself: waiting for it would be in vain."""

    @property
    def bootstrap(self) -> str:
        return ",".join(self._addresses.values())

    @property
    def node_ids(self) -> tuple[int, ...]:
        return tuple(self._addresses)

    def start(self) -> None:
        for node in self.node_ids:
            self._launch(node)
            self._states[node] = State.RUNNING
        self.wait_ready()

    def stop(self, node: int) -> None:
        self._check("stop", node)
        self._terminate(node)
        self._states[node] = State.DOWN

    def kill(self, node: int) -> None:
        self._check("kill", node)
        self._kill(node)
        self._states[node] = State.DOWN

    def pause(self, node: int) -> None:
        self._check("pause", node)
        self._freeze(node)
        self._states[node] = State.PAUSED

    def resume(self, node: int) -> None:
        self._check("resume", node)
        self._thaw(node)
        self._states[node] = State.RUNNING

    def restart(self, node: int) -> None:
        self._check("restart", node)
        if self._states[node] is State.PAUSED:
            self.resume(node)
        if self._states[node] is State.RUNNING:
            self.stop(node)
        self._launch(node)
        self._states[node] = State.RUNNING
        self.wait_ready()

    def _check(self, verb: str, node: int) -> None:
        if node not in self._states:
            raise BrokerError(f"cannot {verb} node {node}: the cluster has {', '.join(map(str, self._states))}")
        if self._states[node] not in STATES_FOR[verb]:
            raise BrokerError(f"cannot {verb} node {node}: it is {self._states[node].value}")

    def coordinator_of(self, group: str, timeout_s: float = READY_WITHIN_S) -> int:
        running = self._running()
        return wait_for_coordinator(group, running.values(), set(running), timeout_s)

    def wait_ready(self, timeout_s: float = READY_WITHIN_S) -> None:
        running = self._running()

        def check_alive() -> None:
            for node in running:
                self._check_alive(node)

        in_sync = len(running) == len(self._addresses)
        wait_for_nodes(running, timeout_s, alive=check_alive, in_sync=in_sync)

    def _running(self) -> dict[int, str]:
        return {node: address for node, address in self._addresses.items() if self._states[node] is State.RUNNING}
