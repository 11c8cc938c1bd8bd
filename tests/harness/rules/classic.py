"""What a coordinator of the classic protocol says must agree with what it has said before.

members only    heartbeats, SyncGroup and commits are accepted only of who was told of the present generation, and has
                not left, been replaced or expired since; who has left has no session any more; commits of nobody's
                member are accepted only while the group is empty
as assigned     everybody is given what the leader of this generation sent for it
epochs go up    every join phase ends in a new generation, and a new coordinator knows the last one that was stored
time to rejoin  who was in the group and has said nothing to the contrary is waited for as long as it may take, and not
                longer
sessions        nobody's session ends while it is heard, and a process that was killed is out when its session is over

Given      every request with its answer, as the coordinator's broker has them; timers that fire; its group's states
Judged     by what was known when a request came: its answer may wait for the log, and the group goes on meanwhile
Fail-over  joins, leaves and generations without an assignment are not in the log, so a new coordinator may not know
Start at   ClassicRules.asks, answers
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.sim.broken import Broken
from harness.sim.trace import Fact
from protocol_v1.errors import Error
from protocol_v1.messages import (
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
from protocol_v1.states import Event, State

NONE = Error.NONE
SLACK_MS = 5_000
"""For what a process, its network and the log do meanwhile."""
NOBODY = frozenset((None, State.EMPTY.value, State.DEAD.value))
ALIVE = (NONE, Error.REBALANCE_IN_PROGRESS)
OUT = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.GROUP_MAX_SIZE_REACHED)


@dataclass(slots=True)
class Seat:
    session_ms: int
    rebalance_ms: int
    instance_id: str | None
    heard_ms: int
    """When something came of it that the coordinator has accepted."""


class ClassicRules:
    def __init__(self) -> None:
        self.state: str | None = None
        self.generation = -1
        self.completed = -1
        """By the last join phase."""
        self.previous = -1
        """The generation before, if this coordinator knew it."""
        self.stored = -1
        """The last generation whose assignment is in the log."""
        self.loading = False
        self.preparing_ms = 0
        self.from_nobody = False
        """Whether the join phase that goes on is the first of a group that was empty."""
        self.told: dict[int, set[str]] = {}
        """Who was told of which generation."""
        self.seats: dict[str, Seat] = {}
        self.holders: dict[str, str] = {}
        """Instance ids."""
        self.ids: dict[str, str] = {}
        """The member id that a process, by its name, was last told."""
        self.gone: dict[str, int] = {}
        """Who is out, and since which coordinator: the next one may not know."""
        self.left: set[str] = set()
        """Whose leave was answered, by this coordinator."""
        self.excused: set[str] = set()
        """Who has asked to leave, or whose session is over: nobody need wait for it, even where it is not out yet."""
        self.life = 0
        self.asked: dict[int, tuple[Request, bool, int]] = {}
        """Requests without an answer yet, by identity, whether they are to be accepted, and since when."""
        self.given: tuple[int, dict[str, bytes]] = (-1, {})
        self.listed = -1
        """The generation whose members were looked at."""
        self.sync_ran_out = False
        self.killed: dict[str, int] = {}
        self.sessions_since_ms = 0
        """When sessions last began anew, whoever is there."""
        self.least_rebalance_ms = 1 << 60
        self.most_rebalance_ms = 0

    # What comes in

    def asks(self, request: Request, now_ms: int) -> None:
        match request:
            case HeartbeatRequest():
                current = self.is_current(request.member_id, request.generation_id)
                self.asked[id(request)] = request, current, now_ms
            case SyncGroupRequest():
                current = self.is_current(request.member_id, request.generation_id)
                self.asked[id(request)] = request, current, now_ms
                if request.assignments and request.generation_id != self.given[0]:
                    given = {one.member_id: one.assignment for one in request.assignments}
                    self.given = request.generation_id, given
            case OffsetCommitRequest():
                self.asked[id(request)] = request, self.may_commit(request), now_ms
            case LeaveGroupRequest():
                self.excused.update(one.member_id for one in request.members)
            case JoinGroupRequest():
                self.asked[id(request)] = request, True, now_ms
                self.killed.pop(self.holders.get(request.group_instance_id or "", ""), None)  # its seat is taken over
                timeout_ms = max(0, request.rebalance_timeout_ms)
                self.least_rebalance_ms = min(self.least_rebalance_ms, timeout_ms)
                self.most_rebalance_ms = max(self.most_rebalance_ms, timeout_ms)

    def is_current(self, member_id: str, generation: int) -> bool:
        told = self.told.get(generation)
        return (
            generation == self.generation
            and told is not None
            and member_id in told
            and self.gone.get(member_id) != self.life
        )

    def may_commit(self, request: OffsetCommitRequest) -> bool:
        generation = request.generation_id_or_member_epoch
        if generation < 0 and self.state in NOBODY:
            return True
        return self.state != State.COMPLETING_REBALANCE.value and self.is_current(request.member_id, generation)

    # What is answered

    def answers(self, request: Request, response: Response, now_ms: int) -> None:
        _, expected, asked_ms = self.asked.pop(id(request), (None, True, now_ms))
        match request, response:
            case HeartbeatRequest(), HeartbeatResponse():
                self.heard(request.member_id, response.error_code in ALIVE, expected, request, asked_ms)
            case OffsetCommitRequest(), OffsetCommitResponse():
                taken = any(one.error_code is NONE for topic in response.topics for one in topic.partitions)
                self.heard(request.member_id, taken, expected, request, asked_ms)
            case SyncGroupRequest(), SyncGroupResponse():
                self.check_speaker(request.member_id, response.error_code is NONE, expected, request, asked_ms)
                if response.error_code is NONE:
                    self.check_assignment(request, response, now_ms)
            case JoinGroupRequest(), JoinGroupResponse():
                self.on_join(request, response, asked_ms, now_ms)
            case LeaveGroupRequest(), LeaveGroupResponse():
                for one in response.members:
                    if one.error_code is NONE:
                        self.left.add(one.member_id)
                        self.out(one.member_id)

    def heard(self, member_id: str, accepted: bool, expected: bool, request: Request, asked_ms: int) -> None:
        """Of SyncGroup this is not said: in a stable group it does not put the session off."""
        self.check_speaker(member_id, accepted, expected, request, asked_ms)
        seat = self.seats.get(member_id)
        if accepted and seat is not None:
            seat.heard_ms = asked_ms

    def check_speaker(self, member_id: str, accepted: bool, expected: bool, request: Request, asked_ms: int) -> None:
        if accepted and not expected:
            kind = type(request).__name__.removesuffix("Request")
            why = f"{kind} of {member_id or 'nobody'} is accepted, but is not of generation {self.generation}"
            raise Broken("members only", why, asked_ms)

    def check_assignment(self, request: SyncGroupRequest, response: SyncGroupResponse, now_ms: int) -> None:
        generation, given = self.given
        if request.generation_id == generation and response.assignment != given.get(request.member_id, b""):
            message = f"{request.member_id} is not given what the leader of generation {generation} has sent for it"
            raise Broken("as assigned", message, now_ms)

    def on_join(self, request: JoinGroupRequest, response: JoinGroupResponse, asked_ms: int, now_ms: int) -> None:
        member_id, generation = response.member_id, response.generation_id
        if response.error_code in OUT:
            self.out(request.member_id)
        if response.error_code is not NONE:
            return
        self.told.setdefault(generation, set()).add(member_id)
        self.gone.pop(member_id, None)
        self.killed.pop(member_id, None)
        self.excused.discard(member_id)
        self.left.discard(member_id)
        self.ids[request.client_id] = member_id
        session_ms, instance_id = request.session_timeout_ms, request.group_instance_id
        if instance_id is not None:
            former = self.holders.get(instance_id, member_id)
            self.holders[instance_id] = member_id
            if former != member_id:
                self.out(former)
                session_ms = min(session_ms, self.seats[former].session_ms)
                if former in self.given[1]:
                    self.given[1][member_id] = self.given[1][former]
        known = self.seats.get(member_id)
        # Who joins a stable group again with nothing new is told so, and its session goes on as it was.
        heard_ms = known.heard_ms if known is not None and self.state == State.STABLE.value else asked_ms
        self.seats[member_id] = Seat(session_ms, max(0, request.rebalance_timeout_ms), instance_id, heard_ms)
        if response.members and generation == self.generation != self.listed:
            self.listed = generation
            self.check_who_is_missing({one.member_id for one in response.members}, now_ms)

    def check_who_is_missing(self, listed: set[str], now_ms: int) -> None:
        """Who is not in the new generation has left, expired, or let its time to rejoin pass by."""
        before = self.told.get(self.previous, set())
        absent = before - listed - self.excused
        missing = [one for one in absent if self.seats[one].instance_id is None and not self.is_out(one)]
        for one in missing:
            self.out(one)
        waited_ms = now_ms - self.preparing_ms
        if missing and not self.sync_ran_out and waited_ms < self.least_rebalance_ms:
            message = f"{min(missing)} is left out of generation {self.generation} after {waited_ms} ms"
            raise Broken("time to rejoin", message, now_ms)
        self.sync_ran_out = False
        for old in [one for one in self.told if one < self.stored]:
            del self.told[old]

    # What else happens

    def out(self, member_id: str) -> None:
        self.gone[member_id] = self.life
        self.killed.pop(member_id, None)

    def is_out(self, member_id: str) -> bool:
        return self.gone.get(member_id) == self.life

    def on_timer(self, kind: str, member_id: str, now_ms: int) -> None:
        if kind == "sync":
            self.sync_ran_out = True
            self.killed.clear()  # of whom it dropped, nobody is told
        seat = self.seats.get(member_id) if kind == "session" else None
        if seat is None:
            return
        if member_id in self.left:
            raise Broken("members only", f"{member_id} has left, and still has a session", now_ms)
        silent_ms = now_ms - seat.heard_ms
        if silent_ms < seat.session_ms and not self.is_out(member_id):
            message = f"{member_id} expires {silent_ms} ms after it was heard; its session is {seat.session_ms} ms"
            raise Broken("sessions", message, now_ms)
        self.excused.add(member_id)
        self.killed.pop(member_id, None)
        if not any(waits(one, member_id) for one, _, _ in self.asked.values()):
            self.out(member_id)

    def on_group(self, fact: Fact) -> None:
        now_ms, state, epoch = fact["t"], fact["state"], fact["epoch"]
        completes = fact["because"] == Event.JOIN_COMPLETED.value
        if self.loading:
            if epoch < self.stored:
                raise Broken("epochs go up", f"generation {self.stored} was stored, {epoch} is loaded", now_ms)
            self.loading, self.previous, self.generation, self.completed = False, -1, epoch, epoch
        elif epoch < self.generation or (completes and epoch == self.completed):
            raise Broken("epochs go up", f"generation {epoch} comes after {self.generation}", now_ms)
        if completes:
            self.completed = epoch
            # One of this number may have been lost with its coordinator.
            self.told[epoch], self.given = set(), (-1, {})
        if epoch != self.generation:
            self.previous, self.generation = self.generation, epoch
        if state == State.PREPARING_REBALANCE.value:
            self.preparing_ms, self.from_nobody = now_ms, self.state in NOBODY
        elif state == State.STABLE.value and fact["because"] == Event.ASSIGNMENT_STORED.value:
            self.stored = epoch
        elif state == State.EMPTY.value:
            self.killed.clear()
        self.state = state
        self.sessions_since_ms = now_ms

    def on_coordinator(self, fact: Fact) -> None:
        self.sessions_since_ms = fact["t"]
        if fact["is"] == "down":
            self.life += 1
            self.loading = True
            self.state = None
            self.asked.clear()
            self.killed.clear()
            self.left.clear()

    def on_process(self, fact: Fact) -> None:
        """Who waits for an answer to JoinGroup is given longer."""
        member_id = self.ids.get(fact["member"], "")
        joins = any(
            isinstance(one, JoinGroupRequest) and one.client_id == fact["member"] for one, _, _ in self.asked.values()
        )
        known = member_id in self.told.get(self.generation, ()) and not self.is_out(member_id)
        if fact["is"] == "killed" and known and not joins and not self.loading:
            self.killed[member_id] = fact["t"]

    def on_time(self, now_ms: int) -> None:
        """What should have happened by now."""
        for member_id, since_ms in self.killed.items():
            session_ms = self.seats[member_id].session_ms
            if now_ms > max(since_ms, self.sessions_since_ms) + session_ms + SLACK_MS:
                message = f"{member_id}, with a session of {session_ms} ms, was killed at {since_ms} ms and is still in"
                raise Broken("sessions", message, now_ms)
        late = now_ms > self.preparing_ms + self.most_rebalance_ms + SLACK_MS
        if late and self.state == State.PREPARING_REBALANCE.value and not self.from_nobody and not self.holders:
            message = f"the rebalance that began at {self.preparing_ms} ms still waits"
            raise Broken("time to rejoin", message, now_ms)


def waits(request: Request, member_id: str) -> bool:
    return isinstance(request, JoinGroupRequest | SyncGroupRequest) and request.member_id == member_id
