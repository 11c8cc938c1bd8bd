"""Tell lags that no record stands behind: after the last record of a transaction comes a marker that consumers skip.

Why        a consumer's offset may stay before the marker, so the lag stays 1 although every record was read
Method     read from the committed offset, as read_committed does, without a group: the first record, or the end
Given      partitions, and from which offset to read
Start at   find_read_out
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, TypeAlias

TopicPartition: TypeAlias = tuple[str, int]
POLL_S = 0.1


def find_read_out(
    bootstrap: str, positions: Mapping[TopicPartition, int], timeout_s: float, settings: Mapping[str, str]
) -> set[TopicPartition]:
    """Return the partitions in which no record follows the position. One that is not read in time is not among them."""
    from confluent_kafka import Consumer, KafkaError, KafkaException
    from confluent_kafka import TopicPartition as Place

    if not positions:
        return set()
    config: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": "rebalance-lab-looks",  # required, and not used: nothing is subscribed to or committed
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "fetch.message.max.bytes": 1_024,
        "fetch.wait.max.ms": 50,
        "log_level": 0,
    }
    found: set[TopicPartition] = set()
    left, deadline = set(positions), time.monotonic() + timeout_s
    consumer = Consumer({**config, **settings})
    try:
        consumer.assign([Place(topic, number, offset) for (topic, number), offset in positions.items()])
        while left and time.monotonic() < deadline:
            message = consumer.poll(POLL_S)
            if message is None or message.topic() is None:
                continue
            place = (message.topic(), message.partition())
            error = message.error()
            if place in left and error is not None and error.code() == KafkaError._PARTITION_EOF:
                found.add(place)
            left.discard(place)
    except KafkaException:
        return found
    finally:
        consumer.close()
    return found
