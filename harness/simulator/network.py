"""Carry messages between processes and the coordinator's broker, with latency, loss and broken connections.

Messages   latency with jitter, loss and duplication, each drawn; messages of one connection keep their order
Cut off    messages under way are held up, as TCP does, until the network is back or the connection is given up
Lost       the next message to be lost is drawn ahead, so that an idle leap can end before it
Start at   Wire.send
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rebalance_lab.harness.simulator.consumer_process import Process
from rebalance_lab.harness.simulator.routine import committed_offsets
from rebalance_lab.harness.simulator.surroundings import up_to
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    Responded,
    TopicPartition,
)
from rebalance_lab.protocol_v1.common.messages import JoinGroupResponse, OffsetCommitRequest, Request, Response
from rebalance_lab.protocol_v1.member.commits import commit_topics

if TYPE_CHECKING:
    from rebalance_lab.harness.simulator.world import World

LOOK_AHEAD = 10_000
"""Messages, at the most: where hardly any is lost, the next one is far away."""


class Wire:
    def __init__(self, world: World) -> None:
        self.world = world
        self.spec = world.scenario.network
        self.parked: dict[int, tuple[Request, Process, int]] = {}
        """By identity: a coordinator answers with the very request that it was given."""
        self.held: dict[str, list[tuple[Callable[..., None], tuple[Any, ...]]]] = {}
        self.spared = 0
        """Messages that will arrive, before one may be lost."""
        self.then_lost = False
        self.in_vain: set[Process] = set()
        """Whose request, or the answer to it, was lost."""

    def latency_ms(self) -> int:
        spec = self.spec
        return spec.latency_ms + (up_to(spec.jitter_ms, self.world.random) if spec.jitter_ms else 0)

    def due_ms(self, process: Process, way: int) -> int:
        """Return when a message that is sent now arrives: not before those sent before it on the same connection."""
        due_ms = self.world.kernel.now_ms + self.latency_ms()
        on_the_way = process.routine.last_on_the_way
        connection, last_ms = on_the_way[way]
        if connection == process.connection and last_ms > due_ms:
            due_ms = last_ms
        on_the_way[way] = (process.connection, due_ms)
        return due_ms

    def look_ahead(self) -> None:
        if self.spared or self.then_lost:
            return
        draw, loss = self.world.random.random, self.spec.loss
        while self.spared < LOOK_AHEAD and not self.then_lost:
            self.then_lost = draw() < loss
            self.spared += not self.then_lost

    def lost(self) -> bool:
        self.look_ahead()
        if self.spared:
            self.spared -= 1
            return False
        self.then_lost = False
        return True

    def anybody_waits_in_vain(self) -> bool:
        if self.in_vain:
            self.in_vain = {one for one in self.in_vain if one.alive and one.machine.waits_for_an_answer}
        return any(not process.cut_off for process in self.in_vain)

    def send(self, process: Process, request: Request) -> None:
        if not process.routine.is_routine(request):
            self.world.disturbed()
        of_old_topics = process.reading.of_old_topics
        if of_old_topics and isinstance(request, OffsetCommitRequest):
            request = without(request, of_old_topics.__contains__)
        if self.spec.loss and self.lost():
            self.in_vain.add(process)
            return
        kernel = self.world.kernel
        now_ms = kernel.now_ms
        kernel.at(self.due_ms(process, 0), self.arrive, process, process.connection, request, now_ms, rhythm=process)
        if self.spec.duplication and self.world.random.random() < self.spec.duplication:
            twin = replace(request)
            at_ms = self.due_ms(process, 0)
            kernel.at(at_ms, self.arrive, process, process.connection, twin, now_ms, rhythm=process)

    def arrive(self, process: Process, connection: int, request: Request, sent_ms: int) -> None:
        if connection != process.connection:
            return
        if process.cut_off:
            held = self.held.setdefault(process.name, [])
            if isinstance(request, FindCoordinatorRequest):
                # It asks several times a second, and does not wait for the answers to the earlier ones.
                held[:] = [one for one in held if not isinstance(one[1][2], FindCoordinatorRequest)]
            held.append((self.arrive, (process, connection, request, sent_ms)))
        elif isinstance(request, FindCoordinatorRequest):
            error = Error.COORDINATOR_NOT_AVAILABLE if self.world.broker.coordinator is None else Error.NONE
            self.reply(process, connection, request, FindCoordinatorResponse(error_code=error))
        elif self.world.broker.coordinator is not None:
            if isinstance(request, OffsetCommitRequest) and sent_ms <= process.routine.late_ms:
                request = process.routine.brought_up_to_date(request)
            again, there = self.world.catalogue.created_again, self.world.records.streams
            if isinstance(request, OffsetCommitRequest) and sent_ms <= max(again.values(), default=-1):
                request = without(request, lambda tp: sent_ms <= again.get(tp[0], -1) and tp in there)
            self.parked[id(request)] = (request, process, connection)
            self.world.broker.receive(request)

    def answer(self, request: Request, response: Response) -> None:
        _, process, connection = self.parked.pop(id(request))
        self.reply(process, connection, request, response)

    def reply(self, process: Process, connection: int, request: Request, response: Response) -> None:
        if self.spec.loss and self.lost():
            self.in_vain.add(process)
            return
        at_ms = self.due_ms(process, 1)
        self.world.kernel.at(at_ms, self.hear, process, connection, request, response, rhythm=process)

    def hear(self, process: Process, connection: int, request: Request, response: Response) -> None:
        if not process.alive or connection != process.connection:
            return
        if process.cut_off:
            self.held.setdefault(process.name, []).append((self.hear, (process, connection, request, response)))
        elif isinstance(response, JoinGroupResponse) and response.members:
            started = time.process_time()
            process.deliver(Responded(request, response))
            self.world.assignment_cpu_s += time.process_time() - started
        else:
            process.deliver(Responded(request, response))

    def cut_off(self, process: Process) -> None:
        if process.cut_off:
            return
        process.hand_commits.before_silence()
        process.cut_off = True
        process.read_on()
        self.world.trace.tell(self.world.kernel.now_ms, "process", member=process.name, **{"is": "cut off"})

    def reconnect(self, process: Process) -> None:
        process.cut_off = False
        process.fetch_again()
        self.world.trace.tell(self.world.kernel.now_ms, "process", member=process.name, **{"is": "connected"})
        # At once: what is on its way already was sent later, and must not come first.
        for action, given in self.held.pop(process.name, []):
            self.world.kernel.after(0, action, *given)


def without(request: OffsetCommitRequest, is_old: Callable[[TopicPartition], bool]) -> OffsetCommitRequest:
    """Leave out commits of a deleted topic, which are no progress in the topic that has its name now. Kafka's commits
    name topics by their ids.
    """
    offsets = {tp: offset for tp, offset in committed_offsets(request).items() if not is_old(tp)}
    return replace(request, topics=commit_topics(offsets))
