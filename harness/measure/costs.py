"""Compute what a run cost, as one flat row, from the facts of its trace.

Counted    from the end of the group's start-up on (start_up.py); requests, and records read twice, from the beginning
Without    partition-seconds in which no process read a partition that a member wants (gaps.py). A partition stands
           still while its owner is paused, cut off, or held up by one record or a callback, until another process
           reads it
Moves      another member reads the partition than before; after a needless revocation the same process reads it again
Settling   from an event of the timeline until the last change before the next event, if everything is read then. A
           change is one of ownership, of the group's state or epoch, or the end of a standstill
Lag        records that waited, how long they were too many, and how unequal loads were: lag_curve.py
Start at   costs
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from rebalance_lab.harness.measure.gaps import Gaps
from rebalance_lab.harness.measure.lag_curve import LagCurve
from rebalance_lab.harness.measure.read_ranges import ReadRanges
from rebalance_lab.harness.measure.trace import Fact, flat
from rebalance_lab.protocol_v1.common.member_effects import TopicPartition

Row: TypeAlias = dict[str, Any]

STANDS_STILL = {"paused", "cut off"}
GOES_ON = {"resumed": "paused", "connected": "cut off"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    unowned_s: float
    """Partition-seconds without an owner."""
    unowned_worst_s: float
    """Of the partition that had the most."""
    unowned_longest_s: float
    """The longest single gap."""
    stalled_s: float
    """Partition-seconds in which the owner stood still."""
    rebalances: int
    settle_mean_s: float
    settle_worst_s: float
    unsettled: int
    """Events that were not over when the next one came, or the end: something had no owner, or one that stood still."""
    moved: int
    needless_revocations: int
    read_twice: int
    lag_peak: int
    lag_p99: int
    behind_s: float
    recover_s: float
    """The longest time behind at a stretch."""
    load_skew: float
    """The busiest member's load over the mean, averaged over time; 1 is perfect."""
    requests: int
    request_bytes: int
    failed_processes: int
    fetch_sessions_lost: float
    """Predicted, on three brokers with default settings: FETCH_SESSION_ID_NOT_FOUND because slots do not suffice."""

    def row(self) -> Row:
        return asdict(self)


@dataclass(slots=True)
class Standstill:
    """Record why a process stands still: paused, cut off, held up by one record or a callback, or several of these."""

    reasons: set[str] = field(default_factory=set)
    until_ms: int = 0
    """When it is through with that record, or callback."""
    counted_ms: int = 0

    def lasts_at(self, now_ms: int) -> bool:
        return bool(self.reasons) or self.until_ms > now_ms


@dataclass(slots=True)
class Track:
    """Keep one partition's history, as far as it matters."""

    readers: dict[str, int] = field(default_factory=dict)
    last: tuple[str, int] | None = None
    done: ReadRanges = field(default_factory=ReadRanges)


