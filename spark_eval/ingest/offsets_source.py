"""Read __consumer_offsets as a Spark data source: one input partition for each partition of the topic.

Given      options `bootstrap`, and `settings` (JSON) for a cluster that wants more than an address
Returns    a frame of RECORDS, from the beginning of each partition to where it ended when the reading began
Decoded    by harness/kafka/offsets_topic in the workers; bytes within a record stand in its JSON as base64
Start at   register, then spark.read.format(FORMAT)
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.kafka.offsets_topic.decoding import decode_record
from rebalance_lab.harness.kafka.offsets_topic.topic_reader import READER, TOPIC
from rebalance_lab.protocol_v1.common.errors import MalformedBytes

FORMAT = "consumer_offsets"
RECORDS = "partition int, offset bigint, time_ms bigint, `group` string, kind string, key string, value string"
"""`kind` is null where bytes make no sense; `value` is null for a tombstone."""
ANSWER_S = 20.0
SILENT_S = 30.0
"""A partition that gives nothing for so long before its end is given up with an error, not cut short."""


@dataclass(frozen=True)
class Stretch(InputPartition):
    partition: int
    low: int
    high: int


class OffsetsTopic(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return RECORDS

    def reader(self, schema: Any) -> DataSourceReader:
        return OffsetsReader(self.options["bootstrap"], json.loads(self.options.get("settings", "{}")))


class OffsetsReader(DataSourceReader):
    def __init__(self, bootstrap: str, settings: dict[str, str]) -> None:
        self.bootstrap, self.settings = bootstrap, settings

    def consumer(self) -> Any:
        from confluent_kafka import Consumer

        given = {"bootstrap.servers": self.bootstrap, "group.id": READER, "enable.auto.commit": False, "log_level": 0}
        return Consumer({**given, **self.settings})

    def partitions(self) -> list[Stretch]:
        from confluent_kafka import TopicPartition

        consumer = self.consumer()
        try:
            found = consumer.list_topics(TOPIC, timeout=ANSWER_S).topics[TOPIC].partitions
            ends = {number: consumer.get_watermark_offsets(TopicPartition(TOPIC, number)) for number in sorted(found)}
        finally:
            consumer.close()
        return [Stretch(number, low, high) for number, (low, high) in ends.items() if high > low]

    def read(self, partition: Any) -> Iterator[tuple[Any, ...]]:
        from confluent_kafka import TopicPartition

        consumer = self.consumer()
        here = TopicPartition(TOPIC, partition.partition, partition.low)
        consumer.assign([here])
        silent = 0.0
        try:
            while consumer.position([here])[0].offset < partition.high:
                messages = consumer.consume(500, timeout=0.5)
                silent = 0.0 if messages else silent + 0.5
                if silent > SILENT_S:
                    raise RuntimeError(f"{TOPIC}-{partition.partition} gave nothing for {SILENT_S:.0f} s")
                for message in messages:
                    if message.error() is not None:
                        raise RuntimeError(f"{TOPIC}-{partition.partition}: {message.error().str()}")
                    if message.offset() < partition.high and message.key() is not None:
                        yield row_of(message)
        finally:
            consumer.close()


def row_of(message: Any) -> tuple[Any, ...]:
    place = (message.partition(), message.offset(), message.timestamp()[1])
    try:
        record = decode_record(message.key(), message.value())
    except MalformedBytes:
        return (*place, None, None, as_json(message.key()), as_json(message.value()))
    if record is None:  # of share or streams groups
        return (*place, None, "other", as_json(message.key()), None)
    return (*place, record.group, record.kind, as_json(record.key), record.value and as_json(record.value))


def as_json(value: Any) -> str:
    def plain(one: Any) -> str:
        return base64.b64encode(one).decode()

    return json.dumps(value, default=plain, ensure_ascii=False, sort_keys=True)


def register(spark: SparkSession, bootstrap: str, settings: dict[str, str] | None = None) -> Any:
    """Return the topic as a frame. An unreachable cluster is reported before Spark tries four times."""
    from confluent_kafka import KafkaException

    try:
        OffsetsReader(bootstrap, settings or {}).partitions()
    except KafkaException as error:
        raise ContractError("--bootstrap", f"{bootstrap}: {TOPIC} cannot be read: {error.args[0].str()}") from None
    except KeyError:
        raise ContractError("--bootstrap", f"{bootstrap} has no {TOPIC}: no group was ever there") from None
    spark.dataSource.register(OffsetsTopic)
    given = spark.read.format(FORMAT).option("bootstrap", bootstrap)
    return given.option("settings", json.dumps(settings or {})).load()
