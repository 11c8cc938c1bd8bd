"""`rebalance-lab broker up`: bad input in one line; a cluster that is there as long as the command is."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest

from tests.api.conftest import Run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--provider", "podman"), "unknown provider 'podman'"),
        (("--nodes", "2"), "it must be 1 or 3"),
        (("--nodes", "many"), "many"),
        (("--provider", "jvm", "--kafka-version", "latest"), "latest"),
        (("--provider", "external", "--bootstrap", "127.0.0.1:1"), "127.0.0.1:1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(run: Run, arguments: tuple[str, ...], message: str) -> None:
    ended = run("broker", "up", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1


def test_what_an_extra_brings_is_named_when_it_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    ended = run("broker", "up", "--provider", "mock")
    assert (ended.code, ended.out) == (2, "")
    assert "pip install 'rebalance-lab[kafka]'" in ended.err


@pytest.mark.parametrize("ends_with", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_cluster_is_held_until_the_signal_and_clients_find_it(ends_with: signal.Signals) -> None:
    from confluent_kafka.admin import AdminClient

    command = [sys.executable, "-m", "rebalance_lab.api.cli", "broker", "up", "--provider", "mock", "--nodes", "3"]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        bootstrap = holder.stdout.readline().strip()
        assert len(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).brokers) == 3
        holder.send_signal(ends_with)
        assert holder.wait(timeout=30) == 0
    finally:
        holder.kill()
        holder.communicate()


def test_java_too_old_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]) -> None:
    old = os.path.join(tmp_path, "java")
    with open(old, "w") as script:
        script.write("#!/bin/sh\necho 'openjdk version \"1.8.0_412\"' >&2\n")
    os.chmod(old, 0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.path.dirname(shutil.which('sh') or '/bin/sh')}")
    ended = run("broker", "up", "--provider", "jvm")
    assert (ended.code, ended.out) == (2, "")
    assert "Java 8" in ended.err
    assert "too old" in ended.err
