"""Send a sequence to a real broker in real time: every step at its moment, every answer as JSON with its time.

Given      a parsed sequence, a Cluster, and how the sequence's groups are to be called there
Returns    a Recording: what was sent and answered when, in milliseconds since the first step
Parked     a broker serves one request of a connection at a time. Each request here takes an idle connection, so a
           JoinGroup that waits for other members holds up no other request
Order      a step waits until the one before it is answered, or is clearly parked: requests of two connections can
           overtake each other
Start at   Recorder.run, take
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError, at
from rebalance_lab.harness.conversation.message_json import request_from_json, response_to_json
from rebalance_lab.harness.conversation.references import referred, resolve
from rebalance_lab.harness.conversation.sequence_file import SequenceFile, Step
from rebalance_lab.harness.conversation.sequence_player import Player
from rebalance_lab.harness.kafka.wire.addresses import WireError
from rebalance_lab.harness.kafka.wire.broker_connection import Connection
from rebalance_lab.harness.kafka.wire.cluster import Cluster
from rebalance_lab.harness.kafka.wire.codec import APIS, KEYS, from_wire, to_wire
from rebalance_lab.harness.kafka.wire.connection_pool import Pool
from rebalance_lab.harness.kafka.wire.recordings.group_names import GroupNames
from rebalance_lab.protocol_v1.common.messages import JoinGroupRequest, ListGroupsRequest, Request, SyncGroupRequest

PARKED_AFTER_S = 0.04
"""A request that our coordinator would park is taken to be parked by then, or after PATIENCE times what a busy broker
took lately; on an idle machine it is handled in 1-10 ms."""
PATIENCE = 3
MAY_BE_PARKED = (JoinGroupRequest, SyncGroupRequest)
ANSWER_WITHIN_S = 1.0
REFERENCE_WITHIN_S = 1.0


@dataclass(slots=True)
class Recording:
    sent_ms: dict[str, int] = field(default_factory=dict)
    """By the step's name."""
    bodies: dict[str, Any] = field(default_factory=dict)
    """What was sent, with the references of the step replaced by what the broker had answered."""
    unsent: dict[str, str] = field(default_factory=dict)
    """Steps that refer to what the broker did not answer, and why."""
    answers: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    ended_ms: int = 0
    stalls: list[tuple[int, int]] = field(default_factory=list)
    """From when until when an answer was under way that should have come at once: then the machine was busy."""

    @property
    def stall_ms(self) -> int:
        """Return the longest stall."""
        return max((until_ms - from_ms for from_ms, until_ms in self.stalls), default=0)

    def stall_near(self, from_ms: int, until_ms: int) -> int:
        """Return the longest stall that overlaps this time."""
        return max((end - begin for begin, end in self.stalls if begin <= until_ms and end >= from_ms), default=0)


class Recorder:
    def __init__(
        self, sequence: SequenceFile, cluster: Cluster, pool: Pool, names: GroupNames, parked: Collection[str]
    ) -> None:
        """Take `parked`: the steps that are not expected to be answered at once (parked_here)."""
        self.sequence, self.cluster, self.pool = sequence, cluster, pool
        self.names, self.parked = names, parked
        self.loop = asyncio.get_running_loop()
        self.recording = Recording()
        self.under_way: dict[str, asyncio.Task[None]] = {}
        self.began = 0.0

    @property
    def now_ms(self) -> int:
        return round((self.loop.time() - self.began) * 1000)

    async def run(self) -> Recording:
        self.began = self.loop.time()
        try:
            for step in self.sequence.steps:
                await self.until(step.at_ms)
                await self.take(step)
            await self.until(max(self.sequence.until_ms, self.last_sent_ms + self.tail_ms))
            self.recording.ended_ms = self.now_ms
            self.recording.stalls = self.pool.stalls(self.began)
        finally:
            for task in self.under_way.values():
                task.cancel()
        for task in self.under_way.values():
            if task.done() and not task.cancelled():
                task.result()
        return self.recording

    @property
    def last_sent_ms(self) -> int:
        return max(self.recording.sent_ms.values(), default=0)

    @property
    def tail_ms(self) -> int:
        """Return the time after the last step, as the sequence has it: a busy computer sends late, and answers are late
        as well.
        """
        steps = self.sequence.steps
        return self.sequence.until_ms - (steps[-1].at_ms if steps else 0)

    async def until(self, at_ms: int) -> None:
        await asyncio.sleep(max(0.0, self.began + at_ms / 1000 - self.loop.time()))

    async def take(self, step: Step) -> None:
        if step.request is None:
            raise WireError(f"{step.path}: only requests can be sent to a broker")
        path = at(step.path, "body")
        try:
            body = resolve(step.body, await self.answers_for(step), path, self.now_ms)
        except ContractError as error:
            self.recording.unsent[step.name] = str(error)
            return
        header = {"client_id": step.client_id}
        request = request_from_json(step.request, step.version, self.names.outward(body), path, header)
        connection = await self.pool.take()
        self.recording.sent_ms[step.name] = self.now_ms
        self.recording.bodies[step.name] = body
        task = self.under_way[step.name] = asyncio.create_task(self.converse(step, request, connection))
        parked_after_s = max(PARKED_AFTER_S, PATIENCE * self.pool.usual_s)
        await asyncio.wait([task], timeout=parked_after_s if step.name in self.parked else ANSWER_WITHIN_S)

    async def answers_for(self, step: Step) -> dict[str, Any]:
        """Return all answers so far, once those that the step refers to are there, or are clearly not going to come."""
        tasks = [self.under_way[name] for name in referred(step.body) if name in self.under_way]
        if tasks:
            await asyncio.wait(tasks, timeout=REFERENCE_WITHIN_S)
        return {name: body for name, (_, body) in self.recording.answers.items()}

    async def converse(self, step: Step, request: Request, connection: Connection) -> None:
        _, response = APIS[KEYS[type(request)]]
        began = self.loop.time()
        entity = await connection.send(to_wire(request, step.version, self.cluster.ids), step.client_id)
        self.pool.give_back(connection)
        if step.request not in MAY_BE_PARKED:
            self.pool.note(self.loop.time(), self.loop.time() - began)
        answer = from_wire(response, entity, self.cluster.ids)
        body = response_to_json(answer, step.version)
        if step.request is ListGroupsRequest:  # a broker has other groups as well
            body["groups"] = [each for each in body["groups"] if self.names.has(each["group_id"])]
        self.recording.answers[step.name] = (self.now_ms, self.names.inward(body))


def parked_here(sequence: SequenceFile) -> set[str]:
    """Return steps that our coordinator does not answer at once; where it cannot tell, all that could be parked."""
    try:
        facts = Player(sequence).run().facts
    except ContractError:
        return {step.name for step in sequence.steps if step.request in MAY_BE_PARKED}
    at_once = {fact.step.name for fact in facts if fact.step and fact.answered and fact.at_ms == fact.step.at_ms}
    return {step.name for step in sequence.steps} - at_once
