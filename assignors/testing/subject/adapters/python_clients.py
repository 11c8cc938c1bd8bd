"""Call assignors written for kafka-python or aiokafka as those clients call them.

Given      `package.module:Class`, a subclass of the client's AbstractPartitionAssignor
Claims     travel as the client itself sends them: kafka-python's members are told their last assignment and write their
           own subscriptions, which are encoded and decoded; aiokafka's user data has the layout of Kafka's sticky
Empty      a client assigns because a member, the leader, asks it to: a group without members is not handed on
"""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

from rebalance_lab.assignors.classic.sticky.user_data import encode_sticky
from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.assignors.model import Group, Member
from rebalance_lab.assignors.strategies import load_custom


class FakeCluster:
    """Answer as much of a client's cluster metadata as an assignor asks for."""

    def __init__(self, group: Group) -> None:
        self._partitions = {name: set(range(topic.partitions)) for name, topic in group.topics.items()}

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return self._partitions.get(topic) or None

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        return set(self._partitions)


class _ClientAssignor:
    package = ""

    def __init__(self, text: str) -> None:
        self.text = text
        self.theirs = self._load()
        self.name = str(self.theirs.name)

    def fresh(self) -> _ClientAssignor:
        return type(self)(self.text)

    def _load(self) -> Any:
        logging.getLogger(self.package).setLevel(logging.CRITICAL)
        try:
            __import__(self.package)
        except ImportError as error:
            raise ContractError("assignor", f"{self.text} needs {self.package}, which is not installed") from error
        return load_custom(self.text, "assignor")


class KafkaPythonAssignor(_ClientAssignor):
    package = "kafka"

    @property
    def supported_protocols(self) -> tuple[str, ...]:
        theirs = getattr(self.theirs, "supported_protocols", None)
        return tuple(protocol.name.lower() for protocol in theirs()) if callable(theirs) else ("eager",)

    def assign(self, group: Group) -> dict[str, dict[str, list[int]]]:
        if not group.members:
            return {}
        members = [self._member(member_id, member) for member_id, member in group.members.items()]
        answer = self.theirs.assign(FakeCluster(group), members)
        return {member_id: shares_of(theirs) for member_id, theirs in answer.items()}

    def _member(self, member_id: str, member: Member) -> Any:
        """Make a member's own instance, which has been told its last assignment and speaks for itself."""
        from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

        speaker: Any = load_custom(self.text, "assignor")
        if member.owned or member.generation is not None:
            given = [(topic, list(partitions)) for topic, partitions in member.owned.items()]
            generation = -1 if member.generation is None else member.generation
            speaker.on_assignment(ConsumerProtocolAssignment(0, given, b""), generation)
        metadata = ConsumerProtocolSubscription.decode(speaker.metadata(list(member.topics)).encode())
        return SimpleNamespace(member_id=member_id, group_instance_id=member.instance_id, metadata=metadata)


class AiokafkaAssignor(_ClientAssignor):
    """Call aiokafka's assignors, which are class methods that see neither instance ids nor owned partitions."""

    package = "aiokafka"

    def assign(self, group: Group) -> dict[str, dict[str, list[int]]]:
        if not group.members:
            return {}
        from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata

        members = {}
        for member_id, member in group.members.items():
            known = member.owned or member.generation is not None
            generation = -1 if member.generation is None else member.generation
            data = encode_sticky(member.owned, generation) if known else b""
            members[member_id] = ConsumerProtocolMemberMetadata(0, list(member.topics), data)
        answer = self.theirs.assign(FakeCluster(group), members)
        return {member_id: shares_of(theirs) for member_id, theirs in answer.items()}


def shares_of(theirs: Any) -> dict[str, list[int]]:
    """Read a list of (topic, partitions), or of objects with those two. A topic that is listed twice stays two."""
    listed = theirs.assigned_partitions if hasattr(theirs, "assigned_partitions") else theirs.assignment
    shares: dict[str, list[int]] = {}
    for one in listed:
        topic, partitions = (one.topic, one.partitions) if hasattr(one, "topic") else one
        shares.setdefault(topic, []).extend(partitions)
    return shares
