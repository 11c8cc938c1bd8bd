"""Write a member's partitions as classic members read them, topics and partitions in the broker's order.

Kafka keeps a member's partitions in a HashMap by topic id, and each topic's in a set of numbers. Bytes of an assignment
list both as Java walks them, so the order depends on the topic ids. Two ids in one bucket stand in the order in which
they got there; `order` says it where it is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rebalance_lab.assignors.broker.group_view import decode_uuid
from rebalance_lab.assignors.java.hash_order import DEFAULT_CAPACITY, capacity_of_set_copy, put_order, uuid_hash
from rebalance_lab.protocol_v2.common.topic_image import MetadataImage, TopicPartition, topic_name


def partitions_by_topic(
    image: MetadataImage,
    partitions: Iterable[TopicPartition],
    *,
    order: Sequence[str] | None = None,
    copied: bool = False,
) -> dict[str, tuple[int, ...]]:
    """Return topics that still exist with their partitions; `copied` if each set was made from a list at once."""
    by_id: dict[str, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        if image.exists(topic_id):
            by_id.setdefault(topic_id, []).append(partition)
    ids = list(by_id)
    if len(ids) < 2:
        walk = ids
    elif order is None:
        walk = [ids[i] for i in put_order([hash_of(image, topic_id) for topic_id in ids])]
    else:
        walk = sorted(ids, key=lambda topic_id: order.index(topic_name(topic_id)))
    return {topic_name(topic_id): number_order(by_id[topic_id], copied=copied) for topic_id in walk}


def hash_of(image: MetadataImage, topic_id: str) -> int:
    """Hash a topic's id. A topic that was given none has its number among all names, as everywhere in the lab."""
    name = topic_name(topic_id)
    text = image.topics[name].topic.id
    if text is None:
        return uuid_hash(0, sorted(image.topics).index(name) + 1)
    return uuid_hash(*decode_uuid(text))


def number_order(numbers: Sequence[int], *, copied: bool) -> tuple[int, ...]:
    capacity = capacity_of_set_copy(len(numbers)) if copied else DEFAULT_CAPACITY
    return tuple(numbers[i] for i in put_order(numbers, capacity))
