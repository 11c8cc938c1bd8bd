"""Start the official apache/kafka image on any engine that the Docker API reaches: the `testcontainers` provider.

Given      an engine (DOCKER_HOST is honoured) that has the image or can pull it (../versions.py names it)
Returns    a KRaft cluster of combined nodes on a network of its own, each advertised at a port of the host
Invariant  containers and network carry a label with the run's id. They go with the cluster. If its owner is
           killed, ../processes/container_keeper.py removes what carries that label (so no reaper image is pulled)
Start at   start; a node is KafkaNode, faults are the engine's own: stop, kill, pause

Any KAFKA_* variable makes the image forget its default configuration, so everything is set.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING, Any

from rebalance_lab.harness.kafka.brokers.cluster_config import BrokerConfig, as_environment
from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError
from rebalance_lab.harness.kafka.brokers.faults import NodesCluster
from rebalance_lab.harness.kafka.brokers.ports import HOST, client_ports
from rebalance_lab.harness.kafka.brokers.start_failures import last_words
from rebalance_lab.harness.kafka.brokers.versions import kafka_image
from rebalance_lab.harness.kafka.brokers.versions import kafka_version as resolve_version

if TYPE_CHECKING:
    import docker

EXTERNAL, INTERNAL, CONTROLLER = 9092, 9093, 9094
LABEL = "rebalance-lab.run"
BRIDGE_OPTION = "com.docker.network.bridge.name"
JVM = {
    "KAFKA_HEAP_OPTS": "-Xmx384m",
    "KAFKA_JVM_PERFORMANCE_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.awt.headless=true",
}
STOP_WITHIN_S = 30
ENGINE_ANSWERS_WITHIN_S = 60


def available(kafka_version: str | None = None, image: str | None = None) -> str | None:
    """Return why no container can be started, or None; ask the engine and, for an image it has not got, the
    registry.
    """
    try:
        tag = image_tag(kafka_version, image)
        client = connect()
    except BrokerError as error:
        return str(error)
    from docker.errors import DockerException, ImageNotFound

    try:
        client.images.get(tag)
    except ImageNotFound:
        try:
            client.images.get_registry_data(tag)
        except DockerException as error:
            return f"image {tag} is not there and cannot be pulled: {_explanation(error)}"
    finally:
        client.close()
    return None


def start(
    *,
    nodes: int = 1,
    config: BrokerConfig | None = None,
    kafka_version: str | None = None,
    image: str | None = None,
    port: int | None = None,
) -> ContainerCluster:
    version = resolve_version(kafka_version)
    tag = image_tag(version, image)
    settings = config or BrokerConfig()
    properties = [settings.properties(node=node, nodes=nodes) for node in range(1, nodes + 1)]
    ports = client_ports(nodes, port)
    client = connect()
    try:
        _have_image(client, tag)
    finally:
        client.close()
    from docker.errors import DockerException

    cluster = ContainerCluster(tag=tag, version=version, ports=ports, properties=properties)
    try:
        cluster.start()
    except DockerException as error:
        cluster.close()
        raise BrokerError(f"the Docker engine could not start {tag}: {_explanation(error)}") from error
    except BaseException:
        cluster.close()
        raise
    return cluster


def image_tag(kafka_version: str | None = None, image: str | None = None) -> str:
    return f"{kafka_image(image)}:{resolve_version(kafka_version)}"


def connect() -> docker.DockerClient:
    """Return a client of the engine that the environment names, once it has answered."""
    try:
        import docker
        import testcontainers  # noqa: F401
    except ImportError as error:
        raise BrokerError("testcontainers is not installed (pip install 'rebalance-lab[containers]')") from error
    try:
        client = docker.from_env(timeout=ENGINE_ANSWERS_WITHIN_S)
        client.ping()
    except docker.errors.DockerException as error:
        where = os.environ.get("DOCKER_HOST") or "its usual socket"
        raise BrokerError(f"no Docker engine answers at {where}: {_root_cause(error)}") from error
    return client


def _have_image(client: docker.DockerClient, tag: str) -> None:
    from docker.errors import DockerException, ImageNotFound

    try:
        client.images.get(tag)
    except ImageNotFound:
        try:
            client.images.pull(tag)
        except DockerException as error:
            raise BrokerError(f"image {tag} is not there and cannot be pulled: {_explanation(error)}") from error


def _root_cause(error: BaseException) -> str:
    """Return the innermost error: a refused connection comes wrapped four times, and only that one tells a reader
    anything.
    """
    while error.__context__ is not None:
        error = error.__context__
    return (getattr(error, "strerror", None) or str(error)).lower()


def _explanation(error: Exception) -> str:
    """Return the engine's own words where there are some: the rest of such an exception is HTTP."""
    return str(getattr(error, "explanation", None) or error)


