"""Read a live group through confluent-kafka's AdminClient: descriptions, offsets, metadata, within one deadline.

Given      a bootstrap address, a group, a timeout for everything, settings such as security.protocol
Returns    a GroupDescription, or GroupError in one line
Retried    while there is time: a coordinator that moves or loads during the read
Start at   describe
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rebalance_lab.harness.kafka.groups.lag_status import Offsets, lag_status
from rebalance_lab.harness.kafka.groups.live_group import (
    GroupDescription,
    GroupError,
    LiveMember,
    LivePartition,
    LiveTopic,
)
from rebalance_lab.harness.kafka.groups.member_subscriptions import (
    Subscription,
    classic_subscriptions,
    consumer_subscriptions,
)

TopicPartition: TypeAlias = tuple[str, int]

STATES = {
    "UNKNOWN": "Unknown",
    "PREPARING_REBALANCING": "PreparingRebalance",
    "COMPLETING_REBALANCING": "CompletingRebalance",
    "STABLE": "Stable",
    "DEAD": "Dead",
    "EMPTY": "Empty",
    "ASSIGNING": "Assigning",
    "RECONCILING": "Reconciling",
}
"""confluent-kafka's names, and Kafka's own."""

UNREACHABLE = ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "REQUEST_TIMED_OUT")
UNAUTHORIZED = (
    "GROUP_AUTHORIZATION_FAILED",
    "TOPIC_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "SASL_AUTHENTICATION_FAILED",
    "_AUTHENTICATION",
    "_SSL",
)
MOVING = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_LEADER_FOR_PARTITION")
RETRY_S = 0.2
URL_SAFE = str.maketrans("+/", "-_")
"""librdkafka writes a topic id in another base64 than Kafka does."""


def describe(
    bootstrap: str,
    group: str,
    *,
    timeout_s: float = 10.0,
    apart_s: float = 1.0,
    settings: Mapping[str, str] | None = None,
) -> GroupDescription:
    """Describe a group. `apart_s` lies between the two samples of offsets; with 0 one is taken, and no rates are
    known.
    """
    reader = Reader(bootstrap, group, timeout_s, settings or {})
    found = reader.group()
    subscriptions = reader.subscriptions(found)
    members = [live_member(one, subscriptions) for one in found.members]
    owners = {(topic, number): one.member_id for one in members for topic, all_ in one.owned.items() for number in all_}
    committed = reader.committed()
    names = sorted({topic for one in members for topic in one.topics} | {topic for topic, _ in committed})
    topics = reader.topics(names)
    places = [(name, number) for name, topic in topics.items() for number in range(topic.partitions)]
    began = time.monotonic()
    before = reader.offsets(places, committed)
    now, elapsed_s = before, 0.0
    if apart_s > 0:
        reader.pause(apart_s)
        now = reader.offsets(places, reader.committed())
        elapsed_s = time.monotonic() - began
    return GroupDescription(
        group=group,
        protocol="consumer" if found.type.name == "CONSUMER" else "classic",
        state=STATES.get(found.state.name, found.state.name),
        assignor=found.partition_assignor,
        coordinator=f"{found.coordinator.host}:{found.coordinator.port}",
        members=members,
        topics=topics,
        partitions=[
            live_partition(place, owners.get(place), before[place], now[place], elapsed_s)
            for place in places
            if place in before and place in now
        ],
        inferred=subscriptions is None and bool(members),
    )


class Reader:
    """Hold one AdminClient, and the time that is left."""

    def __init__(self, bootstrap: str, group: str, timeout_s: float, settings: Mapping[str, str]) -> None:
        from confluent_kafka.admin import AdminClient

        self.bootstrap, self.group_id, self.timeout_s, self.is_plain = bootstrap, group, timeout_s, not settings
        self.deadline = time.monotonic() + timeout_s
        try:
            self.admin: Any = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **settings})
        except Exception as error:
            raise GroupError("refused", f"{bootstrap}: {reason(error)}") from error

    @property
    def left_s(self) -> float:
        return max(0.1, self.deadline - time.monotonic())

    def pause(self, seconds: float) -> None:
        time.sleep(min(seconds, self.left_s))

    def ask(self, what: str, question: Callable[[], Any]) -> Any:
        from confluent_kafka import KafkaException

        while True:
            try:
                return question()
            except KafkaException as error:
                name = error.args[0].name()
                if name not in MOVING or time.monotonic() + RETRY_S > self.deadline:
                    raise self.failed(what, name, error.args[0].str()) from error
                time.sleep(RETRY_S)
            except TimeoutError as error:
                raise self.failed(what, "_TIMED_OUT", "timed out") from error

    def failed(self, what: str, name: str, message: str) -> GroupError:
        if name in UNREACHABLE:
            return GroupError("unreachable", f"{self.bootstrap} does not answer within {self.timeout_s:g} s ({what})")
        if name in UNAUTHORIZED:
            return GroupError("unauthorized", f"{self.bootstrap} refuses {what}: {name}")
        if name in MOVING:
            return GroupError("timed out", f"{what}: the coordinator moves, and was not found again in time ({name})")
        return GroupError("refused", f"{self.bootstrap} refuses {what}: {name}: {message}")

    def group(self) -> Any:
        what = f"a description of group {self.group_id!r}"
        found = self.ask(what, lambda: self.futures("describe_consumer_groups", [self.group_id])[self.group_id])
        if found.state.name == "DEAD" and not found.members:
            raise GroupError("no such group", f"{self.bootstrap} has no group {self.group_id!r}")
        return found

    def subscriptions(self, found: Any) -> Mapping[str, Subscription] | None:
        if not found.members:
            return {}
        if found.type.name != "CONSUMER":
            what = f"the subscriptions of group {self.group_id!r}"
            told = self.ask(what, lambda: classic_subscriptions(self.admin, self.group_id, self.left_s))
        else:
            told = consumer_subscriptions(self.bootstrap, self.group_id, self.left_s) if self.is_plain else None
        # A member may have come between the two questions.
        return told if told is not None and all(one.member_id in told for one in found.members) else None

    def committed(self) -> dict[TopicPartition, int]:
        from confluent_kafka import ConsumerGroupTopicPartitions

        question = [ConsumerGroupTopicPartitions(self.group_id)]
        what = f"the offsets of group {self.group_id!r}"
        found = self.ask(what, lambda: self.futures("list_consumer_group_offsets", question)[self.group_id])
        return {(each.topic, each.partition): each.offset for each in found.topic_partitions if each.offset >= 0}

    def topics(self, names: Sequence[str]) -> dict[str, LiveTopic]:
        """Return those topics that exist."""
        from confluent_kafka import TopicCollection

        if not names:
            return {}
        existing = self.ask("the cluster's metadata", lambda: self.admin.list_topics(timeout=self.left_s)).topics
        asked = [name for name in names if name in existing]
        if not asked:
            return {}
        found = self.ask("its topics", lambda: self.futures("describe_topics", TopicCollection(asked)))
        return {name: live_topic(found[name]) for name in asked}

    def offsets(
        self, places: Sequence[TopicPartition], committed: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, Offsets]:
        from confluent_kafka.admin._listoffsets import OffsetSpec  # the package shows it without exporting it

        spec: Any = OffsetSpec
        begins, ends = (self.ends(places, each) for each in (spec.earliest(), spec.latest()))
        return {place: Offsets(begins[place], ends[place], committed.get(place)) for place in places}

    def ends(self, places: Sequence[TopicPartition], spec: Any) -> dict[TopicPartition, int]:
        from confluent_kafka import TopicPartition as Place

        if not places:
            return {}
        asked = {Place(*place): spec for place in places}
        found = self.ask("the ends of its partitions", lambda: self.futures("list_offsets", asked))
        return {(place.topic, place.partition): each.offset for place, each in found.items()}

    def futures(self, method: str, question: Any) -> dict[Any, Any]:
        asked = getattr(self.admin, method)(question, request_timeout=self.left_s)
        return {key: future.result(timeout=self.left_s + 1.0) for key, future in asked.items()}


def live_member(found: Any, subscriptions: Mapping[str, Subscription] | None) -> LiveMember:
    owned: dict[str, list[int]] = {}
    for each in sorted(found.assignment.topic_partitions, key=lambda each: (each.topic, each.partition)):
        owned.setdefault(each.topic, []).append(each.partition)
    told = subscriptions[found.member_id] if subscriptions is not None else Subscription(tuple(owned), None)
    return LiveMember(
        member_id=found.member_id,
        client_id=found.client_id,
        host=found.host,
        instance_id=found.group_instance_id or None,
        topics=told.topics,
        owned={topic: tuple(numbers) for topic, numbers in owned.items()},
        rack=told.rack,
    )


def live_topic(found: Any) -> LiveTopic:
    racks = tuple(tuple(node.rack for node in part.replicas if node.rack) for part in found.partitions)
    return LiveTopic(
        topic_id=str(found.topic_id).translate(URL_SAFE),
        partitions=len(found.partitions),
        racks=racks if all(racks) and racks else None,
    )


def live_partition(
    place: TopicPartition, owner: str | None, before: Offsets, now: Offsets, elapsed_s: float
) -> LivePartition:
    return LivePartition(
        topic=place[0],
        partition=place[1],
        owner=owner,
        committed=now.committed,
        begin=now.begin,
        end=now.end,
        status=lag_status(before, now, owned=owner is not None),
        rate=max(0, now.end - before.end) / elapsed_s if elapsed_s else None,
    )


def reason(error: Exception) -> str:
    found = error.args[0] if error.args else error
    return str(found.str() if hasattr(found, "str") else found)
