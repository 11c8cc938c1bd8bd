"""Compare what was written, what was processed and what was committed: the sequence oracle.

Gaps       every record below the position of a partition's readers was processed by one of them
Twice      processing a record again is allowed, and bounded by what was not committed when a reader was interrupted
Committed  never beyond what has been processed at that moment
Start at   Oracle.verdict
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rebalance_lab.harness.measure.trace import Fact

Place: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    records: int
    """Processed at least once."""
    twice: int
    written_again: int
    """By the producer, which is not the group's fault."""
    gaps: tuple[str, ...]
    ahead: tuple[str, ...]
    """Commits of records that no process had processed."""
    old: tuple[str, ...]
    """Reading that began before what was known to be committed when the reader asked where to begin. Who is stopped in
    that moment finds the answer later, and reads from there until it hears that it is no longer a member."""
    broken: tuple[str, ...]
    """Records that are not the next ones, as their readers saw it: one was skipped, or lost."""

    @property
    def good(self) -> bool:
        return not (self.gaps or self.ahead or self.old or self.broken)

    def to_json(self) -> dict[str, Any]:
        lists = {name: list(getattr(self, name)) for name in ("gaps", "ahead", "old", "broken")}
        counts = {name: getattr(self, name) for name in ("good", "records", "twice", "written_again")}
        return {**counts, **lists}


@dataclass(slots=True)
class Ledger:
    high: int = 0
    """Everything below was processed."""
    twice: int = 0
    written_again: int = 0
    commits: list[tuple[int, int, str]] = field(default_factory=list)
    """When, up to where, and by which process."""

    def committed_by(self, at_ms: int) -> tuple[int, str]:
        return next(((offset, by) for t, offset, by in reversed(self.commits) if t <= at_ms), (0, ""))


@dataclass(slots=True)
class Oracle:
    ledgers: dict[Place, Ledger] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)
    ahead: list[str] = field(default_factory=list)
    old: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def feed(self, fact: Fact) -> None:
        match fact["fact"]:
            case "processed":
                first, end = fact["span"]
                self.on_processed((fact["topic"], fact["partition"]), first, end, fact)
            case "reads":
                for topic, numbers in fact["partitions"].items():
                    for number, start in zip(numbers, fact["from"][topic], strict=True):
                        self.on_reads((topic, number), start, fact)
            case "durable":
                for topic, number, offset in fact["offsets"]:
                    self.on_committed((topic, number), offset, fact)
            case "written again":
                ledger = self.ledger((fact["topic"], fact["partition"]))
                ledger.written_again = max(ledger.written_again, fact["records"])
            case "broken":
                self.broken.append(fact["why"])

    def ledger(self, place: Place) -> Ledger:
        return self.ledgers.setdefault(place, Ledger())

    def on_processed(self, place: Place, first: int, end: int, fact: Fact) -> None:
        ledger = self.ledger(place)
        if first > ledger.high:
            self.gaps.append(f"{shown(place)}: {first - ledger.high} records from {ledger.high} on, {whence(fact)}")
        ledger.twice += max(0, min(end, ledger.high) - first)
        ledger.high = max(ledger.high, end)

    def on_reads(self, place: Place, start: int, fact: Fact) -> None:
        ledger = self.ledger(place)
        committed, by = ledger.committed_by(fact["asked"] if "asked" in fact else fact["t"])
        if start < committed:
            self.old.append(f"{shown(place)}: from {start} {whence(fact)}, though {committed} was committed {by}")

    def on_committed(self, place: Place, offset: int, fact: Fact) -> None:
        ledger = self.ledger(place)
        if offset > ledger.high:
            self.ahead.append(f"{shown(place)}: {offset} committed, {ledger.high} processed, {whence(fact)}")
        ledger.commits.append((fact["t"], offset, whence(fact)))

    def verdict(self) -> Verdict:
        return Verdict(
            records=sum(ledger.high for ledger in self.ledgers.values()),
            twice=sum(ledger.twice for ledger in self.ledgers.values()),
            written_again=sum(ledger.written_again for ledger in self.ledgers.values()),
            gaps=tuple(self.gaps),
            ahead=tuple(self.ahead),
            old=tuple(self.old),
            broken=tuple(self.broken),
        )


def judge(facts: Iterable[Fact]) -> Verdict:
    oracle = Oracle()
    for fact in facts:
        oracle.feed(fact)
    return oracle.verdict()


def shown(place: Place) -> str:
    return f"{place[0]}-{place[1]}"


def whence(fact: Fact) -> str:
    return f"by {fact['member']} at {fact['t'] / 1_000:.1f} s"