class ContainerCluster(NodesCluster):
    provider = "testcontainers"

    def __init__(self, *, tag: str, version: str, ports: list[int], properties: list[dict[str, str]]) -> None:
        from testcontainers.core.config import testcontainers_config
        from testcontainers.core.docker_client import DockerClient
        from testcontainers.core.network import Network

        # Our own keeper removes what a killed owner leaves; testcontainers' reaper is one more image to pull.
        testcontainers_config.ryuk_disabled = True
        self.kafka_version = version
        self.run_id = uuid.uuid4().hex[:12]
        host = _reachable_host(DockerClient())
        super().__init__(f"{host}:{port}" for port in ports)
        self._keeper = _start_keeper(self.run_id)
        self._network = Network(
            docker_network_kw={"labels": {LABEL: self.run_id}, "options": {BRIDGE_OPTION: bridge_name(self.run_id)}}
        )
        self._containers: dict[int, Any] = {}
        self._tag = tag
        self._environments = {
            node: {**_where(node, len(ports), self._addresses[node]), **as_environment(settings), **JVM}
            for node, settings in enumerate(properties, start=1)
        }

    def start(self) -> None:
        self._network.create()
        super().start()

    def _launch(self, node: int) -> None:
        if node in self._containers:  # down, with its storage
            self._engine(node).start()
            return
        self._containers[node] = _kafka_node(
            self._tag,
            self._environments[node],
            self._addresses[node],
            network=self._network,
            node=node,
            run_id=self.run_id,
        )
        self._containers[node].start()

    def _terminate(self, node: int) -> None:
        self._engine(node).stop(timeout=STOP_WITHIN_S)

    def _kill(self, node: int) -> None:
        container = self._engine(node)
        container.reload()
        if container.status == "paused":
            container.unpause()  # the engine signals no paused container
        container.kill()
        container.wait(timeout=STOP_WITHIN_S)

    def _freeze(self, node: int) -> None:
        self._engine(node).pause()

    def _thaw(self, node: int) -> None:
        self._engine(node).unpause()

    def _check_alive(self, node: int) -> None:
        container = self._engine(node)
        container.reload()
        if container.status == "exited":
            log = container.logs(tail=100).decode(errors="replace")
            raise BrokerError(f"node {node} of {self._tag} ended: {last_words(log)}")

    def _engine(self, node: int) -> Any:
        return self._containers[node].get_wrapped_container()

    def close(self) -> None:
        # One way out for all ends: the keeper removes what carries our label, and knows what to do without an engine.
        for container in self._containers.values():
            container.get_docker_client().client.close()
        self._containers.clear()
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()
        if self._keeper.wait() != 0:
            raise BrokerError(f"could not remove all containers and networks labelled {LABEL}={self.run_id}")


def bridge_name(run_id: str) -> str:
    """Name the host's interface behind the network, so that it can be found when an engine dies and forgets it."""
    return f"rl-{run_id}"  # 15 characters, the kernel's limit


def _reachable_host(client: Any) -> str:
    """Return where the engine's ports appear: this machine by its IPv4 address (`localhost` may get IPv6's other
    port).
    """
    # Asked for here as well, since testcontainers looks at it only once, when it is first imported.
    host = os.environ.get("TESTCONTAINERS_HOST_OVERRIDE") or str(client.host())
    return HOST if host in ("localhost", "127.0.0.1", "::1") else host


def _where(node: int, nodes: int, address: str) -> dict[str, str]:
    voters = ",".join(f"{each}@kafka{each}:{CONTROLLER}" for each in range(1, nodes + 1))
    listeners = (("EXTERNAL", EXTERNAL), ("INTERNAL", INTERNAL), ("CONTROLLER", CONTROLLER))
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "controller.quorum.voters": voters,
        # Inside its container a node listens everywhere; the engine maps EXTERNAL to one address of the host.
        "listeners": ",".join(f"{name}://0.0.0.0:{port}" for name, port in listeners),
        "advertised.listeners": f"EXTERNAL://{address},INTERNAL://kafka{node}:{INTERNAL}",
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name, _ in listeners),
        "inter.broker.listener.name": "INTERNAL",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": "/tmp/kraft-combined-logs",
    }
    # Any 16 bytes will do, and all nodes need the same: a run has its own network, so clusters never meet.
    return {**as_environment(settings), "CLUSTER_ID": "cmViYWxhbmNlLWxhYi0xMQ"}


def _kafka_node(tag: str, environment: dict[str, str], address: str, *, network: Any, node: int, run_id: str) -> Any:
    """Build the class in a function, so that importing this module does not import testcontainers."""
    from testcontainers.core.container import DockerContainer

    class KafkaNode(DockerContainer):  # type: ignore[misc, unused-ignore]
        """Run a node at a chosen port of the host: ports that the engine draws change with every restart."""

        def __init__(self) -> None:
            super().__init__(tag, env=environment, network=network, network_aliases=[f"kafka{node}"])
            host, _, port = address.rpartition(":")
            bind = host if host == HOST else "0.0.0.0"  # a remote engine's address may not be its interface's
            # docker-py takes a pair; testcontainers' own method for it takes a port alone and would bind everywhere.
            self.ports[f"{EXTERNAL}/tcp"] = (bind, int(port))  # type: ignore[assignment, unused-ignore]
            self.with_kwargs(labels={LABEL: run_id}, hostname=f"kafka{node}")

    return KafkaNode()


def _start_keeper(run_id: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "rebalance_lab.harness.kafka.brokers.processes.container_keeper", run_id]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
