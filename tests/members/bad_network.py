"""A conversation over a bad network: what each client sends and hears may be lost, repeated and late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from rebalance_lab.protocol_v1.common.member_effects import CallbackDone, Poll, Told
from rebalance_lab.protocol_v1.common.messages import Request, Response

REPOLL_MS = 200


@dataclass
class Trouble:
    """What the next messages of a client meet."""

    lose_out: int = 0
    lose_in: int = 0
    repeat_out: int = 0
    repeat_in: int = 0
    delays_ms: tuple[int, ...] = ()
    callback_errors: int = 0

    def spend(self, what: str) -> bool:
        left: int = getattr(self, what)
        setattr(self, what, max(0, left - 1))
        return left > 0

    def delay_ms(self) -> int:
        if not self.delays_ms:
            return 0
        delay_ms, *rest = self.delays_ms
        self.delays_ms = tuple(rest)
        return delay_ms


class BadNetwork:
    """Goes before a conversation in the bases of a class."""

    trouble: dict[str, Trouble]

    def of(self, client: Any) -> Trouble:
        return self.trouble.setdefault(client.name, Trouble())

    def arrive(self, client: Any, connection: int, request: Request) -> None:
        self.meet(client, "out", 5, partial(super().arrive, client, connection, request))

    def hear(self, client: Any, connection: int | None, request: Request, response: Response) -> None:
        self.meet(client, "in", 3, partial(super().hear, client, connection, request, response))

    def meet(self, client: Any, way: str, again_ms: int, message: Callable[[], None]) -> None:
        trouble = self.of(client)
        if trouble.spend(f"lose_{way}"):
            return
        if trouble.spend(f"repeat_{way}"):
            self.after(again_ms, message)
        delay_ms = trouble.delay_ms()
        if delay_ms:
            self.after(delay_ms, message)
        else:
            message()

    def tell(self, client: Any, event: Told) -> None:
        if isinstance(event, CallbackDone) and self.of(client).spend("callback_errors"):
            event = CallbackDone("the application's fault")
        super().tell(client, event)

    def poll_later(self, client: Any) -> None:
        self.after(REPOLL_MS, partial(self.poll_again, client))

    def poll_again(self, client: Any) -> None:
        memory = client.member.memory
        if client.alive and memory.then is None and memory.closing is None:
            self.tell(client, Poll(self.positions(client)))
