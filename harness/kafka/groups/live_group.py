"""Define what is known of a live group, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rebalance_lab.harness.kafka.groups.offset_window import OffsetWindow


class GroupError(Exception):
    """Report in one line that the group could not be read, to show with exit code 2."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(" ".join(message.split()))
        self.kind = kind
        """unreachable, unauthorized, no such group, timed out, or refused (Kafka's own error is in the message)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveMember:
    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    topics: tuple[str, ...]
    """What it subscribes to; where no source says (GroupDescription.inferred), what it owns."""
    owned: Mapping[str, tuple[int, ...]]
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePartition:
    topic: str
    partition: int
    owner: str | None
    """A member id."""
    committed: int | None
    begin: int
    end: int
    status: str
    """working, behind, rewound, stalled, stopped or unknown (lag_status.py)."""
    rate: float | None = None
    """Records a second written between two samples; None with one."""
    only_markers: bool = False
    """Whether no record stands behind the lag, but what ends a transaction (unread_records.py)."""

    @property
    def lag(self) -> int:
        """Return the lag. A consumer that has not committed begins with the oldest record there is."""
        return max(0, self.end - (self.begin if self.committed is None else self.committed))


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTopic:
    topic_id: str
    partitions: int
    racks: tuple[tuple[str, ...], ...] | None
    """Of each partition's replicas; None where brokers have no rack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    group: str
    protocol: str
    """classic or consumer."""
    state: str
    assignor: str
    coordinator: str
    members: Sequence[LiveMember]
    topics: Mapping[str, LiveTopic]
    partitions: Sequence[LivePartition]
    inferred: bool
    """Whether subscriptions are guessed from what members own."""
    window: OffsetWindow = field(default_factory=OffsetWindow)
    """The looks that statuses come from."""

    @property
    def lag(self) -> int:
        return sum(partition.lag for partition in self.partitions)

    def to_json(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "protocol": self.protocol,
            "state": self.state,
            "assignor": self.assignor,
            "coordinator": self.coordinator,
            "lag": self.lag,
            "subscriptions": "inferred from what members own" if self.inferred else "as members say",
            "members": [
                {
                    "member_id": member.member_id,
                    "client_id": member.client_id,
                    "host": member.host,
                    "instance_id": member.instance_id,
                    "rack": member.rack,
                    "topics": list(member.topics),
                    "owned": {topic: list(numbers) for topic, numbers in member.owned.items()},
                }
                for member in self.members
            ],
            "partitions": [
                {
                    "topic": one.topic,
                    "partition": one.partition,
                    "owner": one.owner,
                    "committed": one.committed,
                    "end": one.end,
                    "lag": one.lag,
                    "rate": one.rate,
                    "status": one.status,
                    "only_markers": one.only_markers,
                }
                for one in self.partitions
            ],
            "window": self.window.to_json(),
        }
