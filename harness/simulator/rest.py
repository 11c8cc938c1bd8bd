"""Make idle leaps: while a group is at rest, virtual time passes at once.

Rest       no event for a moment, all members are settled, and so is the coordinator. A process that is paused, or that
           searches for a coordinator out of reach, does not prevent a leap
Leap       to the next event that is not routine; heartbeats and commits in between are counted, not sent
Head start the first leap skips some more time than it needs (Constants.head_start_ms). Otherwise all that a scenario
           does on the minute would meet the same moment between two heartbeats, whatever the seed
Loss       the loss of a message is not routine: a leap ends before a message in it would be lost
Start at   Rest.check
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from rebalance_lab.harness.simulator.broker import is_check_of_offsets
from rebalance_lab.harness.simulator.kernel import Shift
from rebalance_lab.protocol_v1.common.effects import TimerKey

if TYPE_CHECKING:
    from rebalance_lab.harness.simulator.consumer_process import Process
    from rebalance_lab.harness.simulator.world import World

DAY_MS = 86_400_000
LOOK_AGAIN_MS = 1_000
WORTH_A_LEAP_MS = 250
"""What comes sooner is waited for: a leap of a hundred members costs as much as so long a walk."""


class Rest:
    def __init__(self, world: World, allowed: bool) -> None:
        self.world = world
        self.allowed = allowed
        self.disturbed_at_ms = 0
        self.checking = False
        self.parts = 0
        """Of an exchange, in parts of a day: what leaps have passed over and not counted yet."""
        self.head_start_ms = Random(f"{world.seed} head start").randrange(max(1, world.constants.head_start_ms))
        """What is left to be passed over in addition."""
        network = world.scenario.network
        self.window_ms = 100 + 4 * (network.latency_ms + network.jitter_ms)
        """How long nothing must have happened before it is worth while to check whether all members are at rest."""

    def plan_check(self, delay_ms: int) -> None:
        if self.allowed and not self.checking:
            self.checking = True
            self.world.kernel.after(max(1, delay_ms), self.check, rhythm=self)

    def check(self) -> None:
        self.checking = False
        quiet_ms = self.world.kernel.now_ms - self.disturbed_at_ms
        if quiet_ms < self.window_ms:
            self.plan_check(self.window_ms - quiet_ms)
        elif self.at_rest():
            self.plan_check(self.leap())
        else:
            self.plan_check(LOOK_AGAIN_MS)

    def at_rest(self) -> bool:
        world, settled = self.world, []
        for process in world.processes.values():
            if process.routine.at_rest:
                settled.append(process.machine.member_id)
            elif not process.paused and not process.routine.searches:
                return False
        coordinator = world.broker.coordinator
        if coordinator is None:
            return not settled
        return not world.wire.anybody_waits_in_vain() and world.build.stable(coordinator, settled, world.kernel.now_ms)

    def exchanges_a_day(self) -> int:
        """Count the routine's exchanges in a day. A leap passes over whole ones, so that answers are lost as often as
        requests.
        """
        found = 0
        for process in self.world.processes.values():
            if not process.routine.at_rest:
                continue
            found += DAY_MS // process.machine.heartbeat_interval_ms
            if process.machine.auto_commit_at_ms is not None:
                found += DAY_MS // process.routine.commit_every_ms
        return found

    def take_head_start(self, leap_ms: int) -> int:
        """Take the head start once, when all first members are there, in a leap that is long enough for all routine to
        be due.
        """
        if not self.head_start_ms:
            return 0
        routines = [process.routine for process in self.world.processes.values()]
        if self.world.starting or leap_ms <= max([routine.longest_ms for routine in routines], default=0):
            return 0
        taken_ms, self.head_start_ms = self.head_start_ms, 0
        return taken_ms

    def session_shift_ms(self, key: TimerKey, process: Process) -> int:
        """Return a session's shift: it goes along with the heartbeats if it is one of them that keeps it up. If a later
        commit does, it is not carried on from that one: then the last heartbeat passed over decides, or the last commit
        (routine.py).
        """
        world, machine, beats_ms = self.world, process.machine, process.routine.beats_ms
        coordinator, due_ms = world.broker.coordinator, world.broker.timers.due_ms(key)
        session = world.build.session(coordinator, machine) if coordinator is not None else None
        if session is None or due_ms is None:
            return beats_ms
        last_beat_ms = machine.heartbeat_at_ms - machine.heartbeat_interval_ms
        by_beats_ms = last_beat_ms + world.round_trip_ms() + session[1]
        return max(0, beats_ms - max(0, due_ms - by_beats_ms))

    def before_a_deletion(self, to_ms: int) -> int:
        """Return the first check of offsets that deletes something, or `to_ms` if that is earlier. Only an empty group
        or an offset as old as the retention is deleted.
        """
        world = self.world
        if to_ms < world.retention_ms and any(process.routine.at_rest for process in world.processes.values()):
            return to_ms
        found = world.broker.next_deletion_ms(to_ms, world.check_offsets_every_ms)
        return to_ms if found is None else found

    def check_shift_ms(self, key: TimerKey, to_ms: int) -> int:
        """Return by how many whole intervals the check of offsets moves: it keeps to the world's time."""
        due_ms, every_ms = self.world.broker.timers.due_ms(key), self.world.check_offsets_every_ms
        return 0 if due_ms is None else max(0, -(-(to_ms - due_ms) // every_ms)) * every_ms

    def leap(self) -> int:
        """Leap to the next event that is not routine, and return when to check again. That is after the event, or,
        where the event is so near that walking is cheaper than a leap, once it has happened.
        """
        world, now_ms = self.world, self.world.kernel.now_ms
        timers = world.broker.timers
        settled = [process for process in world.processes.values() if process.routine.at_rest]
        members = {process.machine.member_id: process for process in settled}

        def stays(key: TimerKey) -> bool:
            """Keep the broker's timers in place, except for sessions that members keep up."""
            return not is_check_of_offsets(key) and not ("session" in key[0] and key[-1] in members)

        next_ms = world.kernel.next_ms(timers, stays)
        to_ms = self.before_a_deletion(world.until_ms if next_ms is None else min(next_ms, world.until_ms))
        exchanges = self.exchanges_a_day() if world.scenario.network.loss else 0
        if exchanges:
            world.wire.look_ahead()
            spared_ms = world.wire.spared // 2 * DAY_MS // exchanges
            if spared_ms < WORTH_A_LEAP_MS:
                return LOOK_AGAIN_MS
            to_ms = min(to_ms, now_ms + spared_ms)
        if to_ms - now_ms < WORTH_A_LEAP_MS:
            return to_ms - now_ms + 1
        earlier_ms = self.take_head_start(to_ms - now_ms)
        for process in world.processes.values():
            process.routine.plan_leap(now_ms, to_ms, earlier_ms)

        def shift_session(key: TimerKey) -> int | None:
            if is_check_of_offsets(key):
                return self.check_shift_ms(key, to_ms)
            process = members.get(key[-1]) if "session" in key[0] else None
            return None if process is None else self.session_shift_ms(key, process)

        shifts: dict[object, Shift | None] = {timers: shift_session}
        for process in world.processes.values():
            shifts[process.timers] = process.routine.shift_of if process.routine.moves else None
        if exchanges:
            passed, self.parts = divmod((to_ms - now_ms) * exchanges + self.parts, DAY_MS)
            world.wire.spared -= 2 * min(passed, world.wire.spared // 2)
        world.sample_leap(to_ms)
        world.broker.flush()
        world.kernel.leap(to_ms, shifts)
        timers.leap(to_ms, shift_session)
        for process in world.processes.values():
            process.routine.leap(now_ms, to_ms)
        return 1
