"""A random conversation in the making, of either protocol: who takes part, who does what next, and what any group is
asked.

A conversation is a class with ACTIONS, a weight for each of its do_ methods; one seed is one sequence file.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from rebalance_lab.protocol_v1.common.consumer_protocol import Subscription, encode_subscription
from tests.harness.kafka.wire.script import Script

GROUP, STRANGER = "g", "stranger-1234"
INSTANCES = (None, None, None, "pod-a", "pod-b", "pod-a")
"""Of each client; two of them claim one instance id."""
METADATA = base64.b64encode(encode_subscription(Subscription(topics=("orders",)))).decode()
FEWEST_REQUESTS = 5


class Talk:
    PROTOCOL: ClassVar[str]
    ACTIONS: ClassVar[Mapping[str, int]]
    WAITS_MS: ClassVar[Sequence[int]]
    clients: list[Any]

    def __init__(self, seed: int | str, config: Mapping[str, Any], topics: Mapping[str, int]) -> None:
        self.random = Random(f"{self.PROTOCOL} {seed}")
        self.script = Script(self.PROTOCOL, config, topics, self.random)

    def sequence(self, requests: int) -> dict[str, Any]:
        """A sequence file of about this many requests, or fewer."""
        length = self.random.randrange(FEWEST_REQUESTS, requests + 1)
        while len(self.script.steps) < length:
            action = self.random.choices(list(self.ACTIONS), list(self.ACTIONS.values()))[0]
            getattr(self, "do_" + action)(self.random.choice(self.clients))
        return self.script.finished()

    def some_instances(self) -> Sequence[str | None]:
        return INSTANCES[: self.random.randrange(1, len(INSTANCES) + 1)]

    def topic(self) -> str:
        return self.random.choice(("orders", "orders", "clicks", "nowhere"))

    def about_a_topic(self, version: int, **fields: Any) -> list[dict[str, Any]]:
        """What a commit or a fetch of this version lists; from version 10 on topics go by id, `topic_name` here."""
        return [{"topic_name" if version >= 10 else "name": self.topic(), **fields}]

    def do_delete(self, client: Any) -> None:
        self.script.say("DeleteGroups", {"groups_names": [GROUP]})

    def do_wait(self, client: Any) -> None:
        self.script.pause(self.random.choice(self.WAITS_MS))
