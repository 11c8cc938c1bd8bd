"""Play a sequence, a timed list of requests, to a coordinator in virtual time, and collect what it answers.

Given      a sequence (sequence_file.py has the format), decoded from JSON
Returns    a Transcript: every answer and every group's states, with the time; to_json is what `play --json` prints
Errors     ContractError with the path; in {"sequences": [...]} it stands in the place of that sequence's result
Order      by (time, sequence): first scheduled, first served. A timer that is due when a step comes goes first, so
           a request can refer to what a timer of the same instant answered
Start at   play, play_many
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError, at, expect_list, refuse_unknown
from rebalance_lab.harness.conversation.message_json import request_from_json, response_to_json
from rebalance_lab.harness.conversation.references import resolve
from rebalance_lab.harness.conversation.sequence_file import COMMIT_TIMEOUT, SequenceFile, Step, parse_sequence
from rebalance_lab.harness.hosts.coordinator_host import (
    CoordinatorMachine,
    NewMemberId,
    Transactional,
)
from rebalance_lab.harness.hosts.served_protocols import PROTOCOLS
from rebalance_lab.protocol_v1.common.effects import (
    Append,
    CancelTimer,
    Effect,
    Reply,
    SetTimer,
    StateChanged,
    TimerKey,
)
from rebalance_lab.protocol_v1.common.errors import Error

APPEND_TIMEOUT_MS = 5_000
"""Kafka's default of offsets.commit.timeout.ms."""
MAX_TIMERS = 1_000_000
"""Fired in one sequence. Only a rebalance timeout of 0 or a check every millisecond comes near it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Hold one line of a transcript: a step as it was sent, an answer, or a group's new state."""

    at_ms: int
    step: Step | None = None
    body: Mapping[str, Any] | None = None
    answered: bool = False
    state: StateChanged | None = None


@dataclass(slots=True)
class Transcript:
    until_ms: int = 0
    facts: list[Fact] = field(default_factory=list)
    unanswered: dict[int, Step] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        responses = [
            {"as": fact.step.name, "at_ms": fact.at_ms, "body": fact.body}
            for fact in self.facts
            if fact.answered and fact.step is not None
        ]
        silent = [{"as": step.name, "at_ms": self.until_ms, "body": None} for step in self.unanswered.values()]
        states = [
            {"at_ms": fact.at_ms, "group": fact.state.group_id, "state": fact.state.state}
            for fact in self.facts
            if fact.state is not None
        ]
        return {"responses": responses + silent, "states": states}


def play(value: Any) -> Transcript:
    return Player(parse_sequence(value, PROTOCOLS)).run()


def play_many(value: Mapping[str, Any]) -> list[Transcript | ContractError]:
    """Play `{"sequences": [...]}`: what is wrong with one does not keep the others from being played."""
    refuse_unknown(value, ("sequences",), "")
    results: list[Transcript | ContractError] = []
    for sequence in expect_list(value["sequences"], "sequences"):
        try:
            results.append(play(sequence))
        except ContractError as error:
            results.append(error)
    return results


class Log:
    """Keep what the coordinator appends: durable at once, held back, or refused."""

    def __init__(self) -> None:
        self.mode = "ok"
        self.durable: list[Any] = []
        self.held: dict[int, Append] = {}

    def outcome(self, append: Append) -> Error | None:
        """Return an append's outcome, None while it is unknown. A log has one order: appends behind a held one wait."""
        if self.mode == "hold" or (self.mode == "ok" and self.held):
            self.held[append.append_id] = append
            return None
        if self.mode == "ok":
            self.durable += append.records
            return Error.NONE
        return Error[self.mode]


