"""Sweeps whose runs take milliseconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rebalance_lab.spark_eval.sweep_file import Sweep, read_sweep

SCENARIO: dict[str, Any] = {
    "name": "small",
    "duration": "90s",
    "topics": {"orders": {"partitions": 4, "rate": "20/s"}},
    "members": {"consumer": {"count": 2, "topics": "orders", "record": "10ms"}},
    "client": {"session.timeout.ms": "10s"},
    "network": {"latency": "2ms", "jitter": "3ms"},
    "timeline": [{"at": "30s", "restart": {"members": "consumer-1", "downtime": "5s"}}],
}
STRATEGIES = ["classic/range", "classic/cooperative-sticky", "consumer/uniform"]
SMALL: dict[str, Any] = {
    "name": "small sweep",
    "scenario": SCENARIO,
    "parameters": {"members.consumer.count": [2, 3], "timeline[0].restart.downtime": ["2s", "20s"]},
    "strategies": STRATEGIES,
    "seeds": 3,
}


def small(**changes: Any) -> Sweep:
    return read_sweep({**SMALL, **changes}, Path())
