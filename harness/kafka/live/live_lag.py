"""Compute the lag of a live run as the simulator does: records that are written and not processed, or to be read again.

Given      what the producer has told, and the facts of the consumers
Wanted     only topics that a member subscribes to count; records of a deleted topic do not
Again      a reader that begins at the last commit has the uncommitted records before it. Where two processes read,
           because one has not heard that it is out, records wait for the one that is further
Start at   lag_facts
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from rebalance_lab.harness.measure.lag_curve import SAMPLES
from rebalance_lab.harness.measure.trace import Fact, flat

Written: TypeAlias = Mapping[str, Sequence[int]]
"""Records in each partition, of the topics that exist."""
Place: TypeAlias = tuple[str, int]


class Progress:
    """Track how far each partition has been processed."""

    def __init__(self) -> None:
        self.wanted: Sequence[str] = ()
        self._readers: dict[Place, dict[str, int]] = {}
        self._left: dict[Place, int] = {}
        """The furthest position at which a process has left it."""

    def feed(self, fact: Fact) -> None:
        match fact["fact"]:
            case "wanted":
                self.wanted = fact["topics"]
            case "reads":
                for place, offset in offsets(fact, "from"):
                    self._readers.setdefault(place, {})[fact["member"]] = offset
            case "processed":
                readers = self._readers.get((fact["topic"], fact["partition"]), {})
                if fact["member"] in readers:  # who is killed may still tell of a batch, a moment later
                    readers[fact["member"]] = fact["span"][1]
            case "stops":
                for place, offset in offsets(fact, "at"):
                    self._readers.get(place, {}).pop(fact["member"], None)
                    self._left[place] = max(self._left.get(place, 0), offset)
            case "topic" if not fact["partitions"]:
                for known in (self._readers, self._left):
                    for place in [place for place in known if place[0] == fact["topic"]]:
                        del known[place]

    def reached(self, place: Place) -> int:
        readers = self._readers.get(place)
        return max(readers.values()) if readers else self._left.get(place, 0)

    def waiting(self, written: Written) -> int:
        return sum(
            max(0, count - self.reached((topic, index)))
            for topic in self.wanted
            for index, count in enumerate(written.get(topic, ()))
        )


def offsets(fact: Fact, which: str) -> Iterator[tuple[Place, int]]:
    places = list(flat(fact["partitions"]))
    return zip(places, [offset for topic in fact["partitions"] for offset in fact[which][topic]], strict=True)


def lag_facts(facts: Sequence[Fact], written: Sequence[tuple[int, Written]], duration_ms: int) -> Iterator[Fact]:
    """Return the lag curve, point by point."""
    steps = sorted(facts, key=lambda fact: fact["t"])
    progress = Progress()
    at = looked = 0
    every_ms = max(1, duration_ms // SAMPLES)
    before: Written = {}
    for now_ms in range(0, duration_ms, every_ms):
        while at < len(steps) and steps[at]["t"] <= now_ms:
            progress.feed(steps[at])
            at += 1
        while looked < len(written) and written[looked][0] <= now_ms:
            looked += 1
        counts: Written = written[looked - 1][1] if looked else {}
        new = sum(max(0, sum(counts.get(topic, ())) - sum(before.get(topic, ()))) for topic in progress.wanted)
        before, rate = counts, round(new * 1_000 / every_ms)
        yield {"t": now_ms, "fact": "lag", "records": progress.waiting(counts), "rate": rate, "skew": 0}
