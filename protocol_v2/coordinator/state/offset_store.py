"""Hold committed offsets by group, and define which records stand for them.

One log has one kind of offset record, whichever protocol a group speaks. Alone, this package uses its own two records.
Next to a classic coordinator it shares that coordinator's records and offsets, so that they outlive a conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rebalance_lab.protocol_v1.common.fast_dataclass import fast_dataclass

GroupOffsets: TypeAlias = MutableMapping[tuple[str, int], Any]
"""Topic and partition -> the record of the last commit."""


@fast_dataclass()
class OffsetCommit:
    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetTombstone:
    group: str
    topic: str
    partition: int


@dataclass(slots=True)
class OffsetStore:
    all: Callable[[], MutableMapping[str, Any]]
    commit: Callable[..., Any] = OffsetCommit
    """Called with the fields in this order."""
    tombstone: Callable[..., Any] = OffsetTombstone
    own: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def alone(cls) -> OffsetStore:
        own: dict[str, Any] = {}
        return cls(lambda: own, own=own)

    def of(self, group_id: str) -> GroupOffsets:
        found: GroupOffsets = self.all().get(group_id, {})
        return found

    def tombstones(self, group_id: str) -> list[Any]:
        return [
            self.tombstone(group=group_id, topic=topic, partition=partition)
            for topic, partition in sorted(self.of(group_id))
        ]

    def store(self, group_id: str, commits: Iterable[Any]) -> None:
        """Store commits of one group, once they are durable."""
        offsets = self.all().setdefault(group_id, {})
        for commit in commits:
            offsets[commit.topic, commit.partition] = commit

    def apply(self, record: Any) -> None:
        """Apply a record once it is durable."""
        offsets = self.all()
        if hasattr(record, "offset"):
            offsets.setdefault(record.group, {})[record.topic, record.partition] = record
        else:
            group = offsets.get(record.group, {})
            group.pop((record.topic, record.partition), None)
            if not group:
                offsets.pop(record.group, None)
