"""Define what is stored about a member, as values: exactly what the records of the log hold.

MemberMetadata     the member's identity, subscription and settings
CurrentAssignment  its epochs and state, what it has been given and what it is giving up
Target             the partitions that the last target assignment gives it
ResolvedRegex      the topics that a regular expression matched when it was last looked at
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from rebalance_lab.assignors.model import Share
from rebalance_lab.protocol_v1.common.fast_dataclass import fast_dataclass
from rebalance_lab.protocol_v1.common.messages import Protocol
from rebalance_lab.protocol_v2.common.messages import STEP_OUT_EPOCH
from rebalance_lab.protocol_v2.common.topic_image import TopicPartition
from rebalance_lab.protocol_v2.coordinator.state.states import MemberState

Held: TypeAlias = Mapping[TopicPartition, int]
"""Partitions with the assignment epoch at which each was given; never changed in place."""
NOTHING: Held = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMetadata:
    """Hold what a member that speaks the classic protocol said in its JoinGroup."""

    session_timeout_ms: int
    protocols: tuple[Protocol, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberMetadata:
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    """Sorted, each once."""
    subscribed_topic_regex: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None


@fast_dataclass()
class CurrentAssignment:
    member_epoch: int = 0
    previous_member_epoch: int = -1
    """Accepted once more, for a member that has not heard of its new epoch."""
    state: MemberState = MemberState.STABLE
    assigned: Held = field(default_factory=dict)
    revoking: Held = field(default_factory=dict)
    """What the member was told to give up and has not confirmed yet."""

    @property
    def stepped_out(self) -> bool:
        return self.member_epoch == STEP_OUT_EPOCH

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch


JUST_ARRIVED = CurrentAssignment()
GONE = CurrentAssignment(member_epoch=-1)


@fast_dataclass()
class ConsumerMember:
    member_id: str
    metadata: MemberMetadata
    current: CurrentAssignment = JUST_ARRIVED


class Target:
    """Hold a member's target: a share of an assignor's answer, kept in its numbers, or other partitions.

    A share is turned into partitions when its member next heartbeats, so that a target for 10,000 members costs what
    the assignor costs.
    """

    __slots__ = ("_partitions", "order", "share", "topic_ids")

    def __init__(self, share: Share, topic_ids: tuple[str, ...]) -> None:
        self.share: Share | None = share
        self.topic_ids = topic_ids
        """By the layout's index: which incarnation each name meant when this was computed."""
        self.order: tuple[str, ...] | None = None
        """The names of its topics as a broker walks them, where that cannot be told from the topics themselves."""
        self._partitions: frozenset[TopicPartition] | None = None

    @classmethod
    def of(cls, partitions: frozenset[TopicPartition]) -> Target:
        target = cls.__new__(cls)
        target.share, target.topic_ids, target.order, target._partitions = None, (), None, partitions
        return target

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        if self._partitions is None:
            assert self.share is not None
            layout, ids = self.share.layout, self.topic_ids
            found = []
            for number in self.share.numbers:
                topic = layout.topic_of(number)
                found.append((ids[topic], number - layout.starts[topic]))
            self._partitions = frozenset(found)
        return self._partitions

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Target):
            return NotImplemented
        mine, theirs = self.share, other.share
        if mine is not None and theirs is not None and self.topic_ids is other.topic_ids:
            return mine.numbers is theirs.numbers or sorted(mine.numbers) == sorted(theirs.numbers)
        return self.partitions == other.partitions

    def __hash__(self) -> int:
        return hash(self.partitions)

    def __repr__(self) -> str:
        return f"Target({sorted(self.partitions)})"


NO_TARGET = Target.of(frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedRegex:
    topics: tuple[str, ...]
    """Sorted."""
    version: int
    """Of the metadata image that was looked at."""
    timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """Hold a resolution of regular expressions that is under way: the group does not know its result yet."""

    resolved: Mapping[str, ResolvedRegex]
