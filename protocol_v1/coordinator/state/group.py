"""Hold a classic group: its members, generation, leader and protocol, and the counters that keep every message cheap.

Given      calls from the rules in ../rebalance.py, ../join.py, ../sync.py and the files beside them; it decides nothing
Invariant  `awaiting_join` is the number of parked joins. `supported` counts each name over all members. `static` maps
           every instance id to its one holder. A leader is set exactly while there are members
Cost       what a heartbeat, a join, a sync or a leave touches is constant, or logarithmic for the member order. Only
           the end of a phase looks at every member, as only then every member is answered. A takeover in Stable
           does so too: its record lists them all
Reference  ClassicGroup and ClassicGroupMember in Apache Kafka
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rebalance_lab.protocol_v1.common.consumer_protocol import PROTOCOL_TYPE, subscribed_topics
from rebalance_lab.protocol_v1.common.errors import NONE, Error, MalformedBytes
from rebalance_lab.protocol_v1.common.messages import JoinGroupRequest, Protocol, SyncGroupRequest
from rebalance_lab.protocol_v1.common.request_form import rebalance_timeout_of
from rebalance_lab.protocol_v1.coordinator.state.member_order import HashOrder, in_hash_order
from rebalance_lab.protocol_v1.coordinator.state.states import State


@dataclass(slots=True, kw_only=True)
class ClassicMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    parked_join: JoinGroupRequest | None = None
    parked_sync: SyncGroupRequest | None = None
    is_new: bool = False
    """Added but never yet part of a completed join: it may expire even while its JoinGroup is parked."""

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return the member's bytes for a protocol; there are none where its group could not choose one."""
        return next((protocol.metadata for protocol in self.protocols if protocol.name == protocol_name), b"")

    def knows(self, protocol_name: str) -> bool:
        return any(protocol.name == protocol_name for protocol in self.protocols)


@dataclass(slots=True, kw_only=True)
class InitialDelay:
    """Hold how the join timer of a group that was empty goes on: its current delay, and what it may still add to
    that.
    """

    delay_ms: int
    left_ms: int


