"""Random conversations of KIP-848 members, well-behaved and not, with a coordinator, as sequence files.

Classic members come to the same group now and then: then the coordinator converts it, or serves both at once. Regular
expressions are resolved in the broker's own time, so that the next step keeps clear of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tests.harness.kafka.wire.talk import GROUP, METADATA, STRANGER, Talk

SUBSCRIPTIONS: tuple[dict[str, Any], ...] = (
    {"subscribed_topic_names": ["orders"]},
    {"subscribed_topic_names": ["orders"]},
    {"subscribed_topic_names": ["clicks", "orders"]},
    {"subscribed_topic_names": ["clicks"]},
    {"subscribed_topic_names": ["orders", "nowhere"]},
    {"subscribed_topic_names": [], "subscribed_topic_regex": "o.*"},
    {"subscribed_topic_names": [], "subscribed_topic_regex": "orders|clicks"},
    {"subscribed_topic_names": ["clicks"], "subscribed_topic_regex": "orders|nowhere"},
    {"subscribed_topic_names": ["orders"], "subscribed_topic_regex": ""},
)
REBALANCES_MS = (900, 6_000)


@dataclass
class Client:
    member: str
    """Its id: made by the client from version 1 on, or a reference to what the coordinator made."""
    instance: str | None
    assignor: str | None
    last: str | None = None
    """Its last heartbeat that was answered without an error."""
    given: list[dict[str, Any]] | None = None
    """The newest assignment, as heard."""
    subscription: dict[str, Any] = field(default_factory=dict)


class ConsumerTalk(Talk):
    PROTOCOL = "consumer"
    ACTIONS: ClassVar[Mapping[str, int]] = {
        "beat": 60, "acknowledge": 12, "wrong_epoch": 6, "commit": 7, "fetch": 5, "leave": 5, "forget": 3,
        "subscribe": 6, "view": 7, "old_view": 1, "delete": 1, "stranger": 4, "wait": 5, "odd": 4, "claim": 2,
        "classic": 3,
    }  # fmt: skip
    WAITS_MS = (300, 800, 1_700)

    def __init__(self, seed: int, config: Mapping[str, Any], topics: Mapping[str, int]) -> None:
        super().__init__(seed, config, topics)
        self.rebalance_ms = self.random.choice(REBALANCES_MS)
        self.made = 0
        self.clients = [self.new_client(instance) for instance in self.some_instances()]

    def new_client(self, instance: str | None) -> Client:
        self.made += 1
        subscription = self.random.choice(SUBSCRIPTIONS)
        assignor = self.random.choice((None, None, "uniform", "range"))
        return Client(f"member-{self.made:04}", instance, assignor, subscription=dict(subscription))

    def heartbeat(self, client: Client, body: Mapping[str, Any], version: int | None = 1) -> None:
        full = {"group_id": GROUP, "member_id": client.member, "instance_id": client.instance, **body}
        name = self.script.say("ConsumerGroupHeartbeat", full, version)
        answer = self.script.answer(name)
        if answer is None or answer["error_code"] != "NONE":
            if answer is not None and answer["error_code"] in ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"):
                self.restart(client)
            return
        client.last = name if answer["member_epoch"] > 0 else None
        if answer["assignment"] is not None:
            client.given = answer["assignment"]["topic_partitions"]

    def joining(self, client: Client) -> dict[str, Any]:
        return {
            "member_epoch": 0,
            "rebalance_timeout_ms": self.rebalance_ms,
            "server_assignor": client.assignor,
            "topic_partitions": [],
            **client.subscription,
        }

    def epoch(self, client: Client) -> Any:
        return f"${client.last}.member_epoch"

    def restart(self, client: Client) -> None:
        client.last, client.given = None, None

    # What a member does

    def do_beat(self, client: Client) -> None:
        """What a well-behaved member would say: everything on joining, else that it is there."""
        if client.last is None:
            oldest = 1 if "subscribed_topic_regex" in client.subscription else 0
            self.heartbeat(client, self.joining(client), self.random.choice((oldest, 1, 1)))
        else:
            self.heartbeat(client, {"member_epoch": self.epoch(client)}, self.random.choice((0, 1)))

    def do_acknowledge(self, client: Client) -> None:
        if client.last is not None and client.given is not None:
            self.heartbeat(client, {"member_epoch": self.epoch(client), "topic_partitions": client.given})

    def do_claim(self, client: Client) -> None:
        """It says that it owns what nobody gave it."""
        if client.last is not None:
            owned = [{"topic_name": self.topic(), "partitions": [0, 1]}]
            self.heartbeat(client, {"member_epoch": self.epoch(client), "topic_partitions": owned})

    def do_subscribe(self, client: Client) -> None:
        client.subscription = dict(self.random.choice(SUBSCRIPTIONS))
        if client.last is not None:
            self.heartbeat(client, {"member_epoch": self.epoch(client), **client.subscription})

    def do_wrong_epoch(self, client: Client) -> None:
        answer = self.script.answer(client.last)
        epoch = answer["member_epoch"] if answer else 0
        wrong = epoch + self.random.choice((-1, 1, 7))
        if wrong > 0:
            self.heartbeat(client, {"member_epoch": wrong})

    def do_leave(self, client: Client) -> None:
        epoch = self.random.choice((-2, -2, -1)) if client.instance is not None else -1
        self.heartbeat(client, {"member_epoch": epoch})
        self.do_forget(client)

    def do_forget(self, client: Client) -> None:
        """The process dies and starts anew, under another id."""
        self.clients[self.clients.index(client)] = self.new_client(client.instance)

    def do_stranger(self, client: Client) -> None:
        body = {"group_id": self.random.choice((GROUP, GROUP, "another")), "member_id": STRANGER, "member_epoch": 3}
        self.script.say("ConsumerGroupHeartbeat", body)

    def do_odd(self, client: Client) -> None:
        """Requests that no member should send."""
        odd: dict[str, Any] = self.random.choice(
            (
                {"server_assignor": "nonsense"},
                {"rebalance_timeout_ms": -1},
                {"subscribed_topic_names": None},
                {"subscribed_topic_names": []},
                {"topic_partitions": None},
                {"group_id": ""},
                {"instance_id": ""},
                {"rack_id": ""},
                {"member_epoch": -3},
                {"member_epoch": -2, "instance_id": None},
                {"member_id": ""},
                {"subscribed_topic_regex": "("},
            )
        )
        body = {"group_id": GROUP, "member_id": client.member, "instance_id": client.instance}
        self.script.say("ConsumerGroupHeartbeat", {**body, **self.joining(client), **odd}, 1)

    def do_commit(self, client: Client) -> None:
        version = self.random.choice(range(7, 11))
        answer = self.script.answer(client.last)
        epoch: Any = self.epoch(client) if client.last else -1
        if self.random.random() < 0.25:
            epoch = (answer["member_epoch"] if answer else 0) + self.random.choice((-1, 1))
        partition = {
            "partition_index": self.random.choice((0, 1, 99)),
            "committed_offset": self.random.randrange(1_000),
        }
        body = {
            "group_id": GROUP,
            "member_id": client.member if client.last else "",
            "generation_id_or_member_epoch": epoch,
            "topics": self.about_a_topic(version, partitions=[partition]),
        }
        self.script.say("OffsetCommit", body, version)

    def do_fetch(self, client: Client) -> None:
        version = self.random.choice((8, 9, 9, 10))
        asked: dict[str, Any] = {"group_id": GROUP, "topics": self.about_a_topic(version, partition_indexes=[0, 1, 99])}
        if self.random.random() < 0.3:
            asked["topics"] = None
        if version >= 9 and client.last is not None:
            asked |= {"member_id": client.member, "member_epoch": self.epoch(client)}
        if version >= 9 and self.random.random() < 0.2:
            asked |= {"member_id": client.member, "member_epoch": 99}
        self.script.say("OffsetFetch", {"groups": [asked]}, version)

    def do_view(self, client: Client) -> None:
        groups = [GROUP] if self.random.random() < 0.8 else [GROUP, "another"]
        self.script.say("ConsumerGroupDescribe", {"group_ids": groups})

    def do_old_view(self, client: Client) -> None:
        self.script.say("DescribeGroups", {"groups": [GROUP]})

    def do_classic(self, client: Client) -> None:
        """A classic member that joins, and as often as not never comes back."""
        body = {
            "group_id": GROUP,
            "member_id": self.random.choice(("", client.member)),
            "session_timeout_ms": 12_000,
            "rebalance_timeout_ms": 900,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": METADATA}],
        }
        name = self.script.say("JoinGroup", body, 9)
        answer = self.script.answer(name)
        if answer is not None and answer["error_code"] == "MEMBER_ID_REQUIRED":
            joined = self.script.say("JoinGroup", {**body, "member_id": f"${name}.member_id"}, 9)
            heard = self.script.answer(joined)
            if heard is not None and heard["error_code"] == "NONE":
                identity = {"group_id": GROUP, "member_id": f"${joined}.member_id"}
                identity["generation_id"] = f"${joined}.generation_id"
                self.script.say("SyncGroup", {**identity, "protocol_type": "consumer", "protocol_name": "range"}, 5)
                self.script.say("Heartbeat", identity, 4)
