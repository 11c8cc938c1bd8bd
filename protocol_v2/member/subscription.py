"""Hold what a KIP-848 member subscribes to, and the topics that it has seen in metadata.

Names      as they were given, or those that match a pattern; the coordinator is told the names
Pattern    java.util.regex, matched here: against whole names, at subscribe() and whenever poll() finds new metadata
Regex      KIP-848's SubscriptionPattern: the coordinator matches it, and the member only passes it on
Reference  SubscriptionState and ApplicationEventProcessor in Apache Kafka 4.3.1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rebalance_lab.assignors.model import Topic
from rebalance_lab.protocol_v2.common.regex import compile_regex

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})


@dataclass(slots=True, kw_only=True)
class Subscribed:
    exclude_internal_topics: bool = True
    topics: frozenset[str] = frozenset()
    pattern: Callable[[str], bool] | None = None
    regex: str | None = None
    updated: bool = False
    """Something was subscribed to since the last poll()."""
    cluster: Mapping[str, Topic] = field(default_factory=dict)
    version: int = 0
    seen: int = 0
    """The version of the metadata that the pattern was last matched against."""

    @property
    def active(self) -> bool:
        return bool(self.topics) or self.pattern is not None or self.regex is not None

    def subscribe(self, topics: Iterable[str], pattern: str | None, regex: str | None) -> None:
        """Subscribe by one of the three. A call with none of them means unsubscribe, which another function does."""
        self.regex = regex
        self.pattern = None if pattern is None else compile_regex(pattern)
        self.topics = frozenset(topics) if regex is None else frozenset()
        self.updated = True
        if self.pattern is not None:
            self.match()

    def unsubscribe(self) -> None:
        self.topics, self.pattern, self.regex = frozenset(), None, None

    def match(self) -> None:
        self.seen = self.version
        self.topics = frozenset(name for name in self.cluster if self.accepts(name))

    def accepts(self, topic: str) -> bool:
        assert self.pattern is not None
        hidden = self.exclude_internal_topics and topic in INTERNAL_TOPICS
        return not hidden and self.pattern(topic)

    def metadata_came(self, topics: Mapping[str, Topic]) -> None:
        self.cluster = topics
        self.version += 1

    def look(self) -> None:
        """Take note of metadata that came since the last look."""
        if self.pattern is not None and self.version > self.seen:
            self.match()
            self.updated = True

    def may_fetch(self, topic: str) -> bool:
        """Tell whether the topic may be read: topics that left the subscription are not, though still owned. An
        expression cannot tell.
        """
        return topic in self.topics or self.pattern is not None or self.regex is not None
