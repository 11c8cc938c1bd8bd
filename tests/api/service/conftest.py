"""A running service, as an operator starts it: a process with an address, stopped when the tests are over."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.paths import ROOT

TOKEN = "rl_a-token-for-tests"
GROUP: dict[str, Any] = {
    "topics": {"orders": {"partitions": 6}},
    "members": {
        "pod-a": {"topics": ["orders"], "owned": {"orders": [0, 1, 2]}, "generation": 7},
        "pod-b": {"topics": ["orders"], "owned": {"orders": [3, 4, 5]}, "generation": 7},
        "pod-c": {"topics": ["orders"]},
    },
}
SCENARIO: dict[str, Any] = {
    "name": "one restart",
    "duration": "2m",
    "strategy": "classic/range",
    "topics": {"orders": {"partitions": 6, "rate": "60/s"}},
    "members": {"consumer": {"count": 3, "topics": "orders"}},
    "timeline": [{"at": "1m", "restart": {"members": "consumer-1", "downtime": "5s"}}],
}
HEAVY: dict[str, Any] = {
    "name": "too much for a test to wait for",
    "duration": "20h",
    "strategy": "classic/range",
    "topics": {"orders": {"partitions": 400, "rate": "400/s"}},
    "members": {"consumer": {"count": 100, "topics": "orders"}},
    "timeline": [{"at": "1m", "restart": {"members": "consumer-1", "downtime": "5s", "times": 900, "every": "1m"}}],
}


@dataclass(slots=True)
class Running:
    url: str
    process: subprocess.Popen[str]
    log: Path
    headers: dict[str, str] = field(default_factory=dict)

    def client(self, **more: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=self.headers, timeout=60, **more)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def stop(self, sig: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(sig)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def start(folder: Path, config: str = "", *arguments: str, token: str | None = None) -> Running:
    """On a free port. What it logs is kept for the test to read."""
    file, log = folder / "service.toml", folder / "service.log"
    kept = f"[[tokens]]\nname = 'test'\nsha256 = '{hashed(token)}'\nrequests_per_minute = 600000\n" if token else ""
    file.write_text(config + "\n" + kept)
    command = [sys.executable, "-m", "rebalance_lab.api.cli", "serve", "--config", str(file), "--port", "0", *arguments]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ}
        )
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    if not url:
        raise AssertionError(f"the service did not start: {log.read_text()}")
    return Running(url, process, log, {"authorization": f"Bearer {token}"} if token else {})


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """As it comes, without tokens."""
    service = start(tmp_path_factory.mktemp("service"))
    yield service
    service.stop()


@pytest.fixture(scope="module")
def client(running: Running) -> Iterator[httpx.Client]:
    with running.client() as made:
        yield made
