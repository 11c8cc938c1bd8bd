"""Random lives of groups that change their protocol: consumers and eager classic members come, go and change places.

As in random_runs.py, but through both coordinators. An eager member stops reading before every JoinGroup, so at no time
do two members of the group read one partition, whichever protocol the group speaks at that time. Two things are left
out, because Kafka hands out targets before they are free there: classic members are dynamic (a static one may take over
the last consumer's place), and a classic member is not counted while its generation is no longer the group's (a group
that is downgraded takes targets for assignments, and may be upgraded again before its members have heard).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from rebalance_lab.harness.hosts.dual_coordinator import Codec, make_dual_coordinator
from rebalance_lab.protocol_v1.common import messages as v1
from rebalance_lab.protocol_v1.common.consumer_protocol import Assignment as ClassicAssignment
from rebalance_lab.protocol_v1.common.consumer_protocol import (
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from rebalance_lab.protocol_v1.common.effects import Effect, Reply
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.coordinator.coordinator import numbered
from rebalance_lab.protocol_v2.common.topic_image import topic_name
from rebalance_lab.protocol_v2.coordinator.coordinator import Coordinator
from rebalance_lab.protocol_v2.coordinator.state.states import GroupState
from tests.protocol_v2.coordinator.random_runs import Client, World
from tests.protocol_v2.coordinator.watched import Watched

POLICIES = ("bidirectional", "bidirectional", "upgrade", "downgrade", "disabled")
TOPIC = "orders"


@dataclass
class ClassicClient:
    member_id: str = ""
    generation: int = -1
    phase: str = "join"
    reading: set[Any] = field(default_factory=set)
    plan: tuple[v1.SyncGroupRequestAssignment, ...] = ()
    outstanding: Any = None
    answer: Any = None
    gone: bool = False
    epoch: int = 1  # never 0: it always counts as having joined

    def request(self, partitions: int) -> Any:
        who = {"group_id": "g", "member_id": self.member_id}
        if self.phase == "join":
            self.reading = set()
            metadata = encode_subscription(Subscription(topics=(TOPIC,)))
            return v1.JoinGroupRequest(
                **who,
                session_timeout_ms=20_000,
                rebalance_timeout_ms=30_000,
                protocol_type="consumer",
                protocols=(v1.Protocol(name="range", metadata=metadata),),
            )
        if self.phase == "sync":
            return v1.SyncGroupRequest(
                **who,
                generation_id=self.generation,
                protocol_type="consumer",
                protocol_name="range",
                assignments=self.plan,
            )
        return v1.HeartbeatRequest(**who, generation_id=self.generation)

    def hear(self, response: Any, partitions: int) -> None:
        error = response.error_code
        if error is Error.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
            self.start_again()
        elif error is not Error.NONE:
            self.join_again()
        elif isinstance(response, v1.JoinGroupResponse):
            self.member_id, self.generation, self.phase = response.member_id, response.generation_id, "sync"
            leads = response.leader == response.member_id
            self.plan = shares([member.member_id for member in response.members], partitions) if leads else ()
        elif isinstance(response, v1.SyncGroupResponse):
            assigned = decode_assignment(response.assignment).assigned_partitions if response.assignment else {}
            self.reading = {(topic, number) for topic, numbers in assigned.items() for number in numbers}
            self.phase = "beat"

    def join_again(self) -> None:
        self.phase, self.reading = "join", set()

    def start_again(self) -> None:
        self.member_id = ""
        self.join_again()


def shares(members: list[str], partitions: int) -> tuple[v1.SyncGroupRequestAssignment, ...]:
    plan = []
    for i, member_id in enumerate(members):
        owned = {TOPIC: tuple(range(i, partitions, len(members)))}
        data = encode_assignment(ClassicAssignment(assigned_partitions=owned))
        plan.append(v1.SyncGroupRequestAssignment(member_id=member_id, assignment=data))
    return tuple(plan)


class MixedWorld(World):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, wild=False)
        self.topics = {TOPIC: self.random.randint(1, 6)}
        self.policy = self.random.choice(POLICIES)
        self.ids = numbered()
        self.coordinator = self.build()

    def build(self) -> Watched:
        settings = {
            "group.consumer.assignment.interval.ms": 0,
            "group.consumer.migration.policy": self.policy,
            "group.initial.rebalance.delay.ms": 0,
        }
        machine = make_dual_coordinator(settings, self.ids, self.topics)
        # Kafka lets classic members that are left alone sleep on (C37), and no group would ever settle then.
        machine.shard.config = replace(machine.shard.config, wakes_classic_members=True)
        assert isinstance(machine, Coordinator)
        assert isinstance(machine.shard.codec, Codec)
        return Watched(machine)

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Reply):
                client = self.replies.pop(effect.request.correlation_id, None)
                if client is not None:
                    client.answer = effect.response  # type: ignore[assignment]
            else:
                super().perform([effect])

    def crash(self) -> None:
        self.held.clear()
        self.holds = False
        self.timers.clear()
        self.replies.clear()
        for client in self.clients:
            if client.outstanding is not None and client.answer is None:
                self.give_up(client)
        self.coordinator = self.build()
        self.perform(self.coordinator.load(self.durable, self.now))

    def check_replay(self) -> None:
        """Classic groups are not rebuilt exactly: a join phase is lost with its coordinator."""

    def new_client(self) -> None:
        if self.random.random() < 0.5:
            self.members_made += 1
            self.clients.append(Client(f"m{self.members_made}", None, {"subscribed_topic_names": (TOPIC,)}))
        else:
            self.clients.append(ClassicClient())  # type: ignore[arg-type]

    def send(self, client: Any, request: Any = None) -> None:
        size = self.topics[TOPIC]
        client.outstanding = client.request(size) if isinstance(client, ClassicClient) else client.request()

    def give_up(self, client: Any) -> None:
        client.outstanding = client.answer = None
        if isinstance(client, ClassicClient):
            client.join_again()
        else:
            client.says_all = True

    def deliver(self, client: Any) -> None:
        self.correlation += 1
        self.replies[self.correlation] = client
        request = replace(client.outstanding, correlation_id=self.correlation)
        kind = type(request).__name__.removesuffix("Request")
        self.story.append(f"{self.now} {client.member_id or '?'} {kind}")
        self.perform(self.coordinator.handle(request, self.now))

    def receive(self, client: Any) -> None:
        answer, client.answer, client.outstanding = client.answer, None, None
        self.story.append(f"{self.now} {client.member_id or '?'} <- {answer.error_code.name}")
        if isinstance(client, ClassicClient):
            client.hear(answer, self.topics[TOPIC])
        elif answer.error_code is Error.GROUP_ID_NOT_FOUND:
            client.lose_everything()  # an upgrade that is not allowed, or a group that has gone classic again
        else:
            client.hear(answer)

    def act(self, client: Any) -> None:
        chance = self.random.random()
        if chance < 0.15 and isinstance(client, Client):
            client.reconcile()
        elif client.outstanding is None:
            self.send(client)
            self.deliver(client)
        elif client.answer is not None:
            self.give_up(client) if chance < 0.2 else self.receive(client)

    def change_topics(self) -> None:
        self.topics = {TOPIC: self.topics[TOPIC] + 1}
        self.perform(self.coordinator.on_metadata(self.topics, self.now))

    def leave(self, client: Any) -> None:
        if isinstance(client, Client):
            super().leave(client)
            return
        client.reading, client.gone = set(), True
        if client.member_id and self.random.random() < 0.7:
            entry = (v1.MemberIdentity(member_id=client.member_id),)
            self.perform(self.coordinator.handle(v1.LeaveGroupRequest(group_id="g", members=entry), self.now))

    def members(self) -> dict[str, set[Any] | None]:
        """Whoever is in the group, whichever protocol it speaks, and what it holds where that is known."""
        group = self.coordinator.groups.get("g")
        if group is not None:
            return {
                member.member_id: {
                    (topic_name(topic), number)
                    for topic, number in (*member.current.assigned, *member.current.revoking)
                }
                for member in group.members.values()
            }
        classic = self.coordinator.coordinator.shard.classic
        if classic.phase("g") is None:
            return {}
        return {member.member_id: None for member in classic.image_of("g").members}

    def is_fenced(self, client: Any) -> bool:
        """A classic member that will hear ILLEGAL_GENERATION with its next request."""
        if not isinstance(client, ClassicClient):
            return False
        group = self.coordinator.groups.get("g")
        if group is not None:
            return group.members[client.member_id].current.member_epoch != client.generation
        return self.coordinator.coordinator.shard.classic.image_of("g").generation_id != client.generation

    def check_readers(self) -> None:
        readers: dict[Any, str] = {}
        held = self.members()
        for client in self.clients:
            if client.member_id not in held or client.epoch == 0 or self.is_fenced(client):
                continue
            allowed = held[client.member_id]
            assert allowed is None or client.reading <= allowed, f"S18: {client} reads more than {allowed}"
            for partition in client.reading:
                assert partition not in readers, f"S18: {partition} has two readers"
                readers[partition] = client.member_id

    def settle(self) -> None:
        self.release()
        for client in self.clients:
            if client.outstanding is not None:
                self.give_up(client)
        for _ in range(14):
            self.advance(9_000)
            for client in self.clients:
                for _ in range(3):
                    if client.gone:
                        continue
                    if client.outstanding is None:
                        self.send(client)
                        self.deliver(client)
                    if client.answer is not None:
                        self.receive(client)
                        if isinstance(client, Client):
                            client.reconcile()
            self.check_readers()

    def check_settled(self) -> None:
        alive = {client.member_id: client for client in self.clients if not client.gone and client.epoch != 0}
        held = self.members()
        alive = {member_id: client for member_id, client in alive.items() if member_id in held}
        assert set(held) == set(alive), f"L3: {set(held)} are members, {set(alive)} are there"
        group = self.coordinator.groups.get("g")
        if group is not None and alive:
            assert group.state is GroupState.STABLE, f"L1: still {group.state}"
        read = [partition for client in alive.values() for partition in client.reading]
        wanted = [(TOPIC, number) for number in range(self.topics[TOPIC])] if alive else []
        if group is not None and group.classic_members == len(group.members):
            # Classic heartbeats do not look at topics (1.14): such a group reads what was there when it was last asked.
            wanted = sorted((topic_name(t), n) for target in group.targets.values() for t, n in target.partitions)
        if group is not None:
            assert sorted(read) == wanted, f"L9: {sorted(read)} are read"
        assert len(read) == len(set(read))


def run(seed: int, *, steps: int = 60) -> None:
    world = MixedWorld(seed)
    try:
        for _ in range(steps):
            world.step()
        world.settle()
        world.check_settled()
    except AssertionError as error:
        story = "\n".join(world.story[-40:])
        raise AssertionError(f"seed {seed} ({world.policy}): {error}\n{story}") from error
