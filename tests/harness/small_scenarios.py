"""Scenarios that take a fraction of a second, for tests of what is made from runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESTART: dict[str, Any] = {
    "name": "one restart",
    "duration": "2m",
    "strategy": "classic/range",
    "topics": {"orders": {"partitions": 6, "rate": "60/s"}},
    "members": {"consumer": {"count": 3, "topics": "orders", "record": "2ms"}},
    "network": {"latency": "2ms", "jitter": "1ms"},
    "timeline": [{"at": "40s", "restart": {"members": "consumer-2", "downtime": "10s"}}],
}


def write(folder: Path, data: dict[str, Any] = RESTART, **changes: Any) -> str:
    """The path of a file with it."""
    file = folder / "scenario.json"
    file.write_text(json.dumps({**data, **changes}))
    return str(file)