class Player:
    def __init__(self, sequence: SequenceFile, new_member_id: NewMemberId | None = None) -> None:
        """Take `new_member_id` instead of the file's own `member_ids`."""
        self.sequence = sequence
        self.transcript = Transcript(until_ms=sequence.until_ms)
        self.log = Log()
        self.append_timeout_ms: int = sequence.config.get(COMMIT_TIMEOUT, APPEND_TIMEOUT_MS)
        self.now_ms = 0
        self.timers: list[tuple[int, int, TimerKey]] = []
        self.armed: dict[TimerKey, int] = {}
        """Key -> the number under which it lies in the heap; others of that key are replaced or cancelled."""
        self.numbers = count(1)
        self.firing: TimerKey | None = None
        self.fired = 0
        self.fed = 0
        self.answers: dict[str, Mapping[str, Any]] = {}
        self.topics = sequence.topics
        self.new_member_id = new_member_id or member_id_source(sequence.member_ids)
        self.machine = self.start()

    def start(self) -> CoordinatorMachine:
        machine = self.sequence.served.build(self.sequence.config, self.new_member_id, self.topics)
        self.machine = machine
        self.perform(machine.load(self.log.durable, self.now_ms))
        return machine

    def run(self) -> Transcript:
        for step in self.sequence.steps:
            self.feed(step)
        self.fire_timers(self.sequence.until_ms)
        return self.transcript

    def feed(self, step: Step) -> int:
        """Play one step, after all that is due before it; its number is what the answer will name."""
        self.fire_timers(step.at_ms)
        self.now_ms = step.at_ms
        self.fed += 1
        self.take(self.fed, step)
        return self.fed

    def fire_timers(self, until_ms: int) -> None:
        while self.timers and self.timers[0][0] <= until_ms:
            at_ms, number, key = heappop(self.timers)
            if self.armed.get(key) != number:
                continue
            self.fired += 1
            if self.fired > MAX_TIMERS:
                raise ContractError("until_ms", f"more than {MAX_TIMERS:,} timers fire by {at_ms} ms")
            del self.armed[key]
            self.now_ms, self.firing = at_ms, key
            if key[0] == "append":
                self.append_timed_out(int(key[1]))
            else:
                self.perform(self.machine.on_timer(key, at_ms))
            self.firing = None

    def append_timed_out(self, append_id: int) -> None:
        self.perform(self.machine.on_append(append_id, self.now_ms, Error.REQUEST_TIMED_OUT))

    def take(self, number: int, step: Step) -> None:
        body = resolve(step.body, self.answers, at(step.path, "body"), self.now_ms)
        self.transcript.facts.append(Fact(at_ms=self.now_ms, step=step, body=body))
        if step.request is not None:
            header = {"correlation_id": number, "client_id": step.client_id}
            request = request_from_json(step.request, step.version, body, at(step.path, "body"), header)
            self.transcript.unanswered[number] = step
            self.perform(self.machine.handle(request, self.now_ms))
        elif step.topics is not None:
            self.topics = step.topics
            self.perform(self.machine.update_topics(step.topics, self.now_ms))
        elif step.transaction is not None:
            if not isinstance(self.machine, Transactional):
                raise ContractError(at(step.path, "transaction"), "only classic groups have transactions here")
            self.perform(self.machine.complete_transaction(*step.transaction, self.now_ms))
        elif step.appends is not None:
            self.log.mode = step.appends
            if step.appends == "ok":
                self.release()
        else:
            self.fail_over(orderly=step.coordinator == "move")

    def release(self) -> None:
        """Make held records durable in order; those that have timed out become durable without an answer."""
        while self.log.held:
            append_id = next(iter(self.log.held))
            self.log.durable += self.log.held.pop(append_id).records
            if self.armed.pop(("append", str(append_id)), None) is not None:
                self.perform(self.machine.on_append(append_id, self.now_ms))

    def fail_over(self, *, orderly: bool) -> None:
        if orderly:
            self.perform(self.machine.unload(self.now_ms))
        self.log.held.clear()
        self.armed.clear()
        self.start()

    def perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply():
                    self.answer(effect)
                case SetTimer():
                    self.arm(effect.key, effect.delay_ms)
                case CancelTimer():
                    self.armed.pop(effect.key, None)
                case Append():
                    outcome = self.log.outcome(effect)
                    if outcome is None:
                        self.arm(("append", str(effect.append_id)), self.append_timeout_ms)
                    else:
                        self.perform(self.machine.on_append(effect.append_id, self.now_ms, outcome))
                case StateChanged():
                    self.transcript.facts.append(Fact(at_ms=self.now_ms, state=effect))

    def arm(self, key: TimerKey, delay_ms: int) -> None:
        # Kafka's timers tick in milliseconds: one that arms itself anew without delay must not stop the clock.
        delay_ms = max(delay_ms, 1 if key == self.firing else 0)
        self.armed[key] = number = next(self.numbers)
        heappush(self.timers, (self.now_ms + delay_ms, number, key))

    def answer(self, reply: Reply) -> None:
        step = self.transcript.unanswered.pop(reply.request.correlation_id)
        body = response_to_json(reply.response, step.version)
        self.answers[step.name] = body
        self.transcript.facts.append(Fact(at_ms=self.now_ms, step=step, body=body, answered=True))


def member_id_source(given: Sequence[str]) -> NewMemberId:
    ids = iter(given)
    numbers = count(1)

    def new_member_id(prefix: str) -> str:
        return next(ids, None) or f"{prefix}-{next(numbers)}"

    return new_member_id
