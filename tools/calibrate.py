"""Measure the simulator's constants on this machine, and print them as harness/fidelity/calibration.json keeps them.

python -m tools.calibrate --provider jvm
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import pairwise
from typing import Any

from rebalance_lab.harness.kafka.brokers import Cluster, start
from rebalance_lab.harness.kafka.live.librdkafka_settings import broker_config
from rebalance_lab.harness.scenario.model import MemberSpec, Rate, Scenario, Stop, TopicSpec

ROUNDS = 12
HEARTBEATS, HEARTBEAT_MS = 40, 500


def measure(cluster: Cluster) -> dict[str, Any]:
    starts = asyncio.run(start_times(cluster))
    trips, commits, late = round_trips(cluster), commit_times(cluster), heartbeats_late(cluster)
    low, high = quantile(starts, 0.1), quantile(starts, 0.9)
    trip = quantile(trips, 0.5)
    return {
        "values": {
            "latency_ms": max(1, round(trip / 2)),
            "jitter_ms": max(0, round((quantile(trips, 0.9) - trip) / 2)),
            "append_ms": max(0, round(quantile(commits, 0.5) - trip)),
            "heartbeat_look_ms": max(0, round(quantile(late, 0.9))),
            "start_ms": round(low),
            "start_spread_ms": round(high - low),
        },
        "samples_ms": {
            "process start to first poll": starts,
            "metadata round trip": trips,
            "offset commit": commits,
            "heartbeat later than its interval": late,
        },
        "provenance": {
            "command": "python -m tools.calibrate",
            "provider": cluster.provider,
            "kafka": cluster.kafka_version,
            "confluent-kafka": version("confluent-kafka"),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "load before": round(os.getloadavg()[0], 2),
            "date": time.strftime("%Y-%m-%d"),
        },
    }


async def start_times(cluster: Cluster) -> list[float]:
    """Measure from the start of a process to its first assignment in an empty group."""
    from rebalance_lab.harness.kafka.live.live_world import LiveWorld

    topic = TopicSpec(name="orders", partitions=1, rate=Rate(((0, 1.0),)))
    member = MemberSpec(name="consumer", topics=("orders",))
    found: list[float] = []
    for number in range(ROUNDS):
        scenario = Scenario(
            name="calibration",
            duration_ms=6_000,
            topics=(topic,),
            members=(member,),
            timeline=(Stop(at_ms=5_000, members=("consumer",)),),
        )
        world = LiveWorld(scenario, "classic/range", cluster, f"calibration-{os.getpid()}-{number}-", 0)
        await world.run()
        found += [fact["t"] for fact in world.trace.facts if fact["fact"] == "callback"][:1]
    return found


def round_trips(cluster: Cluster) -> list[float]:
    from confluent_kafka.admin import AdminClient

    admin: Any = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.list_topics(timeout=10)
    return [timed(lambda: admin.list_topics("orders-none", timeout=10)) for _ in range(10 * ROUNDS)]


def commit_times(cluster: Cluster) -> list[float]:
    from confluent_kafka import Consumer, TopicPartition

    consumer: Any = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": f"calibration-{os.getpid()}", "log_level": 0}
    )
    name = f"calibration-{os.getpid()}-0-orders"
    try:
        place = [TopicPartition(name, 0, 0)]
        consumer.assign(place)
        consumer.commit(offsets=place, asynchronous=False)
        return [timed(lambda: consumer.commit(offsets=place, asynchronous=False)) for _ in range(10 * ROUNDS)]
    finally:
        consumer.close()


def heartbeats_late(cluster: Cluster) -> list[float]:
    """Measure how much longer than their interval the time between two heartbeats is. It tells how fast members that
    began together drift apart. The debug log of librdkafka shows each heartbeat.
    """
    from confluent_kafka import Consumer

    heard = HeartbeatLog()
    log = logging.Logger("calibration")
    log.addHandler(heard)
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": f"calibration-{os.getpid()}-heartbeats",
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "debug": "cgrp",
    }
    consumer: Any = Consumer(settings, logger=log)
    try:
        consumer.subscribe([f"calibration-{os.getpid()}-0-orders"])
        deadline = time.monotonic() + 60
        while len(heard.at_s) <= HEARTBEATS and time.monotonic() < deadline:
            consumer.poll(0.1)
    finally:
        consumer.close()
    return [round(max(0.0, (after - before) * 1_000 - HEARTBEAT_MS), 3) for before, after in pairwise(heard.at_s)]


class HeartbeatLog(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.at_s: list[float] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "Heartbeat for group" in record.getMessage():
            self.at_s.append(time.monotonic())


def timed(action: Any) -> float:
    began = time.perf_counter()
    action()
    return round((time.perf_counter() - began) * 1_000, 3)


def quantile(values: Sequence[float], part: float) -> float:
    return sorted(values)[round(part * (len(values) - 1))]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what the simulator's constants are on this machine.")
    parser.add_argument("--provider", default="auto")
    arguments = parser.parse_args()
    empty = Scenario(name="calibration", duration_ms=1, topics=(), members=())
    config = broker_config(replace(empty, broker={"group.initial.rebalance.delay.ms": 0}))
    with start(arguments.provider, config=config) as cluster:
        json.dump(measure(cluster), sys.stdout, indent=1)
        sys.stdout.write("\n")


if __name__ == "__main__":
    main()
