"""What happens to the members of a random run, whichever protocol they speak.

A run is a list of small tuples, so that it can be shortened while it fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from rebalance_lab.protocol_v1.common.member_effects import CloseOption, Commit, Subscribe, Unsubscribe

Op = tuple[int, int, str, int]
"""How many ms later, which client, what happens to it, and a number that the action makes use of."""

PAUSES = (0, 1, 2, 3, 5, 20, 60, 200, 500, 1_000, 3_000)
INSTANCES = (None, None, None, "pod-a", "pod-b", "pod-a")
"""Of each client; two of them claim one instance id."""


def random_ops(random: Random, length: int, actions: Mapping[str, int]) -> list[Op]:
    """`actions`: how often each happens."""
    chosen = random.choices(list(actions), list(actions.values()), k=length)
    return [
        (random.choice(PAUSES), random.randrange(len(INSTANCES)), action, random.randrange(1 << 16))
        for action in chosen
    ]


class Troubles:
    """Of a group under watch. A run adds `start`, `settle`, and the troubles of its own protocol."""

    ops: list[Op]
    group: Any

    def execute(self) -> None:
        for pause, number, action, knob in self.ops:
            self.group.run(pause)
            name = f"c{number}"
            client = self.group.clients.get(name)
            if action == "start":
                self.start(name, number, knob)
            elif client is not None and client.alive:
                getattr(self, "do_" + action)(client, knob)
        self.settle()

    def do_lose_out(self, client: Any, knob: int) -> None:
        self.group.of(client).lose_out = 1 + knob % 3

    def do_lose_in(self, client: Any, knob: int) -> None:
        self.group.of(client).lose_in = 1 + knob % 3

    def do_delay(self, client: Any, knob: int) -> None:
        self.group.of(client).delays_ms = ((50, 400, 1_200)[knob % 3],) + (0,) * (knob // 3 % 3) + (100,)

    def do_cut(self, client: Any, knob: int) -> None:
        self.group.cut(client)

    def do_crash(self, client: Any, knob: int) -> None:
        self.group.crash(client.name)

    def do_close(self, client: Any, knob: int) -> None:
        if self.free(client):
            self.group.close(client.name, list(CloseOption)[knob % 3])

    def do_busy(self, client: Any, knob: int) -> None:
        if self.free(client):
            self.group.busy(client.name)

    def do_poll(self, client: Any, knob: int) -> None:
        self.group.poll_again(client)

    def do_slow(self, client: Any, knob: int) -> None:
        client.callback_ms = (10, 500, 5_000, 0)[knob % 4]

    def do_fail_over(self, client: Any, knob: int) -> None:
        if self.group.coordinator is not None:
            self.group.fail_over(down_ms=(0, 100, 3_000)[knob % 3])

    def do_subscribe(self, client: Any, knob: int) -> None:
        if self.free(client):
            pattern = "[ab]" if knob % 4 == 3 else None
            topics = frozenset(("a", "ab", "b")[knob % 4]) if pattern is None else frozenset()
            self.group.tell(client, Subscribe(topics, pattern))

    def do_unsubscribe(self, client: Any, knob: int) -> None:
        if self.free(client):
            # Java's consumer stays in its group with nothing if this callback raises, and asks for no more. A test of
            # leaving has that case. Here every partition is to be read in the end.
            self.group.of(client).callback_errors = 0
            self.group.tell(client, Unsubscribe())

    def do_callback_error(self, client: Any, knob: int) -> None:
        self.group.of(client).callback_errors = 1

    def do_commit(self, client: Any, knob: int) -> None:
        if client.member.memory.sync_commit is None:
            self.group.tell(client, Commit(self.group.positions(client), sync=bool(knob % 2)))

    def do_wait(self, client: Any, knob: int) -> None:
        self.group.run(knob % 6_000)

    def free(self, client: Any) -> bool:
        """The application's thread is not inside a callback or a blocking call."""
        memory = client.member.memory
        return memory.then is None and memory.closing is None and memory.sync_commit is None
