"""Model records as a flow: how far each partition is written, and how far each process has read.

Units      a record is 10**12: so rates (also of one a day), speeds and shares are whole numbers, and sums are the same
           on every machine
Cost       nothing happens per record or per poll: a reader is carried forward when its positions are asked for
Reading    a process works on one record at a time. When it keeps up, it is where the writers are. When it does not, its
           time is shared among its partitions in proportion to their lag
Start at   Records, Reader.advance
"""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_lab.protocol_v1.common.member_effects import TopicPartition

RECORD = 1_000_000_000_000


def speed(record_ms: float) -> int:
    """Return the speed per millisecond. A record takes at least a nanosecond, and however long it takes, it ends."""
    return max(1, round(RECORD / max(record_ms, 1e-6)))


def per_ms(records_per_second: float) -> int:
    return round(records_per_second * RECORD / 1_000)


class Stream:
    """Model one partition's records."""

    __slots__ = ("committed", "origin", "rate", "read", "readers", "tp")

    def __init__(self, tp: TopicPartition, rate: int, now_ms: int) -> None:
        self.tp = tp
        self.rate = rate
        self.origin = -rate * now_ms
        """What was written at time 0 if the present rate had always been: written(t) = origin + rate * t."""
        self.read = 0
        """The highest position at which a process has left it."""
        self.committed = 0
        """In records."""
        self.readers = 0

    def written(self, now_ms: int) -> int:
        return self.origin + self.rate * now_ms

    def set_rate(self, rate: int, now_ms: int) -> None:
        self.origin += (self.rate - rate) * now_ms
        self.rate = rate


class Records:
    """Hold all partitions, and the records that no process is reading."""

    def __init__(self) -> None:
        self.streams: dict[TopicPartition, Stream] = {}
        self.shared: dict[TopicPartition, Stream] = {}
        """Those with more than one reader."""
        self.rate = 0
        """Of all partitions together."""
        self._waiting_origin = 0
        self._waiting_rate = 0

    def add(self, tp: TopicPartition, rate: int, now_ms: int) -> Stream:
        stream = self.streams[tp] = Stream(tp, rate, now_ms)
        self.rate += rate
        self._wait(stream, 1)
        return stream

    def remove(self, tp: TopicPartition) -> None:
        stream = self.streams.pop(tp)
        self.rate -= stream.rate
        if not stream.readers:
            self._wait(stream, -1)

    def set_rate(self, stream: Stream, rate: int, now_ms: int) -> None:
        """Set a rate. Callers carry readers forward to now before, and let them look at their rates again after."""
        if not stream.readers:
            self._wait(stream, -1)
        self.rate += rate - stream.rate
        stream.set_rate(rate, now_ms)
        if not stream.readers:
            self._wait(stream, 1)

    def expire(self, stream: Stream) -> None:
        """Forget how far a partition was read and committed: the next reader begins at the beginning."""
        if not stream.readers:
            self._wait(stream, -1)
        stream.read = stream.committed = 0
        if not stream.readers:
            self._wait(stream, 1)

    def waiting(self, now_ms: int) -> int:
        """Return the unread records of partitions that no process reads."""
        return self._waiting_origin + self._waiting_rate * now_ms

    def _wait(self, stream: Stream, sign: int) -> None:
        self._waiting_origin += sign * (stream.origin - stream.read)
        self._waiting_rate += sign * stream.rate

    def taken(self, stream: Stream) -> None:
        if not stream.readers:
            self._wait(stream, -1)
        stream.readers += 1
        if stream.readers > 1:
            self.shared[stream.tp] = stream

    def dropped(self, stream: Stream) -> None:
        stream.readers -= 1
        if stream.readers == 1:
            self.shared.pop(stream.tp, None)
        if not stream.readers and self.streams.get(stream.tp) is stream:
            self._wait(stream, 1)


