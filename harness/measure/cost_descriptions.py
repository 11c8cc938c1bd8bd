"""Describe the costs in words: name, unit, and how a difference is said. Tables, the page and the advice use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CostWords:
    title: str
    unit: str
    """s, records, bytes, times, or empty for a bare number."""
    sentence: str
    """With {a} for the one strategy's figure and {b} for the other's."""
    explanation: str

    def figure(self, value: float) -> str:
        return f"{number(value)} {self.unit}".rstrip()

    def said(self, a: float, b: float) -> str:
        """Say a difference, with a counted thing named once: `37 partitions change hands instead of 100`."""
        counted = self.unit in ("partitions", "records", "events", "times")
        return self.sentence.format(a=self.figure(a), b=number(b) if counted else self.figure(b))


def number(value: float) -> str:
    """Print three significant figures, with thousands apart."""
    size = abs(value)
    digits = 0 if size >= 100 or value == int(value) else 1 if size >= 10 else 2
    return f"{value:,.{digits}f}"


COST_DESCRIPTIONS: Mapping[str, CostWords] = {
    "unowned_s": CostWords(
        "Without an owner",
        "s",
        "partitions are without an owner for {a} in all instead of {b}",
        "Partition-seconds in which nobody reads a partition: ten partitions for two seconds are twenty.",
    ),
    "unowned_worst_s": CostWords(
        "Worst partition",
        "s",
        "the worst partition is without an owner for {a} in all instead of {b}",
        "The same for the partition that had the most of it.",
    ),
    "unowned_longest_s": CostWords(
        "Longest gap",
        "s",
        "the longest gap of a partition is {a} instead of {b}",
        "The longest time in one piece that a partition had no owner.",
    ),
    "stalled_s": CostWords(
        "Owner stuck",
        "s",
        "partitions wait for an owner that stands still for {a} instead of {b}",
        "Partition-seconds in which the owner is paused, cut off, or held up by one record or by a callback.",
    ),
    "fetch_sessions_lost": CostWords(
        "Fetch sessions lost",
        "times",
        "brokers put out fetch sessions {a} instead of {b}",
        "Predicted FETCH_SESSION_ID_NOT_FOUND on three brokers with default settings, for lack of slots.",
    ),
    "rebalances": CostWords(
        "Rebalances",
        "",
        "there are {a} rebalances instead of {b}",
        "Generations or group epochs after the first rest; one that becomes empty has a new one, too.",
    ),
    "settle_mean_s": CostWords(
        "Settling, mean",
        "s",
        "the group takes {a} to settle after an event instead of {b}",
        "From an event of the timeline to the last change before the next one.",
    ),
    "settle_worst_s": CostWords(
        "Settling, worst", "s", "the slowest settling takes {a} instead of {b}", "The slowest of those."
    ),
    "unsettled": CostWords(
        "Not settled",
        "events",
        "{a} are not over before the next one instead of {b}",
        "Events that were not over when the next one came, or the end.",
    ),
    "moved": CostWords(
        "Moved",
        "partitions",
        "{a} change hands instead of {b}",
        "How often a partition is read by another member than before.",
    ),
    "needless_revocations": CostWords(
        "Given up needlessly",
        "times",
        "partitions are given up and got back {a} instead of {b}",
        "A partition is taken from a process and then given back to the same one.",
    ),
    "read_twice": CostWords(
        "Read twice",
        "records",
        "{a} are processed twice instead of {b}",
        "Records processed again, because they were not committed when another process began with their partition.",
    ),
    "lag_peak": CostWords(
        "Peak lag",
        "records",
        "at most {a} wait instead of {b}",
        "Written and not processed yet, or to be processed again, at the worst moment.",
    ),
    "lag_p99": CostWords(
        "Lag, 99 % of the time",
        "records",
        "99 % of the time at most {a} wait instead of {b}",
        "The same without the worst hundredth of the time.",
    ),
    "behind_s": CostWords(
        "Behind",
        "s",
        "the group is behind for {a} instead of {b}",
        "Time in which more than one second's worth of records waits.",
    ),
    "recover_s": CostWords(
        "Time to recover",
        "s",
        "the group takes at most {a} to catch up instead of {b}",
        "The longest time behind at a stretch.",
    ),
    "load_skew": CostWords(
        "Busiest member",
        "x the mean",
        "the busiest member has {a} instead of {b}",
        "Its load over the mean, averaged over time; 1 is perfect.",
    ),
    "requests": CostWords(
        "Coordinator requests", "", "the coordinator is sent {a} requests instead of {b}", "Heartbeats and commits too."
    ),
    "request_bytes": CostWords(
        "Their bytes", "B", "the coordinator is sent {a} instead of {b}", "What those requests add up to on the wire."
    ),
    "failed_processes": CostWords(
        "Processes failed",
        "times",
        "processes end with an exception {a} instead of {b}",
        "A consumer's poll raised, and its process was started again ten seconds later.",
    ),
}
