"""A random sequence in the making: our coordinator plays along, so that steps can refer to answers and keep clear of
timers.

A step that comes within SAFE_MS of a timer would be a race on a real broker; say() moves it behind the timer instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from rebalance_lab.harness.conversation.sequence_file import parse_sequence, parse_step
from rebalance_lab.harness.conversation.sequence_player import Player
from rebalance_lab.harness.hosts.served_protocols import PROTOCOLS
from rebalance_lab.harness.kafka.wire.recordings.replay import MARGIN_MS, matters
from tests.harness.kafka.wire.variation import vary

SAFE_MS = MARGIN_MS + 90
SPACING_MS = 45
TAIL_MS = 400
VARIED = 0.02
"""How likely an optional field of a request is another than the conversation makes it."""


class Script:
    def __init__(self, protocol: str, config: Mapping[str, Any], topics: Mapping[str, int], random: Random) -> None:
        served = PROTOCOLS[protocol]
        known = {name: value for name, value in config.items() if name in served.properties}
        self.sequence: dict[str, Any] = {"protocol": protocol, "config": known, "topics": dict(topics), "steps": []}
        self.player = Player(parse_sequence(self.sequence, PROTOCOLS))
        self.served, self.random = served, random
        self.now_ms = 0

    @property
    def steps(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.sequence["steps"]
        return found

    def say(self, request: str, body: Mapping[str, Any], version: int | None = None) -> str:
        """The step's name."""
        self.pause(SPACING_MS)
        kind = self.served.requests[request]
        name = f"s{len(self.steps) + 1}"
        version = self.random.choice(kind.versions) if version is None else version
        step = {
            "at_ms": self.now_ms,
            "as": name,
            "request": request,
            "version": version,
            "body": vary(kind, version, body, self.random, VARIED),
        }
        self.player.feed(parse_step(step, f"steps[{len(self.steps)}]", self.served))
        self.steps.append(step)
        return name

    def answer(self, name: str | None) -> Mapping[str, Any] | None:
        return self.player.answers.get(name or "")

    def pause(self, by_ms: int) -> None:
        """Go on to a moment that is clear of timers."""
        at_ms = self.now_ms + by_ms
        for _ in range(50):
            fired = self.fire_until(at_ms)
            due = [
                when
                for when, number, key in self.player.timers
                if self.player.armed.get(key) == number and matters(key)
            ]
            near = [when for when in (*due, *fired) if abs(when - at_ms) < SAFE_MS]
            if not near:
                break
            at_ms = max(near) + SAFE_MS
        self.now_ms = at_ms

    def fire_until(self, at_ms: int) -> list[int]:
        """When the timers fired."""
        before = self.player.fired
        self.player.fire_timers(at_ms)
        return [self.player.now_ms] if self.player.fired > before else []

    def finished(self) -> dict[str, Any]:
        """Ends when what is parked has been answered, for answers name the members that others see."""
        for _ in range(20):
            if not self.player.transcript.unanswered:
                break
            self.pause(500)
        return {**self.sequence, "until_ms": self.now_ms + TAIL_MS}
