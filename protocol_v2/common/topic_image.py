"""Hold the topics that a coordinator knows as one immutable image, and find what changed between two images.

Topic id   names an incarnation: `orders`, and `orders#2` once it was deleted and created again. (A driver that has real
           ids gives them, and then they follow the `#`.) Partitions are held under the id, so that what belonged to the
           deleted topic is never mistaken for the new one
Numbers    a topic without a real id is numbered for the assignors, sorted names first, as spec'd for the JSON contract
Start at   MetadataImage.updated
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from rebalance_lab.assignors.java.string_order import in_java_order
from rebalance_lab.assignors.model import Topic
from rebalance_lab.protocol_v2.common.messages import TopicPartitions

TopicPartition: TypeAlias = tuple[str, int]
"""Topic id and partition."""
Partitions: TypeAlias = Iterable[TopicPartition]


def topic_name(topic_id: str) -> str:
    return topic_id.partition("#")[0]  # no legal topic name holds a #


def by_name(partitions: Partitions) -> tuple[TopicPartitions, ...]:
    """List partitions as messages do: topics and partitions sorted."""
    by_id: dict[str, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        by_id.setdefault(topic_id, []).append(partition)
    found: dict[str, list[int]] = {}
    for topic_id, numbers in by_id.items():
        found.setdefault(topic_name(topic_id), []).extend(numbers)
    return tuple(TopicPartitions(name, tuple(found[name])) for name in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicImage:
    topic_id: str
    name: str
    topic: Topic

    @property
    def digest(self) -> Digest:
        return self.topic_id, self.topic.partitions, self.topic.racks


Digest: TypeAlias = "tuple[str, int, tuple[tuple[str, ...], ...] | None]"
MetadataHash: TypeAlias = tuple[Digest, ...]
"""Kafka hashes what a group's topics look like into 64 bits; here it is the thing itself. Empty is Kafka's 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataImage:
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    version: int = 0
    new_topics_at: int = 0
    """The last version that brought a topic: only then can a regular expression match more than before."""
    incarnations: Mapping[str, int] = field(default_factory=dict)
    numbered: int = 0

    def exists(self, topic_id: str) -> bool:
        topic = self.topics.get(topic_name(topic_id))
        return topic is not None and topic.topic_id == topic_id

    def hash_of(self, names: Iterable[str]) -> MetadataHash:
        return tuple(self.topics[name].digest for name in sorted(names) if name in self.topics)

    def updated(self, given: Mapping[str, int | Topic]) -> tuple[MetadataImage, frozenset[str]]:
        """Return the next image, and the names that were created, deleted or changed."""
        topics: dict[str, TopicImage] = {}
        incarnations, numbered = dict(self.incarnations), self.numbered
        for name in in_java_order(given):
            value = given[name]
            topic = value if isinstance(value, Topic) else Topic(value)
            before = self.topics.get(name)
            is_new = before is None or is_another(before, topic)
            if is_new:
                incarnations[name] = incarnations.get(name, 0) + 1
            if topic.id is not None:
                topic_id = f"{name}#{topic.id}"
            else:
                numbered += is_new
                number = numbered_id(numbered) if before is None or is_new else before.topic.id
                topic_id = incarnation_id(name, incarnations[name])
                topic = Topic(topic.partitions, topic.racks, topic.load, number)
            topics[name] = TopicImage(topic_id=topic_id, name=name, topic=topic)
        changed = {name for name in {*topics, *self.topics} if topics.get(name) != self.topics.get(name)}
        created = any(name not in self.topics or topics[name].topic_id != self.topics[name].topic_id for name in topics)
        version = self.version + 1
        image = MetadataImage(
            topics=topics,
            version=version,
            new_topics_at=version if created else self.new_topics_at,
            incarnations=incarnations,
            numbered=numbered,
        )
        return image, frozenset(changed)

    def with_incarnations(self, seen: Partitions) -> MetadataImage:
        """Give topics their incarnations after a fail-over: the driver knows only what exists, the log what members
        hold.

        A topic is taken for the last incarnation that the log has seen. It is taken for a later one if it is smaller
        than that, because topics never shrink. A driver that deletes topics around a fail-over and needs to know better
        gives real ids.
        """
        sizes: dict[str, int] = {}
        for topic_id, partition in seen:
            sizes[topic_id] = max(sizes.get(topic_id, 0), partition + 1)
        incarnations = dict(self.incarnations)
        for topic_id in sizes:
            name, _, tag = topic_id.partition("#")
            incarnations[name] = max(incarnations.get(name, 1), int(tag) if tag.isdigit() else 1)
        topics: dict[str, TopicImage] = {}
        for name, topic in self.topics.items():
            if topic.topic_id == name:  # not a real id
                shrank = sizes.get(incarnation_id(name, incarnations[name]), 0) > topic.topic.partitions
                incarnations[name] += shrank
                topic = replace(topic, topic_id=incarnation_id(name, incarnations[name]))
            topics[name] = topic
        return replace(self, topics=topics, incarnations=incarnations)


def is_another(before: TopicImage, topic: Topic) -> bool:
    """Tell whether the topic was deleted and created again unseen: it has another id, or fewer partitions than
    before.
    """
    if topic.id is not None:
        return before.topic_id != f"{before.name}#{topic.id}"
    return topic.partitions < before.topic.partitions


def incarnation_id(name: str, incarnation: int) -> str:
    return name if incarnation == 1 else f"{name}#{incarnation}"


def numbered_id(number: int) -> str:
    """Return a UUID with this number in its lower half, as Kafka writes UUIDs."""
    return base64.urlsafe_b64encode(number.to_bytes(16)).decode().rstrip("=")
