"""Settings of a broker, as a sequence gives them: Kafka's lists, their checks, and what they change."""

from __future__ import annotations

from typing import Any

import pytest

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.conversation.sequence_player import play
from rebalance_lab.harness.evaluate.comparison import usual_strategies
from rebalance_lab.harness.scenario.reader import parse_scenario

BEAT: dict[str, Any] = {
    "group_id": "g", "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 5_000,
    "subscribed_topic_names": ["orders"], "topic_partitions": [],
}  # fmt: skip
SCENARIO: dict[str, Any] = {
    "duration": "5m",
    "topics": {"orders": {"partitions": 4, "rate": "10/s"}},
    "members": {"consumer": {"count": 2, "topics": ["orders"]}},
}


def first_answers(config: dict[str, Any], **changed: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    steps = [
        {"at_ms": 0, "as": "beat", "request": "ConsumerGroupHeartbeat", "version": 1, "body": {**BEAT, **changed}},
        {"at_ms": 5, "as": "view", "request": "ConsumerGroupDescribe", "body": {"group_ids": ["g"]}},
    ]
    sequence = {"protocol": "consumer", "config": config, "topics": {"orders": 4}, "steps": steps}
    beat, view = (each["body"] for each in play(sequence).to_json()["responses"])
    return beat, view["groups"][0]


@pytest.mark.parametrize("listed", ["range,uniform", ["range", "uniform"], " range , uniform "])
def test_the_first_assignor_is_used_where_no_member_names_one(listed: Any) -> None:
    _, group = first_answers({"group.consumer.assignors": listed})
    assert group["assignor_name"] == "range"


def test_assignors_may_be_named_by_kafkas_classes() -> None:
    name = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"
    assert first_answers({"group.consumer.assignors": name})[1]["assignor_name"] == "range"


def test_an_assignor_that_is_not_listed_is_refused_in_kafkas_words() -> None:
    beat, _ = first_answers({"group.consumer.assignors": "range"}, server_assignor="uniform")
    assert beat["error_code"] == "UNSUPPORTED_ASSIGNOR"
    assert beat["error_message"] == "ServerAssignor uniform is not supported. Supported assignors: range."


def test_a_broker_without_the_consumer_protocol_serves_classic_groups_alone() -> None:
    beat, group = first_answers({"group.coordinator.rebalance.protocols": "classic"})
    assert beat["error_code"] == group["error_code"] == "UNSUPPORTED_VERSION"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("group.consumer.assignors", "range,foo", "found 'foo'"),
        ("group.consumer.assignors", [], "must not be empty"),
        ("group.consumer.assignors", "range,range", "lists a name twice"),
        ("group.consumer.assignors", 3, "expected names from uniform, range"),
        ("group.coordinator.rebalance.protocols", "consumer", "must list classic"),
    ],
)
def test_a_list_that_no_broker_takes_is_refused_with_its_path(name: str, value: Any, message: str) -> None:
    for read in (
        lambda: first_answers({name: value}),
        lambda: parse_scenario({**SCENARIO, "broker": {name: value}}),
    ):
        with pytest.raises(ContractError, match=message) as caught:
            read()
        assert name in caught.value.path


def test_strategies_that_the_broker_does_not_serve_are_left_out_with_a_word() -> None:
    strategies, notes = usual_strategies(parse_scenario({**SCENARIO, "broker": {"group.consumer.assignors": "range"}}))
    assert "consumer/uniform" not in strategies
    assert notes == ("the scenario's broker does not serve consumer/uniform, consumer/uniform+static: left out",)


def test_an_append_times_out_when_the_broker_says() -> None:
    step = {"at_ms": 1, "as": "commit", "request": "OffsetCommit", "version": 8, "body": {
        "group_id": "g", "generation_id_or_member_epoch": -1,
        "topics": [{"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": 3}]}],
    }}  # fmt: skip
    sequence = {
        "config": {"offsets.commit.timeout.ms": 700},
        "topics": {"orders": 1},
        "steps": [{"at_ms": 0, "appends": "hold"}, step],
        "until_ms": 9_000,
    }
    (answer,) = play(sequence).to_json()["responses"]
    assert answer["at_ms"] == 701
