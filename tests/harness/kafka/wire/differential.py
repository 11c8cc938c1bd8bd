"""Random sequences to a real broker and to our coordinator at once: every answer must be the same.

    python -m tests.harness.kafka.wire.differential --runs 2000 --seed 1
    python -m tests.harness.kafka.wire.differential --runs 1200 --configs 12     # twelve brokers of other settings

What differs is shortened and saved as a file that `rebalance-lab play` takes, with the broker's answers in it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rebalance_lab.harness.kafka.brokers import BrokerConfig, start
from rebalance_lab.harness.kafka.wire.addresses import parse_bootstrap
from rebalance_lab.harness.kafka.wire.cluster import Cluster
from rebalance_lab.harness.kafka.wire.recordings.broker_setup import broker_settings, ensure_topics
from rebalance_lab.harness.kafka.wire.recordings.differential import Bench, Outcome, Prepared, Recorded
from tests.harness.kafka.wire.broker_configurations import draw_configuration
from tests.harness.kafka.wire.classic_sequences import ClassicTalk
from tests.harness.kafka.wire.consumer_sequences import ConsumerTalk
from tests.harness.kafka.wire.mixed_sequences import MixedTalk, TakeoverTalk
from tests.harness.kafka.wire.sequence_shrinking import shrunk
from tests.harness.kafka.wire.talk import Talk

REQUESTS = 40
CHUNK, AT_ONCE, STAGGER_S = 300, 45, 0.05
BUSY_S, FEW = 0.08, 8
REPEATS = 3
FOLDER = Path(tempfile.gettempdir()) / "rebalance-lab-differences"
TOPICS = {"orders": 6, "clicks": 3}
CONFIG = BrokerConfig(
    group_initial_rebalance_delay_ms=200,
    group_max_size=5,
    group_consumer_session_timeout_ms=1_500,
    group_consumer_heartbeat_interval_ms=400,
    extra={"group.consumer.max.size": "5"},
)
"""Short timers, and small enough groups that they fill up."""
TALKS: Mapping[str, type[Talk]] = {
    "classic": ClassicTalk,
    "consumer": ConsumerTalk,
    "mixed": MixedTalk,
    "takeover": TakeoverTalk,
}


@dataclass
class Tally:
    runs: int = 0
    requests: int = 0
    compared: int = 0
    once: int = 0
    """Differences that did not happen again."""
    explained: Counter[str] = field(default_factory=Counter)
    failures: dict[str, Outcome] = field(default_factory=dict)

    def add(self, name: str, outcome: Outcome) -> None:
        self.runs += 1
        self.requests += len(outcome.recorded["steps"])
        self.compared += outcome.compared
        self.explained.update({each.explained for each in outcome.differences if each.explained})
        if outcome.unexplained:
            self.failures[name] = outcome

    def __str__(self) -> str:
        explained = ", ".join(f"{name}: {times}" for name, times in sorted(self.explained.items())) or "none"
        return (
            f"{self.runs} sequences, {self.requests} requests, {self.compared} answers compared, "
            f"{len(self.failures)} unexplained differences "
            f"({self.once} more were races and did not happen again), explained: {explained}"
        )


async def open_bench(bootstrap: str) -> Bench:
    cluster = await Cluster.open(parse_bootstrap(bootstrap), timeout_s=30.0)
    there = {name: len(topic.leaders) for name, topic in cluster.metadata.topics.items()}
    await asyncio.to_thread(ensure_topics, bootstrap, TOPICS, there, 1)
    while not TOPICS.keys() <= cluster.metadata.topics.keys():
        await asyncio.sleep(0.05)
        await cluster.refresh()
    address = await cluster.coordinator_of("g")
    config = await asyncio.to_thread(broker_settings, bootstrap, next(iter(cluster.metadata.nodes)))
    bench = Bench(cluster, config, address)
    await bench.warm_up()
    return bench


async def run_all(bench: Bench, kinds: list[str], seeds: range, tell: Callable[[Tally], None]) -> Tally:
    """Sequences are made before, and answers judged after: in between the event loop has to keep time."""
    tally = Tally()
    names = [(kind, seed) for seed in seeds for kind in kinds]
    for first in range(0, len(names), CHUNK):
        chunk = names[first : first + CHUNK]
        sequences = [bench.prepared(TALKS[kind](seed, bench.config, TOPICS).sequence(REQUESTS)) for kind, seed in chunk]
        for (kind, seed), each in zip(chunk, await record_all(bench, sequences), strict=True):
            outcome = each.outcome()
            if outcome.unexplained:
                outcome = await repeated(bench, each.value, outcome)
                tally.once += not outcome.unexplained
            tally.add(f"{kind}-{seed}", outcome)
            tell(tally)
    return tally


async def record_all(bench: Bench, sequences: Sequence[Prepared]) -> list[Recorded]:
    """Fewer at once while the broker is slow: on a busy machine many would spoil each other's times."""
    gate = asyncio.Semaphore(AT_ONCE)
    under_way: set[int] = set()

    async def one(number: int, sequence: Prepared) -> Recorded:
        # A broker that is asked by all of them in one instant is slow for a while.
        await asyncio.sleep(min(number, AT_ONCE) * STAGGER_S)
        async with gate:
            while bench.pool.usual_s > BUSY_S and len(under_way) > FEW:
                await asyncio.sleep(0.1)
            under_way.add(number)
            try:
                return await bench.record(sequence)
            finally:
                under_way.discard(number)

    return await asyncio.gather(*(one(number, each) for number, each in enumerate(sequences)))


