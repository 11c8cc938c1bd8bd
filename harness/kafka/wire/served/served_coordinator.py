"""Run our coordinator of both protocols with a real clock: requests go in, answers come when the machine gives them.

Given      the settings of a broker, and topics
Returns    a future for each request; one that the machine parks is answered later, or when its client has long gone
Durable    at once, and only in the machine's own memory, which kept_bytes.py bounds
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from rebalance_lab.assignors.model import Topic
from rebalance_lab.harness.hosts.dual_coordinator import make_dual_coordinator
from rebalance_lab.harness.kafka.wire.served.kept_bytes import KeptBytes, refusal
from rebalance_lab.protocol_v1.common.effects import (
    Append,
    CancelTimer,
    Effect,
    Reply,
    SetTimer,
    StateChanged,
    TimerKey,
)
from rebalance_lab.protocol_v1.common.messages import Request, Response

STATES_KEPT = 10_000


class ServedCoordinator:
    def __init__(self, config: Mapping[str, Any], topics: Mapping[str, Topic]) -> None:
        self.loop = asyncio.get_running_loop()
        self.began = self.loop.time()
        self.timers: dict[TimerKey, asyncio.TimerHandle] = {}
        self.waiting: dict[int, tuple[Request, asyncio.Future[Response]]] = {}
        """By identity: the machine answers with the very request that it was given."""
        self.states: deque[tuple[str, str]] = deque(maxlen=STATES_KEPT)
        """The latest: of which group, and what it became."""
        self.machine = make_dual_coordinator(config, lambda prefix: f"{prefix}-{uuid.uuid4()}", topics)
        self.kept = KeptBytes(self.has_group)
        self.perform(self.machine.load([], 0))

    @property
    def now_ms(self) -> int:
        return int((self.loop.time() - self.began) * 1000)

    def has_group(self, group_id: str) -> bool:
        shard = self.machine.shard
        return group_id in shard.groups or shard.classic.phase(group_id) is not None or bool(shard.offsets.of(group_id))

    def handle(self, request: Request, size: int = 0) -> asyncio.Future[Response]:
        """`size`: the bytes of the frame that the request was read from."""
        answer: asyncio.Future[Response] = self.loop.create_future()
        if not self.kept.fits(request, size):
            answer.set_result(refusal(request))
            return answer
        self.waiting[id(request)] = (request, answer)
        self.perform(self.machine.handle(request, self.now_ms))
        return answer

    def update_topics(self, topics: Mapping[str, Topic]) -> None:
        self.perform(self.machine.update_topics(topics, self.now_ms))

    def perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply():
                    _, answer = self.waiting.pop(id(effect.request))
                    self.kept.settle(effect.request, effect.response)
                    if not answer.done():
                        answer.set_result(effect.response)
                case SetTimer():
                    self.cancel(effect.key)
                    self.timers[effect.key] = self.loop.call_later(effect.delay_ms / 1000, self.fire, effect.key)
                case CancelTimer():
                    self.cancel(effect.key)
                case Append():
                    self.perform(self.machine.on_append(effect.append_id, self.now_ms))
                case StateChanged():
                    self.states.append((effect.group_id, effect.state))
                    self.kept.on_state(effect.group_id, effect.state)

    def cancel(self, key: TimerKey) -> None:
        if (timer := self.timers.pop(key, None)) is not None:
            timer.cancel()

    def fire(self, key: TimerKey) -> None:
        del self.timers[key]
        self.perform(self.machine.on_timer(key, self.now_ms))

    def close(self) -> None:
        for timer in self.timers.values():
            timer.cancel()
