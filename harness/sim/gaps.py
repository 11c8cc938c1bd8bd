"""Gaps: when nobody reads a partition that somebody wants.

Given      the facts of a run, in order
Returns    each gap as it closes, to whoever asked for them: costs.py adds them up, timelines.py draws them
Counted    from a partition's first owner or the first event, whichever is earlier (or since somebody wants it, where
           there is neither), to its next owner, its deletion, the end of all wishes for it, or of the run
Wanted     as the trace says; everything, where it does not
Start at   Gaps.feed
"""

from __future__ import annotations

from collections.abc import Callable

from harness.sim.trace import Fact, flat
from protocol_v1.effects.member import TopicPartition


class Gaps:
    def __init__(self, closed: Callable[[TopicPartition, int, int], None]) -> None:
        """`closed` is told which partition, from when and until when."""
        self._closed = closed
        self._now_ms = 0
        self._readers: dict[TopicPartition, set[str]] = {}
        """Of all partitions that exist."""
        self._counted: set[TopicPartition] = set()
        self._wanted: dict[str, int] | None = None
        """Topics, and since when."""
        self.begun = False
        """There has been an event."""
        self.open: dict[TopicPartition, int] = {}
        """Since when."""

    def feed(self, fact: Fact) -> None:
        self._now_ms = fact["t"]
        match fact["fact"]:
            case "reads":
                for tp in flat(fact["partitions"]):
                    self._readers.setdefault(tp, set()).add(fact["member"])
                    self._count(tp)
            case "stops":
                for tp in flat(fact["partitions"]):
                    self._readers.get(tp, set()).discard(fact["member"])
                    self._look_at(tp)
            case "topic":
                self._topic(fact["topic"], fact["partitions"])
            case "wanted":
                before = self._wanted or {}
                self._wanted = {topic: before.get(topic, self._now_ms) for topic in fact["topics"]}
                for tp in self._readers:
                    self._look_at(tp)
            case "event" if not self.begun:
                self.begun = True
                for tp in self._readers:
                    self._count(tp)
            case "end":
                self.finish(fact["t"])

    def finish(self, now_ms: int) -> None:
        """What is still open is closed now."""
        self._now_ms = now_ms
        for tp in self._readers:
            if tp not in self._counted and self._wanted is not None and tp[0] in self._wanted:
                self.open[tp] = self._wanted[tp[0]]
        for tp in list(self.open):
            self._close(tp)

    def _topic(self, name: str, partitions: int) -> None:
        """One that was deleted, with 0, and is created again begins anew."""
        if not partitions:
            for tp in [tp for tp in self._readers if tp[0] == name]:
                del self._readers[tp]
                self._counted.discard(tp)
                self._close(tp)
        for index in range(partitions):
            self._readers.setdefault((name, index), set())
            if self.begun:
                self._count((name, index))

    def _count(self, tp: TopicPartition) -> None:
        self._counted.add(tp)
        self._look_at(tp)

    def _look_at(self, tp: TopicPartition) -> None:
        """Whether anybody misses an owner there, now."""
        missed = tp in self._counted and not self._readers[tp]
        if missed and (self._wanted is None or tp[0] in self._wanted):
            self.open.setdefault(tp, self._now_ms)
        else:
            self._close(tp)

    def _close(self, tp: TopicPartition) -> None:
        since_ms = self.open.pop(tp, None)
        if since_ms is not None and since_ms < self._now_ms:
            self._closed(tp, since_ms, self._now_ms)
