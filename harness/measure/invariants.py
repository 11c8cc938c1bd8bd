"""Check what must hold in every run, fact by fact as they happen.

one owner        no two processes read one partition, unless the coordinator has removed one that has not heard of it
                 yet; after some time it must have
nothing skipped  a new reader starts no later than where an earlier reader was: every record is processed
no old records   a new reader starts no earlier than the last commit: only uncommitted records are read twice
honest commits   no process commits what it has not processed, and committed offsets do not go back. The exception is a
                 static member that a rebalance passed over (Kafka keeps it, and gives its partitions away): it comes
                 back and reads on
convergence      when the faults are over and time has passed, everything subscribed to is read
messages         the messages of members and coordinators have rules of their own: tests/harness/rules

Given      facts, also those that a trace does not keep
Raises     Broken, with the facts up to there: the shortest prefix that shows it
Start at   Checker.feed
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rebalance_lab.harness.measure.broken_invariant import Broken
from rebalance_lab.harness.measure.trace import Fact, flat
from rebalance_lab.protocol_v1.common.member_effects import TopicPartition
from rebalance_lab.protocol_v2.coordinator.state.states import Event

__all__ = ["Broken", "Checker"]

CONVERSIONS = {Event.UPGRADED.value: "upgraded", Event.DOWNGRADED.value: "downgraded"}


@dataclass(slots=True)
class Ledger:
    readers: dict[str, int] = field(default_factory=dict)
    """Who reads it, from where."""
    high: int = 0
    committed: int = 0
    by: dict[str, int] = field(default_factory=dict)
    """What those who read it have committed since they began."""


class Checker:
    def __init__(self) -> None:
        self.ledgers: dict[TopicPartition, Ledger] = {}
        self.outside: set[str] = set()
        """Processes that the coordinator has removed, and that may not have heard of it."""
        self.conversions: list[str] = []
        """Of the group from one protocol to the other."""

    def feed(self, fact: Fact) -> None:
        match fact["fact"]:
            case "reads":
                self.on_reads(fact)
            case "stops":
                self.on_stops(fact)
            case "durable":
                self.on_committed(fact)
            case "expired":
                for tp in flat(fact["partitions"]):
                    self.ledger(tp).committed = 0
            case "group" if fact["because"] in CONVERSIONS:
                self.conversions.append(CONVERSIONS[fact["because"]])
            case "removed":
                self.outside.add(fact["member"])
            case "process" if fact["is"] in ("started", "killed", "closed", "failed"):
                self.outside.discard(fact["member"])
            case "callback" if fact["callback"] == "onPartitionsLost":
                self.outside.discard(fact["member"])  # now it has heard
            case "topic" if not fact["partitions"]:
                for tp in [tp for tp in self.ledgers if tp[0] == fact["topic"]]:
                    del self.ledgers[tp]
            case "end":
                self.on_end(fact)

    def ledger(self, tp: TopicPartition) -> Ledger:
        ledger = self.ledgers.get(tp)
        if ledger is None:
            ledger = self.ledgers[tp] = Ledger()
        return ledger

    def on_reads(self, fact: Fact) -> None:
        name, now_ms = fact["member"], fact["t"]
        if "removed" in fact:
            self.outside.add(name)
            for tp in flat(fact["partitions"]):
                self.ledger(tp).readers[name] = 0
            return
        self.outside.discard(name)
        for topic, indexes in fact["partitions"].items():
            for index, start in zip(indexes, fact["from"][topic], strict=True):
                ledger = self.ledger((topic, index))
                if ledger.readers:
                    others = [other for other in ledger.readers if other not in self.outside]
                    if others:
                        what = f"{name} reads {topic}-{index} while {', '.join(others)} does{self.lately()}"
                        raise Broken("one owner", what, now_ms)
                elif start > ledger.high:
                    what = f"{name} starts {topic}-{index} at {start}, nobody was beyond {ledger.high}"
                    raise Broken("nothing skipped", what, now_ms)
                if start < ledger.committed:
                    what = f"{name} starts {topic}-{index} at {start}, committed is {ledger.committed}"
                    raise Broken("no old records", what, now_ms)
                ledger.readers[name] = start
                ledger.by.pop(name, None)

    def lately(self) -> str:
        """Return what may be behind it: the group's last conversions."""
        return f"; the group was {' and '.join(self.conversions[-2:])} before" if self.conversions else ""

    def on_stops(self, fact: Fact) -> None:
        name, now_ms = fact["member"], fact["t"]
        for topic, indexes in fact["partitions"].items():
            for index, end in zip(indexes, fact["at"][topic], strict=True):
                ledger = self.ledger((topic, index))
                ledger.readers.pop(name, None)
                ledger.high = max(ledger.high, end)
                done = ledger.by.pop(name, 0)
                if done > end:
                    what = f"{name} committed {topic}-{index} {done}, but was at {end}"
                    raise Broken("honest commits", what, now_ms)

    def on_committed(self, fact: Fact) -> None:
        name, now_ms = fact["member"], fact["t"]
        for topic, indexes in fact["partitions"].items():
            for index, offset in zip(indexes, fact["offsets"][topic], strict=True):
                ledger = self.ledger((topic, index))
                if offset < ledger.committed and name not in self.outside:
                    what = f"{name} commits {topic}-{index} {offset} after {ledger.committed}"
                    raise Broken("honest commits", what, now_ms)
                ledger.committed = offset
                if name in ledger.readers:
                    ledger.by[name] = offset
                elif offset > ledger.high:
                    what = f"{name} commits {topic}-{index} {offset}, processed is {ledger.high}"
                    raise Broken("honest commits", what, now_ms)

    def on_end(self, fact: Fact) -> None:
        unread = list(flat(fact["unread"]))
        if fact["quiet"] and unread:
            shown = ", ".join(f"{topic}-{index}" for topic, index in unread[:5])
            raise Broken("convergence", f"{len(unread)} partitions have no owner at the end: {shown}", fact["t"])
        shared = [(tp, ledger.readers) for tp, ledger in self.ledgers.items() if len(ledger.readers) > 1]
        if fact["quiet"] and shared:
            (topic, index), readers = shared[0]
            raise Broken("one owner", f"{' and '.join(readers)} both read {topic}-{index} to the end", fact["t"])
