"""Track the topics that members subscribe to, by name or by a pattern, for simulated and live runs alike.

Beyond     a wish outlives its process, and passes to the process that has its replica name after a surge. The topics
           of a process that is down are missed
Start at   SubscriptionWishes.of_all
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import TypeAlias

from rebalance_lab.harness.timeline.replica_names import ReplicaNames
from rebalance_lab.protocol_v2.common.regex import compile_regex

Subscription: TypeAlias = tuple[frozenset[str], str | None]
"""The names, and the pattern."""


class SubscriptionWishes:
    def __init__(self, places: ReplicaNames) -> None:
        self._places = places
        self._subscribed: dict[str, Subscription] = {}
        """By a member's place."""

    def note(self, name: str, topics: Sequence[str], pattern: str | None) -> None:
        self._subscribed[self._places.of(name)] = (frozenset(topics), pattern)

    def has(self, name: str) -> bool:
        """Tell whether the process has ever said what it wants."""
        return self._places.of(name) in self._subscribed

    def of_all(self, topics: Iterable[str]) -> list[str]:
        """Return those of these topics that some member wants."""
        return wanted(topics, set(self._subscribed.values()))

    def of(self, names: Iterable[str], topics: Iterable[str]) -> list[str]:
        """Return those topics that one of these members wants, also a member that is not there."""
        places = [self._places.of(name) for name in names]
        return wanted(topics, {self._subscribed[one] for one in places if one in self._subscribed})


def wanted(topics: Iterable[str], subscribed: Set[Subscription]) -> list[str]:
    matches = [compile_regex(pattern) for _, pattern in subscribed if pattern is not None]
    named = {topic for names, _ in subscribed for topic in names}
    return [topic for topic in sorted(topics) if topic in named or any(fits(topic) for fits in matches)]
