"""Describe a coordinator as its host sees it: what the host hands in, and what it may call.

Hosts      the sequence player (harness/conversation), the simulator, and the served coordinator (harness/kafka/wire)
Start at   CoordinatorMachine
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from rebalance_lab.assignors.model import Topic
from rebalance_lab.protocol_v1.common.effects import Effect, TimerKey
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import Request
from rebalance_lab.protocol_v2.coordinator.config import ListSetting

NewMemberId: TypeAlias = Callable[[str], str]
Topics: TypeAlias = Mapping[str, "int | Topic"]
"""Partitions by name; a Topic where the id is known."""


class CoordinatorMachine(Protocol):
    """Describe a coordinator of either protocol, as its host sees it."""

    def handle(self, request: Request, now_ms: int) -> list[Effect]: ...
    def on_timer(self, key: TimerKey, now_ms: int) -> list[Effect]: ...
    def on_append(self, append_id: int, now_ms: int, error: Error = Error.NONE) -> list[Effect]: ...
    def update_topics(self, topics: Topics, now_ms: int) -> list[Effect]: ...
    def load(self, records: Sequence[Any], now_ms: int) -> list[Effect]: ...
    def unload(self, now_ms: int) -> list[Effect]: ...


@runtime_checkable
class Transactional(Protocol):
    """Describe a coordinator that keeps offsets of open transactions."""

    def complete_transaction(self, producer_id: int, committed: bool, now_ms: int) -> list[Effect]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedProtocol:
    """Describe a protocol that can be served: its requests by name, its settings, and how its coordinator is made."""

    requests: Mapping[str, type[Request]]
    properties: Sequence[str]
    build: Callable[[Mapping[str, Any], NewMemberId, Topics | None], CoordinatorMachine]
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Settings that are words, with those they can be; all others are whole numbers."""
    lists: Mapping[str, ListSetting] = field(default_factory=dict)
    """Settings that are lists of names."""
    may_be_zero: Sequence[str] = ()
    """Intervals that are allowed to be 0."""


def partition_counts(topics: Topics) -> dict[str, int]:
    return {name: topic.partitions if isinstance(topic, Topic) else topic for name, topic in topics.items()}
