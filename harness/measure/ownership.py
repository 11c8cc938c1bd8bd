"""Turn a trace into intervals: which process read which partition, which stood still, which partitions had no reader.

Given      the facts of a run
Returns    Timelines: what a chart draws, and what `at` answers about one moment
Gaps       as costs.py counts them (gaps.py)
Start at   timelines, Timelines.owners_at
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rebalance_lab.harness.measure.gaps import Gaps
from rebalance_lab.harness.measure.trace import Fact, by_topic, flat
from rebalance_lab.protocol_v1.common.member_effects import TopicPartition

DOWN = ("killed", "closed", "failed")
STILL = {"paused": "paused", "cut off": "cut off"}
HELD_UP = "held up by a record"
CALLED = "in a callback"
GOES_ON = ("resumed", "connected")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Cover partitions `first` to `last` of a topic, read by a member, or by no member where it is None."""

    start_ms: int
    end_ms: int
    topic: str
    first: int
    last: int
    member: str = ""

    @property
    def partitions(self) -> range:
        return range(self.first, self.last + 1)


@dataclass(frozen=True, slots=True, order=True)
class State:
    """Cover a time in which a process runs, or stands still in one way."""

    start_ms: int
    end_ms: int
    member: str
    what: str


@dataclass(frozen=True, slots=True)
class Happening:
    at_ms: int
    kind: str
    """event, process, group, coordinator or topic: the facts' own kinds."""
    text: str


@dataclass(slots=True)
class Timelines:
    end_ms: int = 0
    members: list[str] = field(default_factory=list)
    """In the order in which they first started."""
    topics: dict[str, int] = field(default_factory=dict)
    """With the most partitions each ever had."""
    reads: list[Span] = field(default_factory=list)
    gaps: list[Span] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    lags: list[tuple[int, int]] = field(default_factory=list)

    def owners_at(self, now_ms: int) -> dict[str, dict[str, list[int]]]:
        """Return the owners among the processes that run then; at the very end, what was still read."""
        running = [one for one in self.members if self.what_at(one, now_ms)]
        found: dict[str, list[TopicPartition]] = {member: [] for member in running}
        for span in self.at(self.reads, now_ms):
            found.setdefault(span.member, []).extend((span.topic, index) for index in span.partitions)
        return {member: by_topic(partitions) for member, partitions in found.items()}

    def unowned_at(self, now_ms: int) -> dict[str, list[int]]:
        return by_topic((span.topic, index) for span in self.at(self.gaps, now_ms) for index in span.partitions)

    def what_at(self, member: str, now_ms: int) -> str:
        """Return `running`, or the way in which the process stands still; empty where it does not run."""
        found = [state.what for state in self.states if state.member == member and self.holds(state, now_ms)]
        return max(found, key=lambda what: what != "running", default="")

    def holds(self, span: Span | State, now_ms: int) -> bool:
        return span.start_ms <= now_ms < span.end_ms or (now_ms == self.end_ms == span.end_ms)

    def at(self, spans: Sequence[Span], now_ms: int) -> Iterator[Span]:
        return (span for span in spans if self.holds(span, now_ms))