async def repeated(bench: Bench, value: Mapping[str, Any], outcome: Outcome) -> Outcome:
    """By itself: on a busy machine two requests can overtake each other, and what is no race happens every time."""
    for _ in range(REPEATS):
        outcome = await bench.compare(value)
        if not outcome.unexplained:
            break
    return outcome


def progress(total: int, folder: Path) -> Callable[[Tally], None]:
    """A line now and then; a difference as soon as it is found."""
    began = time.monotonic()
    told: set[str] = set()

    def tell(tally: Tally) -> None:
        if tally.runs % 100 == 0 or tally.runs == total:
            print(f"{time.monotonic() - began:6.0f} s  {tally}", file=sys.stderr, flush=True)
        for name in tally.failures.keys() - told:
            told.add(name)
            report(name, tally.failures[name], folder)

    return tell


async def main_async(arguments: argparse.Namespace) -> int:
    """Run all seeds on one broker, or deal them out to brokers of drawn settings."""
    if arguments.seed is None:
        arguments.seed = int(time.time())
    print(f"first seed {arguments.seed}", flush=True)
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    if not arguments.configs:
        return await with_broker(arguments, CONFIG, seeds)
    first, each = arguments.seed, -(-len(seeds) // arguments.configs)
    failed = 0
    for number in range(arguments.configs):
        config = draw_configuration(first + number)
        print(f"configuration {number + 1} of {arguments.configs}: {config}", flush=True)
        failed |= await with_broker(arguments, config, seeds[number * each : (number + 1) * each])
    return failed


async def with_broker(arguments: argparse.Namespace, config: BrokerConfig, seeds: range) -> int:
    with start("jvm", config=config) if arguments.bootstrap is None else NoCluster(arguments.bootstrap) as cluster:
        bench = await open_bench(cluster.bootstrap)
        try:
            kinds = arguments.kinds.split(",")
            folder = Path(arguments.save)
            tally = await run_all(bench, kinds, seeds, progress(len(seeds) * len(kinds), folder))
            print(tally)
            for name in list(tally.failures)[: arguments.shrink]:
                report(f"{name}-shortened", await shrunk(bench, tally.failures[name]), folder)
        finally:
            await bench.close()
    return 1 if tally.failures else 0


def report(name: str, outcome: Outcome, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    file.write_text(json.dumps(outcome.recorded, indent=1))
    print(f"{name}: saved as {file}")
    for difference in outcome.unexplained:
        print(f"    {difference}")


@dataclass
class NoCluster:
    """A broker that runs already."""

    bootstrap: str

    def __enter__(self) -> NoCluster:
        return self

    def __exit__(self, *_: object) -> None: ...


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=150, help="of each kind")
    parser.add_argument("--seed", type=int, help="the first; from the clock without it")
    parser.add_argument("--configs", type=int, default=0, help="so many brokers of drawn settings share the runs")
    parser.add_argument("--kinds", default=",".join(TALKS))
    parser.add_argument("--bootstrap", help="a broker that runs already; one is started without it")
    parser.add_argument("--shrink", type=int, default=5, help="how many differences to shorten")
    parser.add_argument("--save", default=str(FOLDER), help="the folder for what differs")
    sys.exit(asyncio.run(main_async(parser.parse_args())))


if __name__ == "__main__":
    main()
