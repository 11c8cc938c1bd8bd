"""A cooperative classic member gives up only what it has to: nobody else stops reading for a rebalance that passes by.

revokes    nothing that its last assignment has, unless it closes, or no longer wants the topic
Asked      only of members that speak cooperative assignors alone, and whose topics and subscription stay
Given      facts about processes, and the messages of the coordinator's broker
Start at   Cooperation.feed
"""

from __future__ import annotations

from rebalance_lab.harness.measure.broken_invariant import Broken
from rebalance_lab.harness.measure.trace import Fact, flat
from rebalance_lab.harness.scenario.model import Resubscribe
from rebalance_lab.protocol_v1.common.consumer_protocol import decode_assignment
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import Callback, TopicPartition
from rebalance_lab.protocol_v1.common.messages import (
    JoinGroupRequest,
    Request,
    Response,
    SyncGroupRequest,
    SyncGroupResponse,
)

COOPERATIVE = frozenset(("cooperative-sticky",))


class Cooperation:
    def __init__(self) -> None:
        self.given: dict[str, set[TopicPartition]] = {}
        """By process, if it cooperates: its last assignment."""
        self.closing: set[str] = set()
        self.resubscribed: set[str] = set()
        """Whichever process of that name: it may hear of it while it starts, or much later."""
        self.deleted: set[str] = set()

    def feed(self, fact: Fact) -> None:
        match fact["fact"]:
            case "asks":
                self.asks(fact["request"])
            case "answers":
                self.answers(fact["request"], fact["response"])
            case "process" if fact["is"] == "started":
                self.given.pop(fact["member"], None)
                self.closing.discard(fact["member"])
            case "process" if fact["is"] == "closing":
                self.closing.add(fact["member"])
            case "event" if fact["what"] == Resubscribe.KIND:
                self.resubscribed.update(fact["members"])
            case "topic" if not fact["partitions"]:
                self.deleted.add(fact["topic"])
            case "callback" if fact["callback"] == Callback.REVOKED.value:
                self.check_revoked(fact)

    def asks(self, request: Request) -> None:
        if isinstance(request, JoinGroupRequest) and {one.name for one in request.protocols} <= COOPERATIVE:
            self.given.setdefault(request.client_id, set())

    def answers(self, request: Request, response: Response) -> None:
        if not isinstance(request, SyncGroupRequest) or not isinstance(response, SyncGroupResponse):
            return
        if response.error_code is Error.NONE and request.client_id in self.given:
            found = decode_assignment(response.assignment).assigned_partitions if response.assignment else {}
            self.given[request.client_id] = set(flat(found))

    def check_revoked(self, fact: Fact) -> None:
        name = fact["member"]
        if name in self.closing or name in self.resubscribed:
            return
        kept = self.given.get(name, set()).intersection(flat(fact["partitions"]))
        needless = sorted(tp for tp in kept if tp[0] not in self.deleted)
        if needless:
            topic, index = needless[0]
            raise Broken("callbacks", f"{name} gives up {topic}-{index}, which its last assignment has", fact["t"])
