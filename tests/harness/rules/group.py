"""Hands what the coordinator's broker sees to the rules of the protocol that the group speaks.

Kinds      a group is classic or a consumer group, which may have classic members; its state changes tell which
Crossing   what is known goes with the group when it is upgraded or downgraded (crossing.py). The book of the other kind
           is kept as it was: a coordinator that goes down before its log has the conversion leaves the group as it was
Start at   GroupRules.feed
"""

from __future__ import annotations

from rebalance_lab.harness.measure.broken_invariant import Broken
from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.protocol_v1.common.messages import JoinGroupRequest, Request
from rebalance_lab.protocol_v1.coordinator.state.states import Event, State
from rebalance_lab.protocol_v2.common.messages import ConsumerGroupHeartbeatRequest
from rebalance_lab.protocol_v2.coordinator.state import states as v2
from rebalance_lab.protocol_v2.coordinator.state.shard import MEMBER_TIMERS
from tests.harness.rules.classic import ClassicRules
from tests.harness.rules.crossing import downgraded, upgraded
from tests.harness.rules.health import Health
from tests.harness.rules.mixed import MixedRules

DOWNGRADED = v2.Event.DOWNGRADED.value
MAKE_CLASSIC = frozenset(one.value for one in (Event.CREATED, Event.LOADED_WITH_MEMBERS, Event.LOADED_WITHOUT_MEMBERS))
MAKE_CONSUMER = frozenset(one.value for one in (v2.Event.UPGRADED, v2.Event.LOADED, v2.Event.HEARTBEAT))


class GroupRules:
    def __init__(self, health: Health) -> None:
        self.health = health
        self.classic = ClassicRules(health)
        self.consumer = MixedRules(health)
        self.is_classic: bool | None = None
        """None: nobody knows."""
        self.epoch = 0
        self.serving: Request | None = None
        """What has come last, unless it was a timer."""
        self.lost_somebody = False
        """A downgrade without whoever has gone: the others are to join again."""

    def feed(self, fact: Fact) -> None:
        match fact["fact"]:
            case "asks":
                self.check_rebalance_after_downgrade(fact["t"])
                self.serving = fact["request"]
                if self.is_classic is None and isinstance(self.serving, ConsumerGroupHeartbeatRequest):
                    self.is_classic = False
                self.rules_for(fact["request"]).asks(fact["request"], fact["t"])
            case "answers":
                self.on_answers(fact)
            case "timer":
                self.check_rebalance_after_downgrade(fact["t"])
                self.serving = None
                self.on_timer(fact)
            case "group":
                self.on_group(fact)
            case "coordinator":
                self.lost_somebody = False
                self.classic.on_coordinator(fact)
                self.consumer.on_coordinator(fact)
            case "topic":
                self.consumer.on_topic(fact)
            case "process" if self.is_classic is False:
                self.consumer.on_process(fact)
            case "process":
                self.classic.on_process(fact)
            case "lag" | "end":
                self.on_time(fact["t"])

    def rules_for(self, request: Request) -> ClassicRules | MixedRules:
        ours = isinstance(request, ConsumerGroupHeartbeatRequest) or self.is_classic is False
        return self.consumer if ours else self.classic

    def on_answers(self, fact: Fact) -> None:
        """What was asked of a group of the other kind is answered late, and of interest only to who joins by it."""
        request, response, now_ms = fact["request"], fact["response"], fact["t"]
        rules = self.rules_for(request)
        other = self.classic if rules is self.consumer else self.consumer
        late = id(request) in other.asked and id(request) not in rules.asked
        if late:
            del other.asked[id(request)]
        if not late or (isinstance(request, JoinGroupRequest) and rules is self.classic):
            rules.answers(request, response, now_ms)

    def on_timer(self, fact: Fact) -> None:
        """Timers may outlive the time of their kind: nobody heeds them then."""
        kind, member_id, now_ms = fact["of"], fact["member"], fact["t"]
        if kind not in MEMBER_TIMERS and self.is_classic is not False:
            self.classic.on_timer(kind, member_id, now_ms)
        elif kind in MEMBER_TIMERS and self.is_classic is False:
            self.consumer.on_timer(kind, member_id, now_ms)

    def on_group(self, fact: Fact) -> None:
        because, now_ms = fact["because"], fact["t"]
        if because == DOWNGRADED:
            self.on_downgrade(fact)
        elif fact["state"] == State.DEAD.value:
            # Deleted, as nothing was left in it: the next group of this name begins anew.
            self.classic, self.consumer = ClassicRules(self.health), MixedRules(self.health)
            self.is_classic = None
        else:
            if because in MAKE_CONSUMER and self.is_classic is not False:
                self.become_consumer(because, fact["epoch"], now_ms)
            elif because in MAKE_CLASSIC:
                self.is_classic = True
            if self.is_classic is not False:
                self.classic.on_group(fact)
            self.consumer.on_group(fact)
            self.on_time(now_ms)
        self.epoch = fact["epoch"]

    def become_consumer(self, because: str, epoch: int, now_ms: int) -> None:
        if because == v2.Event.UPGRADED.value:
            if epoch < self.classic.generation:
                message = f"generation {self.classic.generation} is upgraded to epoch {epoch}"
                raise Broken("epochs go up", message, now_ms)
            self.consumer = upgraded(self.classic, self.consumer, now_ms)
        elif because == v2.Event.HEARTBEAT.value and self.is_classic:
            # Nobody was left in it: it begins anew.
            former, self.consumer = self.consumer, MixedRules(self.health)
            self.consumer.life, self.consumer.deleted = former.life, former.deleted
        self.is_classic = False

    def on_downgrade(self, fact: Fact) -> None:
        if self.consumer.state != v2.GroupState.EMPTY.value and fact["epoch"] < self.epoch:
            message = f"epoch {self.epoch} is downgraded to generation {fact['epoch']}"
            raise Broken("epochs go up", message, fact["t"])
        self.classic = downgraded(self.consumer, fact["epoch"], fact["t"])
        self.is_classic = True
        self.lost_somebody = not isinstance(self.serving, JoinGroupRequest)

    def check_rebalance_after_downgrade(self, now_ms: int) -> None:
        if self.lost_somebody and self.is_classic and self.classic.state == State.STABLE.value:
            message = f"generation {self.classic.generation} is stable without who left when it was downgraded"
            raise Broken("time to rejoin", message, now_ms)
        self.lost_somebody = False

    def on_time(self, now_ms: int) -> None:
        if self.is_classic is False:
            self.consumer.on_time(now_ms)
        else:
            self.classic.on_time(now_ms)