@dataclass(slots=True, kw_only=True)
class ClassicGroup:
    group_id: str
    state: State = State.EMPTY
    previous_state: State | None = None
    state_since_ms: int = 0
    generation_id: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, ClassicMember] = field(default_factory=dict)
    order: HashOrder = field(default_factory=HashOrder)
    static: dict[str, str] = field(default_factory=dict)
    pending_join: set[str] = field(default_factory=set)
    """Ids that MEMBER_ID_REQUIRED has handed out and that have not joined yet. They hold back the end of a join."""
    pending_sync: dict[str, None] = field(default_factory=dict)
    """Who has not sent SyncGroup in this generation: a set with a written order."""
    awaiting_join: int = 0
    supported: Counter[str] = field(default_factory=Counter)
    new_member_added: bool = False
    initial_delay: InitialDelay | None = None
    subscriptions: tuple[bytes, ...] | None = None
    """The members' metadata at the last join completion, as far as they are the consumer protocol's."""
    read_topics: tuple[tuple[bytes, ...], frozenset[str] | None] | None = field(default=None, compare=False)
    """Those subscriptions, and the topics read from them: asked for with every offset that may expire."""
    durable: bool = False
    """Whether the log knows the group; views leave out what it does not know yet."""

    def in_order(self) -> Iterator[ClassicMember]:
        return (self.members[member_id] for member_id in self.order)

    @property
    def all_joined(self) -> bool:
        return self.awaiting_join == len(self.members) and not self.pending_join

    @property
    def rebalance_timeout_ms(self) -> int:
        return max(0, max((member.rebalance_timeout_ms for member in self.members.values()), default=0))

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Tell whether the group supports the protocols. A rejoining member still counts with its old list, so a lone
        member cannot swap to a disjoint one.
        """
        if self.state is State.EMPTY:
            return bool(protocol_type and protocols)
        size = len(self.members)
        return protocol_type == self.protocol_type and any(self.supported[p.name] == size for p in protocols)

    def select_protocol(self) -> str | None:
        """Count the members' votes for a protocol: each votes for the first name of its list that all support.

        Return None if there is no such name, or if a member does not have the name that wins. That happens only where a
        member lists one name twice, which counts twice.
        """
        size = len(self.members)
        candidates = {name for name, count in self.supported.items() if count == size}
        votes: Counter[str] = Counter()
        for member in self.members.values():
            choice = next((protocol.name for protocol in member.protocols if protocol.name in candidates), None)
            if choice is None:
                return None
            votes[choice] += 1
        winner: str = max(in_hash_order(votes), key=votes.__getitem__)
        return winner if all(member.knows(winner) for member in self.members.values()) else None

    def check_member(self, member_id: str, group_instance_id: str | None) -> Error:
        """Check the member. Fencing comes first, and only a request that names an instance id can be fenced."""
        if group_instance_id is not None:
            holder = self.static.get(group_instance_id)
            if holder is None:
                return Error.UNKNOWN_MEMBER_ID
            if holder != member_id:
                return Error.FENCED_INSTANCE_ID
        return NONE if member_id in self.members else Error.UNKNOWN_MEMBER_ID

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        if member.group_instance_id is not None:
            self.static[member.group_instance_id] = member.member_id
        self.members[member.member_id] = member
        self.order.put(member.member_id)
        self.supported.update(protocol.name for protocol in member.protocols)
        self.awaiting_join += member.parked_join is not None
        self.pending_join.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member, a pending id, or an id that is neither any more. The next leader may not have joined
        itself.
        """
        member = self.members.pop(member_id, None)
        if member is not None:
            self.order.remove(member_id)
            self.supported.subtract(protocol.name for protocol in member.protocols)
            self.awaiting_join -= member.parked_join is not None
            if member.group_instance_id is not None:
                del self.static[member.group_instance_id]
        if self.leader == member_id:
            self.leader = self.order.first()
        self.pending_join.discard(member_id)
        self.pending_sync.pop(member_id, None)

    def update(self, member: ClassicMember, request: JoinGroupRequest) -> None:
        """Take over a rejoining member's list and timeouts, and park the request; an older one falls silent."""
        self.store(member, request.protocols, rebalance_timeout_of(request), request.session_timeout_ms)
        self.park(member, request)

    def store(
        self, member: ClassicMember, protocols: tuple[Protocol, ...], rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        for protocol in member.protocols:
            self.supported[protocol.name] -= 1
        for protocol in protocols:
            self.supported[protocol.name] += 1
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def park(self, member: ClassicMember, request: JoinGroupRequest) -> None:
        self.awaiting_join += member.parked_join is None
        member.parked_join = request

    def unpark_join(self, member: ClassicMember) -> JoinGroupRequest | None:
        request, member.parked_join = member.parked_join, None
        self.awaiting_join -= request is not None
        return request

    def replace(self, old: ClassicMember, new_id: str) -> ClassicMember:
        """Give the instance id, the leadership and all that was stored to a new member id (KIP-345).

        The old id stays in pending_sync, as in Kafka: its timer may later start a needless rebalance.
        """
        del self.members[old.member_id]
        self.order.remove(old.member_id)
        new = ClassicMember(
            member_id=new_id,
            group_instance_id=old.group_instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            session_timeout_ms=old.session_timeout_ms,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        self.members[new_id] = new
        self.order.put(new_id)
        if self.leader == old.member_id:
            self.leader = new_id
        assert old.group_instance_id is not None
        self.static[old.group_instance_id] = new_id
        return new

    def elect_joined_leader(self) -> bool:
        """Elect a leader that has joined, because the leader must assign. Return False when no member has: the group
        waits on.
        """
        if self.leader is not None and self.members[self.leader].parked_join is None:
            joined = next((member for member in self.in_order() if member.parked_join is not None), None)
            if joined is None:
                return False
            self.leader = joined.member_id
        return True

    def remember_subscriptions(self) -> None:
        if self.protocol_type != PROTOCOL_TYPE:
            self.subscriptions = None
        else:
            self.subscriptions = tuple(member.metadata(self.protocol_name) for member in self.members.values())

    def subscribes_to(self, topic: str) -> bool:
        """Tell whether the group reads the topic. Where a subscription cannot be read, a consumer group counts as
        reading all.
        """
        topics = self.subscribed_topics()
        return self.protocol_type == PROTOCOL_TYPE if topics is None else topic in topics

    def subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics, or None where they are not known: another protocol type, or bytes that do not parse."""
        if self.subscriptions is None:
            return None
        if self.read_topics is None or self.read_topics[0] is not self.subscriptions:
            self.read_topics = (self.subscriptions, topics_of(self.subscriptions))
        return self.read_topics[1]


def topics_of(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    try:
        return frozenset(topic for data in subscriptions for topic in subscribed_topics(data))
    except MalformedBytes:
        return None
