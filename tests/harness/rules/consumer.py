"""What a KIP-848 coordinator says must agree with what it has said before.

members only    heartbeats and commits are accepted only of who has joined and is not out since, and of epochs that it
                was told of, commits in older ones only of what it has; who has left has no session any more; commits of
                nobody's member only while the group is empty; nobody takes the place of a static member that is in it
members heard   and in their last epoch none is refused, nor in the one before if they have not heard of it
epochs go up    a member's epoch does, from answer to answer, and not while it has to give something up that it has not
                yet said to have given up
released first  a partition is given to one member only when the last to have it has said that it no longer has, or is
                out
sessions        nobody's session ends while it is heard, nor its time to give up before it is over; and who is well is
                heard, or leaves: a static member for a while only, since nobody asks it to close otherwise

Given      every heartbeat and commit with its answer, as the coordinator's broker has them; timers that fire
Order      answers leave in the order in which requests came, so what was answered before is what was decided before
Fail-over  what was answered is in the log; that somebody has expired may not be
Start at   ConsumerRules.asks, answers
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rebalance_lab.harness.measure.broken_invariant import Broken
from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import TopicPartition
from rebalance_lab.protocol_v1.common.messages import OffsetCommitRequest, OffsetCommitResponse, Request, Response
from rebalance_lab.protocol_v2.common.messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STEP_OUT_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from rebalance_lab.protocol_v2.coordinator.state.shard import REBALANCE, SESSION
from rebalance_lab.protocol_v2.coordinator.state.states import GroupState
from tests.harness.rules.health import Health, Life

NONE = Error.NONE
NOBODY = frozenset((None, GroupState.EMPTY.value, GroupState.DEAD.value))
STRANGER = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_MEMBER_EPOCH, Error.FENCED_INSTANCE_ID)
LOG_MS = 1_000
"""An answer waits for the log, and the timer that it speaks of does not."""


@dataclass(slots=True)
class Seat:
    epoch: int = 0
    """The last that it was told."""
    given: set[TopicPartition] = field(default_factory=set)
    """What it was told to have."""
    has: set[TopicPartition] = field(default_factory=set)
    """And what it has, as far as it has said."""
    heard_ms: int = 0
    interval_ms: int = 0
    rebalance_ms: int = 0
    gives_up_since_ms: int | None = None
    unheard_epoch: int | None = None
    """What it was told before the last answer, if that brought another one."""
    life: Life = ("", -1)
    refused: bool = False
    """Or about to be, as far as is known: it may not be in the group any more."""
    misled_by: int = -1
    """The request whose twin was refused before it was accepted itself: it believes what it hears first."""


class ConsumerRules:
    def __init__(self, health: Health) -> None:
        self.health = health
        self.state: str | None = None
        self.seats: dict[str, Seat] = {}
        self.instances: dict[str, str] = {}
        self.holder: dict[TopicPartition, str] = {}
        self.gone: dict[str, int] = {}
        """Who is out, and since which coordinator: the next one may not know."""
        self.left: set[str] = set()
        """Whose leave was answered; who steps out for a while has not left."""
        self.life = 0
        self.deleted: set[str] = set()
        """Topics whose names no longer tell which topic is meant."""
        self.asked: dict[int, tuple[Request, bool]] = {}
        """Requests without an answer yet, by identity, and whether they were to be accepted."""

    def asks(self, request: Request, now_ms: int) -> None:
        match request:
            case ConsumerGroupHeartbeatRequest():
                if request.instance_id is not None and request.member_epoch == LEAVE_EPOCH:
                    raise Broken("sessions", f"{request.member_id} is static, and leaves for good", now_ms)
                joins = request.member_epoch <= JOIN_EPOCH
                self.asked[id(request)] = request, joins or self.is_current(request.member_id, request.member_epoch)
            case OffsetCommitRequest():
                epoch = request.generation_id_or_member_epoch
                allowed = self.state in NOBODY if epoch < 0 else False
                self.asked[id(request)] = request, allowed or self.may_commit(request, epoch)

    def is_current(self, member_id: str, epoch: int) -> bool:
        seat = self.seats.get(member_id)
        return seat is not None and 0 <= epoch <= seat.epoch and self.gone.get(member_id) != self.life

    def may_commit(self, request: OffsetCommitRequest, epoch: int) -> bool:
        if not self.is_current(request.member_id, epoch):
            return False
        seat = self.seats[request.member_id]
        named = {(topic.name, one.partition_index) for topic in request.topics for one in topic.partitions}
        return epoch == seat.epoch or all(tp in seat.has or tp[0] in self.deleted for tp in named)

    def answers(self, request: Request, response: Response, now_ms: int) -> None:
        _, expected = self.asked.pop(id(request), (None, True))
        match request, response:
            case ConsumerGroupHeartbeatRequest(), ConsumerGroupHeartbeatResponse(error_code=Error.NONE):
                self.check(expected, "a heartbeat", request.member_id, request.member_epoch, now_ms)
                self.on_heartbeat(request, response, now_ms)
            case ConsumerGroupHeartbeatRequest(), ConsumerGroupHeartbeatResponse():
                self.check_refused(request, response.error_code, now_ms)
            case OffsetCommitRequest(), OffsetCommitResponse():
                if any(one.error_code is NONE for topic in response.topics for one in topic.partitions):
                    epoch = request.generation_id_or_member_epoch
                    self.check(expected, "a commit", request.member_id, epoch, now_ms)

    def check(self, expected: bool, what: str, member_id: str, epoch: int, now_ms: int) -> None:
        if not expected:
            seat = self.seats.get(member_id)
            known = f"it was told {seat.epoch}" if seat is not None else "nobody knows it"
            out = " and is out" if self.gone.get(member_id) == self.life else ""
            raise Broken("members only", f"{what} of {member_id} in epoch {epoch} is accepted: {known}{out}", now_ms)

    def check_refused(self, request: ConsumerGroupHeartbeatRequest, error: Error, now_ms: int) -> None:
        member_id = request.member_id
        seat = self.seats.get(member_id)
        twin = any(
            one.member_id == member_id for one, _ in self.asked.values() if not isinstance(one, OffsetCommitRequest)
        )
        if seat is not None and error in STRANGER and twin:
            seat.misled_by = request.correlation_id
        if seat is None or error not in STRANGER or twin:
            return  # what is decided of its twin is answered when it is in the log, and a refusal at once
        known, seat.refused = not seat.refused, True
        unheard = request.member_epoch == seat.unheard_epoch and request.topic_partitions is not None
        unheard = unheard and seat.given.issuperset(self.named(request.topic_partitions or ()))
        known = known and member_id not in self.gone and request.member_epoch > 0
        if known and (unheard or request.member_epoch == seat.epoch):
            message = f"{member_id} is in epoch {seat.epoch}, and refused in {request.member_epoch}: {error.name}"
            raise Broken("members heard", message, now_ms)

    def on_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, response: ConsumerGroupHeartbeatResponse, now_ms: int
    ) -> None:
        member_id = request.member_id or response.member_id or ""
        if request.member_epoch < JOIN_EPOCH:
            self.on_leave(member_id, stays=request.member_epoch == STEP_OUT_EPOCH)
            return
        seat = self.seats.setdefault(member_id, Seat())
        if request.member_epoch == JOIN_EPOCH:
            self.on_join(request, member_id, seat, now_ms)
        seat.heard_ms, seat.interval_ms = now_ms, response.heartbeat_interval_ms
        seat.life, seat.refused = self.health.life_of(request.client_id), request.correlation_id == seat.misled_by
        if request.rebalance_timeout_ms >= 0:
            seat.rebalance_ms = request.rebalance_timeout_ms
        before, seat.epoch = seat.epoch, response.member_epoch
        seat.unheard_epoch = before if before < seat.epoch else None
        if seat.epoch < before:
            raise Broken("epochs go up", f"{member_id} is told epoch {seat.epoch} after {before}", now_ms)
        if response.assignment is not None:
            seat.given = set(self.named(response.assignment.topic_partitions))
            self.check_given(member_id, seat, now_ms)
        if request.topic_partitions is not None:
            self.hold(member_id, seat, {*self.named(request.topic_partitions), *seat.given})
        elif response.assignment is not None:
            self.hold(member_id, seat, seat.has | seat.given)
        if len(seat.has) == len(seat.given):
            seat.gives_up_since_ms = None
        else:
            if seat.epoch > before:
                shown = shown_some(seat.has - seat.given)
                message = f"{member_id} is told epoch {seat.epoch} before it has given up {shown}"
                raise Broken("epochs go up", message, now_ms)
            if seat.gives_up_since_ms is None:
                seat.gives_up_since_ms = now_ms

    def on_join(self, request: ConsumerGroupHeartbeatRequest, member_id: str, seat: Seat, now_ms: int) -> None:
        self.left.discard(member_id)
        if self.gone.pop(member_id, None) is not None:
            seat.epoch = JOIN_EPOCH
        if request.instance_id is not None:
            former = self.instances.get(request.instance_id, member_id)
            self.instances[request.instance_id] = member_id
            if former != member_id:
                if former not in self.gone and not self.may_be_replaced(former):
                    raise Broken("members only", f"{member_id} takes the place of {former}, which is in it", now_ms)
                self.out(former)

    def may_be_replaced(self, member_id: str) -> bool:
        """Where it is, and has not left."""
        return False

    def on_leave(self, member_id: str, *, stays: bool) -> None:
        """Who steps out for a while keeps what it was given, but not what it was to give up."""
        seat = self.seats.get(member_id)
        if seat is None:
            return
        if stays:
            self.gone[member_id] = self.life
            self.hold(member_id, seat, set(seat.given))
            seat.gives_up_since_ms = None
        else:
            self.left.add(member_id)
            self.out(member_id)

    def check_given(self, member_id: str, seat: Seat, now_ms: int) -> None:
        for partition in seat.given - seat.has:
            holder = self.holder.get(partition, member_id)
            if holder != member_id:
                shown = shown_some([partition])
                raise Broken("released first", f"{member_id} is given {shown}, which {holder} has", now_ms)

    def hold(self, member_id: str, seat: Seat, has: set[TopicPartition]) -> None:
        for partition in seat.has - has:
            if self.holder.get(partition) == member_id:
                del self.holder[partition]
        for partition in has - seat.has:
            self.holder[partition] = member_id
        seat.has = has

    def out(self, member_id: str) -> None:
        self.gone[member_id] = self.life
        seat = self.seats.get(member_id)
        if seat is not None:
            seat.given = set()
            self.hold(member_id, seat, set())
            seat.gives_up_since_ms = None

    def named(self, topics: Iterable[TopicPartitions]) -> Iterable[TopicPartition]:
        for topic in topics:
            if topic.topic_name not in self.deleted:
                for index in topic.partitions:
                    yield topic.topic_name, index

    def on_timer(self, kind: str, member_id: str, now_ms: int) -> None:
        if kind == SESSION and member_id in self.left:
            raise Broken("members only", f"{member_id} has left, and still has a session", now_ms)
        seat = self.seats.get(member_id)
        if seat is None or member_id in self.gone:
            if seat is not None:
                self.out(member_id)
            return
        if kind == SESSION and now_ms - seat.heard_ms < seat.interval_ms:
            message = f"{member_id} expires {now_ms - seat.heard_ms} ms after it was heard"
            raise Broken("sessions", message, now_ms)
        if kind == SESSION and not seat.refused and self.health.is_well(seat.life, seat.heard_ms):
            message = f"{member_id}, whose process is well or was closed, is silent for {now_ms - seat.heard_ms} ms"
            raise Broken("sessions", message, now_ms)
        since_ms = seat.gives_up_since_ms
        if kind == REBALANCE and since_ms is not None and now_ms - since_ms + LOG_MS < seat.rebalance_ms:
            message = f"{member_id} is given {now_ms - since_ms} ms of {seat.rebalance_ms} to give up what it has"
            raise Broken("sessions", message, now_ms)
        if kind == SESSION or since_ms is not None:
            self.out(member_id)
        else:
            self.hold(member_id, seat, set())
            seat.refused = True  # or not: what it was to give up may be of a topic that is gone

    def on_group(self, fact: Fact) -> None:
        self.state = fact["state"]

    def on_coordinator(self, fact: Fact) -> None:
        if fact["is"] == "down":
            self.life += 1
            self.state = None
            self.asked.clear()

    def on_topic(self, fact: Fact) -> None:
        if not fact["partitions"]:
            self.deleted.add(fact["topic"])
            for member_id, seat in self.seats.items():
                seat.given = {tp for tp in seat.given if tp[0] != fact["topic"]}
                self.hold(member_id, seat, {tp for tp in seat.has if tp[0] != fact["topic"]})


def shown_some(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{index}" for topic, index in sorted(partitions)[:5])
