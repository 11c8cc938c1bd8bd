"""Hold the looks at a group's offsets: all partitions at once, no longer ago than the window reaches.

Given      samples in the order of their time
Returns    the looks at one partition, and what can be known from them
Start at   OffsetWindow.with_sample
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rebalance_lab.harness.kafka.groups.lag_status import Look, Offsets, commits_apart

TopicPartition: TypeAlias = tuple[str, int]
BLIND_SPOTS = (
    "A commit of an unchanged offset cannot be seen. A stuck consumer and one that does not commit look the same.",
    "The time of a commit is known only to the time between two looks.",
    "A consumer that assigned its partitions to itself is no member. Only its commits show that it runs.",
)


@dataclass(frozen=True, slots=True)
class Sample:
    at_s: float
    """By a clock that does not go back."""
    offsets: Mapping[TopicPartition, Offsets]


@dataclass(frozen=True, slots=True)
class OffsetWindow:
    samples: tuple[Sample, ...] = ()

    def with_sample(self, sample: Sample, *, longest_s: float) -> OffsetWindow:
        """Return the window with one sample more, and without those that are too old for it."""
        kept = (one for one in self.samples if sample.at_s - one.at_s <= longest_s)
        return OffsetWindow((*kept, sample))

    def looks(self, place: TopicPartition) -> list[Look]:
        return [Look(one.at_s, one.offsets[place]) for one in self.samples if place in one.offsets]

    @property
    def span_s(self) -> float:
        return self.samples[-1].at_s - self.samples[0].at_s if self.samples else 0.0

    @property
    def commits_apart_s(self) -> float:
        return commits_apart(self.looks(place) for place in (self.samples[-1].offsets if self.samples else ()))

    def to_json(self) -> dict[str, Any]:
        return {
            "looks": len(self.samples),
            "seconds": round(self.span_s, 1),
            "commits_apart_s": round(self.commits_apart_s, 1) or None,
            "cannot_be_known": list(BLIND_SPOTS),
        }
