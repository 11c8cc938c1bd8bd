"""Track a member's subscription and the metadata it has seen, and decide whether either calls for a rejoin.

Leader     watches the topics of the whole group: only it notices new partitions, by comparing what it assigned from
           (`assigned_from`) with what it sees now (`snapshot`)
Pattern    is matched against all topic names whenever new metadata is looked at
Reference  SubscriptionState and ConsumerCoordinator.MetadataSnapshot in Apache Kafka 4.3.1
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from rebalance_lab.assignors.model import Topic

Matches: TypeAlias = Callable[[str], bool]
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})


class Snapshot(NamedTuple):
    version: int
    partitions: Mapping[str, object]
    """Per topic the number of partitions, and where the member has a rack, the racks of each."""

    def matches(self, other: Snapshot) -> bool:
        return self.version == other.version or self.partitions == other.partitions


NOTHING_SEEN = Snapshot(0, {})


def pythons_own(pattern: str) -> Matches:
    fullmatch = re.compile(pattern).fullmatch
    return lambda topic: fullmatch(topic) is not None


@dataclass(slots=True, kw_only=True)
class Subscribed:
    rack: str | None = None
    exclude_internal_topics: bool = True
    engine: Callable[[str], Matches] = pythons_own
    """Of patterns: Java's clients have one of their own."""
    topics: frozenset[str] = frozenset()
    pattern: Matches | None = None
    joined: frozenset[str] | None = None
    """The topics of the last JoinGroup."""
    group: frozenset[str] = frozenset()
    """The leader's watch: the topics of all members."""
    cluster: Mapping[str, Topic] | None = None
    version: int = 0
    fresh: bool = False
    """Metadata came since this rebalance began, which a pattern waits for."""
    asked: bool = False
    snapshot: Snapshot = NOTHING_SEEN
    assigned_from: Snapshot | None = None

    @property
    def active(self) -> bool:
        return bool(self.topics) or self.pattern is not None

    def subscribe(self, topics: Iterable[str], pattern: str | None) -> None:
        self.pattern = None if pattern is None else self.engine(pattern)
        self.topics = frozenset(topics)
        if self.pattern is not None:
            self.topics = self.matching()

    def unsubscribe(self) -> None:
        self.topics, self.pattern, self.group = frozenset(), None, frozenset()

    def matching(self) -> frozenset[str]:
        return frozenset(name for name in self.cluster or () if self.accepts(name))

    def accepts(self, topic: str) -> bool:
        """Tell whether an assignment may contain the topic."""
        if self.pattern is None:
            return topic in self.topics
        hidden = self.exclude_internal_topics and topic in INTERNAL_TOPICS
        return not hidden and self.pattern(topic)

    def watched(self) -> frozenset[str]:
        return self.group | self.topics

    def metadata_came(self, topics: Mapping[str, Topic]) -> None:
        self.cluster = dict(topics)
        self.version += 1
        self.fresh, self.asked = True, False

    def look(self) -> None:
        """Take note of metadata that came since the last look."""
        if self.version > self.snapshot.version:
            if self.pattern is not None:
                self.topics = self.matching()
            self.snapshot = self.take()

    def take(self) -> Snapshot:
        cluster = self.cluster or {}
        return Snapshot(self.version, {name: self.seen(cluster[name]) for name in self.watched() if name in cluster})

    def seen(self, topic: Topic) -> object:
        if self.rack is None:
            return topic.partitions
        return topic.partitions, tuple(frozenset(racks) for racks in topic.racks or ())
