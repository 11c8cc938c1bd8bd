"""Find gaps: times in which no process reads a partition that a member wants.

Given      the facts of a run, in order
Returns    each gap as it closes, to its callers: costs.py adds gaps up, ownership.py draws them
Counted    from the end of the group's start-up (start_up.py), to the partition's next owner, its deletion, its
           last unsubscription, or the end of the run. Where the start-up never ends, or takes too long to be one, from
           the partition's first owner, or since a member wants it
Wanted     the topics that the trace says members want; all topics, where it says nothing
Start at   Gaps.feed
"""

from __future__ import annotations

from collections.abc import Callable

from rebalance_lab.harness.measure.start_up import StartUp
from rebalance_lab.harness.measure.trace import Fact, flat
from rebalance_lab.protocol_v1.common.member_effects import TopicPartition


class Gaps:
    def __init__(self, closed: Callable[[TopicPartition, int, int], None]) -> None:
        """Take `closed`, which is told which partition, from when and until when."""
        self._closed = closed
        self._now_ms = 0
        self._readers: dict[TopicPartition, set[str]] = {}
        """Of all partitions that exist."""
        self._unread: set[TopicPartition] = set()
        """Partitions that no process reads."""
        self._counted: set[TopicPartition] = set()
        self._wanted: dict[str, int] | None = None
        """Topics, and since when."""
        self._start_up = StartUp()
        self._early: list[tuple[TopicPartition, int, int]] = []
        """Gaps of the start-up, for the case that it never ends."""
        self.begun = False
        """The start-up is over."""
        self._all_counts = False
        """It has been given up: whatever there is counts, and has from the beginning."""
        self.open: dict[TopicPartition, int] = {}
        """Since when."""

    def feed(self, fact: Fact) -> None:
        self._now_ms = fact["t"]
        self._take(fact)
        self._start_up.feed(fact, self._all_is_read)
        if self._start_up.over is not self.begun:
            self.begun = self._start_up.over
            if self.begun:
                self._begin()
        if self._start_up.in_vain and not self._all_counts:
            self._all_counts = True
            self._count_all()

    @property
    def came_to_rest(self) -> bool:
        """Tell whether the start-up is over, and nothing had happened by then."""
        return self.begun and self._start_up.at_rest

    def _take(self, fact: Fact) -> None:
        match fact["fact"]:
            case "reads":
                for tp in flat(fact["partitions"]):
                    self._readers.setdefault(tp, set()).add(fact["member"])
                    self._unread.discard(tp)
                    self._count(tp)
            case "stops":
                for tp in flat(fact["partitions"]):
                    readers = self._readers.get(tp)
                    if readers is not None:  # otherwise it has been deleted
                        readers.discard(fact["member"])
                        if not readers:
                            self._unread.add(tp)
                        self._look_at(tp)
            case "topic":
                self._topic(fact["topic"], fact["partitions"])
            case "wanted":
                before = self._wanted or {}
                self._wanted = {topic: before.get(topic, self._now_ms) for topic in fact["topics"]}
                for tp in self._readers:
                    self._look_at(tp)
            case "end":
                self.finish(fact["t"])

    def _all_is_read(self) -> bool:
        return not any(self._wanted is None or tp[0] in self._wanted for tp in self._unread)

    def _begin(self) -> None:
        """Begin to count: gaps until now were the start-up's."""
        self._early.clear()
        self.open.clear()
        for tp in self._readers:
            self._count(tp)

    def _count_all(self) -> None:
        """Count all gaps, also of partitions that no process has read since a member wants them."""
        for tp in self._readers:
            if tp not in self._counted and self._wanted is not None and tp[0] in self._wanted:
                self._counted.add(tp)
                self.open[tp] = self._wanted[tp[0]]

    def finish(self, now_ms: int) -> None:
        """Close the gaps that are still open."""
        self._now_ms = now_ms
        self._count_all()
        for tp in list(self.open):
            self._close(tp)
        for early in self._early:
            self._closed(*early)
        self._early.clear()

    def _topic(self, name: str, partitions: int) -> None:
        """Begin anew with a topic that was deleted, with 0, and is created again."""
        if not partitions:
            for tp in [tp for tp in self._readers if tp[0] == name]:
                del self._readers[tp]
                self._unread.discard(tp)
                self._counted.discard(tp)
                self._close(tp)
        for index in range(partitions):
            if (name, index) not in self._readers:
                self._readers[name, index] = set()
                self._unread.add((name, index))
            if self.begun or self._all_counts:
                self._count((name, index))

    def _count(self, tp: TopicPartition) -> None:
        self._counted.add(tp)
        self._look_at(tp)

    def _look_at(self, tp: TopicPartition) -> None:
        """Check whether a member misses a reader of this partition now."""
        missed = tp in self._counted and tp in self._unread
        if missed and (self._wanted is None or tp[0] in self._wanted):
            self.open.setdefault(tp, self._now_ms)
        else:
            self._close(tp)

    def _close(self, tp: TopicPartition) -> None:
        since_ms = self.open.pop(tp, None)
        if since_ms is None or since_ms == self._now_ms:
            return
        if self.begun:
            self._closed(tp, since_ms, self._now_ms)
        else:
            self._early.append((tp, since_ms, self._now_ms))
