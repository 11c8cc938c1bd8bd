"""What cannot be had is said in one line, and nothing is left running."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading

import pytest

from rebalance_lab.harness.kafka import brokers
from rebalance_lab.harness.kafka.brokers import BrokerConfig, BrokerError
from rebalance_lab.harness.kafka.brokers.processes import artifacts
from tests.paths import ROOT

from . import leftovers


def refusal(*arguments, **keywords) -> str:
    """Clusters that other tests of this process hold may be there before and after."""
    before = [leftovers.processes("jvm"), leftovers.folders("jvm")]
    with pytest.raises(BrokerError) as refused:
        brokers.start(*arguments, **keywords).close()
    assert [leftovers.processes("jvm"), leftovers.folders("jvm")] == before
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.fixture
def port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def only_on_the_path(tmp_path, monkeypatch):
    """Put a script on the PATH before, or instead of, everything else."""

    def put(name: str | None, script: str = "", *, instead: bool = False) -> None:
        if name is not None:
            (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path) if instead else f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.delenv("JAVA_HOME", raising=False)

    return put


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"provider": "zookeeper"},
            "unknown provider 'zookeeper': it must be one of auto, external, testcontainers, jvm",
        ),
        ({"provider": "jvm", "nodes": 0}, "a cluster of 0 nodes is not offered: it must be 1 or 3"),
        ({"provider": "jvm", "nodes": 2}, "a cluster of 2 nodes is not offered: it must be 1 or 3"),
        ({"provider": "jvm", "kafka_version": "latest"}, "unknown Kafka version 'latest': expected three numbers"),
        ({"provider": "jvm", "kafka_version": "../.."}, "unknown Kafka version '../..': expected three numbers"),
        (
            {"provider": "jvm", "kafka_version": "2.8.0"},
            "Kafka version 2.8.0 is too old: the lab runs brokers from 4.0.0",
        ),
        ({"provider": "jvm", "port": 70_000}, "port 70000 is out of range"),
        ({"provider": "mock", "config": BrokerConfig()}, "provider mock cannot serve: it takes no broker settings"),
        ({"provider": "mock", "port": 9092}, "provider mock cannot serve: it takes no port"),
        ({"provider": "external"}, "provider external needs an address: set REBALANCE_LAB_BOOTSTRAP to host:port"),
        ({"provider": "external", "bootstrap": "nowhere"}, "bootstrap address 'nowhere' is not host:port"),
        ({"provider": "jvm", "bootstrap": "a:1"}, "a bootstrap address is for provider external, not for jvm"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(asked, message, monkeypatch):
    monkeypatch.delenv("REBALANCE_LAB_BOOTSTRAP", raising=False)
    assert refusal(**asked).startswith(message)


def test_an_external_address_where_nobody_answers(monkeypatch):
    assert refusal("external", bootstrap="127.0.0.1:1").startswith("no broker answers at 127.0.0.1:1: ")
    monkeypatch.setenv("REBALANCE_LAB_BOOTSTRAP", "127.0.0.1:1")
    assert refusal("auto").startswith("no broker answers at 127.0.0.1:1: ")  # a configured address is not passed over


def test_an_external_address_of_something_else():
    def answer():
        connection, _ = server.accept()
        with connection:
            connection.recv(100)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        web_server = threading.Thread(target=answer)
        web_server.start()
        assert (
            refusal("external", bootstrap=address) == f"no broker answers at {address}: {address} does not speak Kafka"
        )
        web_server.join()


def test_a_kafka_version_that_was_never_released(kafka_processes, tmp_path, monkeypatch):
    monkeypatch.setenv(artifacts.CACHE_VARIABLE, str(tmp_path))
    expected = "unknown Kafka version 4.99.0: Maven knows no org.apache.kafka:kafka_2.13:4.99.0"
    assert refusal("jvm", kafka_version="4.99.0") == expected
    assert [each.name for each in (tmp_path / "kafka").iterdir()] == ["fetch.lock"]


def test_maven_that_fails_is_quoted(only_on_the_path, tmp_path, monkeypatch):
    monkeypatch.setenv(artifacts.CACHE_VARIABLE, str(tmp_path / "cache"))
    only_on_the_path("mvn", "echo '[INFO] so far'; echo '[ERROR] the disk is full'; echo '[ERROR] more'; exit 1")
    with pytest.raises(BrokerError, match=r"mvn could not fetch Kafka 4\.3\.1: the disk is full$"):
        artifacts.kafka_jars("4.3.1")


def test_no_maven_and_nothing_fetched_before(only_on_the_path, tmp_path, monkeypatch):
    monkeypatch.setenv(artifacts.CACHE_VARIABLE, str(tmp_path / "cache"))
    only_on_the_path(None, instead=True)
    with pytest.raises(BrokerError, match="no mvn on the PATH"):
        artifacts.kafka_jars("4.3.1")


@pytest.mark.parametrize("provider", ["jvm", "testcontainers"])
def test_a_port_that_is_taken(provider, port_in_use):
    message = refusal(provider, port=port_in_use)
    assert message == f"port {port_in_use} on 127.0.0.1 cannot be used: address already in use"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            """echo 'openjdk version "11.0.22" 2024-01-16' >&2""",
            "Java 11 at .*/java is too old: .* need Java 17 or later",
        ),
        ("""echo 'java version "1.8.0_412"' >&2""", "Java 8 at .*/java is too old"),
        ("exit 3", "java does not tell its version"),
    ],
)
def test_a_java_that_cannot_run_brokers(script, message, only_on_the_path):
    only_on_the_path("java", script)
    assert re.search(message, refusal("jvm"))


def test_no_java_at_all(only_on_the_path):
    only_on_the_path(None, instead=True)
    with pytest.raises(BrokerError, match="no java on the PATH: install Java 17 or later"):
        brokers.start("jvm")


@pytest.mark.parametrize("setting", ["log.retention.ms", "metric.reporters"])
def test_a_broker_that_does_not_come_up_says_why(setting, kafka_processes):
    """The first is found wrong when the storage is formatted, the second only by the running broker."""
    message = refusal("jvm", config=BrokerConfig(extra={setting: "no.such.Thing"}))
    assert "no.such.Thing" in message


@pytest.mark.xdist_group("testcontainers")
def test_an_image_that_cannot_be_pulled(engine_image, monkeypatch):
    # A registry at a port of this machine where nobody listens: no name is looked up and nothing leaves the machine.
    monkeypatch.setenv("REBALANCE_LAB_KAFKA_IMAGE", "127.0.0.1:1/no/such")
    message = refusal("testcontainers")
    assert message.startswith("image 127.0.0.1:1/no/such:4.3.1 is not there and cannot be pulled: ")
    assert "refused" in message


def test_no_docker_engine(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    expected = f"no Docker engine answers at unix://{tmp_path}/docker.sock: no such file or directory"
    assert refusal("testcontainers") == expected


@pytest.mark.parametrize("module", ["rebalance_lab.harness.kafka.brokers.processes.artifacts", "tools.local_image"])
def test_the_commands_end_with_2_and_one_line(module):
    command = [sys.executable, "-m", module, "--kafka-version", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "unknown Kafka version '1': expected three numbers such as 4.3.1\n"


def test_importing_the_brokers_is_light():
    """The command line imports this package for `broker up` alone; nobody else should pay for it."""
    heavy = "{'confluent_kafka', 'testcontainers', 'docker', 'kio'} & set(sys.modules)"
    code = f"import sys; from rebalance_lab.harness.kafka.brokers import hold; print(sorted({heavy}))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
