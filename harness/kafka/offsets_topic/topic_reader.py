"""Read the topic __consumer_offsets of a live cluster, from the beginning to its end when the reading began.

A reader never joins a group and commits nothing: partitions are assigned by hand.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rebalance_lab.harness.kafka.groups.live_group import GroupError
from rebalance_lab.harness.kafka.offsets_topic.decoding import GroupRecord, decode_record

TOPIC = "__consumer_offsets"
READER = "rebalance-lab-reader"


@dataclass(frozen=True, slots=True)
class Written:
    """Hold a record, and when and where it was written."""

    record: GroupRecord
    timestamp_ms: int
    partition: int
    offset: int


def read_offsets_topic(
    bootstrap: str, *, timeout_s: float = 30.0, settings: Mapping[str, str] | None = None
) -> Iterator[Written]:
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    deadline = time.monotonic() + timeout_s
    consumer: Any = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": READER,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
            **(settings or {}),
        }
    )
    try:
        found = consumer.list_topics(TOPIC, timeout=timeout_s).topics[TOPIC]
        ends = {number: consumer.get_watermark_offsets(TopicPartition(TOPIC, number)) for number in found.partitions}
        left = {number: high for number, (low, high) in ends.items() if high > low}
        consumer.assign([TopicPartition(TOPIC, number, ends[number][0]) for number in left])
        while left:
            if time.monotonic() > deadline:
                raise GroupError("timed out", f"{bootstrap}: {TOPIC} was not read within {timeout_s:g} s")
            for message in consumer.consume(500, timeout=0.2):
                if message.error() is not None:
                    raise GroupError("refused", f"{bootstrap}: {TOPIC}: {message.error().str()}")
                yield from written(message)
            # Control records and compacted ones leave no message: the position tells.
            for place in consumer.position([TopicPartition(TOPIC, number) for number in left]):
                if place.offset >= left[place.partition]:
                    del left[place.partition]
    except KafkaException as error:
        raise GroupError("unreachable", f"{bootstrap}: {TOPIC} cannot be read: {error.args[0].str()}") from error
    finally:
        consumer.close()


def written(message: Any) -> Iterator[Written]:
    record = decode_record(message.key(), message.value()) if message.key() is not None else None
    if record is not None:
        yield Written(record, message.timestamp()[1], message.partition(), message.offset())
