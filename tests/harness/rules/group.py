"""Hands what the coordinator's broker sees to the rules of the protocol that the group speaks.

Both       where members of both protocols meet, in a migration, neither book tells the whole: from then on nothing is
           asked of either
Start at   GroupRules.feed
"""

from __future__ import annotations

from harness.sim.trace import Fact
from protocol_v1.messages import JoinGroupRequest
from protocol_v1.states import State
from protocol_v2.messages import ConsumerGroupHeartbeatRequest
from tests.harness.rules.classic import ClassicRules
from tests.harness.rules.consumer import ConsumerRules


class GroupRules:
    def __init__(self) -> None:
        self.classic = ClassicRules()
        self.consumer = ConsumerRules()
        self.speaks: set[type] = set()

    def feed(self, fact: Fact) -> None:
        if len(self.speaks) > 1:
            return
        match fact["fact"]:
            case "asks":
                self.on_asks(fact)
            case "answers":
                self.rules.answers(fact["request"], fact["response"], fact["t"])
            case "timer":
                self.rules.on_timer(fact["of"], fact["member"], fact["t"])
            case "group" if fact["state"] == State.DEAD.value:
                # Deleted, as nothing was left in it: the next group of this name begins anew.
                self.classic, self.consumer = ClassicRules(), ConsumerRules()
            case "group":
                # A group that nobody has joined yet may become one of either protocol.
                if self.is_classic:
                    self.classic.on_group(fact)
                    self.classic.on_time(fact["t"])
                self.consumer.on_group(fact)
            case "coordinator":
                self.classic.on_coordinator(fact)
                self.consumer.on_coordinator(fact)
            case "topic":
                self.consumer.on_topic(fact)
            case "process":
                self.classic.on_process(fact)
            case "lag" | "end" if self.is_classic:
                self.classic.on_time(fact["t"])

    @property
    def is_classic(self) -> bool:
        return ConsumerGroupHeartbeatRequest not in self.speaks

    @property
    def rules(self) -> ClassicRules | ConsumerRules:
        return self.classic if self.is_classic else self.consumer

    def on_asks(self, fact: Fact) -> None:
        request = fact["request"]
        if isinstance(request, JoinGroupRequest | ConsumerGroupHeartbeatRequest):
            self.speaks.add(type(request))
        if len(self.speaks) < 2:
            self.rules.asks(request, fact["t"])
