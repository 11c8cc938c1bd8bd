"""Random conversations of groups in which both protocols meet: classic members, KIP-848 members, and instances that
change from one to the other.

The other generators send a classic member to a KIP-848 group now and then. Here several classic members stay, sync,
rejoin and leave, so that a group is downgraded and upgraded with many members in it. An instance id is taken over by a
process of the other protocol, as in a migration of static members.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, ClassVar

from rebalance_lab.protocol_v1.common.consumer_protocol import Assignment, encode_assignment
from tests.harness.kafka.wire import classic_sequences, consumer_sequences
from tests.harness.kafka.wire.talk import Talk

CLASSIC_ACTIONS = {
    "act": 60, "heartbeat": 8, "stale": 4, "commit": 5, "fetch": 2, "leave": 5, "forget": 4, "other_list": 3,
    "remove": 2, "view": 3, "stranger": 3, "repeat": 3, "odd_join": 1,
}  # fmt: skip
CONSUMER_ACTIONS = {
    "beat": 60, "acknowledge": 20, "wrong_epoch": 4, "commit": 5, "fetch": 3, "leave": 8, "forget": 5,
    "subscribe": 4, "view": 6, "stranger": 2, "odd": 2, "claim": 2,
}  # fmt: skip
PARTITIONS = {"orders": 6, "clicks": 3}


class ClassicSide(classic_sequences.ClassicTalk):
    ACTIONS = CLASSIC_ACTIONS

    def plan(self, client: classic_sequences.Client, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Bytes that a coordinator can read when it upgrades the group: each partition once."""
        members = len(answer["members"])
        shares = [
            {topic: tuple(range(i, count, members)) for topic, count in PARTITIONS.items()} for i in range(members)
        ]
        return [
            {
                "member_id": f"${client.joined}.members[{i}].member_id",
                "assignment": base64.b64encode(encode_assignment(Assignment(assigned_partitions=share), 1)).decode(),
            }
            for i, share in enumerate(shares)
        ]


class ConsumerSide(consumer_sequences.ConsumerTalk):
    ACTIONS = CONSUMER_ACTIONS


class MixedTalk(Talk):
    PROTOCOL = "consumer"
    ACTIONS: ClassVar[Mapping[str, int]] = {
        "classic": 40, "consumer": 40, "swap": 6, "settle": 5, "takeover": 5, "wait": 4,
    }  # fmt: skip
    WAITS_MS = (300, 800, 1_700)

    def __init__(self, seed: int, config: Mapping[str, Any], topics: Mapping[str, int]) -> None:
        super().__init__(f"mixed {seed}", config, topics)
        self.classic, self.consumer = ClassicSide(seed, {}, topics), ConsumerSide(seed, config, topics)
        for side in (self.classic, self.consumer):
            side.script, side.random = self.script, self.random
        self.clients = [None]

    def do_classic(self, client: None) -> None:
        self.act(self.classic)

    def do_consumer(self, client: None) -> None:
        self.act(self.consumer)

    def act(self, side: Any) -> None:
        if side.clients:
            action = self.random.choices(list(side.ACTIONS), list(side.ACTIONS.values()))[0]
            getattr(side, "do_" + action)(self.random.choice(side.clients))

    def do_settle(self, client: None) -> None:
        """Every member does what it would do until it has what it is to have."""
        for _ in range(2):
            for member in self.classic.clients:
                self.classic.do_act(member)
            for consumer in self.consumer.clients:
                self.consumer.do_beat(consumer)
                self.consumer.do_acknowledge(consumer)

    def do_takeover(self, client: None) -> None:
        """The last KIP-848 member is static, and a classic process takes its place: the group is downgraded."""
        static = [one for one in self.consumer.clients if one.instance is not None]
        if not static:
            static = [self.consumer.new_client("pod-a")]
            self.consumer.clients.append(static[0])
            self.consumer.do_beat(static[0])
        last = self.random.choice(static)
        for other in [one for one in self.consumer.clients if one is not last]:
            self.consumer.heartbeat(other, {"member_epoch": -1})
            self.consumer.clients.remove(other)
        if self.random.random() < 0.5:
            self.do_settle(client)
        self.consumer.clients.remove(last)
        heir = classic_sequences.Client(last.instance)
        self.classic.clients.append(heir)
        self.classic.do_act(heir)
        if self.random.random() < 0.5:
            self.do_settle(client)
        self.classic.do_view(heir)

    def do_swap(self, client: None) -> None:
        """An instance is started anew with the other protocol; its old process may still be there for a while."""
        to_classic = self.random.random() < 0.6
        before, after = (self.consumer, self.classic) if to_classic else (self.classic, self.consumer)
        static = [one for one in before.clients if one.instance is not None]
        if not static:
            return
        old = self.random.choice(static)
        if self.random.random() < 0.7:
            before.clients.remove(old)
        if to_classic:
            new: Any = classic_sequences.Client(old.instance)
            self.classic.clients.append(new)
            self.classic.do_act(new)
        else:
            new = self.consumer.new_client(old.instance)
            self.consumer.clients.append(new)
            self.consumer.do_beat(new)
        assert after.clients


class TakeoverTalk(MixedTalk):
    """Begin with a static KIP-848 member among dynamic classic ones, and let a classic process take its place."""

    def sequence(self, requests: int) -> dict[str, Any]:
        last = self.consumer.new_client("pod-a")
        self.consumer.clients = [last]
        self.classic.clients = [classic_sequences.Client(None) for _ in range(self.random.randrange(1, 4))]
        self.consumer.do_beat(last)
        for _ in range(self.random.randrange(4)):
            self.do_settle(None)
        self.do_takeover(None)
        return super().sequence(requests)
