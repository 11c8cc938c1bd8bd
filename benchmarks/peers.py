"""The peers, each as a function from a cell to CPU seconds per call; what a peer does not offer raises Unsupported.

ours          this project, in process
java          Apache Kafka's own classes, in one warmed JVM; groups are built in Java, so no conversion is measured
kafka-python  its assignors, on its own input types, built beforehand
aiokafka      likewise
"""

from __future__ import annotations

import gc
import logging
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

from benchmarks.groups import Cell, group_for
from rebalance_lab.assignors.strategies import load_assignor, parse_strategy
from rebalance_lab.assignors.testing.subject.adapters.python_clients import FakeCluster

JAVA_SOURCE = Path(__file__).parent / "java" / "AssignorBench.java"


class Unsupported(Exception):
    """This peer has no such assignor, or cannot run here."""


def repeated(call: Callable[[], object], budget_s: float = 3.0, at_most: int = 30) -> float:
    """Median CPU seconds of a call, after one to warm up; fewer repetitions for slow ones."""
    started = time.thread_time()
    call()
    spent = time.thread_time() - started
    times = [] if spent < budget_s else [spent]
    while len(times) < at_most and (not times or sum(times) + times[-1] < budget_s):
        gc.collect()
        before = time.thread_time()
        call()
        times.append(time.thread_time() - before)
    return median(times)


def ours(cell: Cell) -> float:
    group = group_for(cell)
    assignor = load_assignor(parse_strategy(cell.strategy))
    return repeated(lambda: assignor.assign(group))


_jvm: list[Any] = []
_warmed: set[tuple[object, ...]] = set()


def java(cell: Cell) -> float:
    if not _jvm:
        _jvm.append(start_java())
    calls = 3 if cell.total > 100_000 else 15
    path = (cell.strategy, cell.shape, cell.racks, cell.change)
    warm_up_ms = 1_000 if path in _warmed else 3_000
    _warmed.add(path)
    nanos = _jvm[0].time(
        cell.strategy,
        cell.members,
        cell.topics,
        cell.partitions,
        cell.shape,
        cell.racks,
        cell.change,
        calls,
        warm_up_ms,
    )
    return float(median(nanos)) / 1e9


def start_java() -> Any:
    if shutil.which("javac") is None:
        raise Unsupported("no javac (a JDK) here")
    import jpype

    from rebalance_lab.harness.kafka.brokers.processes.artifacts import cache_home, kafka_jars

    classes = cache_home() / "benchmark-classes"
    jars = [str(jar) for jar in kafka_jars()]
    command = ["javac", "-nowarn", "-d", str(classes), "-cp", ":".join(jars), str(JAVA_SOURCE)]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False)
    if compiled.returncode:
        raise Unsupported(f"javac failed: {compiled.stderr.splitlines()[0]}")
    jpype.startJVM("-Xmx8g", classpath=[str(classes), *jars])
    return jpype.JClass("AssignorBench")


def kafka_python(cell: Cell) -> float:
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.structs import TopicPartition

    logging.disable(logging.CRITICAL)
    kinds = {
        "classic/range": RangePartitionAssignor,
        "classic/roundrobin": RoundRobinPartitionAssignor,
        "classic/sticky": StickyPartitionAssignor,
    }
    if cell.strategy not in kinds or cell.racks:
        raise Unsupported("not offered")
    group = group_for(cell)
    kind = kinds[cell.strategy]
    members = []
    for member_id, member in group.members.items():
        metadata: Any = SimpleNamespace(topics=list(member.topics), user_data=b"")
        if member.owned:
            held = [TopicPartition(topic, p) for topic, ps in member.owned.items() for p in ps]
            metadata = StickyPartitionAssignor._metadata(list(member.topics), held, 1)
        members.append(SimpleNamespace(member_id=member_id, group_instance_id=None, metadata=metadata))
    cluster = FakeCluster(group)
    return repeated(lambda: kind().assign(cluster, members))


def aiokafka(cell: Cell) -> float:
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from aiokafka.structs import TopicPartition

    logging.disable(logging.CRITICAL)
    kinds = {
        "classic/range": RangePartitionAssignor,
        "classic/roundrobin": RoundRobinPartitionAssignor,
        "classic/sticky": StickyPartitionAssignor,
    }
    if cell.strategy not in kinds or cell.racks:
        raise Unsupported("not offered")
    group = group_for(cell)
    members = {}
    for member_id, member in group.members.items():
        held = [TopicPartition(topic, p) for topic, ps in member.owned.items() for p in ps]
        kind = kinds[cell.strategy]
        if held:
            members[member_id] = StickyPartitionAssignor._metadata(list(member.topics), held, 1)
        else:
            members[member_id] = RangePartitionAssignor.metadata(list(member.topics))
    cluster = FakeCluster(group)
    return repeated(lambda: kind.assign(cluster, members))


PEERS: dict[str, Callable[[Cell], float]] = {
    "ours": ours,
    "java": java,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}
