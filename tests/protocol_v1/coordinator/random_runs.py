"""Random groups in trouble: lost, repeated and late messages, timer races, a log that fails, coordinators that die.

A run is a list of small tuples, so that it can be shortened while it fails; what it sends is recorded as a sequence
file, so that whoever sees a failure can `rebalance-lab play` it. After the trouble every client behaves, and the group
must come to rest: one generation, every client with exactly the share that its leader gave it.

    python -m tests.protocol_v1.coordinator.random_runs --runs 200000 --seed 1
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

from rebalance_lab.harness.conversation.sequence_file import parse_step
from rebalance_lab.harness.hosts.served_protocols import PROTOCOLS
from rebalance_lab.protocol_v1.common.errors import Error, InvariantBroken
from tests.protocol_v1.coordinator.script import b64
from tests.protocol_v1.coordinator.watched import Watched
from tests.running import run_all
from tests.shrinking import shortened

Op = tuple[int, int, str, int]
"""How many ms later, which client, what it does, and a number that the action makes use of."""

SESSION_MS, REBALANCE_MS = 1_000, 2_000
PAUSES = (0, 0, 0, 1, 2, 10, 10, 60, 300, 999, 1_000, 2_000)
ACTIONS = {
    "act": 40, "repeat": 6, "late": 5, "heartbeat": 6, "stale": 4, "commit": 5, "leave": 4, "forget": 3, "deaf": 6,
    "other_list": 4, "remove": 1, "crash": 2, "move": 1, "hold": 1, "refuse": 1, "ok": 4, "delete": 1, "view": 2,
}  # fmt: skip
INSTANCES = (None, None, None, "pod-a", "pod-b", "pod-a")
"""Of each client; two of them claim one instance id."""
FATAL = (Error.FENCED_INSTANCE_ID, Error.GROUP_MAX_SIZE_REACHED, Error.INCONSISTENT_GROUP_PROTOCOL)
"""The last one comes to a well-behaved client, too: a fail-over leaves each member only the selected protocol."""
LISTS = (("range",), ("range", "sticky"), ("sticky", "range"))
GROUP = "g"


def random_ops(random: Random, length: int) -> list[Op]:
    actions, weights = list(ACTIONS), list(ACTIONS.values())
    return [
        (random.choice(PAUSES), random.randrange(len(INSTANCES)), action, random.randrange(1 << 16))
        for action in random.choices(actions, weights, k=length)
    ]


@dataclass
class Client:
    number: int
    instance: str | None
    member_id: str = ""
    generation: int = -1
    state: str = "joining"
    """joining, syncing, stable, or out for good."""
    members: list[str] = field(default_factory=list)
    names: tuple[str, ...] = LISTS[0]
    protocol: str = "range"
    share: str = ""
    waiting_for: int | None = None
    sent_ms: int = 0
    deaf: bool = False
    """The next answer is lost."""
    sent: list[dict[str, Any]] = field(default_factory=list)


class Run:
    def __init__(self, ops: list[Op], max_size: int) -> None:
        self.ops = ops
        config = {
            "group.initial.rebalance.delay.ms": 10,
            "group.min.session.timeout.ms": 100,
            "group.max.size": max_size,
        }
        self.topics = {"orders": 3}
        self.player = Watched(config, self.topics, SESSION_MS)
        self.config = config
        self.clients = [Client(i, instance) for i, instance in enumerate(INSTANCES)]
        self.steps: list[dict[str, Any]] = []
        self.owner: dict[int, Client] = {}
        self.now = 0

    def sequence(self) -> dict[str, Any]:
        return {
            "protocol": "classic",
            "config": self.config,
            "topics": self.topics,
            "steps": self.steps,
            "until_ms": self.now,
        }

    def execute(self) -> None:
        for pause, number, action, knob in self.ops:
            self.now += pause
            getattr(self, "do_" + action)(self.clients[number], knob)
            self.hear()
        self.settle()

    # Sending and hearing

    def feed(self, step: dict[str, Any]) -> int:
        step = {"at_ms": self.now, "as": f"s{len(self.steps) + 1}", **step}
        self.steps.append(step)
        return self.player.feed(parse_step(step, f"steps[{len(self.steps) - 1}]", PROTOCOLS["classic"]))

    def send(self, client: Client, request: str, body: dict[str, Any], *, awaited: bool = True) -> None:
        message = {"request": request, "body": {"group_id": GROUP, **body}}
        client.sent.append(message)
        number = self.feed(message)
        if awaited:
            self.owner[number] = client
            client.waiting_for, client.sent_ms = number, self.now

    def hear(self) -> None:
        """Deliver what was answered since the last time."""
        self.player.fire_timers(self.now)
        for number, client in list(self.owner.items()):
            if number in self.player.transcript.unanswered:
                continue
            del self.owner[number]
            if client.deaf:
                client.deaf = False
            elif client.waiting_for == number:
                client.waiting_for = None
                self.react(client, self.steps[number - 1]["request"], self.player.answers[f"s{number}"])

    def react(self, client: Client, request: str, body: dict[str, Any]) -> None:
        error = Error[body.get("error_code", "NONE")]
        if error is Error.UNKNOWN_MEMBER_ID:
            client.member_id, client.generation, client.state = "", -1, "joining"
        elif error in FATAL:
            client.state = "out"
        elif request == "JoinGroup":
            client.member_id = body["member_id"] or client.member_id
            if error is Error.NONE:
                client.generation, client.state = body["generation_id"], "syncing"
                client.protocol = body["protocol_name"]
                client.members = [member["member_id"] for member in body["members"]]
                if body["skip_assignment"]:
                    client.members = []
        elif error is not Error.NONE:
            client.state = "joining"
        elif request == "SyncGroup":
            client.state, client.share = "stable", body["assignment"]

    # What a client does

    def do_act(self, client: Client, knob: int) -> None:
        """What a well-behaved member would do now."""
        if client.waiting_for is not None and self.now - client.sent_ms < 3 * REBALANCE_MS:
            return
        if client.state == "joining":
            self.join(client)
        elif client.state == "syncing":
            self.send(client, "SyncGroup", self.identity(client) | self.plan(client))
        elif client.state == "stable":
            self.send(client, "Heartbeat", self.identity(client))

    def join(self, client: Client) -> None:
        body: dict[str, Any] = {
            "member_id": client.member_id,
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "protocol_type": "consumer",
            "protocols": [{"name": name, "metadata": b64(f"{client.generation}")} for name in client.names],
        }
        if client.instance is not None:
            body["group_instance_id"] = client.instance
        self.send(client, "JoinGroup", body)

    def identity(self, client: Client) -> dict[str, Any]:
        body: dict[str, Any] = {"member_id": client.member_id, "generation_id": client.generation}
        if client.instance is not None:
            body["group_instance_id"] = client.instance
        return body

    def plan(self, client: Client) -> dict[str, Any]:
        plan = [{"member_id": member, "assignment": b64(member)} for member in client.members]
        return {"protocol_type": "consumer", "protocol_name": client.protocol, "assignments": plan}

    def do_heartbeat(self, client: Client, knob: int) -> None:
        self.send(client, "Heartbeat", self.identity(client), awaited=False)

    def do_stale(self, client: Client, knob: int) -> None:
        body = self.identity(client) | {"generation_id": client.generation - 1 + knob % 3}
        kind = "SyncGroup" if knob & 8 else "Heartbeat"
        if kind == "SyncGroup":
            body |= self.plan(client)  # in the right generation a leader's word counts, and an empty one is taken, too
        self.send(client, kind, body, awaited=False)

    def do_commit(self, client: Client, knob: int) -> None:
        body = self.identity(client)
        body["generation_id_or_member_epoch"] = -1 if knob % 5 == 0 else body.pop("generation_id")
        body.pop("generation_id", None)
        partition = {"partition_index": knob % 4, "committed_offset": knob}
        body["topics"] = [{"name": "orders", "partitions": [partition]}]
        self.send(client, "OffsetCommit", body, awaited=False)

    def do_leave(self, client: Client, knob: int) -> None:
        entry = {"member_id": client.member_id, "group_instance_id": client.instance}
        self.send(client, "LeaveGroup", {"members": [entry]}, awaited=False)
        if knob % 2:
            self.do_forget(client, knob)

    def do_remove(self, client: Client, knob: int) -> None:
        """An administrator removes whoever holds the instance id."""
        entry = {"member_id": "", "group_instance_id": client.instance}
        self.send(client, "LeaveGroup", {"members": [entry]}, awaited=False)

    def do_forget(self, client: Client, knob: int) -> None:
        """The process dies and starts anew."""
        client.member_id, client.generation, client.state, client.waiting_for = "", -1, "joining", None

    def do_deaf(self, client: Client, knob: int) -> None:
        client.deaf = True
        client.waiting_for = None

    def do_repeat(self, client: Client, knob: int) -> None:
        if client.sent:
            self.feed(client.sent[-1])

    def do_late(self, client: Client, knob: int) -> None:
        if client.sent:
            self.feed(client.sent[knob % len(client.sent)])

    def do_other_list(self, client: Client, knob: int) -> None:
        client.names = LISTS[knob % len(LISTS)]
        client.state = "joining" if client.state != "out" else "out"
        client.waiting_for = None

    def do_view(self, client: Client, knob: int) -> None:
        self.feed({"request": "DescribeGroups", "body": {"groups": [GROUP]}})

    def do_delete(self, client: Client, knob: int) -> None:
        self.feed({"request": "DeleteGroups", "body": {"groups_names": [GROUP]}})

    def do_crash(self, client: Client, knob: int) -> None:
        self.feed({"coordinator": "crash"})
        for each in self.clients:  # connections drop
            each.waiting_for = None
        self.owner.clear()

    def do_move(self, client: Client, knob: int) -> None:
        self.feed({"coordinator": "move"})

    def do_hold(self, client: Client, knob: int) -> None:
        self.feed({"appends": "hold"})

    def do_refuse(self, client: Client, knob: int) -> None:
        self.feed({"appends": "MESSAGE_TOO_LARGE"})

    def do_ok(self, client: Client, knob: int) -> None:
        self.feed({"appends": "ok"})

    # After the trouble

    def settle(self, patience_ms: int = 60_000) -> None:
        self.do_ok(self.clients[0], 0)
        self.hear()
        for client in self.clients:
            client.deaf = False
        deadline = self.now + patience_ms
        while self.now < deadline:
            for client in self.clients:
                self.do_act(client, 0)
                self.hear()
            if self.at_rest():
                return
            self.now += 250
            self.hear()
        group = self.player.machine.groups.get(GROUP)
        raise InvariantBroken(f"no rest within {patience_ms} ms: {group and group.state}, {self.clients}")

    def at_rest(self) -> bool:
        """L4, L6, 15: everyone who is not out is in one generation, with the share that is meant for it."""
        live = [client for client in self.clients if client.state != "out"]
        if any(client.state != "stable" for client in live):
            return False
        group = self.player.machine.groups.get(GROUP)
        if not live:
            return True
        if group is None or group.state.value != "Stable" or set(group.members) != {c.member_id for c in live}:
            return False
        if any(client.generation != group.generation_id for client in live):
            return False
        shares = [client.share for client in live]
        if len(set(shares)) != len(shares) or "" in shares:
            raise InvariantBroken(f"invariant 15: shares {shares}")
        return True


def run_once(ops: list[Op], max_size: int) -> tuple[Run, Exception | None]:
    run = Run(ops, max_size)
    try:
        run.execute()
    except Exception as error:  # noqa: BLE001 - whatever a run raises is a finding
        return run, error
    return run, None


def seeded(seed: int) -> tuple[list[Op], int]:
    random = Random(seed)
    return random_ops(random, random.randrange(5, 45)), random.choice((3, 1_000, 1_000, 1_000))


def report(seed: int) -> str | None:
    """None if all is well, else the shortest failing sequence that was found."""
    ops, max_size = seeded(seed)
    if run_once(ops, max_size)[1] is None:
        return None
    ops = shortened(ops, lambda fewer: run_once(fewer, max_size)[1] is not None)
    run, error = run_once(ops, max_size)
    return f"seed {seed}: {error!r}\nfor `rebalance-lab play`:\n{json.dumps(run.sequence())}"


if __name__ == "__main__":
    run_all(report)
