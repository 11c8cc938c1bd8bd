"""Random conversations of classic members, well-behaved and not, with a coordinator, as sequence files."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.harness.kafka.wire.talk import GROUP, METADATA, STRANGER, Talk

LISTS = (("range",), ("range", "sticky"), ("sticky", "range"))
SESSIONS_MS = (700, 12_000, 12_000, 12_000)
REBALANCES_MS = (900, 1_500)


@dataclass
class Client:
    instance: str | None
    joined: str | None = None
    """The step of its last JoinGroup."""
    synced: str | None = None
    member: str = ""
    """Its id, as a reference; empty before it has one."""
    names: tuple[str, ...] = LISTS[0]
    last: tuple[str, dict[str, Any], int] | None = None


class ClassicTalk(Talk):
    PROTOCOL = "classic"
    ACTIONS: ClassVar[Mapping[str, int]] = {
        "act": 60, "heartbeat": 6, "stale": 6, "commit": 7, "fetch": 5, "leave": 4, "forget": 4, "other_list": 4,
        "remove": 2, "view": 6, "delete": 1, "stranger": 4, "wait": 4, "repeat": 4, "odd_join": 2,
    }  # fmt: skip
    WAITS_MS = (300, 1_000, 1_600)

    def __init__(self, seed: int, config: Mapping[str, Any], topics: Mapping[str, int]) -> None:
        super().__init__(seed, config, topics)
        self.clients = [Client(instance) for instance in self.some_instances()]
        self.session_ms, self.rebalance_ms = self.random.choice(SESSIONS_MS), self.random.choice(REBALANCES_MS)

    def send(self, client: Client, request: str, body: dict[str, Any], version: int | None = None) -> str:
        name = self.script.say(request, body, version)
        client.last = (request, body, self.script.steps[-1]["version"])
        return name

    def state(self, client: Client) -> str:
        """joining, waiting, syncing or stable, by what it has heard."""
        if client.joined is None:
            return "joining"
        answer = self.script.answer(client.joined)
        if answer is None:
            return "waiting"
        if answer["error_code"] == "MEMBER_ID_REQUIRED" or answer["error_code"] != "NONE":
            return "joining"
        if client.synced is None:
            return "syncing"
        synced = self.script.answer(client.synced)
        if synced is None:
            return "waiting"
        return "stable" if synced["error_code"] == "NONE" else "joining"

    # What a member does

    def do_act(self, client: Client) -> None:
        """What a well-behaved member would do now."""
        match self.state(client):
            case "joining":
                self.join(client)
            case "syncing":
                self.sync(client)
            case "stable":
                self.do_heartbeat(client)
            case _:
                pass

    def join(self, client: Client) -> None:
        answer = self.script.answer(client.joined)
        if answer is not None and answer["error_code"] in ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"):
            client.member = ""
        elif answer is not None and answer["member_id"]:
            client.member = f"${client.joined}.member_id"
        client.joined, client.synced = self.send(client, "JoinGroup", self.join_body(client), self.join_version()), None
        heard = self.script.answer(client.joined)
        if heard is not None and heard["member_id"]:
            client.member = f"${client.joined}.member_id"

    def join_version(self) -> int:
        """In version 0 the session timeout is the rebalance timeout, and a parked join would outlast the sequence."""
        oldest = 0 if self.session_ms < 2_000 else 1
        return self.random.choice((*range(oldest, 10), *[9] * 15))

    def join_body(self, client: Client) -> dict[str, Any]:
        return {
            "group_id": GROUP,
            "member_id": client.member,
            "group_instance_id": client.instance,
            "session_timeout_ms": self.session_ms,
            "rebalance_timeout_ms": self.rebalance_ms,
            "protocol_type": "consumer",
            "protocols": [{"name": name, "metadata": METADATA} for name in client.names],
        }

    def sync(self, client: Client) -> None:
        answer = self.script.answer(client.joined)
        assert answer is not None
        client.member = f"${client.joined}.member_id"
        body = {**self.identity(client), "assignments": self.plan(client, answer)}
        body |= {"protocol_type": "consumer", "protocol_name": f"${client.joined}.protocol_name"}
        client.synced = self.send(client, "SyncGroup", body, self.random.choice((None, 5, 5)))

    def plan(self, client: Client, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [
            {
                "member_id": f"${client.joined}.members[{i}].member_id",
                "assignment": base64.b64encode(f"share {i}".encode()).decode(),
            }
            for i in range(len(answer["members"]))
        ]

    def identity(self, client: Client, shift: int = 0) -> dict[str, Any]:
        answer = self.script.answer(client.joined)
        generation: Any = f"${client.joined}.generation_id" if answer is not None else -1
        if shift and answer is not None:
            generation = answer["generation_id"] + shift
        return {
            "group_id": GROUP,
            "member_id": client.member,
            "generation_id": generation,
            "group_instance_id": client.instance,
        }

    def do_heartbeat(self, client: Client) -> None:
        self.send(client, "Heartbeat", self.identity(client))

    def do_stale(self, client: Client) -> None:
        request = self.random.choice(("Heartbeat", "SyncGroup"))
        self.send(client, request, self.identity(client, self.random.choice((-1, 1, 5))))

    def do_commit(self, client: Client) -> None:
        version = self.random.choice(range(2, 11))
        body = self.identity(client, self.random.choice((0, 0, 0, 1)))
        body["generation_id_or_member_epoch"] = body.pop("generation_id")
        if self.random.random() < 0.2:
            body |= {"generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}
        partition = {
            "partition_index": self.random.choice((0, 1, 2, 99)),
            "committed_offset": self.random.randrange(1_000),
            "committed_metadata": self.random.choice((None, "", "here")),
        }
        topics = self.about_a_topic(version, partitions=[partition])
        self.send(client, "OffsetCommit", {**body, "topics": topics}, version)

    def do_fetch(self, client: Client) -> None:
        version = self.random.choice(range(1, 11))
        asked: dict[str, Any] = {"group_id": GROUP, "topics": self.about_a_topic(version, partition_indexes=[0, 1, 99])}
        if version >= 2 and self.random.random() < 0.4:
            asked["topics"] = None
        body = asked if version < 8 else {"groups": [asked]}
        self.send(client, "OffsetFetch", body, version)

    def do_leave(self, client: Client) -> None:
        version = self.random.choice(range(6))
        body: dict[str, Any] = {"group_id": GROUP}
        if version < 3:
            body["member_id"] = client.member
        else:
            entries = [{"member_id": client.member, "group_instance_id": client.instance}]
            if self.random.random() < 0.3:
                entries.append({"member_id": STRANGER, "group_instance_id": None})
            body["members"] = entries
        self.send(client, "LeaveGroup", body, version)
        if self.random.random() < 0.7:
            self.do_forget(client)

    def do_remove(self, client: Client) -> None:
        """An administrator removes whoever holds the instance id."""
        entry = {"member_id": "", "group_instance_id": self.random.choice(("pod-a", "pod-b", "pod-z"))}
        self.send(client, "LeaveGroup", {"group_id": GROUP, "members": [entry]}, self.random.choice((3, 4, 5)))

    def do_forget(self, client: Client) -> None:
        """The process dies and starts anew."""
        client.joined = client.synced = None
        client.member = ""

    def do_other_list(self, client: Client) -> None:
        client.names = self.random.choice(LISTS)
        if self.state(client) in ("stable", "syncing"):
            self.join(client)

    def do_odd_join(self, client: Client) -> None:
        odd = self.random.choice(
            (
                {"session_timeout_ms": 5},
                {"protocol_type": "connect"},
                {"protocols": [{"name": "roundrobin", "metadata": METADATA}]},
                {"protocols": []},
                {"group_id": ""},
                {"member_id": STRANGER},
            )
        )
        self.send(client, "JoinGroup", {**self.join_body(client), **odd}, self.join_version())

    def do_stranger(self, client: Client) -> None:
        request = self.random.choice(("Heartbeat", "SyncGroup"))
        body = {**self.identity(client), "member_id": STRANGER}
        if self.random.random() < 0.3:
            body["group_id"] = self.random.choice(("", "another"))
        self.send(client, request, body)

    def do_repeat(self, client: Client) -> None:
        if client.last is not None:
            request, body, version = client.last
            self.script.say(request, body, version)

    def do_view(self, client: Client) -> None:
        groups = [GROUP] if self.random.random() < 0.8 else [GROUP, "another", ""]
        self.script.say("DescribeGroups", {"groups": groups})
