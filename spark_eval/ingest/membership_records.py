"""Follow groups through the records of __consumer_offsets: as they are now, and which members came and went when.

Classic    a GroupMetadata record holds the whole group each time: members that were not in the one before have joined
Consumer   a ConsumerGroupMemberMetadata record is one member, and its tombstone that it is gone
Names      static members keep one name. A dynamic member has a new id each time, so it takes the name of a member of
           the same client and host that has left
Known not  why a member left: a crash and a LeaveGroup look alike. Compaction removes old records, and with them what
           they tell
Start at   groups_now, happenings
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rebalance_lab.protocol_v1.common.consumer_protocol import decode_assignment, decode_subscription
from rebalance_lab.spark_eval.ingest.group_scenario import Happening

CONSUMER = "ConsumerGroupMemberMetadata"
CLASSIC = "GroupMetadata"
CURRENT = "ConsumerGroupCurrentMemberAssignment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Hold a member as its last record has it."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    topics: tuple[str, ...]
    owned: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """By topic name in classic groups, by topic id in consumer groups."""


@dataclass(slots=True)
class Story:
    """Follow one group, record by record."""

    protocol: str | None = None
    members: dict[str, Recorded] = field(default_factory=dict)

    def take(self, kind: str, key: Mapping[str, Any], value: Mapping[str, Any] | None) -> None:
        if kind == CLASSIC:
            self.members = {} if value is None else {one.member_id: one for one in classic_members(value)}
            self.protocol = "classic" if value is not None else self.protocol
        elif kind == CONSUMER:
            self.protocol = "consumer"
            self.members.pop(key["member_id"], None)
            if value is not None:
                self.members[key["member_id"]] = consumer_member(key["member_id"], value)
        elif kind == CURRENT and value is not None and key["member_id"] in self.members:
            self.members[key["member_id"]] = with_owned(self.members[key["member_id"]], value)


def classic_members(value: Mapping[str, Any]) -> Iterator[Recorded]:
    for one in value["members"]:
        subscription, assignment = base64.b64decode(one["subscription"]), base64.b64decode(one["assignment"])
        owned = decode_assignment(assignment).assigned_partitions if assignment else {}
        yield Recorded(
            member_id=one["member_id"],
            instance_id=one.get("group_instance_id"),
            client_id=one["client_id"],
            host=one["client_host"],
            topics=tuple(sorted(decode_subscription(subscription).topics)) if subscription else (),
            owned=tuple(sorted((topic, tuple(sorted(found))) for topic, found in owned.items() if found)),
        )


def consumer_member(member_id: str, value: Mapping[str, Any]) -> Recorded:
    return Recorded(
        member_id=member_id,
        instance_id=value["instance_id"],
        client_id=value["client_id"],
        host=value["client_host"],
        topics=tuple(sorted(value["subscribed_topic_names"])),
    )


def with_owned(member: Recorded, value: Mapping[str, Any]) -> Recorded:
    from dataclasses import replace

    found = {one["topic_id"]: tuple(sorted(one["partitions"])) for one in value["assigned_partitions"]}
    return replace(member, owned=tuple(sorted(found.items())))


Row = Mapping[str, Any]
"""Of the data source: `group`, `kind`, `key`, `value`, `time_ms`, in the order of offsets."""


def stories(rows: Iterable[Row]) -> Iterator[tuple[Row, str, Story]]:
    """Return each record with its group's story up to and with it."""
    found: dict[str, Story] = {}
    for row in rows:
        if row["group"] is None:
            continue
        story = found.setdefault(row["group"], Story())
        story.take(row["kind"], json.loads(row["key"]), None if row["value"] is None else json.loads(row["value"]))
        yield row, row["group"], story


def groups_now(rows: Iterable[Row]) -> dict[str, Story]:
    return {group: story for _, group, story in stories(rows)}


def happenings(rows: Iterable[Row]) -> Iterator[tuple[str, Happening]]:
    """Return joins and departures, with the group."""
    before: dict[str, dict[str, Recorded]] = {}
    names: dict[str, Names] = {}
    for row, group, story in stories(rows):
        were, known = before.get(group, {}), names.setdefault(group, Names())
        for member in were.keys() - story.members.keys():
            yield group, Happening(row["time_ms"], known.gone(were[member]), "leave")
        for member in story.members.keys() - were.keys():
            one = story.members[member]
            yield group, Happening(row["time_ms"], known.come(one), "join", one.topics)
        before[group] = dict(story.members)


@dataclass(slots=True)
class Names:
    """Keep a process's name over its lives."""

    of: dict[str, str] = field(default_factory=dict)
    free: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def come(self, one: Recorded) -> str:
        free = self.free.get((one.client_id, one.host), [])
        self.of[one.member_id] = one.instance_id or (free.pop(0) if free else one.member_id)
        return self.of[one.member_id]

    def gone(self, one: Recorded) -> str:
        name = self.of[one.member_id]
        if one.instance_id is None:
            self.free.setdefault((one.client_id, one.host), []).append(name)
        return name
