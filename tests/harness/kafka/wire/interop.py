"""librdkafka's, Java's and our members in one group on a real cluster: stable, complete, and so again after each death.

python -m tests.harness.kafka.wire.interop --rounds 2
"""

from __future__ import annotations

import argparse
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rebalance_lab.harness.kafka.brokers import BrokerConfig, Cluster, start
from rebalance_lab.harness.kafka.wire.recordings.broker_setup import ensure_topics
from tests.harness.kafka.wire.members import PATIENCE_S, Process, wait_until_complete

STRATEGIES = ("classic/range", "classic/cooperative-sticky", "consumer/uniform")
KINDS = ("ours", "librdkafka", "java", "ours", "librdkafka")
PARTITIONS = 12
SESSION_MS = 2_500
RECORDS = 1_200
CONFIG = BrokerConfig(
    group_initial_rebalance_delay_ms=500,
    group_consumer_session_timeout_ms=SESSION_MS,
    group_consumer_heartbeat_interval_ms=300,
)


def new_topic(cluster: Cluster) -> str:
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    ensure_topics(cluster.bootstrap, {topic: PARTITIONS}, {}, min(3, len(cluster.node_ids)))
    return topic


@contextmanager
def mixed_groups(cluster: Cluster, tell: Callable[[str], None]) -> Iterator[Mixed]:
    topic = new_topic(cluster)
    mixed = Mixed(cluster, topic, {f"{strategy.replace('/', '-')}-{topic}": strategy for strategy in STRATEGIES})
    try:
        mixed.processes += [mixed.run(kind) for kind in KINDS]
        tell(f"{len(KINDS)} members in {len(mixed.groups)} groups: complete after {mixed.complete():.1f} s")
        yield mixed
    finally:
        for each in mixed.processes:
            each.process.terminate()
        for each in mixed.processes:
            each.stop()


@dataclass
class Mixed:
    cluster: Cluster
    topic: str
    groups: dict[str, str]
    """By name: the strategy."""
    processes: list[Process] = field(default_factory=list)

    def run(self, kind: str) -> Process:
        return Process.start(kind, self.cluster.bootstrap, self.topic, SESSION_MS, self.groups)

    def complete(self) -> float:
        alive = [each for each in self.processes if each.process.poll() is None]
        return wait_until_complete(alive, list(self.groups), PARTITIONS)

    def kill(self, victim: int, tell: Callable[[str], None]) -> None:
        self.processes[victim].kill()
        tell(f"{self.processes[victim].kind} killed: complete after {self.complete():.1f} s")

    def bring_back(self, victim: int, tell: Callable[[str], None]) -> None:
        self.processes[victim] = self.run(self.processes[victim].kind)
        tell(f"{self.processes[victim].kind} back: complete after {self.complete():.1f} s")

    def read(self, group: str) -> int:
        return sum(each.read.get(group, 0) for each in self.processes)

    def kill_coordinator(self, tell: Callable[[str], None]) -> None:
        """Whoever is coordinated there finds another one; whatever is produced meanwhile is read in every group."""
        before = {group: self.read(group) for group in self.groups}
        node = self.cluster.coordinator_of(next(iter(self.groups)))
        self.cluster.kill(node)
        began = time.monotonic()
        produce(self.cluster.bootstrap, self.topic, RECORDS)
        while any(self.read(group) < before[group] + RECORDS for group in self.groups):
            shown = {group: self.read(group) - before[group] for group in self.groups}
            assert time.monotonic() - began < PATIENCE_S, f"of {RECORDS} records only these were read: {shown}"
            time.sleep(0.1)
        tell(f"node {node} killed: {RECORDS} records read in every group after {time.monotonic() - began:.1f} s")


def produce(bootstrap: str, topic: str, records: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
    for number in range(records):
        producer.produce(topic, f"record {number}".encode(), partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1, help="how often each member is killed")
    arguments = parser.parse_args()
    with start("jvm", nodes=3, config=CONFIG) as cluster, mixed_groups(cluster, shown) as mixed:
        for victim in [*range(len(KINDS))] * arguments.rounds:
            mixed.kill(victim, shown)
            mixed.bring_back(victim, shown)
        mixed.kill_coordinator(shown)
    deaths = len(KINDS) * arguments.rounds
    print(f"{deaths} members and a node killed in groups of {', '.join(STRATEGIES)}: every time complete again")


def shown(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
