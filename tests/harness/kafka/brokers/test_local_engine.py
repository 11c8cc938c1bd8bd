"""The Docker engine of our own: it serves a cluster, and goes with its owner without a trace."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rebalance_lab.harness.kafka.brokers import BrokerError
from rebalance_lab.harness.kafka.brokers.processes import local_engine
from rebalance_lab.harness.kafka.brokers.providers import containers

from . import leftovers

OWNER = """
from rebalance_lab.harness.kafka.brokers import hold
from rebalance_lab.harness.kafka.brokers.processes import local_engine
from tools import local_image
with local_engine.local_engine():
    image = local_image.build().rpartition(":")[0]
    import os
    os.environ["REBALANCE_LAB_KAFKA_IMAGE"] = image
    hold.hold(lambda cluster: print(cluster.run_id, flush=True), provider="testcontainers")
"""
GONE_WITHIN_S = 20.0


@pytest.fixture
def owner(kafka_processes, monkeypatch):
    """A process with an engine of its own and a cluster on it; yields it with the cluster's run id."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    if reason := local_engine.missing():
        pytest.skip(f"{reason}; this turns off the tests of the lab's own engine")
    try:
        containers.connect().close()
    except BrokerError:
        pass
    else:
        pytest.skip("an engine answers on this machine, so the lab starts none of its own")
    process = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.xdist_group("testcontainers")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_engine_and_all_it_ran_go_with_their_owner(owner, number):
    process, run_id = owner
    bridge = f"/sys/class/net/{containers.bridge_name(run_id)}"

    def left():
        mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if f"docker-{process.pid}-" in line]
        found = leftovers.processes("docker", process.pid) + leftovers.folders("docker", process.pid) + mounts
        return found + [bridge] * Path(bridge).exists()

    assert any("dockerd" in line for line in left())
    assert bridge in left()
    process.send_signal(number)
    process.wait(timeout=GONE_WITHIN_S)
    deadline = time.monotonic() + GONE_WITHIN_S
    while remains := left():
        assert time.monotonic() < deadline, f"still there: {remains}"
        time.sleep(0.1)


@pytest.mark.xdist_group("testcontainers")
def test_the_command_runs_another_with_an_engine_and_hands_back_its_exit_code(engine_image):
    code = "import docker, sys; docker.from_env().ping(); sys.exit(7)"
    command = [
        sys.executable,
        "-m",
        "rebalance_lab.harness.kafka.brokers.processes.local_engine",
        "--",
        sys.executable,
        "-c",
        code,
    ]
    assert subprocess.run(command).returncode == 7
