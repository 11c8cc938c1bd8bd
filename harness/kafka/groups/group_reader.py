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
from rebalance_lab.harness.kafka.groups.offset_window import OffsetWindow, Sample
from rebalance_lab.harness.kafka.groups.unread_records import find_read_out

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
PEEK_S = 2.0
URL_SAFE = str.maketrans("+/", "-_")
"""librdkafka writes a topic id in another base64 than Kafka does."""


def describe(
    bootstrap: str,
    group: str,
    *,
    timeout_s: float = 10.0,
    apart_s: float = 1.0,
    window_s: float = 0.0,
    settings: Mapping[str, str] | None = None,
    earlier: Callable[[], OffsetWindow] = OffsetWindow,
    progress: Callable[[int], None] | None = None,
) -> GroupDescription:
    """Describe a group. `apart_s` lies between two looks at its offsets, and the looks last for `window_s`, but there
    are two at least. With `apart_s` 0 there is one look, and no rates are known. `earlier` returns looks that were
    made before. `progress` is told how many looks are done.
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
    samples = [reader.sample(places, committed)]
    for number in range(1, looks_in(window_s, apart_s)):
        if progress is not None:
            progress(number)
        reader.pause(samples[0].at_s + number * apart_s - time.monotonic())
        samples.append(reader.sample(places, reader.committed()))
    before_these = (one for one in earlier().samples if one.at_s < samples[0].at_s)
    window = OffsetWindow((*before_these, *samples))
    before, now, elapsed_s = samples[0].offsets, samples[-1].offsets, samples[-1].at_s - samples[0].at_s
    read_out, commits_apart_s = reader.read_out(window), window.commits_apart_s

    def judged(place: TopicPartition) -> str:
        is_owned = place in owners
        return (
            "working"
            if place in read_out
            else lag_status(window.looks(place), owned=is_owned, commits_apart_s=commits_apart_s)
        )

    return GroupDescription(
        group=group,
        protocol="consumer" if found.type.name == "CONSUMER" else "classic",
        state=STATES.get(found.state.name, found.state.name),
        assignor=found.partition_assignor,
        coordinator=f"{found.coordinator.host}:{found.coordinator.port}",
        members=members,
        topics=topics,
        partitions=[
            LivePartition(
                topic=place[0],
                partition=place[1],
                owner=owners.get(place),
                committed=now[place].committed,
                begin=now[place].begin,
                end=now[place].end,
                status=judged(place),
                rate=max(0, now[place].end - before[place].end) / elapsed_s if elapsed_s else None,
                only_markers=place in read_out,
            )
            for place in places
            if place in before and place in now
        ],
        inferred=subscriptions is None and bool(members),
        window=window,
    )


def look_at_offsets(
    bootstrap: str, group: str, places: Sequence[TopicPartition], *, timeout_s: float, settings: Mapping[str, str]
) -> Sample:
    """Look once at the offsets of a group in these partitions, and at nothing else of it."""
    reader = Reader(bootstrap, group, timeout_s, settings)
    return reader.sample(places, reader.committed())


def looks_in(window_s: float, apart_s: float) -> int:
    """Return how many looks a window takes."""
    return max(2, 1 + round(window_s / apart_s)) if apart_s > 0 else 1


class Reader:
    """Hold one AdminClient, and the time that is left."""

    def __init__(self, bootstrap: str, group: str, timeout_s: float, settings: Mapping[str, str]) -> None:
        from confluent_kafka.admin import AdminClient

        self.bootstrap, self.group_id, self.timeout_s, self.is_plain = bootstrap, group, timeout_s, not settings
        self.settings = settings
        self.deadline = time.monotonic() + timeout_s
        try:
            self.admin: Any = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **settings})
        except Exception as error:
            raise GroupError("refused", f"{bootstrap}: {reason(error)}") from error

    @property
    def left_s(self) -> float:
        return max(0.1, self.deadline - time.monotonic())

    def pause(self, seconds: float) -> None:
        time.sleep(max(0.0, min(seconds, self.left_s)))

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

    def sample(self, places: Sequence[TopicPartition], committed: Mapping[TopicPartition, int]) -> Sample:
        return Sample(time.monotonic(), self.offsets(places, committed))

    def read_out(self, window: OffsetWindow) -> set[TopicPartition]:
        """Return the partitions whose lag is no record's, of those that were not written in the window."""
        positions = {}
        for place, now in window.samples[-1].offsets.items():
            looks = window.looks(place)
            is_quiet = all(look.offsets.end == now.end for look in looks)
            if is_quiet and now.lag and now.committed is not None:
                positions[place] = now.committed
        return find_read_out(self.bootstrap, positions, min(PEEK_S, self.left_s), self.settings)

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


def reason(error: Exception) -> str:
    found = error.args[0] if error.args else error
    return str(found.str() if hasattr(found, "str") else found)
