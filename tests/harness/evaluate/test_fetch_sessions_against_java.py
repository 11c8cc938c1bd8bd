"""The cache of fetch sessions beside Kafka's own class: the same calls, the same sessions left after each of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from rebalance_lab.harness.evaluate.fetch_sessions.session_cache import FetchSessionCache
from tests.conformance.java_oracle import class_path, compiled, why_not

SOURCE = Path(__file__).with_name("FetchSessionOracle.java")
REASON = why_not()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))

CACHES = 200
CALLS = 150


class Oracle:
    """One JVM; a line in, a line out. Calls refer to ids that Java has drawn, so they go one at a time."""

    def __init__(self) -> None:
        jars = ":".join(map(str, (compiled(SOURCE), *class_path())))
        command = [
            "java",
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            jars,
            "org.apache.kafka.server.FetchSessionOracle",
        ]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
        )

    def ask(self, *words: object) -> tuple[int, list[int]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(" ".join(str(word).lower() for word in words) + "\n")
        self.process.stdin.flush()
        answer, *live = map(int, self.process.stdout.readline().split())
        return answer, live

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    started = Oracle()
    yield started
    started.end()


def test_random_calls_leave_the_same_sessions_as_kafkas_own_cache(
    oracle: Oracle, record_property: pytest.RecordProperty
) -> None:
    evictions = refusals = lost = calls = 0
    for seed in range(CACHES):
        rng = Random(seed)
        slots, shards, eviction_ms = rng.choice([3, 8, 9, 16, 24]), rng.choice([1, 2, 8]), rng.choice([50, 120])
        drawn = [0]
        cache = FetchSessionCache(slots, eviction_ms=eviction_ms, shards=shards, new_id=lambda _, drawn=drawn: drawn[0])
        oracle.ask("new", slots, shards, eviction_ms)
        known: list[int] = []
        now_ms = 0
        for _ in range(CALLS):
            now_ms += rng.choice(
                [0, 0, 1, 5, 20, eviction_ms // 2, eviction_ms, eviction_ms + 1] if rng.random() < 0.5 else [0, 1]
            )
            kind = rng.random()
            if kind < 0.5 or not known:
                privileged, size = rng.random() < 0.3, rng.randint(1, 5)
                drawn[0], live = oracle.ask("create", now_ms, privileged, size)
                made = cache.maybe_create(now_ms, privileged, size)
                assert (made or 0) == drawn[0], (seed, now_ms)
                refusals += made is None
                known += [made] if made is not None else []
            elif kind < 0.95:
                session, size = rng.choice(known[-2 * slots :]), rng.randint(0, 5)
                there, live = oracle.ask("touch", session, now_ms, size)
                assert cache.touch(session, now_ms, size) == bool(there), (seed, now_ms)
                lost += not there
            else:
                session = rng.choice(known)
                there, live = oracle.ask("close", session)
                assert cache.close(session) == bool(there), (seed, now_ms)
            assert sorted(id_ for shard in cache.shards for id_ in shard.sessions) == live, (seed, now_ms)
            calls += 1
        evictions += sum(len(shard.evicted) for shard in cache.shards)
    assert min(evictions, refusals, lost) > 500  # or the calls were too tame to show anything
    told = f"{calls:,} calls on {CACHES} caches: {evictions:,} evictions, {refusals:,} refusals, {lost:,} not found"
    record_property("table: fetch sessions beside Kafka's own cache", told)
