"""Run Apache Kafka's own artifacts as processes of this machine: the `jvm` provider.

Given      Java 17+, and Maven for the first run of a Kafka version (../processes/artifacts.py)
Returns    a KRaft cluster of combined nodes (broker and controller in one) on 127.0.0.1
Invariant  processes and run folder go with the cluster, or with the Python process that owns it
           (../processes/owned_process.py)
Start at   start; faults are signals, and what they mean for a cluster is in ../faults.py
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import uuid
from typing import TYPE_CHECKING

from rebalance_lab.harness.kafka.brokers.cluster_config import BrokerConfig, as_properties_file
from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError
from rebalance_lab.harness.kafka.brokers.faults import NodesCluster
from rebalance_lab.harness.kafka.brokers.ports import HOST, client_ports, free_ports
from rebalance_lab.harness.kafka.brokers.processes.artifacts import cached_folder, kafka_jars
from rebalance_lab.harness.kafka.brokers.processes.java import find_java
from rebalance_lab.harness.kafka.brokers.processes.owned_process import KeptProcess, RunFolder
from rebalance_lab.harness.kafka.brokers.start_failures import last_words
from rebalance_lab.harness.kafka.brokers.versions import kafka_version as resolve_version

if TYPE_CHECKING:
    from pathlib import Path

JVM_FLAGS = ("-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.awt.headless=true")
"""Quick to start and small, which a lab wants; a broker under load would want the opposite."""

STOP_WITHIN_S = 30.0

LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %m (%c{1})%n
"""


def available(kafka_version: str | None = None) -> str | None:
    """Return why this machine cannot serve, or None; look only, fetch nothing."""
    try:
        find_java()
        version = resolve_version(kafka_version)
    except BrokerError as error:
        return str(error)
    if not cached_folder(version).is_dir() and shutil.which("mvn") is None:
        return "no mvn on the PATH, and Kafka's artifacts have not been fetched before"
    return None


def start(
    *, nodes: int = 1, config: BrokerConfig | None = None, kafka_version: str | None = None, port: int | None = None
) -> JvmCluster:
    version = resolve_version(kafka_version)
    settings = config or BrokerConfig()
    java = find_java()
    ports = client_ports(nodes, port)
    properties = [
        settings.properties(node=node, nodes=nodes) for node in range(1, nodes + 1)
    ]  # refuses before it fetches
    jars = kafka_jars(version)
    cluster = JvmCluster(java=java, jars=jars, version=version, ports=ports, properties=properties)
    try:
        cluster.start()
    except BaseException:
        cluster.close()
        raise
    return cluster


class JvmCluster(NodesCluster):
    provider = "jvm"

    def __init__(
        self, *, java: str, jars: list[Path], version: str, ports: list[int], properties: list[dict[str, str]]
    ) -> None:
        super().__init__(f"{HOST}:{port}" for port in ports)
        self.kafka_version = version
        self._folder = RunFolder("jvm")
        self.run_id = self._folder.path.name
        self._processes: dict[int, KeptProcess] = {}
        self._java = [java, *JVM_FLAGS, "-cp", os.pathsep.join(map(str, jars))]
        self._write_files(ports, properties)

    def _write_files(self, ports: list[int], properties: list[dict[str, str]]) -> None:
        controllers = free_ports(len(ports))
        voters = ",".join(f"{node}@{HOST}:{port}" for node, port in enumerate(controllers, start=1))
        for node, (port, controller, settings) in enumerate(zip(ports, controllers, properties, strict=True), start=1):
            where = {
                "process.roles": "broker,controller",
                "node.id": str(node),
                "controller.quorum.voters": voters,
                "listeners": f"CLIENT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
                "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "inter.broker.listener.name": "CLIENT",
                "controller.listener.names": "CONTROLLER",
                "log.dirs": str(self._data(node)),
            }
            self._file(node).write_text(as_properties_file({**where, **settings}))
        (self._folder.path / "log4j2.properties").write_text(LOGGING)

    def _file(self, node: int) -> Path:
        return self._folder.path / f"node-{node}.properties"

    def _data(self, node: int) -> Path:
        return self._folder.path / f"node-{node}"

    def start(self) -> None:
        self._format()
        super().start()

    def _format(self) -> None:
        """Format node 1 by Kafka's own tool; the others' storage differs in two ids only, and each JVM costs 1.3 s."""
        cluster_id = _kafka_uuid()
        tool = [*self._java, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self._file(1))]
        done = subprocess.run(tool, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise BrokerError(
                f"Kafka {self.kafka_version} could not format its storage: {last_words(done.stderr or done.stdout)}"
            )
        bootstrap = (self._data(1) / "bootstrap.checkpoint").read_bytes()
        for node in self.node_ids[1:]:
            self._data(node).mkdir()
            (self._data(node) / "bootstrap.checkpoint").write_bytes(bootstrap)
            ids = {"version": "1", "cluster.id": cluster_id, "node.id": str(node), "directory.id": _kafka_uuid()}
            (self._data(node) / "meta.properties").write_text(as_properties_file(ids))

    def _launch(self, node: int) -> None:
        logging = f"-Dlog4j2.configurationFile={self._folder.path / 'log4j2.properties'}"
        self._processes[node] = KeptProcess(
            [*self._java, logging, "kafka.Kafka", str(self._file(node))],
            folder=self._folder.path,
            log=self._folder.path / f"node-{node}.log",
        )

    def _terminate(self, node: int) -> None:
        self._processes[node].signal(signal.SIGTERM)
        # The last voter of a quorum cannot hand anything over and may wait for minutes: it is then killed.
        self._processes[node].wait(STOP_WITHIN_S)
        self._kill(node)

    def _kill(self, node: int) -> None:
        self._processes[node].kill()

    def _freeze(self, node: int) -> None:
        self._processes[node].freeze()

    def _thaw(self, node: int) -> None:
        self._processes[node].thaw()

    def _check_alive(self, node: int) -> None:
        process = self._processes[node]
        if not process.alive:
            raise BrokerError(f"node {node} of Kafka {self.kafka_version} ended: {process.last_words()}")

    def close(self) -> None:
        # No orderly shutdown: the storage goes with it, and the last of three nodes would wait for a quorum.
        for process in self._processes.values():
            process.signal(signal.SIGKILL)
        for process in self._processes.values():
            process.kill()
        self._processes.clear()
        self._folder.remove()


def _kafka_uuid() -> str:
    """Make a random id in Kafka's form; its tools take a leading dash for an option."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text
