"""Random groups of real members in trouble: messages lost, repeated and late, processes that die, coordinators too.

A run is a list of small tuples, so that it can be shortened while it fails. After the trouble everybody who is still
alive behaves, and the group must come to rest: one generation, every partition with exactly one owner.

    python -m tests.protocol_v1.member.random_runs --runs 20000 --seed 1
"""

from __future__ import annotations

from random import Random
from typing import Any

from rebalance_lab.harness.conversation.conversations import Client
from rebalance_lab.protocol_v1.common.errors import InvariantBroken
from rebalance_lab.protocol_v1.common.member_effects import EnforceRebalance, Subscribe
from tests.members.troubles import INSTANCES, Op, Troubles, random_ops
from tests.protocol_v1.member.watched import Watched
from tests.running import run_all
from tests.shrinking import shortened

ACTIONS = {
    "start": 30, "lose_out": 5, "lose_in": 6, "repeat": 4, "delay": 6, "cut": 5, "crash": 4, "close": 4, "busy": 5,
    "poll": 10, "slow": 4, "fail_over": 2, "enforce": 3, "grow": 2, "subscribe": 3, "callback_error": 2, "commit": 3,
    "unsubscribe": 1, "wait": 6,
}  # fmt: skip
LISTS = (
    ("range",),
    ("sticky",),
    ("roundrobin", "range"),
    ("cooperative-sticky",),
    ("cooperative-sticky",),
    ("cooperative-sticky", "range"),
    ("load-aware",),
)
SETTINGS: dict[str, Any] = {
    "session_timeout_ms": 2_000,
    "heartbeat_interval_ms": 400,
    "max_poll_interval_ms": 4_000,
    "request_timeout_ms": 1_500,
    "default_api_timeout_ms": 2_000,
    "auto_commit_interval_ms": 700,
}
PATIENCE_MS = 60_000


class Run(Troubles):
    def __init__(self, ops: list[Op], kind: int) -> None:
        self.ops = ops
        auto_commit = {"enable_auto_commit": kind % 3 != 2}
        self.assignors = LISTS[kind % len(LISTS)]
        self.group = Watched({"a": 3, "b": 2}, self.assignors, **SETTINGS, **auto_commit)

    def start(self, name: str, number: int, knob: int) -> None:
        client = self.group.clients.get(name)
        if client is None or not client.alive:
            self.group.trouble.pop(name, None)
            self.group.join(name, group_instance_id=INSTANCES[number])

    # Trouble

    def do_repeat(self, client: Client, knob: int) -> None:
        trouble = self.group.of(client)
        trouble.repeat_out, trouble.repeat_in = knob % 3, knob // 3 % 3

    def do_enforce(self, client: Client, knob: int) -> None:
        self.group.tell(client, EnforceRebalance())

    def do_grow(self, client: Client, knob: int) -> None:
        name = "ab"[knob % 2]
        self.group.grow({name: self.group.topics[name].partitions + 1})

    # After the trouble

    def settle(self) -> None:
        group = self.group
        group.trouble.clear()
        for client in group.live:
            client.callback_ms = 0
        group.until(group.now_ms + 6_000, lambda: all(map(self.free, group.live)))
        for client in group.live:
            # Kafka's sticky, where subscriptions differ, may give a partition back to an owner that has unsubscribed.
            # The member then rejoins with the same user data, is given it again, and so on for ever: Kafka's own fault.
            endless = self.assignors == ("sticky",)
            if (endless or not client.member.memory.subscribed.active) and self.free(client):
                group.tell(client, Subscribe(frozenset("ab")))
            group.poll_again(client)
        self.rest()
        # A static leader that was away has not seen what changed meanwhile; the next change it sees (L8).
        group.grow({name: topic.partitions + 1 for name, topic in group.topics.items()})
        group.run(10)
        self.rest()
        group.check_everything_owned()

    def rest(self) -> None:
        try:
            self.group.settle(PATIENCE_MS)
        except TimeoutError as error:
            states = [(c.name, c.member.state, c.member.generation, c.raised) for c in self.group.live]
            raise InvariantBroken(f"L4, L6: {error}\n{self.group.group and self.group.group.state}\n{states}") from None


def run_once(ops: list[Op], kind: int) -> tuple[Run, Exception | None]:
    run = Run(ops, kind)
    try:
        run.execute()
    except Exception as error:  # noqa: BLE001 - whatever a run raises is a finding
        return run, error
    return run, None


def seeded(seed: int) -> tuple[list[Op], int]:
    random = Random(seed)
    return random_ops(random, random.randrange(5, 40), ACTIONS), random.randrange(len(LISTS) * 3)


def report(seed: int) -> str | None:
    """None if all is well, else the shortest failing run that was found, with everybody's story."""
    ops, kind = seeded(seed)
    if run_once(ops, kind)[1] is None:
        return None
    ops = shortened(ops, lambda fewer: run_once(fewer, kind)[1] is not None)
    run, error = run_once(ops, kind)
    stories = [f"{name}: {'; '.join(client.story)}" for name, client in run.group.clients.items()]
    return "\n".join([f"seed {seed}: {error!r}", f"run_once({ops}, {kind})", *stories, str(run.group.states)])


if __name__ == "__main__":
    run_all(report)