class Meter:
    """Take facts in order; `finish` gives the row."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.tracks: dict[TopicPartition, Track] = {}
        self.lives: dict[str, int] = {}
        self.still: dict[str, Standstill] = {}
        self.reading: dict[str, set[TopicPartition]] = {}
        """What stands still if this one does: not what others read by now, because this one has been put out."""
        self.gaps = Gaps(self.on_gap)
        self.unowned_ms: Counter[TopicPartition] = Counter()
        self.longest_ms = 0
        self.over = False
        self.moved = self.needless = self.twice = self.failed = 0
        self.stalled_ms = 0
        self.first_epoch = self.epoch = 0
        self.events: list[tuple[int, int, bool]] = []
        """Of every event: when, the last change since, and whether everything was read when the next one came."""
        self.lag = LagCurve()
        self.requests = self.request_bytes = 0
        self.sessions_lost = 0.0

    def feed(self, fact: Fact) -> None:
        """Take in a fact. After the end all processes stop reading, which is no gap: only records read twice and sums
        still count.
        """
        if self.over and fact["fact"] == "stops":
            self.count_twice(fact)
        if self.over and fact["fact"] not in SUMS:
            return
        self.now_ms = fact["t"]
        handler = HANDLERS.get(fact["fact"])
        if handler is not None:
            handler(self, fact)
        begun = self.gaps.begun
        self.gaps.feed(fact)
        if self.gaps.begun and not begun:
            self.begin()

    def begin(self) -> None:
        """Begin to count: earlier costs are the start-up's, and count only where the start-up never ends."""
        for name in self.still:
            self.add_standstill(name)
        self.stalled_ms = self.moved = self.needless = 0
        self.first_epoch = self.epoch
        self.lag.begin(at_rest=self.gaps.came_to_rest)
        self.events = [] if self.gaps.came_to_rest else self.events[-1:]

    # Facts

    def on_gap(self, tp: TopicPartition, start_ms: int, end_ms: int) -> None:
        self.unowned_ms[tp] += end_ms - start_ms
        self.longest_ms = max(self.longest_ms, end_ms - start_ms)

    def on_topic(self, fact: Fact) -> None:
        """Begin anew with a topic that was deleted and is created again."""
        if not fact["partitions"]:
            self.tracks = {tp: track for tp, track in self.tracks.items() if tp[0] != fact["topic"]}

    def on_event(self, fact: Fact) -> None:
        """Count an event. All lines of one moment are one event."""
        self.lag.something_happens(self.now_ms)
        if not self.events or self.events[-1][0] != self.now_ms:
            self.event_over()
            self.events.append((self.now_ms, self.now_ms, False))

    def event_over(self) -> None:
        for name in self.still:
            self.add_standstill(name)
        if self.events:
            at_ms, last_ms, _ = self.events[-1]
            stands_still = any(one.lasts_at(self.now_ms) and self.reading.get(name) for name, one in self.still.items())
            self.events[-1] = (at_ms, last_ms, not self.gaps.open and not stands_still)

    def on_end(self, fact: Fact) -> None:
        self.over = True
        self.event_over()

    def on_process(self, fact: Fact) -> None:
        name, what = fact["member"], fact["is"]
        still = self.still.setdefault(name, Standstill())
        self.add_standstill(name)
        if what == "started":
            self.lives[name] = self.lives.get(name, 0) + 1
        elif what == "failed":
            self.failed += 1
        if what == "stalled":
            still.until_ms = max(still.until_ms, self.now_ms + fact["ms"])
        elif what in STANDS_STILL:
            still.reasons.add(what)
        elif what in GOES_ON:
            still.reasons.discard(GOES_ON[what])
        elif what in ("killed", "closed", "failed"):
            del self.still[name]

    def on_callback(self, fact: Fact) -> None:
        """Count a callback as standstill of the partitions that are read on afterwards: nothing is processed in it."""
        still = self.still.get(fact["member"])
        if still is not None and "ms" in fact:
            self.add_standstill(fact["member"])
            still.until_ms = max(still.until_ms, self.now_ms + fact["ms"])
        self.changed()

    def add_standstill(self, name: str) -> None:
        """Count the time until now, before what a process reads, or why it stands still, changes."""
        still = self.still.get(name)
        if still is not None:
            end_ms = self.now_ms if still.reasons else min(self.now_ms, still.until_ms)
            if end_ms > still.counted_ms and self.reading.get(name):
                self.stalled_ms += (end_ms - still.counted_ms) * len(self.reading[name])
                self.changed(end_ms)
            still.counted_ms = self.now_ms

    def on_group(self, fact: Fact) -> None:
        self.changed()
        epoch = fact.get("epoch")
        if epoch is not None:
            self.epoch = max(self.epoch, epoch)

    def on_reads(self, fact: Fact) -> None:
        name = fact["member"]
        mine = self.reading.setdefault(name, set())
        self.add_standstill(name)
        me = (name, self.lives.get(name, 0))
        for topic, indexes in fact["partitions"].items():
            for index, start in zip(indexes, fact["from"][topic], strict=True):
                track = self.tracks.get((topic, index))
                if track is None:
                    track = self.tracks[topic, index] = Track()
                for other in track.readers:
                    self.hand_on((topic, index), other, taken=True)
                mine.add((topic, index))
                if track.last is not None:
                    self.moved += track.last[0] != name
                    self.needless += track.last == me and not track.readers
                track.last = me
                track.readers.pop(name, None)
                track.readers[name] = start
        self.changed()

    def on_stops(self, fact: Fact) -> None:
        name = fact["member"]
        self.add_standstill(name)
        self.count_twice(fact)
        mine = self.reading.setdefault(name, set())
        for tp in flat(fact["partitions"]):
            left = self.tracks[tp].readers if tp in self.tracks and tp in mine else {}
            mine.discard(tp)
            if left:  # the last of those who have not heard that they are out
                self.hand_on(tp, next(reversed(left)), taken=False)
        self.changed()

    def hand_on(self, tp: TopicPartition, other: str, *, taken: bool) -> None:
        """Move a partition from one process that reads it to another, or back from it."""
        self.add_standstill(other)
        if taken:
            self.reading[other].discard(tp)
        else:
            self.reading[other].add(tp)

    def count_twice(self, fact: Fact) -> None:
        for topic, indexes in fact["partitions"].items():
            for index, end in zip(indexes, fact["at"][topic], strict=True):
                track = self.tracks.get((topic, index))
                start = track.readers.pop(fact["member"], None) if track is not None else None
                if track is not None and start is not None:  # otherwise it was deleted, and is perhaps another one now
                    self.twice += track.done.add(start, end)

    def changed(self, at_ms: int | None = None) -> None:
        """Note a change just now, or at `at_ms`."""
        if self.events:
            began_ms, last_ms, _ = self.events[-1]
            self.events[-1] = (began_ms, max(last_ms, self.now_ms if at_ms is None else at_ms), False)

    def on_lag(self, fact: Fact) -> None:
        self.lag.add(fact)

    def on_requests(self, fact: Fact) -> None:
        self.requests = sum(fact["count"].values())
        self.request_bytes = sum(fact["bytes"].values())

    def on_fetch_sessions(self, fact: Fact) -> None:
        self.sessions_lost = fact["lost"]

    # The row

    def finish(self) -> Costs:
        if not self.over:
            self.event_over()
        settled = [last_ms - at_ms for at_ms, last_ms, whole in self.events if whole]
        lag = self.lag.finish(self.now_ms)
        return Costs(
            unowned_s=seconds(self.unowned_ms.total()),
            unowned_worst_s=seconds(max(self.unowned_ms.values(), default=0)),
            unowned_longest_s=seconds(self.longest_ms),
            stalled_s=seconds(self.stalled_ms),
            rebalances=self.epoch - self.first_epoch,
            settle_mean_s=seconds(sum(settled) // len(settled)) if settled else 0.0,
            settle_worst_s=seconds(max(settled, default=0)),
            unsettled=len(self.events) - len(settled),
            moved=self.moved,
            needless_revocations=self.needless,
            read_twice=self.twice,
            lag_peak=lag.peak,
            lag_p99=lag.p99,
            behind_s=seconds(lag.behind_ms),
            recover_s=seconds(lag.recover_ms),
            load_skew=lag.skew,
            requests=self.requests,
            request_bytes=self.request_bytes,
            failed_processes=self.failed,
            fetch_sessions_lost=self.sessions_lost,
        )


def seconds(ms: int) -> float:
    return ms / 1_000


HANDLERS = {
    "topic": Meter.on_topic,
    "event": Meter.on_event,
    "process": Meter.on_process,
    "group": Meter.on_group,
    "callback": Meter.on_callback,
    "reads": Meter.on_reads,
    "stops": Meter.on_stops,
    "lag": Meter.on_lag,
    "requests": Meter.on_requests,
    "fetch sessions": Meter.on_fetch_sessions,
    "end": Meter.on_end,
}
SUMS = ("requests", "fetch sessions")


def costs(facts: Iterable[Fact]) -> Costs:
    meter = Meter()
    for fact in facts:
        meter.feed(fact)
    return meter.finish()
