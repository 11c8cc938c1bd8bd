"""Run a churn of the property kit through the real protocol: consumers that join, leave and fall silent.

Given      a Subject of the kit (assignors/testing) and a group; then events, one at a time
Does       apply(event), settle(): the group must come to rest, every partition with exactly one reader
Raises     Broken with one line, or NotApplicable where the kit does not hold the subject to anything
Instances  one per process, for its life, as in a real consumer; of a server-side assignor one in the coordinator
Events     join and leave are processes that start and close. A crash is a silence: the session expires, the others
           rebalance, and before the next event the process is heard again, with what it remembers. A rack is left by
           a restart. A duplicate claim is written into the consumer's memory, since no consumer would make it
Left out   what the drawn group owns at the start: here members own what the protocol gave them
Start at   ProtocolChurn
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rebalance_lab.assignors.assignor_error import error_line
from rebalance_lab.assignors.interface import RebalanceProtocol
from rebalance_lab.assignors.model import Group
from rebalance_lab.assignors.testing.properties.moves import check_handover
from rebalance_lab.assignors.testing.sampling.group_events import (
    Crash,
    Delete,
    DuplicateClaim,
    Event,
    Grow,
    Join,
    Leave,
    MoveRack,
    Resubscribe,
    grown,
)
from rebalance_lab.assignors.testing.subject.answers import Broken, NotApplicable
from rebalance_lab.assignors.testing.subject.subject import Subject, is_theirs
from rebalance_lab.assignors.user_code import keep_error
from rebalance_lab.harness.conversation.conversations import Conversation, MixedConversation, id_of
from rebalance_lab.harness.conversation.stage import Client, Stage
from rebalance_lab.protocol_v1.common.member_effects import (
    CloseOption,
    EnforceRebalance,
    MetadataChanged,
    Subscribe,
    Told,
    TopicPartition,
    Unsubscribe,
)
from rebalance_lab.protocol_v1.coordinator.config import CoordinatorConfig
from rebalance_lab.protocol_v2.coordinator.coordinator import Coordinator as ConsumerCoordinator

SESSION_MS, HEARTBEAT_MS, SILENCE_MS, PATIENCE_MS = 6_000, 2_000, 30_000, 120_000
CONSUMER = {
    "session_timeout_ms": SESSION_MS,
    "heartbeat_interval_ms": HEARTBEAT_MS,
    "max_poll_interval_ms": 10_000,
    "request_timeout_ms": 4_000,
    "enable_auto_commit": False,
}
BROKER = {
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.session.timeout.ms": SESSION_MS,
    "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
    "group.consumer.min.heartbeat.interval.ms": HEARTBEAT_MS,
}
MOST_ASKED = 12
"""Within one event. A hand-over takes two rebalances, a member that comes back two more."""
MOST_MEMBERS, MOST_PARTITIONS = 8, 60
"""More of them show the same, for more time."""
HOOKS = ("subscription_user_data", "assignment_user_data", "on_assignment", "remember_generations")
"""What a consumer calls of its assignor, besides `assign`."""


class Watched:
    """Wrap an instance of the subject as a process has it; its answers are checked before a member acts on them."""

    def __init__(self, churn: ProtocolChurn, group: Group) -> None:
        self.churn = churn
        self.instance = churn.subject.new_instance(group)
        told = self.hooks()
        # Under Kafka's own names its own bytes are expected, which another client's assignor does not send.
        self.name = churn.subject.name if told or churn.subject.server_side else "checked"
        cooperative = churn.subject.cooperative
        self.supported_protocols = (RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER,)
        vars(self).update(told)

    def hooks(self) -> dict[str, Any]:
        try:
            found = {hook: getattr(self.instance, hook, None) for hook in HOOKS}
        except Exception as error:
            keep_error(error)
            raise Broken(f"a hook cannot be had: {error_line(error)}", self.churn.group) from error
        return {hook: self.guarded(hook, call) for hook, call in found.items() if call is not None}

    def guarded(self, hook: str, call: Any) -> Any:
        """Wrap a call: the consumer handles an exception; what is more than one would end the consumer, and the
        search.
        """

        def guard(*told: Any) -> Any:
            try:
                return call(*told)
            except Exception:
                raise
            except BaseException as error:
                if not is_theirs(error):
                    raise
                keep_error(error)
                self.churn.failure = Broken(f"{hook} raised {error_line(error)}", self.churn.group, self.churn.answer)
                raise self.churn.failure from error

        return guard

    def assign(self, group: Group) -> Mapping[str, Mapping[str, Sequence[int]]]:
        churn = self.churn
        churn.asked, churn.group = churn.asked + 1, group
        try:
            placed = churn.subject.ask(group, instance=self.instance)
            if "cooperative" in churn.subject.promises:
                check_handover(placed)
        except (Broken, NotApplicable) as error:
            churn.failure = error
            raise
        churn.answer = placed.answer
        return placed.answer


class ServerSide(MixedConversation):
    """Run a group of KIP-848 whose broker has the subject for an assignor."""

    def __init__(self, assignor: Watched) -> None:
        self.assignor = assignor
        super().__init__({}, ["range"], BROKER, 1, {**CONSUMER, "group_remote_assignor": assignor.name})

    def new_coordinator(self) -> ConsumerCoordinator:
        coordinator = super().new_coordinator()
        coordinator.shard.assignors = {self.assignor.name: self.assignor}
        return coordinator


class ProtocolChurn:
    def __init__(self, subject: Subject, group: Group) -> None:
        if len(group.members) > MOST_MEMBERS or group.layout.total > MOST_PARTITIONS:
            raise NotApplicable
        self.subject = subject
        self.failure: Broken | NotApplicable | None = None
        self.asked = 0
        self.group = group
        """The last that was asked about, and the answer."""
        self.answer: Any = None
        self.subscribed: dict[str, tuple[str, ...]] = {}
        """Of every process there is; one without topics is in no group."""
        self.racks: dict[str, str | None] = {}
        self.instances = {name: member.instance_id for name, member in group.members.items()}
        self.silent: dict[str, Client[Any]] = {}
        self.stage: Conversation | MixedConversation
        if subject.server_side:
            self.stage = ServerSide(Watched(self, group))
        else:
            config = CoordinatorConfig(group_initial_rebalance_delay_ms=10)
            self.stage = Conversation({}, [], config, 1, CONSUMER)
        self.stage.topics = dict(group.topics)
        self.metadata_changes()
        for name, member in group.members.items():
            self.start(name, member.topics, member.rack)

    # What happens

    def apply(self, event: Event) -> None:
        self.hear_again()
        match event:
            case Join(name, topics, rack):
                if name not in self.subscribed:
                    self.start(name, topics, rack)
            case Leave(name):
                self.stop(name)
            case Crash(name):
                self.fall_silent(name)
            case Resubscribe(name, topics):
                self.resubscribe(name, topics)
            case Grow(topic, by):
                if topic in self.stage.topics:
                    self.stage.topics[topic] = grown(self.stage.topics[topic], by)
                    self.metadata_changes()
            case Delete(topic):
                if self.stage.topics.pop(topic, None) is not None:
                    self.metadata_changes()
            case MoveRack(name, rack):
                if name in self.subscribed:
                    topics = self.subscribed[name]
                    self.stop(name)
                    self.settle()
                    self.start(name, topics, rack)
            case DuplicateClaim(name, of):
                self.claim_too(name, of)

    def start(self, name: str, topics: Iterable[str], rack: str | None) -> None:
        self.subscribed[name], self.racks[name] = tuple(topics), rack
        if not self.subscribed[name]:
            return
        known: dict[str, Any] = {"client_rack": rack, "group_instance_id": self.instances.get(name)}
        if isinstance(self.stage, Conversation):
            known["assignors"] = [Watched(self, self.group)]
        self.stage.join(name, topics=self.subscribed[name], **known)

    def stop(self, name: str) -> None:
        topics = self.subscribed.pop(name, ())
        if topics:
            self.stage.close(name, CloseOption.LEAVE_GROUP)

    def resubscribe(self, name: str, topics: tuple[str, ...]) -> None:
        before = self.subscribed.get(name)
        if before is None:
            return
        if not before:
            self.start(name, topics, self.racks[name])
        else:
            self.subscribed[name] = topics
            event = Subscribe(frozenset(topics)) if topics else Unsubscribe()
            self.tell(name, event)

    def tell(self, name: str, event: Told) -> None:
        stage: Stage[Any, Any] = self.stage
        stage.tell(stage.clients[name], event)

    def metadata_changes(self) -> None:
        self.stage.grow({})

    def fall_silent(self, name: str) -> None:
        """Make a member fall silent: whatever it sends from now on arrives too late; it does not know that yet."""
        if self.subscribed.get(name):
            client = self.silent[name] = self.stage.clients.pop(name)
            client.latency_ms = SILENCE_MS

    def hear_again(self) -> None:
        for name, client in self.silent.items():
            client.latency_ms = None
            self.stage.clients[name] = client
            self.stage.cut(client)
            self.tell(name, MetadataChanged(dict(self.stage.topics)))
        self.silent.clear()

    def claim_too(self, name: str, of: str) -> None:
        clients = self.stage.clients
        if self.subscribed.get(name) and self.subscribed.get(of) and isinstance(self.stage, Conversation):
            memory = clients[name].member.memory
            memory.owned |= {tp for tp in clients[of].owned if tp[0] in self.subscribed[name]}
            self.tell(name, EnforceRebalance())

    # What must follow

    def settle(self) -> None:
        self.asked = 0
        if self.subject.server_side:  # a broker looks at new metadata when a heartbeat comes by
            self.stage.until(self.stage.now_ms + HEARTBEAT_MS + 2, self.failed)
        arrived = self.stage.until(self.stage.now_ms + PATIENCE_MS, self.over)
        if self.failure is not None:
            raise self.failure
        for client in self.stage.clients.values():
            if client.raised is not None:
                self.broken(f"the consumer of {client.name!r} fails: {client.raised.message}")
        if self.asked > MOST_ASKED:
            self.broken(f"the group is not at rest after {MOST_ASKED} rebalances in a row")
        if not arrived:
            self.broken(f"the group is not at rest after {PATIENCE_MS // 1000} seconds")
        self.check_readers()

    def over(self) -> bool:
        return self.failed() or (self.stage.at_rest() and not self.waits_for_the_silent())

    def failed(self) -> bool:
        raised = any(client.raised is not None for client in self.stage.clients.values())
        return raised or self.failure is not None or self.asked > MOST_ASKED

    def waits_for_the_silent(self) -> bool:
        """Tell whether partitions wait for an absent static member: the stage is at rest then, but they have no
        reader.
        """
        group = self.stage.group
        return group is not None and any(id_of(client.member) in group.members for client in self.silent.values())

    def check_readers(self) -> None:
        heard = {name: topics for name, topics in self.subscribed.items() if topics and name not in self.silent}
        readers: Counter[TopicPartition] = Counter()
        for name in heard:
            readers.update(self.stage.clients[name].owned)
        for topic in sorted({topic for topics in heard.values() for topic in topics} & self.stage.topics.keys()):
            for partition in range(self.stage.topics[topic].partitions):
                count = readers[topic, partition]
                if count != 1:
                    whom = "nobody" if not count else f"{count} consumers"
                    self.broken(f"the group is at rest, and {topic}-{partition} is read by {whom}")

    def broken(self, message: str) -> None:
        raise Broken(message, self.group, self.answer)
