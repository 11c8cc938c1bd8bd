"""What a coordinator of the classic protocol says must agree with what it has said before.

members only    heartbeats, SyncGroup and commits are accepted only of who was told of the present generation, and has
                not left, been replaced or expired since; who has left has no session any more; commits of nobody's
                member are accepted only while the group is empty
members heard   and of such members none is refused; who waits is answered, when everybody has joined, when the leader's
                assignment is there, and when the group rebalances again
as assigned     everybody is given what the leader of this generation sent for it, and nothing before; who leads has
                joined
epochs go up    every join phase ends in a new generation, and a new coordinator knows the last one that was stored, and
                that there was nobody left
time to rejoin  who was in the group and has said nothing to the contrary is waited for as long as it may take, and not
                longer
sessions        nobody's session ends while it is heard, and a process that was killed is out when its session is over;
                who has sent heartbeats, and is well, goes on to do so, or leaves

Given      every request with its answer, as the coordinator's broker has them; timers that fire; its group's states
Judged     by what was known when a request came: its answer may wait for the log, and the group goes on meanwhile
Fail-over  joins, leaves and generations without an assignment are not in the log, so a new coordinator may not know
Start at   ClassicRules.asks, answers
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.harness.measure.broken_invariant import Broken
from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.protocol_v1.common.errors import Error
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
from rebalance_lab.protocol_v1.coordinator.state.states import Event, State
from tests.harness.rules.health import Health, Life

NONE = Error.NONE
SLACK_MS = 5_000
"""For what a process, its network and the log do meanwhile."""
LOG_MS = 1_000
"""And for the log alone."""
NOBODY = frozenset((None, State.EMPTY.value, State.DEAD.value))
ALIVE = (NONE, Error.REBALANCE_IN_PROGRESS)
STRANGER = (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID)
REFUSALS = (*STRANGER, Error.REBALANCE_IN_PROGRESS)
NEW_MEMBERS_WAIT_MS = 300_000
"""At the most, for the end of their first join phase."""
OUT = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.GROUP_MAX_SIZE_REACHED)


@dataclass(slots=True)
class Seat:
    session_ms: int
    rebalance_ms: int
    instance_id: str | None
    heard_ms: int
    """When something came of it that the coordinator has accepted."""
    life: Life
    beats: bool = False
    """It has sent heartbeats since it joined: its consumer has a thread for them, whatever the application does."""


class ClassicRules:
    def __init__(self, health: Health) -> None:
        self.health = health
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
        self.behind: dict[int, set[str]] = {}
        """Who is in one that it was not told of, since the group was downgraded: it is to join, like everybody."""
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
        self.leaving: set[str] = set()
        """Who has asked to leave, this coordinator or the one before."""
        self.life = 0
        self.asked: dict[int, tuple[Request, bool, int]] = {}
        """Requests without an answer yet, by identity, whether they are to be accepted, and since when."""
        self.given: tuple[int, dict[str, bytes]] = (-1, {})
        self.listed = -1
        """The generation whose members were looked at."""
        self.sync_ran_out = False
        self.leader = ""
        self.has_led = -1
        """The generation whose leader was looked for among those who have joined."""
        self.completed_here = -1
        """The last generation whose join phase this coordinator has seen the end of."""
        self.synced: set[str] = set()
        """Who has sent SyncGroup in this generation."""
        self.syncing: set[str] = set()
        """Whose SyncGroup is not answered yet."""
        self.joined_ms: dict[str, int] = {}
        """When the last JoinGroup came that was answered, by the process's name: older ones fall silent."""
        self.handed_out: dict[str, int] = {}
        """Ids that nobody has joined with yet, and how long they are waited for."""
        self.empty_since_ms: int | None = None
        self.was_empty = False
        """And this for long enough to be in the log, when the coordinator went down."""
        self.all_in_since_ms: int | None = None
        """Since when the join phase that goes on lacks nobody."""
        self.killed: dict[str, int] = {}
        self.sessions_since_ms = 0
        """When sessions last began anew, whoever is there."""
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
                if current:
                    self.synced.add(request.member_id)
                    self.check_leader(request.generation_id, now_ms)
                if current and self.state == State.COMPLETING_REBALANCE.value:
                    self.syncing.add(request.member_id)
                if request.assignments and request.generation_id > self.given[0]:
                    given = {one.member_id: one.assignment for one in request.assignments}
                    self.given = request.generation_id, given
            case OffsetCommitRequest():
                self.asked[id(request)] = request, self.may_commit(request), now_ms
            case LeaveGroupRequest():
                for one in request.members:
                    self.excused.add(one.member_id)
                    self.leaving.add(one.member_id)
                    self.handed_out.pop(one.member_id, None)
            case JoinGroupRequest():
                self.asked[id(request)] = request, True, now_ms
                self.handed_out.pop(request.member_id, None)
                if request.member_id in self.seats:
                    self.seats[request.member_id].beats = False
                elif request.group_instance_id in self.holders:
                    former = self.holders[request.group_instance_id]
                    self.killed.pop(former, None)  # its seat is taken over
                    self.excused.add(former)
                self.most_rebalance_ms = max(self.most_rebalance_ms, request.rebalance_timeout_ms)

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

    def members_of(self, generation: int) -> set[str]:
        return self.told.get(generation, set()) | self.behind.get(generation, set())

    # What is answered

    def answers(self, request: Request, response: Response, now_ms: int) -> None:
        _, expected, asked_ms = self.asked.pop(id(request), (None, True, now_ms))
        match request, response:
            case HeartbeatRequest(), HeartbeatResponse():
                error = NONE if response.error_code in ALIVE else response.error_code
                self.heard(request.member_id, error, expected, request, asked_ms)
                if error is NONE and request.member_id in self.seats:
                    self.seats[request.member_id].beats = True
            case OffsetCommitRequest(), OffsetCommitResponse():
                errors = [one.error_code for topic in response.topics for one in topic.partitions]
                error = NONE if NONE in errors else next(iter(errors), Error.UNKNOWN_TOPIC_OR_PARTITION)
                self.heard(request.member_id, error, expected, request, asked_ms)
            case SyncGroupRequest(), SyncGroupResponse():
                self.syncing.discard(request.member_id)
                error = response.error_code
                rebalances = error is Error.REBALANCE_IN_PROGRESS
                self.check_speaker(request.member_id, error, expected and not rebalances, request, asked_ms)
                if error is NONE:
                    self.check_assignment(request, response, now_ms)
                if self.state == State.COMPLETING_REBALANCE.value:
                    self.excused.discard(request.member_id)  # its session may have ended unnoticed, and begins anew
            case JoinGroupRequest(), JoinGroupResponse():
                self.on_join(request, response, asked_ms, now_ms)
            case LeaveGroupRequest(), LeaveGroupResponse():
                for one in response.members:
                    if one.error_code is NONE:
                        self.left.add(one.member_id)
                        self.out(one.member_id)

    def heard(self, member_id: str, error: Error, expected: bool, request: Request, asked_ms: int) -> None:
        """Of SyncGroup this is not said: in a stable group it does not put the session off."""
        self.check_speaker(member_id, error, expected, request, asked_ms)
        seat = self.seats.get(member_id)
        if error is NONE and seat is not None:
            seat.heard_ms = asked_ms

    def check_speaker(self, member_id: str, error: Error, expected: bool, request: Request, asked_ms: int) -> None:
        kind = type(request).__name__.removesuffix("Request")
        if error is NONE and not expected:
            why = f"{kind} of {member_id or 'nobody'} is accepted, but is not of generation {self.generation}"
            raise Broken("members only", why, asked_ms)
        if error in REFUSALS and expected and member_id in self.seats and member_id not in self.excused:
            message = f"{kind} of {member_id}, which is in generation {self.generation}, is refused: {error.name}"
            raise Broken("members heard", message, asked_ms)

    def check_leader(self, generation: int, now_ms: int) -> None:
        """Once all who have joined were told so."""
        if generation == self.completed_here != self.has_led:
            self.has_led = generation
            if self.leader not in self.told[generation]:
                raise Broken("as assigned", f"{self.leader} leads generation {generation}, and has not joined", now_ms)

    def check_assignment(self, request: SyncGroupRequest, response: SyncGroupResponse, now_ms: int) -> None:
        generation, given = self.given
        if request.generation_id == self.completed_here != generation:
            message = f"{request.member_id} is given something before the leader has sent anything"
            raise Broken("as assigned", message, now_ms)
        if request.generation_id == generation and response.assignment != given.get(request.member_id, b""):
            message = f"{request.member_id} is not given what the leader of generation {generation} has sent for it"
            raise Broken("as assigned", message, now_ms)

    def on_join(self, request: JoinGroupRequest, response: JoinGroupResponse, asked_ms: int, now_ms: int) -> None:
        member_id, generation = response.member_id, response.generation_id
        self.joined_ms[request.client_id] = max(asked_ms, self.joined_ms.get(request.client_id, 0))
        if response.error_code is Error.UNKNOWN_MEMBER_ID:
            self.check_turned_away(request, asked_ms, now_ms)
        if response.error_code is Error.MEMBER_ID_REQUIRED:
            self.handed_out[member_id] = now_ms + request.session_timeout_ms
        if response.error_code in OUT:
            self.out(request.member_id)
        if response.error_code is Error.REBALANCE_IN_PROGRESS and request.group_instance_id is not None:
            # An upgrade has broken off: the join phase goes on with the member, which does not wait any more.
            self.take_place(request.group_instance_id, member_id)
        if response.error_code is not NONE:
            return
        self.leader = response.leader
        again = member_id in self.told.get(generation, ())
        self.told.setdefault(generation, set()).add(member_id)
        self.gone.pop(member_id, None)
        self.killed.pop(member_id, None)
        self.excused.discard(member_id)
        self.leaving.discard(member_id)
        self.left.discard(member_id)
        self.ids[request.client_id] = member_id
        session_ms, instance_id = request.session_timeout_ms, request.group_instance_id
        if instance_id is not None:
            former = self.take_place(instance_id, member_id)
            if former != member_id:
                session_ms = min(session_ms, self.seats[former].session_ms if former in self.seats else session_ms)
        known = self.seats.get(member_id)
        # Who joins again with nothing new is told so, and its session goes on as it was.
        nothing_new = again or self.state == State.STABLE.value
        heard_ms = known.heard_ms if known is not None and nothing_new else asked_ms
        life = self.health.life_of(request.client_id)
        self.seats[member_id] = Seat(session_ms, max(0, request.rebalance_timeout_ms), instance_id, heard_ms, life)
        if response.members and generation == self.generation != self.listed:
            self.listed = generation
            self.check_who_is_missing({one.member_id for one in response.members}, now_ms)

    def take_place(self, instance_id: str, member_id: str) -> str:
        """Of whoever had it, who is out; what that was given is the newcomer's."""
        former = self.holders.get(instance_id, member_id)
        self.holders[instance_id] = member_id
        if former != member_id:
            self.out(former)
            if former in self.given[1]:
                self.given[1][member_id] = self.given[1][former]
        return former

    def check_turned_away(self, request: JoinGroupRequest, asked_ms: int, now_ms: int) -> None:
        """Who waits has no session, or a long one; and who is in the group may always join again."""
        member_id, waited_ms = request.member_id, now_ms - asked_ms
        is_in = self.is_current(member_id, self.generation) and self.state is not None
        excused = member_id in self.leaving or (is_in and not waited_ms and member_id in self.excused)
        if not excused and (is_in or 0 < waited_ms < NEW_MEMBERS_WAIT_MS):
            raise Broken("members heard", f"{member_id} is turned away after it has waited for {waited_ms} ms", now_ms)

    def check_who_is_missing(self, listed: set[str], now_ms: int) -> None:
        """Who is not in the new generation has left, expired, or let its time to rejoin pass by."""
        before = self.members_of(self.previous)
        absent = before - listed - self.excused
        missing = [one for one in absent if self.seats[one].instance_id is None and not self.is_out(one)]
        for one in missing:
            self.out(one)
        waited_ms = now_ms - self.preparing_ms
        allowed_ms = max([self.seats[one].rebalance_ms for one in missing], default=0)
        if missing and not self.sync_ran_out and waited_ms < allowed_ms:
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

    def is_replaced(self, member_id: str) -> bool:
        instance_id = self.seats[member_id].instance_id
        return instance_id is not None and self.holders[instance_id] != member_id

    def on_timer(self, kind: str, member_id: str, now_ms: int) -> None:
        if kind == "sync":
            self.sync_ran_out = True
            self.excused |= self.told.get(self.generation, set()) - self.synced
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
        waiting = any(waits(one, member_id) for one, _, _ in self.asked.values())
        if not waiting and not self.is_out(member_id) and member_id not in self.excused:
            self.check_silence(member_id, seat, now_ms)
        self.excused.add(member_id)
        self.killed.pop(member_id, None)
        if not waiting:
            self.out(member_id)

    def check_silence(self, member_id: str, seat: Seat, now_ms: int) -> None:
        """A static member does not take its leave, neither closed nor for want of a poll()."""
        if seat.beats and seat.instance_id is None and self.health.is_well(seat.life, seat.heard_ms):
            message = f"{member_id}, whose process is well or was closed, is silent for {now_ms - seat.heard_ms} ms"
            raise Broken("sessions", message, now_ms)

    def on_group(self, fact: Fact) -> None:
        now_ms, state, epoch = fact["t"], fact["state"], fact["epoch"]
        completes = fact["because"] == Event.JOIN_COMPLETED.value
        if self.loading:
            if epoch < self.stored:
                raise Broken("epochs go up", f"generation {self.stored} was stored, {epoch} is loaded", now_ms)
            if state != State.EMPTY.value and self.was_empty:
                raise Broken("epochs go up", f"nobody was left in the group, and it is loaded as {state}", now_ms)
            self.loading, self.previous, self.generation, self.completed = False, -1, epoch, epoch
        elif epoch < self.generation or (completes and epoch == self.completed):
            raise Broken("epochs go up", f"generation {epoch} comes after {self.generation}", now_ms)
        if completes:
            self.completed = self.completed_here = epoch
            self.synced.clear()
            # One of this number may have been lost with its coordinator.
            self.told[epoch], self.given = set(), (-1, {})
        if epoch != self.generation:
            self.previous, self.generation = self.generation, epoch
        if state != State.COMPLETING_REBALANCE.value:
            self.check_nobody_waits_for_sync(now_ms)
        self.empty_since_ms = now_ms if state == State.EMPTY.value else None
        if state == State.PREPARING_REBALANCE.value:
            self.preparing_ms, self.from_nobody = now_ms, self.state in NOBODY
        elif state == State.STABLE.value and fact["because"] == Event.ASSIGNMENT_STORED.value:
            self.stored = epoch
        elif state == State.EMPTY.value:
            self.killed.clear()
        self.state = state
        self.sessions_since_ms = now_ms

    def check_nobody_waits_for_sync(self, now_ms: int) -> None:
        present = self.told.get(self.generation, set()) - self.excused
        waiting = sorted(one for one in self.syncing & present if not self.is_out(one))
        if waiting:
            raise Broken("members heard", f"SyncGroup of {waiting[0]} is not answered when its time is over", now_ms)
        self.syncing.clear()

    def on_coordinator(self, fact: Fact) -> None:
        self.sessions_since_ms = fact["t"]
        if fact["is"] == "down":
            self.life += 1
            self.loading = True
            self.was_empty = self.empty_since_ms is not None and fact["t"] - self.empty_since_ms > LOG_MS
            self.state = self.empty_since_ms = None
            self.completed_here = -1
            self.syncing.clear()
            self.handed_out.clear()
            self.excused.clear()  # the next one may find them in the log, and wait for them
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
        self.check_nobody_waits_for_join(now_ms)
        late = now_ms > self.preparing_ms + self.most_rebalance_ms + SLACK_MS
        if late and self.state == State.PREPARING_REBALANCE.value and not self.from_nobody and not self.holders:
            message = f"the rebalance that began at {self.preparing_ms} ms still waits"
            raise Broken("time to rejoin", message, now_ms)

    def check_nobody_waits_for_join(self, now_ms: int) -> None:
        joins = {
            one.member_id: since_ms
            for one, _, since_ms in self.asked.values()
            if isinstance(one, JoinGroupRequest) and since_ms > self.joined_ms.get(one.client_id, -1)
        }
        if self.state == State.STABLE.value and self.sessions_since_ms + SLACK_MS < now_ms:
            for member_id, since_ms in joins.items():
                if since_ms + SLACK_MS < now_ms and not self.loading:
                    message = f"JoinGroup of {member_id or 'a stranger'} is not answered in a stable group"
                    raise Broken("members heard", message, now_ms)
        if not self.lacks_nobody(joins, now_ms):
            self.all_in_since_ms = None
        elif self.all_in_since_ms is None:
            self.all_in_since_ms = now_ms
        elif self.all_in_since_ms + SLACK_MS < now_ms:
            raise Broken("members heard", "everybody has joined, and nobody is answered", now_ms)

    def lacks_nobody(self, joins: dict[str, int], now_ms: int) -> bool:
        """Of static members that a rebalance has passed over nothing is known here."""
        if self.state != State.PREPARING_REBALANCE.value or self.from_nobody or self.holders or not joins:
            return False
        if any(until_ms + SLACK_MS > now_ms for until_ms in self.handed_out.values()):
            return False
        present = [one for one in self.members_of(self.generation) - self.excused if not self.is_out(one)]
        return all(joins.get(one, -1) >= self.preparing_ms for one in present)


def waits(request: Request, member_id: str) -> bool:
    return isinstance(request, JoinGroupRequest | SyncGroupRequest) and request.member_id == member_id
