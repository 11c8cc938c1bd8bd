"""Members of real groups as processes that can be killed: librdkafka's, Java's and ours, all telling the same lines.

    python -m tests.harness.kafka.wire.members librdkafka HOST:PORT TOPIC SESSION_MS GROUP=classic/range ...

One process has a member in each of the groups, and prints {"group", "owned", "read"} whenever one of them changes.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rebalance_lab.assignors.strategies import parse_strategy
from rebalance_lab.harness.kafka.brokers.processes.java import find_java

PATIENCE_S = 60.0
QUIET_S = 1.5
"""So long without a change counts as stable."""
JAVA_SOURCE = Path(__file__).with_name("Members.java")


def command(kind: str, *arguments: str) -> list[str]:
    if kind != "java":
        return [sys.executable, "-m", "tests.harness.kafka.wire.members", kind, *arguments]
    from tests.conformance.java_oracle import class_path, compiled

    classes = ":".join(map(str, (*class_path(), compiled(JAVA_SOURCE))))
    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m")
    return [find_java(), *quick, "-cp", classes, "Members", *arguments]


@dataclass
class Process:
    """One that runs, and what it has told so far."""

    kind: str
    process: subprocess.Popen[str]
    owned: dict[str, tuple[int, ...]] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    changed_at: float = 0.0

    @classmethod
    def start(cls, kind: str, bootstrap: str, topic: str, session_ms: int, groups: Mapping[str, str]) -> Process:
        wanted = [f"{group}={strategy}" for group, strategy in groups.items()]
        arguments = command(kind, bootstrap, topic, str(session_ms), *wanted)
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        found = cls(kind, process)
        threading.Thread(target=found.listen, daemon=True).start()
        return found

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            told = json.loads(line)
            owned = tuple(sorted(told["owned"]))
            if self.owned.get(told["group"]) != owned:
                self.changed_at = time.monotonic()
            self.owned[told["group"]], self.read[told["group"]] = owned, told["read"]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()


def wait_until_complete(processes: Sequence[Process], groups: Sequence[str], partitions: int) -> float:
    """Each partition of every group has one owner, and so it stays for a while; seconds that this took."""
    began = time.monotonic()
    while not is_complete(processes, groups, partitions):
        for each in processes:
            assert each.process.poll() is None, f"the {each.kind} process has ended with {each.process.returncode}"
        shown = {group: [(each.kind, each.owned.get(group)) for each in processes] for group in groups}
        assert time.monotonic() - began < PATIENCE_S, f"not complete and stable in {PATIENCE_S:.0f} s: {shown}"
        time.sleep(0.05)
    return time.monotonic() - began - QUIET_S


def is_complete(processes: Sequence[Process], groups: Sequence[str], partitions: int) -> bool:
    if time.monotonic() - max(each.changed_at for each in processes) < QUIET_S:
        return False
    return all(
        sorted(number for each in processes for number in each.owned.get(group, ())) == list(range(partitions))
        and all(each.owned.get(group) for each in processes)  # nobody idles: there are enough partitions
        for group in groups
    )


# What runs in the processes


def tell(group: str, owned: Sequence[int], read: int) -> None:
    print(json.dumps({"group": group, "owned": list(owned), "read": read}), flush=True)


def librdkafka(bootstrap: str, topic: str, session_ms: int, groups: Mapping[str, str]) -> None:
    from confluent_kafka import Consumer

    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    consumers = {}
    for group, strategy in groups.items():
        consumers[group] = Consumer(librdkafka_settings(bootstrap, session_ms, group, strategy))
        consumers[group].subscribe([topic])
    told: dict[str, tuple[list[int], int]] = {}
    read = dict.fromkeys(groups, 0)
    while not stopping.is_set():
        for group, consumer in consumers.items():
            message = consumer.poll(0.02)
            read[group] += message is not None and message.error() is None
            now = (sorted(each.partition for each in consumer.assignment()), read[group])
            if told.get(group) != now:
                told[group] = now
                tell(group, *now)
    for consumer in consumers.values():
        consumer.close()


def librdkafka_settings(bootstrap: str, session_ms: int, group: str, strategy: str) -> dict[str, Any]:
    protocol, _, assignor = strategy.partition("/")
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 500,
        "topic.metadata.refresh.interval.ms": 2_000,
        "log_level": 0,
    }
    if protocol == "consumer":
        return {**settings, "group.remote.assignor": assignor}
    timeouts = {"session.timeout.ms": session_ms, "heartbeat.interval.ms": 300}
    return {**settings, **timeouts, "partition.assignment.strategy": assignor}


def ours(bootstrap: str, topic: str, session_ms: int, groups: Mapping[str, str]) -> None:
    from rebalance_lab.harness.kafka.wire.members.live_members import Change, Consumer, GroupPlan, enter

    async def one(group: str, strategy: str, stop: asyncio.Event) -> None:
        plan = GroupPlan(
            bootstrap=bootstrap,
            group=group,
            topics=[topic],
            strategy=parse_strategy(strategy),
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=300,
            auto_commit_interval_ms=500,
        )
        consumer: Consumer | None = None

        def changed(change: Change) -> None:
            tell(group, [number for _, number in change.owned], consumer.records if consumer is not None else 0)

        consumer = await enter(plan, "ours", changed)
        running = asyncio.create_task(consumer.member.run())
        told = 0
        while not stop.is_set() and not running.done():
            await asyncio.wait([running], timeout=0.1)
            if consumer.records > told:
                told = consumer.records
                tell(group, [number for _, number in consumer.owned], told)
        consumer.member.close()
        await running

    async def all_of_them() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await asyncio.gather(*(one(group, strategy, stop) for group, strategy in groups.items()))

    asyncio.run(all_of_them())


KINDS: Mapping[str, Callable[[str, str, int, Mapping[str, str]], None]] = {"librdkafka": librdkafka, "ours": ours}


def main() -> None:
    kind, bootstrap, topic, session_ms, *wanted = sys.argv[1:]
    KINDS[kind](bootstrap, topic, int(session_ms), dict(each.split("=", 1) for each in wanted))


if __name__ == "__main__":
    main()
