"""Tell what a process does while nothing happens, and carry it over an idle leap.

Routine    heartbeats, and auto-commits of its interval; any other message means that the process is not at rest
Commits    an auto-commit of a process at rest, which cannot be refused or lost, is made at once and without messages
Leap       both are put off by whole periods of their own. Those within the leap are counted, and the last commit is
           made. Heartbeats of classic members are a little late each time, so a leap also lets them drift
Start at   Routine.leap
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isqrt
from typing import TYPE_CHECKING

from rebalance_lab.harness.simulator.record_flow import RECORD
from rebalance_lab.harness.simulator.surroundings import GROUP
from rebalance_lab.protocol_v1.common.effects import TimerKey
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    FindCoordinatorRequest,
    Responded,
    TimerFired,
    Told,
    TopicPartition,
)
from rebalance_lab.protocol_v1.common.messages import HeartbeatRequest, HeartbeatResponse, OffsetCommitRequest, Request
from rebalance_lab.protocol_v1.member.commits import commit_topics
from rebalance_lab.protocol_v1.member.member import TICK
from rebalance_lab.protocol_v1.member.member import Member as ClassicMember
from rebalance_lab.protocol_v2.common.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from rebalance_lab.protocol_v2.member.member import OFFSETS

if TYPE_CHECKING:
    from rebalance_lab.harness.simulator.consumer_process import Process


@dataclass(slots=True, eq=False)
class Routine:
    process: Process
    look_ms: int = 0
    """How late its heartbeats may be, because its heartbeat thread looks at the clock only so often."""
    commits_key: TimerKey = OFFSETS
    """The timer of its auto-commits."""
    beats_ms: int = 0
    commits_ms: int = 0
    """By how much the leap that is being made puts off heartbeats, and auto-commits."""
    commits_apart_ms: int = 0
    """In that leap."""
    uncounted_ms: int = 0
    """Of what leaps have put off: less than from one heartbeat to the next."""
    heartbeat: Request | None = None
    """The last one, to count those that a leap passes over."""
    poll_ms: int = -1
    """When the batch is over that an auto-commit waits for."""
    made_late: dict[TopicPartition, int] = field(default_factory=dict)
    """What was committed without a message, such as for the end of the last leap."""
    late_ms: int = -1
    """And when."""
    last_on_the_way: list[tuple[int, int]] = field(default_factory=lambda: [(-1, 0), (-1, 0)])
    """Out and in: on which connection, and when it arrives."""

    @property
    def at_rest(self) -> bool:
        process = self.process
        return not self.held_up and not process.paused and not process.cut_off and process.machine.settled

    @property
    def searches(self) -> bool:
        """Tell whether the process only searches, over and over, for a coordinator that it cannot reach."""
        process = self.process
        return not self.held_up and process.world.out_of_reach(process) and process.machine.searches

    @property
    def held_up(self) -> bool:
        process = self.process
        return process.busy or process.in_callback or process.stopping or bool(process.reading.starts)

    @property
    def longest_ms(self) -> int:
        """Return how long until all of its routine has been due once."""
        process = self.process
        beat_ms = process.machine.heartbeat_interval_ms + self.look_ms
        return beat_ms if process.machine.auto_commit_at_ms is None else max(beat_ms, self.commit_every_ms)

    def plan_leap(self, from_ms: int, to_ms: int, earlier_ms: int) -> None:
        """Plan a leap by whole heartbeats and whole intervals of the auto-commit, so that the next ones come when they
        would have come. Heartbeats that are late a little each time also drift. A process that searches goes on
        afterwards as if it had slept, and a paused one finds all that has come due.
        """
        machine = self.process.machine
        if not self.at_rest:
            self.beats_ms = self.commits_ms = to_ms - from_ms if self.searches else 0
            return
        interval_ms = machine.heartbeat_interval_ms
        later_ms = -earlier_ms
        if self.look_ms:
            later_ms += self.drift_ms(isqrt((to_ms - from_ms + earlier_ms) // interval_ms), interval_ms // 2)
        self.beats_ms = periods(machine.heartbeat_at_ms + later_ms, interval_ms, to_ms) + later_ms
        due_ms = machine.auto_commit_at_ms
        self.commits_ms = 0
        if due_ms is not None:
            self.commits_apart_ms, poll_ms = self.commits_and_polls_ms(to_ms)
            first_ms = due_ms - earlier_ms
            first_ms += (self.process.reader.since_ms - first_ms) % poll_ms
            self.commits_ms = first_ms + periods(first_ms, self.commits_apart_ms, to_ms) - due_ms

    def commits_and_polls_ms(self, at_ms: int) -> tuple[int, int]:
        """Return how far apart auto-commits and polls are by then. A lagging process commits when it polls with a batch
        done, which may take longer than the interval. One that keeps up polls all the time.
        """
        every_ms, process = self.commit_every_ms, self.process
        if process.reader.lag_at(at_ms) < RECORD:
            return every_ms, 1
        batch_ms = max(1, process.batch_ms(at_ms))
        return -(-every_ms // batch_ms) * batch_ms, batch_ms

    def drift_ms(self, steps: int, at_most_ms: int) -> int:
        """Draw where a random walk ends, from whole numbers only: the sum of a few dice is nearly normal."""
        draw = self.process.world.random.getrandbits
        dice = draw(10) + draw(10) + draw(10) - 3 * 512
        return max(-at_most_ms, min(dice * steps * self.look_ms * 29 // 51_200, at_most_ms))

    @property
    def commit_every_ms(self) -> int:
        """Return the time between commits. A commit for a partition of a deleted topic is refused. A classic member
        tries the whole commit again after a moment, until its leader hears of the deletion, which may take
        metadata.max.age.ms; a KIP-848 member waits.
        """
        process = self.process
        deleted = process.world.catalogue.deleted
        if deleted and not process.has_background and any(topic in deleted for topic, _ in process.machine.owned):
            return process.application.retry_backoff_ms + process.world.round_trip_ms()
        return process.application.auto_commit_interval_ms

    @property
    def moves(self) -> bool:
        """Tell whether it moves in the leap that is being made."""
        return bool(self.beats_ms or self.commits_ms)

    def shift_of(self, key: TimerKey) -> int:
        return self.commits_ms if key == self.commits_key else self.beats_ms

    def is_routine(self, request: Request) -> bool:
        process = self.process
        match request:
            case HeartbeatRequest():
                self.heartbeat = request
                return True
            case ConsumerGroupHeartbeatRequest(
                topic_partitions=None, subscribed_topic_names=None, subscribed_topic_regex=None
            ) if request.member_epoch > 0:
                self.heartbeat = request
                return process.machine.settled
            case OffsetCommitRequest():
                return process.machine.settled
            case FindCoordinatorRequest():
                return self.searches
            case _:
                return False

    def commit_at_rest(self) -> bool:
        """See to an auto-commit that is due. False: there is none, or it is not as simple as that."""
        process = self.process
        due_ms, now_ms = process.machine.auto_commit_at_ms, process.now_ms
        if due_ms is None or not process.machine.commits_in_poll(now_ms):
            return False
        if not self.at_rest or not process.world.will_accept(process):
            return False
        next_ms = process.batch_ends_ms() if self.poll_ms != now_ms else now_ms
        if next_ms > now_ms:
            self.poll_ms = next_ms
        else:
            process.reader.advance(now_ms)
            self.made_late, self.late_ms = process.reader.offsets(), now_ms
            process.machine.note(self.made_late)
            process.world.committed_at_rest(process, self.made_late, now_ms)
            next_ms = now_ms + self.commit_every_ms
        process.machine.leap(0, next_ms - due_ms)
        process.timers.set(self.commits_key, next_ms - now_ms)
        return True

    def leap(self, from_ms: int, to_ms: int) -> None:
        """Take part in a leap after the kernel: heartbeats and commits that were passed over are counted, and the last
        commit made.
        """
        process = self.process
        ahead_ms = to_ms - from_ms
        (out, out_ms), (back, back_ms) = self.last_on_the_way
        self.last_on_the_way = [(out, out_ms + ahead_ms), (back, back_ms + ahead_ms)]
        process.timers.leap(to_ms, self.shift_of)
        if not self.at_rest:
            process.machine.search_later(self.beats_ms)
            return
        if self.moves:
            process.machine.leap(self.beats_ms, self.commits_ms)
        process.world.routine(self.heartbeat or self.first_heartbeat(), self.beats_passed_over())
        if process.application.commits_after_processing:
            if process.reader.rate:
                process.hand_commits.before_silence()
            return
        due_ms = process.machine.auto_commit_at_ms
        if due_ms is not None and process.machine.owned:
            last_ms = due_ms - self.commits_apart_ms
            if process.reader.at_ms < last_ms <= to_ms:
                process.reader.advance(last_ms)
                self.made_late, self.late_ms = process.reader.offsets(), to_ms
                times = max(1, self.commits_ms // self.commits_apart_ms)
                process.world.committed_at_rest(process, self.made_late, last_ms, times)

    def beats_passed_over(self) -> int:
        """Count the heartbeats passed over, each from the one before, which was late."""
        every_ms = self.process.machine.heartbeat_interval_ms + self.look_ms // 2
        self.uncounted_ms += self.beats_ms
        beats = max(0, self.uncounted_ms // every_ms)
        self.uncounted_ms -= beats * every_ms
        return beats

    def first_heartbeat(self) -> Request:
        """Return the heartbeat that would have been sent, had there been time for one before the leap."""
        machine, name, instance_id = self.process.machine, self.process.name, self.process.instance_id
        if isinstance(machine, ClassicMember):
            return HeartbeatRequest(
                group_id=GROUP,
                generation_id=machine.epoch,
                member_id=machine.member_id,
                group_instance_id=instance_id,
                client_id=name,
            )
        return ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=machine.member_id,
            member_epoch=machine.epoch,
            instance_id=instance_id,
            client_id=name,
        )

    def brought_up_to_date(self, request: OffsetCommitRequest) -> OffsetCommitRequest:
        """Update a commit that a leap, or a standstill, caught on its way: it must not undo the one that was made
        late.
        """
        offsets = committed_offsets(request)
        latest = {tp: max(offset, self.made_late.get(tp, 0)) for tp, offset in offsets.items()}
        return replace(request, topics=commit_topics(latest))


def committed_offsets(request: OffsetCommitRequest) -> dict[TopicPartition, int]:
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in request.topics
        for partition in topic.partitions
    }


def periods(at_ms: int, period_ms: int, to_ms: int) -> int:
    """Return by how many whole periods something due at `at_ms` is to be put off to come after `to_ms`."""
    return max(0, (to_ms - at_ms) // period_ms + 1) * period_ms


def brings_nothing(event: Told) -> bool:
    """Tell whether the event is a heartbeat, or the answer to one that brings nothing."""
    if isinstance(event, TimerFired):
        return event.key == TICK
    if not isinstance(event, Responded):
        return False
    response = event.response
    if isinstance(response, HeartbeatResponse):
        return response.error_code is Error.NONE
    if isinstance(response, ConsumerGroupHeartbeatResponse):
        return response.error_code is Error.NONE and response.assignment is None
    return False
