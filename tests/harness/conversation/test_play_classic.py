"""The sequence player and `rebalance-lab play`: the format, references, refusals, and the chart."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.conversation import sequence_player as sequences
from rebalance_lab.harness.conversation.message_json import request_from_json, response_to_json
from rebalance_lab.harness.conversation.sequence_player import play
from rebalance_lab.protocol_v1.common.messages import REQUESTS, JoinGroupResponse
from tests.api.conftest import run  # noqa: F401 - a fixture

METADATA = "AAEAAAABAAZvcmRlcnP/////AAAAAA=="
JOIN = {
    "group_id": "g",
    "member_id": "",
    "group_instance_id": None,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 30_000,
    "protocol_type": "consumer",
    "reason": None,
    "protocols": [{"name": "range", "metadata": METADATA}],
}
SEQUENCE = {
    "protocol": "classic",
    "config": {"group.initial.rebalance.delay.ms": 0},
    "topics": {"orders": 6},
    "steps": [
        {"at_ms": 0, "as": "a1", "request": "JoinGroup", "version": 9, "body": JOIN},
        {"at_ms": 5, "as": "a2", "request": "JoinGroup", "version": 9, "body": JOIN | {"member_id": "$a1.member_id"}},
        {"at_ms": 3000, "topics": {"orders": 9}},
    ],
    "until_ms": 20_000,
}


def changed(path, value):
    sequence = deepcopy(SEQUENCE)
    *keys, last = path
    place = sequence
    for key in keys:
        place = place[key]
    place[last] = value
    return sequence


def test_a_sequence_is_answered_in_the_written_format():
    answer = play(SEQUENCE).to_json()
    assert answer["responses"] == [
        {
            "as": "a1",
            "at_ms": 0,
            "body": {
                "throttle_time_ms": 0,
                "error_code": "MEMBER_ID_REQUIRED",
                "generation_id": -1,
                "protocol_type": None,
                "protocol_name": None,
                "leader": "",
                "skip_assignment": False,
                "member_id": "client-1",
                "members": [],
            },
        },
        {
            "as": "a2",
            "at_ms": 5,
            "body": {
                "throttle_time_ms": 0,
                "error_code": "NONE",
                "generation_id": 1,
                "protocol_type": "consumer",
                "protocol_name": "range",
                "leader": "client-1",
                "skip_assignment": False,
                "member_id": "client-1",
                "members": [{"member_id": "client-1", "group_instance_id": None, "metadata": METADATA}],
            },
        },
    ]
    assert answer["states"] == [
        {"at_ms": 0, "group": "g", "state": "Empty"},
        {"at_ms": 5, "group": "g", "state": "PreparingRebalance"},
        {"at_ms": 5, "group": "g", "state": "CompletingRebalance"},
        {"at_ms": 10_005, "group": "g", "state": "PreparingRebalance"},
        {"at_ms": 10_005, "group": "g", "state": "Empty"},
    ]


def test_a_request_that_is_still_parked_at_the_end_has_no_body():
    sequence = changed(["config"], {}) | {"until_ms": 3_000}
    assert play(sequence).to_json()["responses"][-1] == {"as": "a2", "at_ms": 3_000, "body": None}


def test_the_end_is_by_default_the_last_step():
    sequence = {key: value for key, value in SEQUENCE.items() if key != "until_ms"}
    assert [state["state"] for state in play(sequence).to_json()["states"]][-1] == "CompletingRebalance"


def test_a_timer_goes_before_a_step_of_the_same_instant():
    sequence = changed(
        ["steps", 2], {"at_ms": 10_005, "as": "d", "request": "DescribeGroups", "body": {"groups": ["g"]}}
    )
    assert play(sequence).to_json()["responses"][-1]["body"]["groups"][0]["group_state"] == "Empty"


def test_the_same_sequence_gives_the_same_answer():
    assert play(SEQUENCE).to_json() == play(SEQUENCE).to_json()


def test_member_ids_can_be_given_and_clients_named():
    sequence = SEQUENCE | {"member_ids": ["recorded-id"]}
    assert play(sequence).to_json()["responses"][1]["body"]["leader"] == "recorded-id"
    named = changed(["steps", 0, "client_id"], "app")
    assert play(named).to_json()["responses"][0]["body"]["member_id"] == "app-1"


@pytest.mark.parametrize(
    ("reference", "found"),
    [("$a2.members[0].member_id", "client-1"), ("$a2.members.0.member_id", "client-1"), ("$$literal", "$literal")],
)
def test_references_reach_into_earlier_answers(reference, found):
    sequence = changed(
        ["steps", 2], {"at_ms": 6, "as": "x", "request": "JoinGroup", "body": JOIN | {"member_id": reference}}
    )
    assert play(sequence | {"until_ms": 6}).to_json()["responses"][-1]["body"]["member_id"] == found


@pytest.mark.parametrize(
    ("path", "value", "where", "what"),
    [
        (["protocol"], "quantum", "protocol", 'expected one of classic, consumer, got "quantum"'),
        (["config"], {"group.max.sise": 2}, 'config["group.max.sise"]', "unknown key"),
        (["config"], {"group.max.size": -1}, 'config["group.max.size"]', "must be between 0"),
        (["topics"], {"orders": "six"}, "topics.orders", "expected a whole number"),
        (["until_ms"], 5, "until_ms", "must be between 3000"),
        (["steps"], {}, "steps", "expected a list"),
        (["steps", 0, "at_ms"], 6, "steps[1].at_ms", "steps go by time"),
        (["steps", 0, "at_ms"], True, "steps[0].at_ms", "expected a whole number"),
        (["steps", 1, "as"], "a1", "steps[1].as", "the name of an earlier step"),
        (["steps", 0, "request"], "Join", "steps[0].request", "expected one of JoinGroup"),
        (["steps", 0, "version"], 10, "steps[0].version", "JoinGroup is served in versions 0-9, not 10"),
        (["steps", 0, "surprise"], 1, "steps[0].surprise", "unknown key"),
        (["steps", 2], {"at_ms": 9, "coordinator": "explode"}, "steps[2].coordinator", 'expected "crash" or "move"'),
        (["steps", 2], {"at_ms": 9, "appends": "maybe"}, "steps[2].appends", "the name of an error"),
        (["steps", 2], {"at_ms": 9, "transaction": {}}, "steps[2].transaction.producer_id", "a whole number"),
        (
            ["steps", 2],
            {"at_ms": 9, "transaction": {"producer_id": 1, "committed": 1}},
            "steps[2].transaction.committed",
            "true or false",
        ),
        (["steps", 2], {"at_ms": 9}, "steps[2].request", "is missing"),
        (["steps", 0, "body"], [], "steps[0].body", "expected an object"),
        (["steps", 0, "body"], {"group_id": "g"}, "steps[0].body.session_timeout_ms", "is missing"),
        (["steps", 0, "body"], JOIN | {"protocls": []}, "steps[0].body.protocls", "unknown key"),
        (["steps", 0, "body"], JOIN | {"group_id": 7}, "steps[0].body.group_id", "expected a string, got 7"),
        (["steps", 0, "body"], JOIN | {"group_id": "\ud800"}, "steps[0].body.group_id", "valid unicode"),
        (["steps", 0, "body"], JOIN | {"session_timeout_ms": 2**31}, "steps[0].body.session_timeout_ms", "32 bits"),
        (["steps", 0, "body"], JOIN | {"session_timeout_ms": 1.5}, "steps[0].body.session_timeout_ms", "whole number"),
        (
            ["steps", 0, "body"],
            JOIN | {"protocols": [{"name": "range", "metadata": "not base64"}]},
            "steps[0].body.protocols[0].metadata",
            "expected base64",
        ),
        (
            ["steps", 1, "body"],
            JOIN | {"member_id": "$nobody.member_id"},
            "steps[1].body.member_id",
            'refers to "nobody", which has no answer at 5 ms',
        ),
        (
            ["steps", 1, "body"],
            JOIN | {"member_id": "$a1.members[3]"},
            "steps[1].body.member_id",
            'the answer has no "3" there',
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(path, value, where, what):
    with pytest.raises(ContractError) as refused:
        play(changed(path, value))
    assert refused.value.path == where
    assert what in refused.value.message


@pytest.mark.parametrize(
    ("request_", "served"),
    [("JoinGroup", range(10)), ("SyncGroup", range(6)), ("Heartbeat", range(5)), ("LeaveGroup", range(6)),
     ("OffsetCommit", range(2, 11)), ("OffsetFetch", range(1, 11)), ("DescribeGroups", range(7)),
     ("ListGroups", range(6)), ("DeleteGroups", range(3)), ("OffsetDelete", range(1))],
)  # fmt: skip
def test_w1_the_versions_are_those_of_kafka_4_3_1(request_, served):
    assert REQUESTS[request_].versions == served


@pytest.mark.parametrize(
    ("version", "absent"),
    [
        (0, {"throttle_time_ms", "protocol_type", "skip_assignment"}),
        (2, {"protocol_type", "skip_assignment"}),
        (7, {"skip_assignment"}),
        (9, set()),
    ],
)
def test_a_body_has_the_fields_of_its_version(version, absent):
    every = response_to_json(JoinGroupResponse(), 9).keys()
    assert response_to_json(JoinGroupResponse(), version).keys() == every - absent


def test_a_field_of_another_version_is_dropped_where_kafkas_clients_drop_it_and_refused_elsewhere():
    old = request_from_json(REQUESTS["JoinGroup"], 3, JOIN | {"group_instance_id": "pod", "reason": "why"}, "", {})
    assert (old.group_instance_id, old.reason) == (None, None)
    with pytest.raises(ContractError, match="version 2 has no such field"):
        request_from_json(REQUESTS["LeaveGroup"], 2, {"group_id": "g", "members": [{"member_id": "m"}]}, "body", {})


def test_a_rebalance_timeout_of_zero_does_not_stop_the_clock():
    static = JOIN | {"group_instance_id": "pod", "rebalance_timeout_ms": 0}
    steps = [
        {"at_ms": 0, "as": "a", "request": "JoinGroup", "body": static},
        {"at_ms": 1, "as": "l", "request": "DescribeGroups", "body": {"groups": ["g"]}},
    ]
    assert play({"steps": steps, "until_ms": 30_000}).to_json()["states"][-1]["state"] == "Empty"


def test_a_sequence_that_would_go_on_for_ever_is_refused(monkeypatch):
    monkeypatch.setattr(sequences, "MAX_TIMERS", 100)
    with pytest.raises(ContractError, match="until_ms: more than 100 timers fire by 101 ms"):
        play({"config": {"offsets.retention.check.interval.ms": 1}, "steps": [], "until_ms": 1_000_000})


def test_play_prints_the_answer_as_json(run):  # noqa: F811
    ended = run("play", "--json", stdin=json.dumps(SEQUENCE))
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out) == play(SEQUENCE).to_json()


def test_play_answers_many_sequences_each_in_its_place(run):  # noqa: F811
    wrong = changed(["steps", 0, "request"], "Join")
    ended = run("play", "--json", stdin=json.dumps({"sequences": [SEQUENCE, wrong, SEQUENCE]}))
    results = json.loads(ended.out)["results"]
    assert (results[0], results[2]) == (play(SEQUENCE).to_json(), play(SEQUENCE).to_json())
    assert results[1]["error"]["path"] == "steps[0].request"
    chart = run("play", stdin=json.dumps({"sequences": [SEQUENCE, wrong]}))
    assert "sequences[1]" in chart.out
    assert "error steps[0].request" in chart.out


def test_the_other_protocol_says_that_it_has_no_transactions():
    ended = {"at_ms": 0, "transaction": {"producer_id": 1, "committed": True}}
    with pytest.raises(ContractError, match="only classic groups have transactions"):
        play({"protocol": "consumer", "steps": [ended]})
    with pytest.raises(ContractError, match="expected one of"):
        play({"protocol": "consumer", "steps": [{"at_ms": 0, "request": "TxnOffsetCommit", "body": {}}]})


def test_play_draws_who_sent_what_and_what_became_of_the_group(run, monkeypatch):  # noqa: F811
    monkeypatch.setenv("COLUMNS", "100")
    static = {"request": "JoinGroup", "body": JOIN | {"group_id": "h", "group_instance_id": "pod"}}
    waiting = changed(["steps", 2], {"at_ms": 10, "as": "a3", **static})
    waiting["steps"] += [
        {"at_ms": 11, "as": "a4", **static},
        {"at_ms": 12, "appends": "hold"},
        {"at_ms": 13, "coordinator": "crash"},
        {"at_ms": 14, "topics": {"orders": 9}},
        {"at_ms": 14, "transaction": {"producer_id": 7, "committed": False}},
    ]
    waiting["config"] = {"group.initial.rebalance.delay.ms": 5}
    ended = run("play", stdin=json.dumps(waiting | {"until_ms": 14}))
    assert (ended.code, ended.err) == (0, "")
    assert max(map(len, ended.out.splitlines())) <= 100
    for told in (
        "──▶ JoinGroup v9 g client-1 [range]",
        "◀── MEMBER_ID_REQUIRED  client-1",
        "◀── NONE  generation 1, range, leads of 1  client-1",
        "g: CompletingRebalance",
        "member joined (client-1)",
        "◀── FENCED_INSTANCE_ID",
        "*** coordinator: crash",
        "*** topics: {'orders': 9}",
        "*** transaction of producer 7: aborted",
        "a4     ◀┄ no answer",
    ):
        assert told in ended.out, told


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"steps": [{"at_ms": 0}]}', '{"sequences": 7}', '{"steps": []} x', "\xff"]
)
def test_bad_input_is_one_line_and_exit_code_2(run, text):  # noqa: F811
    ended = run("play", stdin=text.encode("latin-1"))
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("rebalance-lab: ")
    assert ended.err.count("\n") == 1