class Reader:
    """Take facts in order; what is open at the end is closed there."""

    def __init__(self) -> None:
        self.lines = Timelines()
        self.now_ms = 0
        self.open: dict[tuple[str, TopicPartition], int] = {}
        self.running: dict[str, int] = {}
        self.still: dict[tuple[str, str], int] = {}
        self.held_up: dict[str, tuple[int, int, str]] = {}
        """By one record or in a callback: from when until when, and in which of the two."""
        self.reads: list[tuple[int, int, str, int, str]] = []
        self.gaps: list[tuple[int, int, str, int, str]] = []
        self.finder = Gaps(lambda tp, start_ms, end_ms: self.gaps.append((start_ms, end_ms, *tp, "")))

    def feed(self, fact: Fact) -> None:
        self.now_ms = fact["t"]
        self.finder.feed(fact)
        match fact["fact"]:
            case "reads":
                self.on_reads(fact["member"], flat(fact["partitions"]))
            case "stops":
                self.on_stops(fact["member"], flat(fact["partitions"]))
            case "topic":
                topics = self.lines.topics
                topics[fact["topic"]] = max(fact["partitions"], topics.get(fact["topic"], 0))
            case "process":
                self.on_process(fact["member"], fact["is"], fact.get("ms", 0))
            case "callback" if "ms" in fact:
                self.is_held_up(fact["member"], fact["ms"], CALLED)
            case "lag":
                self.lines.lags.append((fact["t"], fact["records"]))
        text = in_words(fact)
        if text:
            self.lines.happenings.append(Happening(self.now_ms, fact["fact"], text))

    def on_reads(self, member: str, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            self.open.setdefault((member, tp), self.now_ms)

    def on_stops(self, member: str, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            since_ms = self.open.pop((member, tp), None)
            if since_ms is not None and since_ms < self.now_ms:
                self.reads.append((since_ms, self.now_ms, tp[0], tp[1], member))

    def on_process(self, member: str, what: str, for_ms: int) -> None:
        if what == "started":
            if member not in self.lines.members:
                self.lines.members.append(member)
            self.running[member] = self.now_ms
        elif what == "stalled":
            self.is_held_up(member, for_ms, HELD_UP)
        elif what in STILL:
            self.still[member, what] = self.now_ms
        elif what in GOES_ON:
            self.goes_on(member, "paused" if what == "resumed" else "cut off")
        elif what in DOWN:
            for how in ("paused", "cut off"):
                self.goes_on(member, how)
            self.is_through(member)
            since_ms = self.running.pop(member, None)
            if since_ms is not None:
                self.lines.states.append(State(since_ms, self.now_ms, member, "running"))

    def goes_on(self, member: str, how: str) -> None:
        since_ms = self.still.pop((member, how), None)
        if since_ms is not None:
            self.lines.states.append(State(since_ms, self.now_ms, member, STILL[how]))

    def is_held_up(self, member: str, for_ms: int, what: str) -> None:
        self.is_through(member)
        self.held_up[member] = (self.now_ms, self.now_ms + for_ms, what)

    def is_through(self, member: str) -> None:
        """Note that a member is through with the record or callback that held it up, or is gone."""
        start_ms, end_ms, what = self.held_up.pop(member, (0, 0, ""))
        if end_ms:
            self.lines.states.append(State(start_ms, min(end_ms, self.now_ms), member, what))

    def finish(self) -> Timelines:
        lines, end_ms = self.lines, self.now_ms
        lines.end_ms = end_ms
        self.reads += (
            (since_ms, end_ms, topic, index, member) for (member, (topic, index)), since_ms in self.open.items()
        )
        self.finder.finish(end_ms)
        lines.reads = merged(self.reads)
        lines.gaps = merged(self.gaps)
        for member in list(self.held_up):
            self.is_through(member)
        for member, how in list(self.still):
            self.goes_on(member, how)
        lines.states += (State(since_ms, end_ms, member, "running") for member, since_ms in self.running.items())
        lines.states.sort()
        return lines


def merged(pieces: Iterable[tuple[int, int, str, int, str]]) -> list[Span]:
    """Merge neighbours that come and go together into one span: a chart of a thousand partitions stays small."""
    spans: list[Span] = []
    for start_ms, end_ms, topic, index, member in sorted(
        pieces, key=lambda one: (one[0], one[1], one[2], one[4], one[3])
    ):
        last = spans[-1] if spans else None
        if last is not None and (start_ms, end_ms, topic, member, index) == (
            last.start_ms, last.end_ms, last.topic, last.member, last.last + 1
        ):  # fmt: skip
            spans[-1] = Span(start_ms, end_ms, topic, last.first, index, member)
        else:
            spans.append(Span(start_ms, end_ms, topic, index, index, member))
    return spans


def in_words(fact: Fact) -> str:
    """Describe a fact as users want to read it in a list of events; empty for all other facts."""
    match fact["fact"]:
        case "event":
            return event_in_words(fact)
        case "process":
            why = f": {fact['why']}" if fact.get("why") else ""
            return f"{fact['member']} {PROCESS_WORDS.get(fact['is'], fact['is'])}{why}"
        case "group":
            because = f" ({fact['because']})" if fact.get("because") else ""
            return f"group {fact['state']}, epoch {fact['epoch']}{because}"
        case "coordinator":
            return f"coordinator {fact['is']}"
        case "expired":
            return f"offsets expired: {partitions_in_words(fact['partitions'])}"
        case "topic" if fact["t"]:
            return f"{fact['topic']} has {fact['partitions']} partitions"
        case _:
            return ""


def partitions_in_words(partitions: Mapping[str, Sequence[int]]) -> str:
    """Count the partitions of each topic."""
    return ", ".join(f"{len(all_)} of {topic}" for topic, all_ in partitions.items())


PROCESS_WORDS = {
    "closing": "is told to stop",
    "closed": "has left",
    "killed": "is killed",
    "stalled": "is held up by a record",
    "cut off": "is cut off from the brokers",
    "connected": "reaches the brokers again",
}


def event_in_words(fact: Fact) -> str:
    members: list[str] = fact.get("members", [])
    shown = ", ".join(members[:4]) + (f" and {len(members) - 4} more" if len(members) > 4 else "")
    details: list[Any] = [fact["what"]]
    if "to" in fact and "topic" not in fact:
        details.append(f"to {fact['to']}")
    elif "topic" in fact:
        details.append(f"{fact['topic']} to {fact['to']}" if "to" in fact else fact["topic"])
    elif shown:
        details.append(shown)
    if "factor" in fact:
        details.append(f"{fact['factor']:g} times")
    return " ".join(map(str, details))


def timelines(facts: Iterable[Fact]) -> Timelines:
    reader = Reader()
    for fact in facts:
        if fact["fact"] == "end":
            reader.now_ms = fact["t"]
            break
        reader.feed(fact)
    return reader.finish()
