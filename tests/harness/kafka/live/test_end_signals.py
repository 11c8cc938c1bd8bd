"""A live run that is ended by a signal leaves no process behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rebalance_lab.harness.kafka.brokers import Cluster
from tests.harness.kafka.live.test_live_run import CRASH

pytestmark = pytest.mark.xdist_group("live")
LONG = {**CRASH, "duration": "10m", "timeline": []}
CHILDREN = 3
"""Two consumers and a producer."""


def children_of(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(one) for one in listed.stdout.split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="it looks at /proc")
@pytest.mark.parametrize("command", ["live", "fidelity"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_everything_has_ended_five_seconds_after_a_signal(
    node: Cluster, tmp_path: Path, command: str, number: signal.Signals
) -> None:
    (tmp_path / "long.json").write_text(json.dumps(LONG))
    strategy = ("--strategies" if command == "fidelity" else "--strategy", "classic/range")
    arguments = [command, str(tmp_path / "long.json"), *strategy, "--bootstrap", node.bootstrap]
    process = subprocess.Popen([sys.executable, "-m", "rebalance_lab", *arguments], stderr=subprocess.PIPE, text=True)
    children: list[int] = []
    try:
        begun = time.monotonic()
        while len(children := children_of(process.pid)) < CHILDREN and time.monotonic() - begun < 60:
            time.sleep(0.2)
        assert len(children) == CHILDREN
        time.sleep(4)  # until the consumers are in their group
        process.send_signal(number)
        sent = time.monotonic()
        _, err = process.communicate(timeout=30)
        took_s = time.monotonic() - sent
        alive = [one for one in children if is_alive(one)]
    finally:
        process.kill()
        process.wait()
        for one in children:
            if is_alive(one):
                os.kill(one, signal.SIGKILL)
    assert alive == []
    assert took_s < 5
    assert process.returncode == 128 + number
    assert err == f"rebalance-lab: ended by {number.name}\n"
