"""Kafka's jars: fetched once, complete or not at all, also when two processes want them at the same moment."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rebalance_lab.harness.kafka.brokers.processes import artifacts

FAKE_MVN = """#!/bin/sh
for argument; do case $argument in -DoutputDirectory=*) folder=${argument#*=} ;; esac; done
echo run >> "$CALLS"
mkdir "$folder"
touch "$folder/b.jar"
until [ -e "$GO" ]; do :; done
touch "$folder/a.jar"
"""


@pytest.fixture
def slow_maven(tmp_path, monkeypatch):
    """A Maven that fetches one jar and then waits for the file `go`; each run of it is a line of `calls`."""
    (tmp_path / "mvn").write_text(FAKE_MVN)
    (tmp_path / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("GO", str(tmp_path / "go"))
    monkeypatch.setenv(artifacts.CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path


def test_two_processes_that_want_the_same_version_fetch_it_once(slow_maven):
    command = [
        sys.executable,
        "-m",
        "rebalance_lab.harness.kafka.brokers.processes.artifacts",
        "--kafka-version",
        "4.1.0",
    ]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    folder = artifacts.cached_folder("4.1.0")
    while not (slow_maven / "calls").exists():
        assert all(process.poll() is None for process in both)
    assert not folder.exists()  # one jar of two is there, under another name
    (slow_maven / "go").touch()
    assert [process.communicate(timeout=30)[0] for process in both] == [f"{folder}\n"] * 2
    assert (slow_maven / "calls").read_text() == "run\n"
    assert [jar.name for jar in artifacts.kafka_jars("4.1.0")] == ["a.jar", "b.jar"]
    assert sorted(each.name for each in folder.parent.iterdir()) == ["4.1.0", "fetch.lock"]


def test_a_broker_and_the_java_assignors_are_among_the_jars(kafka_processes):
    names = {jar.name.rpartition("-")[0] for jar in artifacts.kafka_jars()}
    assert {"kafka_2.13", "kafka-clients", "kafka-group-coordinator", "log4j-slf4j-impl"} <= names


def test_without_a_variable_the_users_own_cache_is_used(monkeypatch):
    monkeypatch.delenv(artifacts.CACHE_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert artifacts.cached_folder("4.1.0").parts[-3:] == ("rebalance-lab", "kafka", "4.1.0")
