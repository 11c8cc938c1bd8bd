"""Run one member of a live run: a process with one consumer, which reports on standard output what happens to it.

Given      one line of JSON on standard input (Setup), then commands: {"slow": 3.0}, {"subscribe": {...}}
Tells      facts as in harness/measure/trace.py, and `processed`: the offsets that it has worked through
Ends       on SIGTERM, or when its parent is gone, after the batch, by closing; a fatal error ends it with exit code 1

    python -m rebalance_lab.harness.kafka.live.consumer < setup.json
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

POLL_S = 0.1


class Member:
    def __init__(self, setup: dict[str, Any]) -> None:
        self.setup = setup
        self.name, self.prefix = setup["name"], setup["prefix"]
        self.record_s = setup["record_ms"] / 1_000
        self.factor = 1.0
        self.stopping = False
        self.parent = os.getppid()
        self.resubscription: dict[str, Any] | None = None
        self.positions: dict[tuple[str, int], int] = {}
        self.commits_itself = not setup["client"]["enable.auto.commit"]
        self.poison = {(one["topic"], one["partition"], one["offset"]): one["stall_ms"] for one in setup["poison"]}
        self.consumer: Any = Consumer({**setup["client"], "on_commit": self.on_commit, "error_cb": self.on_error})
        self.failure: str | None = None
        self.complained: set[tuple[str, int]] = set()
        self.again: dict[tuple[str, int], int] = {}

    # Telling

    def tell(self, fact: str, **more: Any) -> None:
        told = {"t": self.now_ms(), "fact": fact, "member": self.name, **more}
        sys.stdout.write(json.dumps(told, separators=(",", ":")) + "\n")
        sys.stdout.flush()

    def now_ms(self) -> int:
        return int((time.time() - self.setup["epoch_s"]) * 1_000)

    def short(self, topic: str) -> str:
        return str(topic.removeprefix(self.prefix))

    def by_topic(self, partitions: list[Any]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for one in sorted(partitions, key=lambda one: (one.topic, one.partition)):
            found.setdefault(self.short(one.topic), []).append(one.partition)
        return found

    # Callbacks

    def on_assign(self, consumer: Any, partitions: list[Any]) -> None:
        self.begin_callback("onPartitionsAssigned", partitions, "assigned")
        self.linger("assigned", len(partitions))
        found, asked_ms = self.committed(partitions) if partitions else ([], 0)
        starts = {(one.topic, one.partition): max(one.offset, 0) for one in found}
        places = [TopicPartition(*place, offset or OFFSET_BEGINNING) for place, offset in starts.items()]
        consumer.incremental_assign(places) if self.setup["incremental"] else consumer.assign(places)
        if starts:
            self.positions |= starts
            named = self.by_topic(places)
            offsets = {topic: [starts[self.prefix + topic, n] for n in all_] for topic, all_ in named.items()}
            self.tell("reads", partitions=named, asked=asked_ms, **{"from": offsets})

    def committed(self, partitions: list[Any]) -> tuple[list[Any], int]:
        """Return committed offsets, and when they were asked for. A coordinator that fails over refuses for a while."""
        deadline = time.monotonic() + self.setup["patience_s"]
        while True:
            asked_ms = self.now_ms()
            try:
                return self.consumer.committed(partitions, timeout=10), asked_ms
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def on_revoke(self, consumer: Any, partitions: list[Any]) -> None:
        self.let_go("onPartitionsRevoked", partitions)

    def on_lost(self, consumer: Any, partitions: list[Any]) -> None:
        self.let_go("onPartitionsLost", partitions)

    def let_go(self, callback: str, partitions: list[Any]) -> None:
        """Give up partitions. None of their records is processed once the callback has begun, however long that
        takes.
        """
        self.begin_callback(callback, partitions, "revoked")
        if partitions:
            named = self.by_topic(partitions)
            reached = {t: [self.positions.pop((self.prefix + t, n), 0) for n in all_] for t, all_ in named.items()}
            self.tell("stops", partitions=named, at=reached)
        self.linger("revoked", len(partitions))

    def begin_callback(self, callback: str, partitions: list[Any], kind: str) -> None:
        lasts_ms = self.lasts_ms(kind, len(partitions))
        takes = {"ms": lasts_ms} if lasts_ms else {}
        self.tell("callback", callback=callback, partitions=self.by_topic(partitions), **takes)

    def linger(self, kind: str, partitions: int) -> None:
        time.sleep(self.lasts_ms(kind, partitions) / 1_000)

    def lasts_ms(self, kind: str, partitions: int) -> int:
        spec = self.setup["callbacks"]
        return int(spec[f"{kind}_ms"] + partitions * spec[f"{kind}_ms_per_partition"]) if partitions else 0

    def on_commit(self, error: Any, partitions: list[Any]) -> None:
        done = [one for one in partitions if one.error is None and one.offset >= 0]
        if error is None and done:
            self.tell("durable", offsets=[[self.short(one.topic), one.partition, one.offset] for one in done])

    def on_error(self, error: Any) -> None:
        if is_fatal(error):
            self.failure = error.str()

    # Life

    def run(self) -> None:
        self.subscribe(self.setup["topics"], self.setup["pattern"])
        self.tell("process", **{"is": "started"})
        while not self.stopping and os.getppid() == self.parent:
            self.work(self.batch())
            if self.failure is not None:
                self.tell("process", **{"is": "failed", "why": self.failure})
                sys.exit(1)
            if self.resubscription is not None:
                wanted, self.resubscription = self.resubscription, None
                self.subscribe(wanted["topics"], wanted["pattern"])
        self.consumer.close()
        self.tell("process", **{"is": "closed"})

    def subscribe(self, topics: list[str], pattern: str | None) -> None:
        names = [f"^{self.prefix}({pattern})$"] if pattern is not None else [self.prefix + topic for topic in topics]
        self.consumer.subscribe(names, on_assign=self.on_assign, on_revoke=self.on_revoke, on_lost=self.on_lost)

    def batch(self) -> list[Any]:
        """Return a batch as soon as there is one record, with all that has come besides."""
        first = self.consumer.poll(POLL_S)
        if first is None:
            return []
        most = self.setup["max_poll_records"]
        messages = [first, *(self.consumer.consume(most - 1, timeout=0) if most > 1 else ())]
        return [message for message in messages if self.is_record(message)]

    def is_record(self, message: Any) -> bool:
        error = message.error()
        if error is not None and is_fatal(error):
            self.failure = error.str()
        return error is None

    def work(self, messages: list[Any]) -> None:
        done: dict[tuple[str, int], list[int]] = {}
        for message in messages:
            place, offset = (message.topic(), message.partition()), message.offset()
            if place not in self.positions:
                continue  # revoked between two messages of the batch
            sequence = int(message.value())
            span = done.setdefault(place, [offset, offset])
            self.compare(place, offset, sequence, span[1])
            span[1] = offset + 1
            self.stall(message)
        if messages:
            time.sleep(len(messages) * self.record_s * self.factor)
        for place, (first, end) in done.items():
            self.positions[place] = end
            self.tell("processed", topic=self.short(place[0]), partition=place[1], span=[first, end])
        if done:
            self.store([TopicPartition(*place, end) for place, (_, end) in done.items()])

    def compare(self, place: tuple[str, int], offset: int, sequence: int, expected: int) -> None:
        """Compare a record's number with its offset. A producer that loses its broker may write records again, so
        offsets run ahead of numbers. The other way round, a record was lost.
        """
        again, known = offset - sequence, self.again.get(place, 0)
        if (offset != expected or again < known) and place not in self.complained:
            self.complained.add(place)
            self.tell("broken", why=f"{place[0]}-{place[1]} offset {offset} holds {sequence} after {expected}")
        elif again > known:
            self.again[place] = again
            self.tell("written again", topic=self.short(place[0]), partition=place[1], records=again)

    def store(self, offsets: list[Any]) -> None:
        try:
            if self.commits_itself:
                self.consumer.commit(offsets=offsets, asynchronous=True)
            else:
                self.consumer.store_offsets(offsets=offsets)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._STATE:  # lost meanwhile: nothing of it can be stored
                raise

    def stall(self, message: Any) -> None:
        ms = self.poison.get((self.short(message.topic()), message.partition(), message.offset()), 0)
        if ms:
            self.tell("process", **{"is": "stalled", "ms": ms})
            time.sleep(ms / 1_000)

    def listen(self) -> None:
        for line in sys.stdin:
            command = json.loads(line)
            self.factor = command.get("slow", self.factor)
            self.resubscription = command.get("subscribe", self.resubscription)

    def stop(self, *_: Any) -> None:
        self.stopping = True


def is_fatal(error: Any) -> bool:
    """Tell whether the error ends a consumer for good: poll() gives it as an error of this code, which does not say so
    itself.
    """
    return bool(error.fatal()) or error.code() == KafkaError._FATAL


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which stops its children in order
    member = Member(json.loads(sys.stdin.readline()))
    signal.signal(signal.SIGTERM, member.stop)
    threading.Thread(target=member.listen, daemon=True).start()
    try:
        member.run()
    except BrokenPipeError:  # the parent that started it is gone, and would have been told
        os._exit(1)


if __name__ == "__main__":
    main()
