"""`"protocol": "consumer"` in the sequence player: the settings it takes, and that nothing sent can break it."""

from __future__ import annotations

import base64
from random import Random

import pytest

from rebalance_lab.api.commands.play_text import answer_text, request_text
from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.conversation.sequence_player import play
from rebalance_lab.protocol_v1.common.consumer_protocol import Subscription, encode_subscription

SUBSCRIPTION = base64.b64encode(encode_subscription(Subscription(topics=("orders",)))).decode()


def joining(member_id, **fields):
    body = {"group_id": "g", "member_id": member_id, "member_epoch": 0, "rebalance_timeout_ms": 60_000}
    return body | {"subscribed_topic_names": ["orders"], "topic_partitions": []} | fields


def test_two_members_share_a_topic():
    steps = [
        {"at_ms": 0, "as": "a1", "request": "ConsumerGroupHeartbeat", "body": joining("A")},
        {"at_ms": 1_000, "as": "b1", "request": "ConsumerGroupHeartbeat", "body": joining("B")},
        {
            "at_ms": 1_001,
            "as": "a2",
            "request": "ConsumerGroupHeartbeat",
            "body": {
                "group_id": "g",
                "member_id": "A",
                "member_epoch": "$a1.member_epoch",
                "topic_partitions": [{"topic_name": "orders", "partitions": [0, 1]}],
            },
        },
    ]
    answer = play({"protocol": "consumer", "topics": {"orders": 4}, "steps": steps}).to_json()
    epochs = [response["body"]["member_epoch"] for response in answer["responses"]]
    assert epochs == [2, 3, 3]
    assert answer["responses"][-1]["body"]["assignment"] == {
        "topic_partitions": [{"topic_name": "orders", "partitions": [0, 1]}]
    }
    assert [state["state"] for state in answer["states"]] == ["Stable", "Reconciling"]


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"group.consumer.migration.policy": "sideways"}, "config.group.consumer.migration.policy"),
        ({"group.consumer.heartbeat.interval.ms": 0}, "config.group.consumer.heartbeat.interval.ms"),
        ({"group.consumer.max.size": "many"}, "config.group.consumer.max.size"),
        ({"wakes.classic.members": 1}, "config"),
    ],
)
def test_a_setting_that_no_broker_takes_is_named(config, path):
    with pytest.raises(ContractError) as refused:
        play({"protocol": "consumer", "config": config, "steps": []})
    assert str(refused.value).replace('["', ".").replace('"]', "").startswith(path)


def test_the_assignment_interval_may_be_zero():
    play({"protocol": "consumer", "config": {"group.consumer.assignment.interval.ms": 0}, "steps": []})


