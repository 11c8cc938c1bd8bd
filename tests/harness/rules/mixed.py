"""Classic members of a consumer group, as a migration has them: what they are told must agree with all the rest.

members only    Heartbeat, SyncGroup and commits are accepted only of classic members that are in, in the generation
                that they were told last; commits in older ones only of what they were given
members heard   and of such none is refused, nor left without an answer; who is in may join again; and who is behind
                somebody else is told REBALANCE_IN_PROGRESS
epochs go up    a classic member's generation does, from JoinGroup to JoinGroup
released first  a classic member too is given only what nobody has; it has what SyncGroup brings, until a JoinGroup no
                longer claims it, or it is out
migrations      who is left without a consumer is downgraded at once
sessions        as in classic groups; and nobody is removed for not joining or not asking for its assignment that was
                not told to, or has done so, or had no time for it

Given      as in consumer.py, which has the rules for the other members, and the book of who has what for both
Claims     only of what the coordinator has given count: an upgrade between the two rounds of a cooperative rebalance
           does not know what a member is still to give up (harness/measure/known_violations.py)
Start at   MixedRules.asks, answers
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rebalance_lab.harness.measure.broken_invariant import Broken
from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.protocol_v1.common.consumer_protocol import decode_assignment, decode_subscription
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import TopicPartition
from rebalance_lab.protocol_v1.common.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    Request,
    Response,
    SyncGroupRequest,
    SyncGroupResponse,
)
from rebalance_lab.protocol_v2.common.messages import (
    JOIN_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from rebalance_lab.protocol_v2.coordinator.state.shard import JOIN, REBALANCE, SESSION, SYNC
from tests.harness.rules.consumer import LOG_MS, NOBODY, ConsumerRules, Seat
from tests.harness.rules.health import Health

SLACK_MS = 5_000
"""For what a process, its network and the log do meanwhile."""
NONE, IN_PROGRESS = Error.NONE, Error.REBALANCE_IN_PROGRESS
STRANGER = (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID)


@dataclass(slots=True)
class ClassicSeat(Seat):
    session_ms: int = 0
    instance_id: str | None = None
    ever: set[TopicPartition] = field(default_factory=set)
    """All that it was given since it is in."""
    beats: bool = False
    """It has sent heartbeats since it joined."""
    claims: bool = False
    """Something, by its last JoinGroup: it may have to give it up before it can be brought up to date."""
    woken_ms: int | None = None
    """When it was first told to join again, since it last did."""
    joined_ms: int | None = None
    """When its last JoinGroup came, if it has not had its assignment since."""
    old_timers: bool = False
    """Those of an earlier time as a consumer group run on through a downgrade, and count again after an upgrade."""


class MixedRules(ConsumerRules):
    def __init__(self, health: Health) -> None:
        super().__init__(health)
        self.most_epoch = 0
        """That anybody was told: the target assignment is at least as new."""
        self.behind: set[int] = set()
        """Heartbeats and SyncGroups, by identity, of who is behind it."""
        self.since: dict[int, int] = {}
        """When requests came."""
        self.ids: dict[str, str] = {}
        """The member id of a classic process, by its name."""
        self.killed: dict[str, int] = {}
        self.sessions_since_ms = 0
        self.most_rebalance_ms = 0
        """Of classic members."""

    def classic_seat(self, member_id: str) -> ClassicSeat | None:
        seat = self.seats.get(member_id)
        return seat if isinstance(seat, ClassicSeat) else None

    # What comes in

    def asks(self, request: Request, now_ms: int) -> None:
        self.since[id(request)] = now_ms
        match request:
            case HeartbeatRequest() | SyncGroupRequest():
                self.asked[id(request)] = request, self.is_in_generation(request.member_id, request.generation_id)
                self.check_consumers_left(request.member_id, now_ms)
                seat = self.classic_seat(request.member_id)
                gives_up = isinstance(request, SyncGroupRequest) and seat is not None and seat.claims
                if request.generation_id < self.most_epoch and not gives_up:
                    self.behind.add(id(request))
            case JoinGroupRequest():
                self.asked[id(request)] = request, True
                self.most_rebalance_ms = max(self.most_rebalance_ms, request.rebalance_timeout_ms)
                self.on_takeover(request.group_instance_id, request.member_id)
                seat = self.classic_seat(request.member_id)
                if seat is not None:
                    seat.beats = False
            case LeaveGroupRequest():
                self.asked[id(request)] = request, True
                for one in request.members:
                    if one.member_id in self.seats:
                        self.seats[one.member_id].refused = True
            case ConsumerGroupHeartbeatRequest():
                super().asks(request, now_ms)
                if request.member_epoch == JOIN_EPOCH:
                    self.ids.pop(request.client_id, None)
                    self.on_takeover(request.instance_id, request.member_id)
            case _:
                super().asks(request, now_ms)

    def check_consumers_left(self, member_id: str, now_ms: int) -> None:
        """The last to go takes the group's protocol with it, if it leaves anybody behind. Of who was out before a
        fail-over nothing is certain."""
        if self.gone.get(member_id) == self.life:
            return
        consumers = [one for one, seat in self.seats.items() if not isinstance(seat, ClassicSeat)]
        joins = any(isinstance(one, ConsumerGroupHeartbeatRequest) for one, _ in self.asked.values())
        static = not set(consumers).isdisjoint(self.instances.values())  # who has stepped out is in it
        if consumers and not joins and not static and all(self.gone.get(one) == self.life for one in consumers):
            raise Broken("migrations", f"{member_id} is left with classic members, in a consumer group", now_ms)

    def on_takeover(self, instance_id: str | None, member_id: str) -> None:
        """Across protocols nobody is asked, and refusals do not wait for the log."""
        former = self.instances.get(instance_id or "", member_id)
        if former != member_id and former in self.seats:
            self.seats[former].refused = True

    def is_in_generation(self, member_id: str, generation: int) -> bool:
        seat = self.classic_seat(member_id)
        return seat is not None and generation == seat.epoch and self.gone.get(member_id) != self.life

    def may_commit(self, request: OffsetCommitRequest, epoch: int) -> bool:
        seat = self.classic_seat(request.member_id)
        if seat is None or not self.is_current(request.member_id, epoch):
            return super().may_commit(request, epoch)
        named = {(topic.name, one.partition_index) for topic in request.topics for one in topic.partitions}
        return epoch == seat.epoch or all(tp in seat.ever or tp[0] in self.deleted for tp in named)

    # What is answered

    def answers(self, request: Request, response: Response, now_ms: int) -> None:
        asked_ms = self.since.pop(id(request), now_ms)
        match request, response:
            case HeartbeatRequest(), HeartbeatResponse():
                self.on_classic_heartbeat(request, response.error_code, asked_ms, now_ms)
            case SyncGroupRequest(), SyncGroupResponse():
                self.on_sync(request, response, asked_ms, now_ms)
            case JoinGroupRequest(), JoinGroupResponse():
                self.asked.pop(id(request), None)
                if response.error_code is NONE:
                    self.on_classic_join(request, response, asked_ms, now_ms)
                elif response.error_code in STRANGER:
                    self.check_heard(request, "JoinGroup", request.member_id, response.error_code, now_ms)
            case LeaveGroupRequest(), LeaveGroupResponse():
                self.asked.pop(id(request), None)
                for one in response.members:
                    if one.error_code is NONE:
                        self.on_leave(one.member_id, stays=False)
            case OffsetCommitRequest(), OffsetCommitResponse():
                self.check_commit_heard(request, response, now_ms)
                super().answers(request, response, now_ms)
            case _:
                super().answers(request, response, now_ms)
                if isinstance(response, ConsumerGroupHeartbeatResponse):
                    self.most_epoch = max(self.most_epoch, response.member_epoch)

    def on_classic_heartbeat(self, request: HeartbeatRequest, error: Error, asked_ms: int, now_ms: int) -> None:
        seat = self.heard(request, error, asked_ms, now_ms)
        if seat is not None:
            seat.beats = True

    def heard(
        self, request: HeartbeatRequest | SyncGroupRequest, error: Error, asked_ms: int, now_ms: int
    ) -> ClassicSeat | None:
        """Its seat, if it is accepted."""
        _, expected = self.asked.pop(id(request), (None, True))
        behind = id(request) in self.behind
        self.behind.discard(id(request))
        kind, member_id = type(request).__name__.removesuffix("Request"), request.member_id
        if error in (NONE, IN_PROGRESS):
            self.check(expected, kind, member_id, request.generation_id, now_ms)
            if error is NONE and behind:
                message = f"{member_id} is in generation {request.generation_id}, others in {self.most_epoch}"
                raise Broken("members heard", f"{message}, and it is not told to join again", now_ms)
            seat = self.classic_seat(member_id)
            if seat is not None:
                seat.refused = False
                if isinstance(request, HeartbeatRequest) or error is NONE:
                    seat.heard_ms = asked_ms
                if error is IN_PROGRESS and seat.woken_ms is None:
                    seat.woken_ms = asked_ms
            return seat
        if error in STRANGER:
            if expected:
                self.check_heard(request, kind, member_id, error, now_ms)
            refused = self.classic_seat(member_id)
            if refused is not None:
                refused.beats = False  # it has to join before it can leave
        return None

    def check_heard(self, request: Request, what: str, member_id: str, error: Error, now_ms: int) -> None:
        """Unless something is decided about it that is not answered yet."""
        seat = self.seats.get(member_id)
        if seat is None or member_id in self.gone or seat.refused or self.has_twin(request, member_id):
            return
        message = f"{what} of {member_id}, which is in generation {seat.epoch}, is refused: {error.name}"
        raise Broken("members heard", message, now_ms)

    def has_twin(self, request: Request, member_id: str) -> bool:
        others = (one for one, _ in self.asked.values() if one is not request)
        return any(
            one.member_id == member_id
            for one in others
            if isinstance(one, JoinGroupRequest | ConsumerGroupHeartbeatRequest)
        )

    def check_commit_heard(self, request: OffsetCommitRequest, response: OffsetCommitResponse, now_ms: int) -> None:
        seat, epoch = self.seats.get(request.member_id), request.generation_id_or_member_epoch
        _, expected = self.asked.get(id(request), (None, False))
        errors = [one.error_code for topic in response.topics for one in topic.partitions]
        refusal = next((one for one in errors if one in (*STRANGER, Error.STALE_MEMBER_EPOCH)), None)
        if seat is not None and expected and refusal is not None and epoch == seat.epoch:
            self.check_heard(request, "OffsetCommit", request.member_id, refusal, now_ms)

    def on_classic_join(
        self, request: JoinGroupRequest, response: JoinGroupResponse, asked_ms: int, now_ms: int
    ) -> None:
        member_id = response.member_id
        seat = self.classic_seat(member_id)
        if seat is None or member_id in self.gone:
            seat = ClassicSeat(old_timers=seat is not None and seat.old_timers)
            self.seats[member_id] = seat
        if request.group_instance_id is not None:
            former = self.instances.get(request.group_instance_id, member_id)
            self.instances[request.group_instance_id] = member_id
            if former != member_id:
                self.pass_on(former, seat)
        self.gone.pop(member_id, None)
        self.left.discard(member_id)
        self.killed.pop(member_id, None)
        self.ids[request.client_id] = member_id
        if response.generation_id < seat.epoch:
            message = f"{member_id} is told generation {response.generation_id} after {seat.epoch}"
            raise Broken("epochs go up", message, now_ms)
        seat.epoch, seat.heard_ms, seat.refused = response.generation_id, asked_ms, False
        seat.session_ms, seat.rebalance_ms = request.session_timeout_ms, max(0, request.rebalance_timeout_ms)
        seat.instance_id, seat.life = request.group_instance_id, self.health.life_of(request.client_id)
        seat.woken_ms, seat.joined_ms = None, now_ms
        claimed = decode_subscription(request.protocols[0].metadata).owned_partitions
        seat.claims = bool(claimed)
        self.hold(member_id, seat, seat.has.intersection(self.by_name(claimed)))
        self.most_epoch = max(self.most_epoch, seat.epoch)

    def may_be_replaced(self, member_id: str) -> bool:
        return member_id not in self.seats or self.classic_seat(member_id) is not None

    def pass_on(self, former: str, seat: ClassicSeat) -> None:
        """Nobody takes its partitions: whoever has its instance id may go on with them."""
        before = self.seats.get(former)
        if before is not None:
            seat.ever |= before.ever if isinstance(before, ClassicSeat) else before.has
        self.out(former)

    def on_sync(self, request: SyncGroupRequest, response: SyncGroupResponse, asked_ms: int, now_ms: int) -> None:
        seat = self.heard(request, response.error_code, asked_ms, now_ms)
        if seat is None or response.error_code is not NONE:
            return
        member_id = request.member_id
        seat.joined_ms = None
        seat.given = set(self.by_name(decode_assignment(response.assignment).assigned_partitions))
        self.check_given(member_id, seat, now_ms)
        seat.ever |= seat.given
        self.hold(member_id, seat, seat.has | seat.given)

    def by_name(self, partitions: Mapping[str, Sequence[int]]) -> Iterable[TopicPartition]:
        return [(name, index) for name, listed in partitions.items() if name not in self.deleted for index in listed]

    # What else happens

    def on_timer(self, kind: str, member_id: str, now_ms: int) -> None:
        """One for its revocations, as consumers have, is set when a group is loaded, and may come to nothing."""
        seat = self.classic_seat(member_id)
        if seat is None or kind == REBALANCE or member_id in self.gone or member_id in self.left:
            super().on_timer(kind, member_id, now_ms)
            return
        if not seat.refused and not seat.old_timers:
            self.check_timer(kind, member_id, seat, now_ms)
        self.out(member_id)

    def check_timer(self, kind: str, member_id: str, seat: ClassicSeat, now_ms: int) -> None:
        silent_ms = now_ms - seat.heard_ms
        if kind == SESSION and silent_ms < seat.session_ms:
            message = f"{member_id} expires {silent_ms} ms after it was heard; its session is {seat.session_ms} ms"
            raise Broken("sessions", message, now_ms)
        dynamic = seat.instance_id is None
        if kind == SESSION and seat.beats and dynamic and self.health.is_well(seat.life, seat.heard_ms):
            message = f"{member_id}, whose process is well or was closed, is silent for {silent_ms} ms"
            raise Broken("sessions", message, now_ms)
        since_ms = {JOIN: seat.woken_ms, SYNC: seat.joined_ms}.get(kind, seat.heard_ms)
        if kind != SESSION and (since_ms is None or now_ms - since_ms + LOG_MS < seat.rebalance_ms):
            asked = "join again" if kind == JOIN else "ask for its assignment"
            raise Broken("sessions", f"{member_id} is removed as if it had been told, in time, to {asked}", now_ms)

    def out(self, member_id: str) -> None:
        super().out(member_id)
        self.killed.pop(member_id, None)

    def on_coordinator(self, fact: Fact) -> None:
        super().on_coordinator(fact)
        self.sessions_since_ms = fact["t"]
        if fact["is"] == "down":
            self.behind.clear()
            self.since.clear()
            self.killed.clear()
            for seat in self.seats.values():
                if isinstance(seat, ClassicSeat):
                    seat.woken_ms = None

    def on_process(self, fact: Fact) -> None:
        """A new coordinator gives every member the session of a consumer, until it has heard of them.

        A refused seat proves nothing: its member may have left before the group was upgraded.
        """
        member_id = self.ids.get(fact["member"], "")
        seat = self.classic_seat(member_id)
        known = seat is not None and not seat.refused and member_id not in self.gone
        known = known and seat is not None and seat.heard_ms >= self.sessions_since_ms
        if fact["is"] == "killed" and known and self.state not in NOBODY:
            self.killed[member_id] = fact["t"]

    def on_time(self, now_ms: int) -> None:
        """What should have happened by now."""
        for member_id, since_ms in self.killed.items():
            session_ms = getattr(self.seats[member_id], "session_ms", 0)
            if now_ms > max(since_ms, self.sessions_since_ms) + session_ms + SLACK_MS:
                message = f"{member_id}, with a session of {session_ms} ms, was killed at {since_ms} ms and is still in"
                raise Broken("sessions", message, now_ms)
        for request, _ in self.asked.values():
            # Routine, such as a commit, may be on its way while the simulation leaps ahead.
            waits = isinstance(request, JoinGroupRequest | SyncGroupRequest)
            if waits and self.since.get(id(request), now_ms) + SLACK_MS < now_ms:
                kind, who = type(request).__name__.removesuffix("Request"), request.member_id
                raise Broken("members heard", f"{kind} of {who or 'a stranger'} is not answered", now_ms)
