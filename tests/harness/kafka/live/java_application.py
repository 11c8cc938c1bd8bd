"""An application with Java's own consumer, in a process of its own, that tells of its batches and callbacks.

Start at   application
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import IO

from rebalance_lab.harness.kafka.brokers.processes.java import find_java
from tests.conformance import java_oracle

SOURCE = Path(__file__).with_name("SlowApplication.java")
RECORDS, RECORD_MS = 250, 20
PATIENCE_S = 60.0


class Application(Queue[str]):
    """What it tells, once it was told to go: a JVM may take as long to come up as a batch."""

    def __init__(self, orders: IO[str]) -> None:
        super().__init__()
        self.orders = orders

    def go(self) -> None:
        assert self.get(timeout=PATIENCE_S) == "ready"
        self.order("\n")

    def close(self) -> None:
        """Its consumer, which leaves its group."""
        self.order("c")

    def order(self, what: str) -> None:
        self.orders.write(what)
        self.orders.flush()

    def until(self, wanted: str) -> list[str]:
        """All that it tells up to that."""
        heard: list[str] = []
        while not heard or heard[-1] != wanted:
            heard.append(self.get(timeout=PATIENCE_S))
        return heard


@contextmanager
def application(
    bootstrap: str,
    topic: str,
    group: str,
    protocol: str,
    records: int = RECORDS,
    ms: int = RECORD_MS,
    **settings: int | str,
) -> Iterator[Application]:
    """Java's own consumer, which works so long on every record."""
    classes = ":".join(map(str, (*java_oracle.class_path(), java_oracle.compiled(SOURCE))))
    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m")
    more = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
    given = (bootstrap, topic, group, protocol, str(records), str(ms), *more)
    process = subprocess.Popen(
        [find_java(), *quick, "-cp", classes, "SlowApplication", *given],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    told = Application(process.stdin)

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            told.put(line.split()[0])

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield told
    finally:
        process.kill()
        process.wait()
        listener.join()
