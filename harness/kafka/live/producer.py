"""Write records at given rates: each holds its number within its partition, so that a reader can tell what is missing.

Given      one line of JSON on standard input: bootstrap, rates; then {"rates": {topic: [records a second, ...]}} lines
Tells      how many records each partition has, every REPORT_S: {"t": ..., "written": {"orders": [10, 12]}}
Exact      idempotent and acknowledged by all replicas: a record's number is its offset, until a broker dies and a
           record has to be written again

    python -m rebalance_lab.harness.kafka.live.producer < setup.json
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

from confluent_kafka import KafkaException, Producer

TICK_S = 0.02
REPORT_S = 0.1
WAIT_S = 60.0


class Writer:
    def __init__(self, setup: dict[str, Any]) -> None:
        self.prefix, self.epoch_s = setup["prefix"], setup["epoch_s"]
        self.rates: dict[str, list[float]] = setup["rates"]
        self.due: dict[tuple[str, int], float] = {}
        self.sent: dict[tuple[str, int], int] = {}
        self.written: dict[tuple[str, int], int] = {}
        self.stopping = False
        self.parent = os.getppid()
        self.producer: Any = Producer(
            {
                "bootstrap.servers": setup["bootstrap"],
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 0,
                "topic.metadata.refresh.interval.ms": 1_000,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        self.wait_for_topics()
        last = reported = time.monotonic()
        while not self.stopping and os.getppid() == self.parent:
            time.sleep(TICK_S)
            now = time.monotonic()
            self.write(now - last)
            last = now
            self.producer.poll(0)
            if now - reported >= REPORT_S:
                reported = now
                self.report()
        self.producer.flush(WAIT_S)
        self.report()

    def wait_for_topics(self) -> None:
        """Wait for the topics. One that was just created is not known to every broker: what is sent too soon is
        refused.
        """
        deadline = time.monotonic() + WAIT_S
        for topic, rates in self.rates.items():
            while time.monotonic() < deadline:
                found = self.producer.list_topics(self.prefix + topic, timeout=10).topics[self.prefix + topic]
                leaders = [part.leader for part in found.partitions.values() if part.leader >= 0]
                if found.error is None and len(leaders) >= len(rates):
                    break
                time.sleep(0.1)

    def write(self, elapsed_s: float) -> None:
        for topic, rates in list(self.rates.items()):
            for partition, rate in enumerate(rates):
                place = (topic, partition)
                self.due[place] = self.due.get(place, 0.0) + rate * elapsed_s
                while self.sent.get(place, 0) < int(self.due[place]) and self.send(place):
                    pass

    def send(self, place: tuple[str, int]) -> bool:
        """Send a record. Return False if not now: the queue is full, or this producer has not heard of a new partition.

        The first record of a partition goes alone: librdkafka may set it aside while it looks for the topic, and send
        those that follow before it.
        """
        number = self.sent.get(place, 0)
        if number and not self.written.get(place):
            return False
        try:
            self.producer.produce(
                self.prefix + place[0],
                str(number),
                partition=place[1],
                on_delivery=lambda error, _: self.delivered(place, number, error),
            )
        except (KafkaException, BufferError):
            return False
        self.sent[place] = number + 1
        return True

    def delivered(self, place: tuple[str, int], number: int, error: Any) -> None:
        if error is None:
            self.written[place] = number + 1
        elif place[0] in self.rates:  # a deleted topic refuses what was under way
            self.tell(failed=f"{place[0]}-{place[1]} {number}: {error.str()}")

    def report(self) -> None:
        counts = {topic: [self.written.get((topic, n), 0) for n in range(len(r))] for topic, r in self.rates.items()}
        self.tell(written=counts)

    def tell(self, **more: Any) -> None:
        told = {"t": int((time.time() - self.epoch_s) * 1_000), **more}
        sys.stdout.write(json.dumps(told, separators=(",", ":")) + "\n")
        sys.stdout.flush()

    def listen(self) -> None:
        for line in sys.stdin:
            self.rates = json.loads(line)["rates"]

    def stop(self, *_: Any) -> None:
        self.stopping = True


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    writer = Writer(json.loads(sys.stdin.readline()))
    signal.signal(signal.SIGTERM, writer.stop)
    threading.Thread(target=writer.listen, daemon=True).start()
    try:
        writer.run()
    except BrokenPipeError:  # the parent that started it is gone, and would have been told
        os._exit(1)


if __name__ == "__main__":
    main()
