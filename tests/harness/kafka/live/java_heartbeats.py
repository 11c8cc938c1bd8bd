"""How late the heartbeats of Java's consumers are: what `Constants.heartbeat_look_ms` says of classic ones.

Given      a consumer that waits for records, or one that works for seconds on every batch, on our own server
Measured   by how much more than heartbeat.interval.ms lies between two heartbeats, where they arrive; and how far a
           member drifts from others with each of them: each counts from the one before, so what is late stays late

python -m tests.harness.kafka.live.java_heartbeats
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from statistics import fmean, median, pvariance
from typing import Any

from confluent_kafka import Producer

from rebalance_lab.protocol_v1.common.messages import HeartbeatRequest
from rebalance_lab.protocol_v2.common.messages import ConsumerGroupHeartbeatRequest
from tests.harness.kafka.live.java_application import application
from tests.harness.kafka.wire.serving import serving

BEGIN = 2
"""Heartbeats that are not looked at: those that bring a member into its group."""
TOPIC, PARTITIONS = "orders", 4
RECORDS, RECORD_MS = 500, 5
"""Of a batch: two seconds and a half."""


def late_ms(protocol: str, heartbeats: int, interval_ms: int, *, works: bool) -> list[float]:
    """How late each of so many heartbeats of one consumer was."""
    settings = {} if protocol == "consumer" else {"heartbeat_interval_ms": interval_ms}
    at_ms: list[float] = []
    enough = threading.Event()
    with serving({TOPIC: PARTITIONS}, {"group.consumer.heartbeat.interval.ms": interval_ms}) as server:
        answer = server.coordinator.handle

        async def watched(request: Any, size: int) -> Any:
            if isinstance(request, (HeartbeatRequest, ConsumerGroupHeartbeatRequest)):
                at_ms.append(time.monotonic() * 1_000)
                if len(at_ms) > BEGIN + heartbeats:
                    enough.set()
            return await answer(request, size)

        server.coordinator.handle = watched  # type: ignore[method-assign]
        work = (RECORDS, RECORD_MS) if works else (RECORDS, 0)
        with application(server.bootstrap, TOPIC, "group", protocol, *work, **settings) as consumer:
            consumer.go()
            consumer.until("assigned")
            with records(server.bootstrap if works else None):
                assert enough.wait(10 + 2 * heartbeats * interval_ms / 1_000), f"only {len(at_ms)} heartbeats came"
    return [after - before - interval_ms for before, after in pairwise(at_ms[BEGIN : BEGIN + heartbeats + 1])]


@contextmanager
def records(bootstrap: str | None) -> Iterator[None]:
    """More than it can work off, if it is to work."""
    if bootstrap is None:
        yield
        return
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(20 * RECORDS):
        producer.produce(TOPIC, b"", partition=number % PARTITIONS)
    assert producer.flush(30) == 0
    yield


def drift_ms(late: Sequence[float], apart: int = 10) -> float:
    """Of one heartbeat, without what is noise on its way: that does not add up over many."""
    sums = [sum(late[first : first + apart]) for first in range(len(late) - apart + 1)]
    return math.sqrt(max(0.0, pvariance(sums) - pvariance(late)) / (apart - 1))


def main() -> None:
    print("protocol   it       every   heartbeats   late: mean     median      worst   drift of each")
    for protocol, interval_ms, heartbeats in (("classic", 3_000, 20), ("classic", 500, 240), ("consumer", 500, 240)):
        for works in (False, True):
            given = "consumer" if protocol == "consumer" else "RangeAssignor"
            late = late_ms(given, heartbeats, interval_ms, works=works)
            figures = f"{fmean(late):10.1f} ms {median(late):7.1f} ms {max(late):7.1f} ms {drift_ms(late):12.1f} ms"
            it = "works" if works else "waits"
            print(f"{protocol:<10} {it:<6} {interval_ms:>5} ms {len(late):>12} {figures}", flush=True)


if __name__ == "__main__":
    main()
