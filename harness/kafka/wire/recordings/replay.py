"""Play a recording to our coordinator: the same requests at the very moments at which the broker had them.

Given      the sequence and what the broker answered
Returns    our transcript, the member ids as the broker handed them out, and from when on it is too close to call
Margin     where a timer is due within MARGIN_MS of the time in which the broker handled a step, the broker may have
           seen the two the other way round. The margin is wider where the computer was busy. Answers from then on prove
           nothing, and are not compared
Start at   replay
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from rebalance_lab.harness.conversation.sequence_file import SequenceFile, Step
from rebalance_lab.harness.conversation.sequence_player import Player, Transcript
from rebalance_lab.harness.kafka.wire.recordings.recording import Recording
from rebalance_lab.protocol_v1.common.effects import Effect, TimerKey

MARGIN_MS = 60
RACE_MS = 30
"""Two timers of different kinds that are closer than this may fire the other way round."""
NEVER_MS = -(10**9)
UNTIMED = ("expiry", "consumer-expiry")
"""Housekeeping that changes no answer within the seconds that a sequence takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    transcript: Transcript
    member_ids: list[str]
    sure_until_ms: int
    """Everything that was answered before this counts."""


def replay(sequence: SequenceFile, recording: Recording) -> Replay:
    steps = as_sent(sequence, recording)
    player = IdPlayer(replace(sequence, steps=steps, until_ms=recording.ended_ms), recording)
    transcript = player.run()
    return Replay(transcript=transcript, member_ids=player.handed_out, sure_until_ms=player.sure_until_ms)


def as_sent(sequence: SequenceFile, recording: Recording) -> list[Step]:
    """Leave out the steps that could not be sent, because what they refer to was not answered."""
    sent, bodies = recording.sent_ms, recording.bodies
    return [
        replace(step, at_ms=sent[step.name], body=escaped(bodies[step.name]))
        for step in sequence.steps
        if step.name in sent
    ]


def escaped(body: Any) -> Any:
    """Escape what was sent: a dollar in it is a dollar, and not a reference any more."""
    if isinstance(body, dict):
        return {key: escaped(item) for key, item in body.items()}
    if isinstance(body, list):
        return [escaped(item) for item in body]
    return f"${body}" if isinstance(body, str) and body.startswith("$") else body


class IdPlayer(Player):
    """Give out the ids that the broker handed out for the same steps, and watch the margins."""

    def __init__(self, sequence: SequenceFile, recording: Recording) -> None:
        self.recording = recording
        self.handed_out: list[str] = []
        self.spare = count(1)
        self.untold = untold_ids(recording)
        self.step: Step | None = None
        self.sure_until_ms = sequence.until_ms + 1
        self.last_fired_ms, self.last_fired_kind = NEVER_MS, ""
        super().__init__(sequence, self.next_id)

    def next_id(self, prefix: str) -> str:
        _, answer = self.recording.answers.get(self.step.name if self.step else "", (0, {}))
        found = answer.get("member_id") or next(
            (each for each in self.untold if each.startswith(f"{prefix}-")), f"{prefix}-unseen-{next(self.spare)}"
        )
        self.untold = [each for each in self.untold if each != found]
        self.handed_out.append(found)
        return str(found)

    def take(self, number: int, step: Step) -> None:
        self.step = step
        due = [at_ms for at_ms, timer, key in self.timers if self.armed.get(key) == timer and matters(key)]
        super().take(number, step)
        is_parked = number in self.transcript.unanswered
        handled_ms, _ = self.recording.answers.get(step.name, (step.at_ms, {}))
        latest_ms = step.at_ms if is_parked else handled_ms
        margin_ms = MARGIN_MS + self.recording.stall_near(step.at_ms - MARGIN_MS, latest_ms + MARGIN_MS)
        if any(step.at_ms - margin_ms < at_ms < latest_ms + margin_ms for at_ms in (*due, self.last_fired_ms)):
            self.sure_until_ms = min(self.sure_until_ms, step.at_ms)

    def perform(self, effects: Sequence[Effect]) -> None:
        if self.firing is not None and matters(self.firing):
            kind, now_ms = self.firing[0], self.now_ms
            if kind != self.last_fired_kind and now_ms - self.last_fired_ms < RACE_MS:
                self.sure_until_ms = min(self.sure_until_ms, self.last_fired_ms)
            self.last_fired_kind, self.last_fired_ms = kind, now_ms
        super().perform(effects)


def untold_ids(recording: Recording) -> list[str]:
    """Return ids, seen by other members, of members whose own JoinGroup was never answered with them."""
    told = {body.get("member_id") for _, body in recording.answers.values()}
    seen: dict[str, None] = {}

    def look(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("member_id"), str):
                seen[value["member_id"]] = None
            for item in value.values():
                look(item)
        elif isinstance(value, list):
            for item in value:
                look(item)

    for _, body in recording.answers.values():
        look(body)
    return [each for each in seen if each not in told]


def matters(key: TimerKey) -> bool:
    return key[0] not in UNTIMED


def answers_of(transcript: Transcript) -> dict[str, tuple[int, dict[str, Any]]]:
    """Return the time and the answer by the step's name."""
    return {
        fact.step.name: (fact.at_ms, dict(fact.body or {}))
        for fact in transcript.facts
        if fact.answered and fact.step is not None
    }
