"""The JSON contract: what is refused, with which path, and that nothing is lost on the way in and out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rebalance_lab.assignors.json_contract import ContractError, decode, group_from_json, group_to_json, parse_request


def group_with(topic: dict[str, Any] | None = None, member: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "topics": {"orders": {"partitions": 2} | (topic or {})},
        "members": {"c1": {"topics": ["orders"]} | (member or {})},
    }


REFUSED = [
    (group_with({"partitions": -1}), "group.topics.orders.partitions", "between 0"),
    (group_with({"partitions": True}), "group.topics.orders.partitions", "whole number"),
    (group_with({"partitions": 2.0}), "group.topics.orders.partitions", "whole number"),
    (group_with({"partitions": "6"}), "group.topics.orders.partitions", "whole number"),
    (group_with({"partitions": 1_000_000_000}), "group.topics.orders.partitions", "more than 10,000,000"),
    (group_with({"racks": [["a"]]}), "group.topics.orders.racks", "has 1 entries for 2 partitions"),
    (group_with({"racks": [["a"], "b"]}), "group.topics.orders.racks[1]", "expected a list"),
    (group_with({"racks": [["a"], [3]]}), "group.topics.orders.racks[1][0]", "expected a string"),
    (group_with({"load": [1, 2, 3]}), "group.topics.orders.load", "has 3 entries"),
    (group_with({"load": [1, -2]}), "group.topics.orders.load[1]", "below 0"),
    (group_with({"load": [1, 10**400]}), "group.topics.orders.load[1]", "finite"),
    (group_with({"id": "short"}), "group.topics.orders.id", "topic id"),
    (group_with({"partition": 3}), "group.topics.orders.partition", "unknown key"),
    (group_with(member={"topics": "orders"}), "group.members.c1.topics", "expected a list"),
    (group_with(member={"topics": [1]}), "group.members.c1.topics[0]", "expected a string"),
    (group_with(member={"owned": {"orders": [0, 1, 0]}}), "group.members.c1.owned.orders[2]", "partition 0 twice"),
    (group_with(member={"owned": {"orders": [-1]}}), "group.members.c1.owned.orders[0]", "partition number"),
    (group_with(member={"owned": {"a.b": 1}}), 'group.members.c1.owned["a.b"]', "expected a list"),
    (group_with(member={"owned": []}), "group.members.c1.owned", "expected an object"),
    (group_with(member={"generation": 2**31}), "group.members.c1.generation", "between -1"),
    (group_with(member={"capacity": 0}), "group.members.c1.capacity", "above 0"),
    (group_with(member={"instanceId": "x"}), "group.members.c1.instanceId", "unknown key"),
    ({"topics": {}}, "group.members", "is missing"),
    ({"topics": [], "members": {}}, "group.topics", "expected an object"),
    ({"topics": {"t": {}}, "members": {}}, "group.topics.t.partitions", "is missing"),
    ({"topics": {"": {"partitions": 1}}, "members": {}}, 'group.topics[""]', "must not be empty"),
    ({"topics": {}, "members": {"c\ud800": {"topics": []}}}, 'group.members["c\ud800"]', "surrogate"),
    (7, "group", "expected an object"),
]


@pytest.mark.parametrize(("group", "path", "message"), REFUSED, ids=[f"{row[1]} {row[2]}" for row in REFUSED])
def test_a_bad_field_is_refused_with_its_path(group: Any, path: str, message: str) -> None:
    with pytest.raises(ContractError) as caught:
        group_from_json(group)
    assert caught.value.path == path
    assert message in caught.value.message
    assert "\n" not in str(caught.value)


def test_two_topics_cannot_share_an_id() -> None:
    topic = {"partitions": 1, "id": "AAAAAAAAAAAAAAAAAAAAAQ"}
    with pytest.raises(ContractError, match=r"group\.topics\.b\.id"):
        group_from_json({"topics": {"a": topic, "b": topic}, "members": {}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("junk " * 2_000_000, "not JSON"),  # 10 MB
        ("[" * 200_000, "nested too deeply"),
        ('{"a": NaN}', "a: NaN is not a JSON number"),
        ('{"a": 1, "a": 2}', "a: the key stands twice in one object"),
        ('{"a": ' + "9" * 10_000 + "}", "a number has more than 4,300 digits"),
        (b"\xff\xfe\x00", "not"),
    ],
    ids=["nothing", "cut off", "10 MB of junk", "deep", "NaN", "duplicate key", "huge int", "not UTF-8"],
)
def test_text_that_is_not_good_json_is_refused_in_one_line(text: str | bytes, message: str) -> None:
    with pytest.raises(ContractError) as caught:
        decode(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_group_survives_the_way_out_and_in() -> None:
    group = {
        "topics": {
            "orders": {"partitions": 2, "racks": [["a", "b"], []], "load": [1.5, 0.0], "id": "AAAAAAAAAAAAAAAAAAAAAQ"},
            "empty": {"partitions": 0},
        },
        "members": {
            "c-\u00fc\U0001f600": {
                "topics": ["orders", "orders", "not.there"],
                "owned": {"orders": [1, 0], "gone": [3]},
                "generation": 7,
                "instance_id": "pod-1",
                "rack": "a",
                "capacity": 2.5,
            },
            "c2": {"topics": []},
        },
    }
    parsed = group_from_json(group)
    assert group_to_json(parsed) == group
    assert group_from_json(json.loads(json.dumps(group_to_json(parsed)))) == parsed


def test_null_and_kafkas_own_ways_to_say_none_mean_absent() -> None:
    member = {"topics": ["orders"], "owned": None, "generation": -1, "rack": "", "instance_id": None, "capacity": None}
    group = group_from_json(group_with(member=member))
    assert group == group_from_json(group_with())


def test_a_request_names_its_strategy_or_none() -> None:
    assert parse_request({"strategy": "classic/range", "group": group_with()})[0] == "classic/range"
    assert parse_request({"group": group_with()})[0] is None
    with pytest.raises(ContractError, match="strategy: expected a string"):
        parse_request({"strategy": 3, "group": group_with()})
    with pytest.raises(ContractError, match="group: is missing"):
        parse_request({"strategy": "classic/range"})
