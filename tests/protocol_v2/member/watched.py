"""A conversation over a bad network that watches both sides: after every event, every invariant that needs a member.

The numbers are those of the invariants in the protocol's specification, section 4. The coordinator's own invariants are
checked in tests/protocol_v2/coordinator/watched.py, which the coordinator here runs under. Two members reading one
partition (S18) is only looked for where it must not happen: a request that arrives twice, and Java's own way of
reporting what is owned, can both bring it about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rebalance_lab.harness.conversation.conversations import AnyMember, MixedConversation, id_of
from rebalance_lab.harness.conversation.stage import GROUP
from rebalance_lab.harness.conversation.stage import Client as StageClient
from rebalance_lab.harness.hosts.dual_coordinator import ClassicSide, make_dual_coordinator
from rebalance_lab.protocol_v1.common.effects import Append, Effect, StateChanged
from rebalance_lab.protocol_v1.common.errors import Error, InvariantBroken
from rebalance_lab.protocol_v1.common.member_effects import (
    Call,
    Callback,
    CallbackDone,
    MemberEffect,
    Moved,
    Raise,
    Send,
    Subscribe,
    Told,
    TopicPartition,
)
from rebalance_lab.protocol_v1.common.messages import Request
from rebalance_lab.protocol_v1.member.member import Member as ClassicMember
from rebalance_lab.protocol_v2.common.messages import ConsumerGroupHeartbeatRequest
from rebalance_lab.protocol_v2.common.topic_image import topic_name
from rebalance_lab.protocol_v2.coordinator.coordinator import Coordinator
from rebalance_lab.protocol_v2.coordinator.state.states import Event
from rebalance_lab.protocol_v2.coordinator.state.values import ConsumerMember
from rebalance_lab.protocol_v2.member.commits import PREPARE
from rebalance_lab.protocol_v2.member.member import Member
from rebalance_lab.protocol_v2.member.states import IN_GROUP, MemberState
from tests.members.bad_network import BadNetwork, Trouble
from tests.protocol_v2.coordinator.watched import Watched as WatchedGroups

Client = StageClient[AnyMember]
FATAL = (Error.FENCED_INSTANCE_ID, Error.INCONSISTENT_GROUP_PROTOCOL)
BROKER: Mapping[str, Any] = {
    "group.consumer.session.timeout.ms": 2_000,
    "group.consumer.heartbeat.interval.ms": 600,
    "group.min.session.timeout.ms": 100,
    "group.initial.rebalance.delay.ms": 50,
}
SPEAKING = [state.value for state in (*IN_GROUP, MemberState.PREPARE_LEAVING)]


def must(holds: bool, number: int, what: str) -> None:
    if not holds:
        raise InvariantBroken(f"S{number}: {what}")


class Machine(WatchedGroups):
    """The coordinator under watch, as a conversation drives it."""

    @property
    def shard(self) -> Any:
        return self.coordinator.shard

    def update_topics(self, topics: Mapping[str, int], now_ms: int) -> list[Effect]:
        return self.on_metadata(topics, now_ms)


class Watched(BadNetwork, MixedConversation):
    def __init__(
        self,
        topics: Mapping[str, int],
        *,
        classic_assignors: Sequence[str] = ("range",),
        properties: Mapping[str, Any] | None = None,
        exclusive: bool = True,
        closely: bool = True,
        **settings: Any,
    ) -> None:
        """`closely`: with an eye on the coordinator too, which takes as long as everything else."""
        self.exclusive = exclusive
        self.closely = closely
        self.trouble: dict[str, Trouble] = {}
        self.held: dict[Client, set[TopicPartition]] = {}
        self.revoked: dict[Client, set[TopicPartition]] = {}
        self.reported: dict[Client, set[TopicPartition]] = {}
        self.states_of: dict[Client, str] = {}
        self.epochs: dict[Client, tuple[int, int]] = {}
        self.given_away: dict[str, set[TopicPartition]] = {}
        """What a member still reads although the last upgrade took it for free, by member id."""
        broker = {"group.consumer.assignment.interval.ms": 0, **BROKER, **(properties or {})}
        super().__init__(topics, classic_assignors, broker, 1, settings)

    def new_coordinator(self) -> Coordinator:
        machine = make_dual_coordinator(self.properties, self.new_member_id, self.partition_counts())
        # Two habits of Kafka's in which no group of classic members would settle (C37), and no log would hold (C35).
        quirks = {"wakes_classic_members": True, "forgets_empty_groups": False}
        machine.shard.config = replace(machine.shard.config, **quirks)
        classic = machine.shard.classic
        assert isinstance(classic, ClassicSide)
        classic.keeps_join_timers = False  # a third: it removes members that have done nothing wrong
        return Machine(machine) if self.closely else machine  # type: ignore[return-value]

    def tell(self, client: Client, event: Told) -> None:
        super().tell(client, event)
        if isinstance(client.member, Member):
            self.see_epoch(client, client.member)
        if isinstance(event, CallbackDone | Subscribe):
            self.check_readers()

    def obey(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            self.see_upgrade(effect)
        super().obey(effects)
        if any(isinstance(effect, Append) for effect in effects):
            self.check_readers()

    def see_upgrade(self, effect: Effect) -> None:
        if isinstance(effect, StateChanged) and effect.event == Event.UPGRADED.value:
            self.given_away = {id_of(client.member): self.excused_by_upgrade(client) for client in self.live}

    def excused_by_upgrade(self, client: Client) -> set[TopicPartition]:
        """Return what a member reads, and the broker takes for free.

        A rebalance that was never completed had dropped the member's assignment. Or its SyncGroup was answered, and it
        has not given up yet what it lost. Kafka gives such partitions away at once: both recorded from a real broker,
        what_is_*_given_away_by_an_upgrade*.json in tests/harness/kafka/wire/recordings.
        """
        group, member = self.group, client.member
        known = group.members.get(id_of(member)) if group is not None else None
        if known is None or not isinstance(member, ClassicMember):
            return set()
        return set(member.fetchable - held_by(known))

    # What must hold

    def perform(self, client: Client, effects: Sequence[MemberEffect]) -> None:
        for effect in effects:
            match effect:
                case Moved():
                    self.states_of[client] = effect.state
                case Send():
                    self.see_request(client, effect.request)
                case Call():
                    self.see_call(client, effect)
                case Raise():
                    self.react(client, effect)
        super().perform(client, effects)

    def react(self, client: Client, raised: Raise) -> None:
        """An application stops on what will not get better, and otherwise polls again."""
        over = raised.error in FATAL or client.member.state is MemberState.FATAL
        if over:
            self.crash(client.name)
        else:
            self.poll_later(client)

    def see_epoch(self, client: Client, member: Member) -> None:
        """Within one life of a member its epoch never goes back."""
        life, epoch = self.epochs.get(client, (0, 0))
        if member.memory.life == life:
            must(member.member_epoch >= epoch, 5, f"from epoch {epoch} back to {member.member_epoch}")
        self.epochs[client] = member.memory.life, member.member_epoch

    def see_request(self, client: Client, request: Request) -> None:
        if not isinstance(request, ConsumerGroupHeartbeatRequest):
            return
        memory = client.member.memory
        state = self.states_of.get(client, MemberState.UNSUBSCRIBED.value)
        owned = None if request.topic_partitions is None else flat(request)
        if request.member_epoch < 0:
            must(state == MemberState.LEAVING.value, 23, f"a leave in {state}")
            return
        must(state in SPEAKING, 23, f"a heartbeat in {state}")
        under_way = [
            sent
            for sent in memory.in_flight.values()
            if isinstance(sent.request, ConsumerGroupHeartbeatRequest) and sent.request.member_epoch >= 0
        ]
        must(sum(sent.life == memory.life for sent in under_way) <= 1, 22, "two heartbeats in flight")
        if request.member_epoch == 0:
            says = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
            must(owned == set() and says and request.rebalance_timeout_ms > 0, 22, f"a join without all: {request}")
        if owned is not None:
            gone = self.reported.get(client, set()) - owned
            kept = gone & client.member.owned if request.member_epoch > 0 else set()
            must(not kept, 20, f"{sorted(kept)} reported as gone, and still owned")
            self.reported[client] = owned

    def see_call(self, client: Client, call: Call) -> None:
        if isinstance(client.member, ClassicMember):
            return
        held, partitions = self.held.setdefault(client, set()), set(call.partitions)
        revoked = self.revoked.setdefault(client, set())
        if call.callback is Callback.ASSIGNED:
            must(not partitions & held, 19, f"assigned again: {sorted(partitions & held)}")
            held |= partitions
            revoked.clear()
            return
        # A revocation that failed is tried again; and who is fenced or leaves in the midst of one loses everything.
        must(partitions <= held | revoked, 19, f"taken without having been given: {sorted(partitions - held)}")
        held -= partitions
        revoked |= partitions
        # An application that unsubscribes waits for no commit: the one of a reconciliation under way is on its own.
        if call.callback is Callback.REVOKED and client.member.state is not MemberState.PREPARE_LEAVING:
            memory = client.member.memory
            waits = [sent.commit for sent in memory.in_flight.values() if sent.commit and sent.commit.by == PREPARE]
            must(
                not waits and all(one.by != PREPARE for one in memory.commits), 21, "revoked before the commit was over"
            )

    def check_readers(self) -> None:
        """S18: what a member of the group reads, the group holds for it; so no two of them read one partition."""
        group = self.group
        if group is None or not self.exclusive:
            return
        for client in self.live:
            member = client.member
            known = group.members.get(id_of(member))
            if known is None or not member.fetchable or self.is_fenced(member, known.current.member_epoch):
                continue
            held = held_by(known)
            strange = member.fetchable - held
            if strange <= self.given_away.get(id_of(member), set()):
                self.given_away[id_of(member)] = set(strange)  # it lets go of them, and takes none of them back
                continue
            must(not strange, 18, f"{client.name} reads {sorted(strange)}; the group holds {sorted(held)} for it")

    def is_fenced(self, member: AnyMember, epoch: int) -> bool:
        """It has left or was forgotten, or is in no generation; or its next message will tell it so."""
        if isinstance(member, ClassicMember):
            return member.generation.generation_id != epoch
        return member.member_epoch <= 0 or member.member_epoch > epoch

    def check_settled(self) -> None:
        """L1, L9: every partition of every subscribed topic has one reader, and the log tells the same story."""
        read: list[TopicPartition] = [tp for client in self.live for tp in client.member.fetchable]
        topics = {topic for client in self.live for topic in self.subscribed_by(client.member)}
        wanted = [(name, index) for name in topics for index in range(self.topics[name].partitions)]
        if self.live and sorted(read) != sorted(wanted):
            raise InvariantBroken(f"L9: {sorted(read)} are read, not {sorted(wanted)}")
        assert self.coordinator is not None
        watched = self.coordinator if isinstance(self.coordinator, Machine) else Machine(self.coordinator)
        watched.check_replay(self.log)

    def subscribed_by(self, member: AnyMember) -> set[str]:
        group = self.group
        if isinstance(member, ClassicMember) or group is None:
            return set(member.memory.subscribed.topics) & set(self.topics)
        metadata = group.members[member.member_id].metadata
        return {name for name in self.topics if group.is_subscribed(metadata, name)}


def held_by(known: ConsumerMember) -> set[TopicPartition]:
    current = known.current
    return {(topic_name(topic), number) for topic, number in (*current.assigned, *current.revoking)}


def flat(request: ConsumerGroupHeartbeatRequest) -> set[TopicPartition]:
    assert request.topic_partitions is not None
    return {(topic.topic_name, index) for topic in request.topic_partitions for index in topic.partitions}


__all__ = ["GROUP", "Client", "Trouble", "Watched"]
