"""Define an assignor: a name and one method. A custom class needs to import nothing to be one.

Given      a Group
Returns    member id -> topic -> partitions; ours answer with an Assignment, any mapping will do
Reference  ConsumerPartitionAssignor in Apache Kafka, whose names the optional hooks carry. Java returns one object with
           partitions and user data; here a hook is asked for the bytes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol, runtime_checkable

from rebalance_lab.assignors.model import Group


class RebalanceProtocol(StrEnum):
    """Name how members go from one assignment to the next; a group can only mix assignors that share one."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"


class Received(dict[str, tuple[int, ...]]):
    """Hold a member's share as `on_assignment` is told it: topic to partitions, and the leader's bytes."""

    def __init__(self, share: Mapping[str, tuple[int, ...]], user_data: bytes | None) -> None:
        super().__init__(share)
        self.user_data = user_data


@runtime_checkable
class Assignor(Protocol):
    """Describe what every assignor must have. Optional attributes are read with their default when absent:

    promises: Collection[str] = ()
        What the property kit holds the class to: "balanced", "per-topic-balanced", "load-balanced", "sticky",
        "minimal-moves", "cooperative", "rack-aware". Every class is held to "valid", "deterministic" and "pure".
    supported_protocols: Sequence[RebalanceProtocol] = (EAGER,)
        Best first, as Java's supportedProtocols().
    subscription_user_data(self, topics: Collection[str]) -> bytes | None
        Bytes that this member sends with its subscription. The leader finds them in group.members[id].user_data.
    assignment_user_data(self, member_id: str, share: Mapping[str, Sequence[int]]) -> bytes | None
        Asked in the leader after `assign`: bytes that go to this member with its share.
    on_assignment(self, assignment: Received, generation: int) -> None
        Called in every member once it has been given its share; assignment.user_data is what the leader sent along.
    """

    name: str

    def assign(self, group: Group) -> Mapping[str, Mapping[str, Sequence[int]]]: ...


def supported_protocols_of(assignor: object) -> Sequence[RebalanceProtocol]:
    protocols = getattr(assignor, "supported_protocols", (RebalanceProtocol.EAGER,))
    return tuple(RebalanceProtocol(protocol) for protocol in protocols)