class Reader:
    """Model one process's reading. `speed` is what it can do in a millisecond; it stands still while not `running`."""

    __slots__ = (
        "_level",
        "_positions",
        "_records",
        "at_ms",
        "backlog",
        "lag",
        "rate",
        "running",
        "since_ms",
        "speed",
        "streams",
    )

    def __init__(self, records: Records, record_ms: float, now_ms: int) -> None:
        self._records = records
        self.speed = speed(record_ms)
        self.at_ms = now_ms
        self.since_ms = now_ms
        """When its present way of going on began: where its batches are counted from."""
        self.running = True
        self.streams: dict[TopicPartition, Stream] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._level = False
        """It is where the writers are at `at_ms`; its positions are computed when they are asked for."""
        self.rate = 0
        self.lag = 0
        """Of all its partitions, at `at_ms`."""
        self.backlog = 0
        """The lag when it last began to read, or was last asked for it."""

    @property
    def positions(self) -> dict[TopicPartition, int]:
        if self._level:
            now_ms = self.at_ms
            self._positions = {tp: stream.origin + stream.rate * now_ms for tp, stream in self.streams.items()}
            self._level = False
        return self._positions

    def start(self, starts: Iterable[tuple[Stream, int]], now_ms: int) -> None:
        """Start reading; `starts` has partitions, and the record to begin with."""
        self.advance(now_ms)
        positions = self.positions
        for stream, record in starts:
            self._records.taken(stream)
            self.streams[stream.tp] = stream
            positions[stream.tp] = record * RECORD
        self._look(now_ms)

    def stop(self, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        self.advance(now_ms)
        positions = self.positions
        for tp in partitions:
            stream = self.streams.pop(tp)
            stream.read = max(stream.read, positions.pop(tp))
            self._records.dropped(stream)
        self._look(now_ms)

    def set_running(self, running: bool, now_ms: int) -> None:
        if running is not self.running:
            self.advance(now_ms)
            self.running = running
            self.since_ms = now_ms
            self.backlog = self.lag

    def set_speed(self, record_ms: float, now_ms: int) -> None:
        self.advance(now_ms)
        self.speed = speed(record_ms)
        self.since_ms = now_ms

    def rates_changed(self, now_ms: int) -> None:
        self._look(now_ms)

    @property
    def keeps_up(self) -> bool:
        """Tell whether it has no lag, and will have none as long as nothing changes."""
        return not self.lag and ((self.running and self.speed >= self.rate) or not self.rate)

    def lag_at(self, now_ms: int) -> int:
        """Return the lag without looking at single partitions."""
        spent = now_ms - self.at_ms
        lag = self.lag + self.rate * spent
        return max(0, lag - self.speed * spent) if self.running else lag

    def level_ms(self) -> int | None:
        """Return when it will have caught up if it goes on as now, or None for never."""
        gains = self.speed - self.rate if self.running else 0
        return self.at_ms - (-self.lag // gains) if gains > 0 else None

    def lag_of(self, stream: Stream, now_ms: int) -> int:
        """Return one partition's lag: its part of the whole."""
        whole = self.lag + self.rate * (now_ms - self.at_ms)
        unread = stream.written(now_ms) - self.positions[stream.tp]
        return unread * self.lag_at(now_ms) // whole if whole else 0

    def offsets(self) -> dict[TopicPartition, int]:
        """Return how many whole records of each partition are done with, at `at_ms`."""
        if self._level:
            now_ms = self.at_ms
            return {tp: (stream.origin + stream.rate * now_ms) // RECORD for tp, stream in self.streams.items()}
        return {tp: position // RECORD for tp, position in self._positions.items()}

    def advance(self, now_ms: int) -> None:
        spent = now_ms - self.at_ms
        if spent <= 0:
            return
        if not self.streams:
            self.at_ms = now_ms
            return
        lag = self.lag + self.rate * spent
        done = self.speed * spent if self.running else 0
        if done >= lag:
            self.lag, self._level = 0, True
        else:
            self._fall_behind(now_ms, lag, done)
        self.at_ms = now_ms

    def _fall_behind(self, now_ms: int, lag: int, done: int) -> None:
        positions = self.positions
        if not done:
            self.lag = lag
            return
        left = lag - done
        rest = 0
        self._positions = reached = {}
        for tp, stream in self.streams.items():
            end = stream.origin + stream.rate * now_ms
            stays = (end - positions[tp]) * left // lag
            rest += stays
            reached[tp] = end - stays
        self.lag = rest

    def _look(self, now_ms: int) -> None:
        self.since_ms = now_ms
        self.rate = 0
        self.lag = 0
        positions = self.positions
        for stream in self.streams.values():
            self.rate += stream.rate
            self.lag += stream.origin + stream.rate * now_ms - positions[stream.tp]
        self.backlog = self.lag