class Fuzz:
    """Requests as no client would send them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def one_of(self, *choices):
        return self.random.choice(choices)

    def who(self) -> dict:
        return {
            "group_id": self.one_of("g", "g", "g", "h", ""),
            "member_id": self.one_of("A", "B", "c", "", "client-1"),
        }

    def instance(self):
        return self.one_of(None, None, "i1", "i2", "")

    def listed(self):
        return [
            {"topic_name": self.one_of("orders", "none", "x#2"), "partitions": [self.random.randint(-1, 5)]}
            for _ in range(self.random.randint(0, 2))
        ]

    def heartbeat(self) -> dict:
        body = self.who() | {"member_epoch": self.random.randint(-3, 6), "instance_id": self.instance()}
        if self.random.random() < 0.6:
            body |= {"rebalance_timeout_ms": self.one_of(-5, -1, 0, 500), "topic_partitions": self.one_of([], None)}
            body["subscribed_topic_names"] = self.one_of(None, [], ["orders"], ["none", "orders", "orders"])
        if self.random.random() < 0.3:
            body["topic_partitions"] = self.listed()
        if self.random.random() < 0.2:
            body["subscribed_topic_regex"] = self.one_of(None, "", "o.*", "(", ".*")
        if self.random.random() < 0.2:
            body["server_assignor"] = self.one_of("range", "uniform", "nope")
        return {"request": "ConsumerGroupHeartbeat", "body": body}

    def join(self) -> dict:
        protocols = [
            {"name": self.one_of("range", "other"), "metadata": self.one_of(SUBSCRIPTION, SUBSCRIPTION, "", "AAA=")}
            for _ in range(self.random.randint(0, 2))
        ]
        body = self.who() | {"session_timeout_ms": self.one_of(6_000, 1, 10_000), "protocols": protocols}
        body |= {"rebalance_timeout_ms": self.one_of(-1, 0, 3_000), "protocol_type": self.one_of("consumer", "connect")}
        return {"request": "JoinGroup", "body": body | {"group_instance_id": self.instance()}}

    def other(self) -> dict:
        generation = {"generation_id": self.random.randint(-1, 5), "group_instance_id": self.instance()}
        entry = {"member_id": self.one_of("A", "c", ""), "group_instance_id": self.instance()}
        partition = {"partition_index": self.random.randint(-1, 4), "committed_offset": 1}
        commit = self.who() | {"generation_id_or_member_epoch": self.random.randint(-2, 5)}
        fetch = {"group_id": "g", "member_id": self.one_of("A", None), "member_epoch": self.random.randint(-1, 4)}
        group = {"resource_name": "g", "configs": [{"name": "consumer.session.timeout.ms", "value": "50000"}]}
        choices = {
            "SyncGroup": self.who() | generation,
            "Heartbeat": self.who() | generation,
            "LeaveGroup": {"group_id": "g", "members": [entry, entry]},
            "OffsetCommit": commit | {"topics": [{"name": "orders", "partitions": [partition]}]},
            "OffsetFetch": {"groups": [fetch]},
            "ConsumerGroupDescribe": {"group_ids": ["g", "h"]},
            "DescribeGroups": {"groups": ["g"]},
            "ListGroups": {},
            "DeleteGroups": {"groups_names": ["g", "h"]},
            "IncrementalAlterConfigs": {"resources": [group]},
        }
        name = self.random.choice(sorted(choices))
        return {"request": name, "body": choices[name]}

    def sequence(self) -> dict:
        steps, now = [], 0
        for _ in range(40):
            now += self.one_of(0, 1, 5, 1_000, 20_000)
            step = self.random.choice((self.heartbeat, self.heartbeat, self.join, self.other))()
            if self.random.random() < 0.12:
                step = self.random.choice(
                    (
                        {"topics": {"orders": self.random.randint(0, 6)}},
                        {"topics": {}},
                        {"coordinator": self.one_of("crash", "move")},
                        {"appends": self.one_of("ok", "hold", "NOT_ENOUGH_REPLICAS")},
                        {"appends": "ok"},
                    )
                )
            steps.append({"at_ms": now, **step})
        config = {
            "group.consumer.migration.policy": self.one_of("bidirectional", "upgrade", "downgrade", "disabled"),
            "group.consumer.assignment.interval.ms": self.one_of(0, 1_000),
            "group.consumer.max.size": self.one_of(2, 100),
        }
        return {"protocol": "consumer", "config": config, "topics": {"orders": 3}, "steps": steps, "until_ms": now + 99}


@pytest.mark.parametrize("block", range(4))
def test_no_sequence_of_requests_breaks_the_coordinator(block):
    for seed in range(100 * block, 100 * block + 100):
        answer = play(Fuzz(seed).sequence()).to_json()
        assert answer == play(Fuzz(seed).sequence()).to_json(), "the same sequence, another answer"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (joining("A"), "g A joins [orders]"),
        ({"group_id": "g", "member_id": "A", "member_epoch": 3}, "g A epoch 3"),
        ({"group_id": "g", "member_id": "A", "instance_id": "i", "member_epoch": -2}, "g A i steps out"),
        (joining("A", member_epoch=3, topic_partitions=[]), "g A epoch 3 [orders] owns nothing"),
        (
            {
                "group_id": "g",
                "member_id": "A",
                "member_epoch": 3,
                "subscribed_topic_regex": "o.*",
                "server_assignor": "range",
                "topic_partitions": [
                    {"topic_name": "orders", "partitions": [2, 0, 1, 5]},
                    {"topic_name": "audit", "partitions": [3]},
                ],
            },
            "g A epoch 3 regex 'o.*' by range owns orders 0-2 5, audit 3",
        ),
        ({"group_ids": ["g", "h"]}, "g h"),
        ({"groups": [{"group_id": "g", "topics": None}]}, "g"),
        ({"resources": [{"resource_name": "g", "configs": [{"name": "x", "value": "1"}]}]}, "g x=1"),
        (None, ""),
    ],
)
def test_a_request_is_one_short_line(body, text):
    assert request_text(body) == text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            {
                "error_code": "NONE",
                "member_id": "A",
                "member_epoch": 2,
                "assignment": {"topic_partitions": [{"topic_name": "orders", "partitions": [0, 1]}]},
            },
            "NONE  A  epoch 2  is given orders 0-1",
        ),
        ({"error_code": "NONE", "member_id": "A", "member_epoch": 2, "assignment": None}, "NONE  A  epoch 2"),
        ({"error_code": "UNKNOWN_MEMBER_ID", "member_id": None, "member_epoch": 0}, "UNKNOWN_MEMBER_ID"),
        ({"error_code": "NONE", "assignment": "A" * 30}, "NONE  assignment " + "A" * 21 + "..."),
        ({"groups": [{"group_id": "g", "error_code": "NONE", "topics": []}]}, "NONE  g no offsets"),
    ],
)
def test_an_answer_is_one_short_line(body, text):
    assert answer_text(body) == text


def test_a_described_group_shows_epochs_and_shares():
    step = {"at_ms": 5, "as": "d", "request": "ConsumerGroupDescribe", "body": {"group_ids": ["g"]}}
    join = {"at_ms": 0, "as": "a", "request": "ConsumerGroupHeartbeat", "body": joining("A")}
    answer = play({"protocol": "consumer", "topics": {"orders": 2}, "steps": [join, step]}).to_json()
    text = answer_text(answer["responses"][-1]["body"])
    assert text == "NONE  g Stable epoch 2/2 1 members | A at 2: orders 0-1"
