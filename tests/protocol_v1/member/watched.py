"""A conversation over a bad network that watches both sides: after every event, every invariant that needs a member.

The numbers are those of the invariants in the protocol's specification, section 4; the coordinator's own are checked
in tests/protocol_v1/coordinator/watched.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

from rebalance_lab.assignors.interface import RebalanceProtocol
from rebalance_lab.harness.conversation.conversations import Client, Conversation, instance_of
from rebalance_lab.protocol_v1.common.consumer_protocol import decode_assignment, decode_subscription
from rebalance_lab.protocol_v1.common.errors import Error, InvariantBroken
from rebalance_lab.protocol_v1.common.member_effects import (
    Call,
    Callback,
    CallbackDone,
    MemberEffect,
    Moved,
    Raise,
    Send,
    Told,
    TopicPartition,
    Unsubscribe,
)
from rebalance_lab.protocol_v1.common.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    Request,
    SyncGroupRequest,
)
from rebalance_lab.protocol_v1.coordinator.config import CoordinatorConfig
from rebalance_lab.protocol_v1.member.leader import flat
from rebalance_lab.protocol_v1.member.states import HEARTBEATING, MemberState
from tests.members.bad_network import BadNetwork, Trouble

FATAL = (Error.FENCED_INSTANCE_ID, Error.INCONSISTENT_GROUP_PROTOCOL)


def must(holds: bool, number: int, what: str) -> None:
    if not holds:
        raise InvariantBroken(f"invariant {number}: {what}")


class Watched(BadNetwork, Conversation):
    def __init__(self, topics: dict[str, int], assignors: Sequence[str], **settings: Any) -> None:
        self.trouble: dict[str, Trouble] = {}
        self.held: dict[Client, set[TopicPartition]] = {}
        self.left: dict[str, int] = {}
        self.states_of: dict[Client, str] = {}
        self.changed = False
        self.telling: Told | None = None
        config = CoordinatorConfig(group_min_session_timeout_ms=100, group_initial_rebalance_delay_ms=50)
        super().__init__(topics, assignors, config, 1, settings)

    def tell(self, client: Client, event: Told) -> None:
        self.telling = event
        super().tell(client, event)
        if self.changed or isinstance(event, CallbackDone):
            self.changed = False
            self.check_owners()

    # What must hold

    def perform(self, client: Client, effects: Sequence[MemberEffect]) -> None:
        for effect in effects:
            match effect:
                case Moved():
                    self.states_of[client] = effect.state
                    self.changed = True
                case Send():
                    self.see_request(client, effect.request)
                case Call():
                    self.see_call(client, effect)
                case Raise():
                    self.react(client, effect)
        super().perform(client, effects)

    def react(self, client: Client, raised: Raise) -> None:
        """An application stops on what will not get better, and otherwise polls again."""
        if raised.error in FATAL:
            self.crash(client.name)
        else:
            self.poll_later(client)

    def see_request(self, client: Client, request: Request) -> None:
        member, memory = client.member, client.member.memory
        state = self.states_of.get(client, MemberState.UNJOINED.value)
        match request:
            case JoinGroupRequest():
                self.see_join(client, request)
            case SyncGroupRequest():
                sent = memory.in_flight.get(request.correlation_id)  # the same event may also bring a reset
                at_send = member.generation if sent is None else sent.generation
                same = (request.generation_id, request.member_id) == at_send[:2]
                must(same, 22, f"SyncGroup of generation {request.generation_id} in {at_send}")
                self.see_assignments(request)
            case HeartbeatRequest():
                must(state in [one.value for one in HEARTBEATING], 22, f"a heartbeat in {state}")
            case OffsetCommitRequest():
                must(state == MemberState.STABLE.value, 22, f"a commit in {state}")
            case LeaveGroupRequest():
                must(instance_of(member) is None or memory.closing is not None, 24, "a static member left")
                left = request.members[0].member_id
                self.left[left] = self.left.get(left, 0) + 1
                must(self.left[left] == 1, 24, f"{left} left twice")
        exchanges = [s for s in memory.in_flight.values() if isinstance(s.request, JoinGroupRequest | SyncGroupRequest)]
        must(len(exchanges) <= 1, 23, f"{len(exchanges)} exchanges in flight")

    def see_join(self, client: Client, request: JoinGroupRequest) -> None:
        claimed = decode_subscription(request.protocols[0].metadata).owned_partitions
        must(flat(claimed) == set(client.owned), 17, f"claims {claimed}, owns {client.owned}")
        if client.member.memory.protocol is RebalanceProtocol.EAGER:
            must(not client.owned, 16, f"eager JoinGroup with {sorted(client.owned)}")

    def see_assignments(self, request: SyncGroupRequest) -> None:
        """15 and 17: what the leader hands out is disjoint, and nobody else still claims it."""
        shares = {e.member_id: flat(decode_assignment(e.assignment).assigned_partitions) for e in request.assignments}
        given: set[TopicPartition] = set()
        for share in shares.values():
            must(not share & given, 15, f"{sorted(share & given)} assigned twice")
            given |= share
        group = self.group
        if group is not None and group.generation_id == request.generation_id:
            told = {m.member_id: decode_subscription(m.metadata(group.protocol_name)) for m in group.in_order()}
            claims = {m: (flat(one.owned_partitions), one.generation_id) for m, one in told.items()}
            for (one, share), (other, (claimed, generation)) in product(shares.items(), claims.items()):
                owned, since = claims.get(one, (set(), -1))
                better = owned if since > generation else set()
                stolen = share & claimed - better if one != other else set()
                must(not stolen, 17, f"{one} is given {sorted(stolen)}, which {other} claims since {generation}")

    def see_call(self, client: Client, call: Call) -> None:
        held, partitions = self.held.setdefault(client, set()), set(call.partitions)
        generation = client.member.generation
        if call.callback is Callback.ASSIGNED:
            must(not partitions & held, 19, f"assigned again: {sorted(partitions & held)}")
            held |= partitions
            return
        must(partitions <= held, 19, f"taken without having been given: {sorted(partitions - held)}")
        held -= partitions
        leaving = client.member.memory.closing is not None or isinstance(self.telling, Unsubscribe)
        if call.callback is Callback.LOST:
            must(generation.is_unknown or leaving, 20, f"lost in {generation}")
        else:
            must(not generation.is_unknown, 20, f"revoked in {generation}")
            commit, deadline_ms = client.member.memory.prepare_commit, client.member.memory.prepare_deadline_ms or 0
            over = leaving or commit is None or commit.outcome is not None or self.now_ms >= deadline_ms
            must(over, 21, "revoked before the commit was answered")

    def check_owners(self) -> None:
        """18: among members that the coordinator has in its current generation nobody owns what another owns."""
        group = self.group
        if group is None:
            return
        current = [
            client
            for client in self.live
            if client.owned
            and client.member.generation.generation_id == group.generation_id
            and client.member.generation.member_id in group.members
        ]
        for one, other in combinations(current, 2):
            both = one.owned & other.owned
            must(not both, 18, f"{one.name} and {other.name} own {sorted(both)} in generation {group.generation_id}")

    def at_rest(self) -> bool:
        group = self.group
        ids = {client.member.generation.member_id for client in self.live}
        return super().at_rest() and (group is None or set(group.members) == ids)

    def check_everything_owned(self) -> None:
        """L4: every partition of every subscribed topic has one owner."""
        owned: list[TopicPartition] = [tp for client in self.live for tp in client.owned]
        topics = {topic for client in self.live for topic in client.member.memory.subscribed.topics}
        wanted = [(name, index) for name in topics & set(self.topics) for index in range(self.topics[name].partitions)]
        if self.live and sorted(owned) != sorted(wanted):
            raise InvariantBroken(f"L4: owned {sorted(owned)}, not {sorted(wanted)}")
