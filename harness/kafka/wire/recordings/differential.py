"""Send one sequence to a broker and to our coordinator, and list what differs.

Given      a sequence as decoded JSON, and a Bench: a broker with its settings and topics
Returns    an Outcome: the recording as a sequence file that `rebalance-lab play` takes, and the differences
Busy       a computer that stands still for a while makes races. Then the comparison is done again, and if that happens
           every time, less is compared (replay.py); `compared` says how much
Start at   Bench.compare
"""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rebalance_lab.assignors.model import Topic
from rebalance_lab.harness.conversation.sequence_file import SequenceFile, parse_sequence
from rebalance_lab.harness.hosts.coordinator_host import Topics
from rebalance_lab.harness.hosts.served_protocols import PROTOCOLS
from rebalance_lab.harness.kafka.wire.addresses import Address, WireError
from rebalance_lab.harness.kafka.wire.cluster import Cluster
from rebalance_lab.harness.kafka.wire.connection_pool import Pool
from rebalance_lab.harness.kafka.wire.recordings.answer_comparison import Difference, differences
from rebalance_lab.harness.kafka.wire.recordings.group_names import GroupNames, groups_of
from rebalance_lab.harness.kafka.wire.recordings.recording import Recorder, Recording, parked_here
from rebalance_lab.harness.kafka.wire.recordings.replay import Replay, as_sent, replay

NAMES_TO_TRY = 100
ATTEMPTS, STALLED_MS = 2, 400
WARM_UP_MS = 1_000
ANY_PROTOCOL: Mapping[str, Any] = {"protocols": [{"name": "range", "metadata": ""}]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    recorded: dict[str, Any]
    """The sequence file, with `answered`."""
    differences: list[Difference]
    compared: int
    """How many answers."""

    @property
    def unexplained(self) -> list[Difference]:
        return [each for each in self.differences if each.explained is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    value: Mapping[str, Any]
    sequence: SequenceFile
    parked: set[str]
    """Steps that our coordinator would not answer at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    value: Mapping[str, Any]
    sequence: SequenceFile
    recording: Recording

    def outcome(self) -> Outcome:
        replayed = replay(self.sequence, self.recording)
        found, compared = differences(self.recording, replayed)
        return Outcome(
            recorded=recorded(self.value, self.sequence, self.recording, replayed),
            differences=found,
            compared=compared,
        )


class Bench:
    """Hold a broker to compare with: the node that coordinates, and the broker's settings."""

    def __init__(self, cluster: Cluster, config: Mapping[str, Any], address: Address) -> None:
        self.cluster, self.config = cluster, config
        self.pool = Pool(address)

    @property
    def topics(self) -> Topics:
        return {
            name: Topic(len(topic.leaders), id=base64_id(topic.topic_id))
            for name, topic in self.cluster.metadata.topics.items()
        }

    async def warm_up(self) -> None:
        """Send a first JoinGroup, which takes a broker half a second, and would later be taken for a parked one."""
        join = {"group_id": "warm-up", "session_timeout_ms": 6_000, "protocol_type": "consumer", **ANY_PROTOCOL}
        requests = {"JoinGroup": join, "DescribeGroups": {"groups": ["warm-up"]}}
        steps = [{"at_ms": 0, "as": name, "request": name, "body": body} for name, body in requests.items()]
        await self.record(self.prepared({"protocol": "classic", "steps": steps, "until_ms": WARM_UP_MS}))

    async def compare(self, value: Mapping[str, Any]) -> Outcome:
        return (await self.record(self.prepared(value))).outcome()

    def prepared(self, value: Mapping[str, Any]) -> Prepared:
        """Prepare the sequence under the broker's own settings and topics. Like the judging it is work, and where many
        are recorded at once it is done beforehand: it would make the others late.
        """
        sequence = parse_sequence(value, PROTOCOLS)
        known = {name: setting for name, setting in self.config.items() if name in sequence.served.properties}
        sequence = replace(sequence, config=known, topics=self.topics)
        return Prepared(value=value, sequence=sequence, parked=parked_here(sequence))

    async def record(self, prepared: Prepared) -> Recorded:
        """Record in real time."""
        sequence = prepared.sequence
        for _ in range(ATTEMPTS):
            names = await self.fresh_names(sequence)
            recording = await Recorder(sequence, self.cluster, self.pool, names, prepared.parked).run()
            if recording.stall_ms < STALLED_MS:
                break
        return Recorded(value=prepared.value, sequence=sequence, recording=recording)

    async def fresh_names(self, sequence: SequenceFile) -> GroupNames:
        """Find group names that are not in use, all of them coordinated by the node of this bench."""
        return GroupNames({group: await self.fresh_name(group) for group in sorted(groups_of(sequence))})

    async def fresh_name(self, group: str) -> str:
        for _ in range(NAMES_TO_TRY):
            name = f"{group}-{uuid.uuid4().hex[:12]}"
            nodes = self.cluster.metadata.nodes
            if len(nodes) == 1 or await self.cluster.coordinator_of(name) == self.pool.address:
                return name
        raise WireError(f"no group is coordinated by {self.pool.address[0]}:{self.pool.address[1]} any more")

    async def close(self) -> None:
        await asyncio.gather(self.pool.close(), self.cluster.close())


def recorded(
    value: Mapping[str, Any], sequence: SequenceFile, recording: Recording, replayed: Replay
) -> dict[str, Any]:
    given = {step.name: described for step, described in zip(sequence.steps, value["steps"], strict=True)}
    steps = as_sent(sequence, recording)
    return {
        "protocol": value.get("protocol", "classic"),
        "config": dict(sequence.config),
        "topics": {
            name: {"partitions": topic.partitions, "id": topic.id}
            for name, topic in (sequence.topics or {}).items()
            if isinstance(topic, Topic)
        },
        "member_ids": replayed.member_ids,
        "steps": [{**given[step.name], "as": step.name, "at_ms": step.at_ms} for step in steps],
        "until_ms": replayed.transcript.until_ms,
        "answered": [
            {"as": name, "at_ms": at_ms, "body": body}
            for name, (at_ms, body) in sorted(recording.answers.items(), key=lambda item: item[1][0])
        ],
    }


def base64_id(topic_id: uuid.UUID) -> str:
    """Write an id as Kafka does."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
