"""A cluster goes with the process that owns it, whether that is asked to end or killed on the spot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from . import leftovers

HOLDER = """
from rebalance_lab.harness.kafka.brokers.hold import hold
hold(lambda cluster: print(cluster.bootstrap, getattr(cluster, "run_id", ""), flush=True), provider={provider!r})
"""
GONE_WITHIN_S = 20.0


@contextmanager
def holder(provider):
    """A Python process that holds a one-node cluster."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER.format(provider=provider)], stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def wait_until_gone(found) -> None:
    deadline = time.monotonic() + GONE_WITHIN_S
    while left := found():
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.1)


def of_processes(owner):
    return lambda: leftovers.processes("jvm", owner) + leftovers.folders("jvm", owner)


@pytest.mark.xdist_group("jvm")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_held_cluster_is_closed_in_good_order_by_a_signal(number, kafka_processes):
    with holder("jvm") as process:
        assert process.stdout.readline().startswith("127.0.0.1:")
        assert leftovers.processes("jvm", process.pid)  # what is asserted to be gone below was seen before
        process.send_signal(number)
        assert process.wait(timeout=GONE_WITHIN_S) == 0
        assert of_processes(process.pid)() == []  # at once: the cluster was closed before the process ended


@pytest.mark.xdist_group("jvm")
def test_a_signal_in_the_middle_of_a_start_leaves_nothing(kafka_processes):
    with holder("jvm") as process:
        deadline = time.monotonic() + GONE_WITHIN_S
        while not any("kafka.Kafka" in line or "keeper.py" in line for line in leftovers.processes("jvm", process.pid)):
            assert time.monotonic() < deadline, "the broker process did not appear"
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=GONE_WITHIN_S) == 0
        wait_until_gone(of_processes(process.pid))


@pytest.mark.xdist_group("jvm")
def test_brokers_and_their_folder_die_with_an_owner_that_is_killed(kafka_processes):
    with holder("jvm") as process:
        assert process.stdout.readline()
        assert leftovers.processes("jvm", process.pid)
        assert leftovers.folders("jvm", process.pid)
        process.kill()
        process.wait()
        wait_until_gone(of_processes(process.pid))


@pytest.mark.xdist_group("jvm")
def test_what_even_the_keepers_left_is_swept_away_by_the_next_run(kafka_processes):
    from rebalance_lab.harness.kafka.brokers.processes.owned_process import RunFolder

    with holder("jvm") as process:
        assert process.stdout.readline()
        for each in keepers_of(process.pid):
            os.kill(each, signal.SIGSTOP)  # as if the whole machine had lost power: nobody is left to clean up
        process.kill()
        process.wait()
        assert leftovers.folders("jvm", process.pid)
        try:
            RunFolder("jvm").remove()
            assert leftovers.folders("jvm", process.pid) == []
        finally:
            for each in keepers_of(process.pid):
                os.kill(each, signal.SIGCONT)
        wait_until_gone(of_processes(process.pid))


def keepers_of(owner: int) -> list[int]:
    listed = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    mark = f"rebalance-lab-jvm-{owner}-"
    return [int(line.split()[0]) for line in listed.splitlines() if "keeper.py" in line and mark in line]


@pytest.mark.xdist_group("testcontainers")
def test_containers_and_their_network_die_with_an_owner_that_is_killed(engine_image, monkeypatch):
    monkeypatch.setenv("REBALANCE_LAB_KAFKA_IMAGE", engine_image)
    with holder("testcontainers") as process:
        _, run_id = process.stdout.readline().split()
        assert len(leftovers.containers_and_networks(run_id)) == 2
        process.kill()
        process.wait()
        wait_until_gone(lambda: leftovers.containers_and_networks(run_id))
