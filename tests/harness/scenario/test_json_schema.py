"""The published schema beside the reader: what an editor underlines is what the lab refuses."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.scenario.documents import decode_document
from rebalance_lab.harness.scenario.forms.json_schema import PUBLISHED
from rebalance_lab.harness.scenario.reader import parse_scenario
from tests.harness.scenario.test_reader import events, member, scenario, topic
from tests.harness.scenario.test_writer import EXAMPLES

VALIDATOR = jsonschema_rs.validator_for(json.loads(PUBLISHED.read_text()))


def client(**settings: Any) -> dict[str, Any]:
    return scenario(client={name.replace("_", "."): value for name, value in settings.items()})


def event(kind: str, part: Any, at: Any = "1m") -> dict[str, Any]:
    return events({"at": at, kind: part})


def rate(value: Any) -> dict[str, Any]:
    return topic(rate=value)


def reads(data: object) -> bool:
    try:
        parse_scenario(data)
    except ContractError:
        return False
    return True


BURST = {"at": "1m", "for": "1s", "rate": "5/s"}
DAILY = {"low": "1/s", "high": "2/s"}
STEP = {"at": 0, "rate": "0/s"}

GOOD = [
    *(scenario(duration=text) for text in ("10m", "1m30s", "1 m 30 s", " 600s ", "0.5h", "0m1s")),
    *(scenario(**{part: None}) for part in ("network", "client", "timeline", "poison", "name", "strategy")),
    scenario(name="a\nb"),
    scenario(network={"latency": 0, "jitter": None, "loss": "0.1%", "duplication": "0.0"}),
    *(scenario(network={"loss": loss}) for loss in (0, 0.0, "0", "00.0", "0e5", "100%", "0100.0 %", "1e1%", "0%")),
    scenario(callbacks={"revoked": "1s", "assigned per partition": 0}),
    scenario(poison=[{"topic": "orders", "partition": 0, "offset": 5, "stall": "1m"}]),
    # topics
    *(rate(text) for text in ("5/s", "1.5k/s", "1e3 / m", " 5/s ", "0.01/s")),
    *(rate(parts) for parts in ({"base": "5/s"}, {"daily": DAILY}, {"steps": [STEP]})),
    *(rate({"base": base, "bursts": [BURST]}) for base in ("0/s", "0.0/s", "5/s")),
    *(rate({"base": "0/s", "daily": DAILY, "bursts": bursts}) for bursts in (None, [], [BURST])),
    *(rate({"steps": [STEP], "base": None, "bursts": bursts}) for bursts in (None, [])),
    *(topic(skew=skew) for skew in ("zipf 1.1", "zipf 1e1", "zipf .5", "zipf 2.", [1, 0, 0, 0], [0.5, 1, 2, 3])),
    *(topic(racks=racks) for racks in (["a"], [["a"], [], ["b"], ["a", "b"]])),
    topic(racks=["a"], replicas=2),
    topic(rate=None, skew=None, racks=None, replicas=None),
    # members
    *(member(topics=topics) for topics in ("orders", ["orders"])),
    scenario(members={"c": {"pattern": "or.*", "topics": None}}),
    scenario(members={"a b [x] ü": {"topics": "orders"}}),
    *(member(record=record) for record in ("2ms", "200us", "1e-3 s", " 1m ", None)),
    member(record=None, capacity="5k/s"),
    member(count=2, racks=["a", "b"], instance_id="pod-{n}"),
    member(count=1, instance_id="pod"),
    member(client={"client.rack": "a", "session.timeout.ms": "10s"}),
    # settings
    *(client(session_timeout_ms=value) for value in (10000, "10000", "10s", " 10s ")),
    *(client(enable_auto_commit=value) for value in (True, False, "true", "false")),
    client(auto_commit_interval_ms=0),
    client(group_protocol="Consumer"),
    client(partition_assignment_strategy=["range"]),
    scenario(broker={"group.consumer.assignment.interval.ms": 0}),
    # the timeline
    *(event("crash", part) for part in ("c-1", ["c-1"], {"members": "c-1"}, "c")),
    event("crash", "c", at=0),
    event("crash", "c", at="0s"),
    events({"at": "1m", "crash": "c", "stop": None}),
    event("slow", {"members": "c", "factor": 0.5, "for": None}),
    event("restart", {"members": "c", "downtime": 0, "times": 2, "every": "5s"}),
    event("restart", {"members": "c", "downtime": 0, "times": 1, "every": 0}),
    event("rolling restart", {"downtime": "5s", "members": None}),
    event("subscribe", {"members": "c", "topics": "orders"}),
    event("create topic", {"name": "t.2", "partitions": 1}),
]

BAD = [
    None,
    [],
    {},
    *(scenario(duration=value) for value in (-5, 0, 5, "0s", "-1s", "5", "5 parsecs", "", "٣s", None)),
    *(scenario(**{key: 5}) for key in ("name", "strategy", "client", "network", "timeline", "poison", "nmae")),
    scenario(name=""),
    scenario(strategy=""),
    *(scenario(network={"loss": loss}) for loss in (-0.1, 0.5, 1, 1.1, "101%", "1", "0.5", "1e-3", "%", True, "٣%")),
    *(scenario(network={"latency": value}) for value in (5, "-1s", "5", True)),
    scenario(poison=[{"topic": "orders", "partition": -1, "offset": 0, "stall": "1s"}]),
    scenario(poison=[{"topic": "orders", "partition": 0, "offset": 0, "stall": "0s"}]),
    # topics
    *(
        scenario(topics={name: {"partitions": 1}} | {"orders": {"partitions": 1}})
        for name in ("a b", "", ".", "x" * 250)
    ),
    scenario(topics={}),
    scenario(topics={"orders": None}),
    *(topic(partitions=value) for value in (0, -1, 2_000_001, "4", 1.5, True, None)),
    *(rate(text) for text in ("-1/s", "0/s", "0e5/s", "..e+-/s", "5", "5/y", "", 5, [], "٣/s")),
    *(rate(parts) for parts in ({}, {"base": "0/s"}, {"base": "0/s", "bursts": []}, {"steps": []}, {"base": None})),
    *(rate({"base": "5/s", **more}) for more in ({"daily": DAILY}, {"steps": [STEP]})),
    rate({"daily": DAILY, "steps": [STEP]}),
    rate({"steps": [STEP], "bursts": [BURST]}),
    rate({"base": "5/s", "bursts": [{"at": "1m", "for": 0, "rate": "5/s"}]}),
    rate({"base": "5/s", "bursts": [{"at": "1m", "for": "1s", "rate": "0/s"}]}),
    *(topic(skew=skew) for skew in ("pareto", "zipf", "zipf x", "zipf ٣", "zipf -1", [], [0, 0, 0, 0], [1, 1, 1, -1])),
    *(topic(racks=racks) for racks in ([], "a", [""], ["a", ["b"]], [5])),
    topic(replicas=2),
    topic(racks=[["a"], ["a"], ["a"], ["a"]], replicas=2),
    *(topic(racks=["a"], replicas=replicas) for replicas in (0, 101)),
    # members
    scenario(members={}),
    scenario(members={"c": {}}),
    scenario(members={"c": {"topics": None}}),
    scenario(members={"a\nb": {"topics": "orders"}}),
    *(member(topics=topics) for topics in ([], [""], "", ["orders", "orders"], 5, {})),
    member(pattern="or.*"),
    *(member(count=count) for count in (0, 20_001, "2", 1.5)),
    *(member(record=record) for record in ("0ms", 2, "2", "2h", "0e3ms")),
    *(member(capacity=capacity) for capacity in ("0/s", 5, "-5/s")),
    member(record="1ms", capacity="5/s"),
    member(count=2, rack="a", racks=["a"]),
    member(racks=["a"]),
    member(count=2, racks=[]),
    member(count=2, racks=[""]),
    member(count=2, instance_id="pod"),
    member(rack=""),
    member(client={"group.protocol": "classic"}),
    # settings
    *(client(session_timeout_ms=value) for value in ("abc", 0, "0", "0s", -1, 2**31, None, True, 1e10, "")),
    *(client(enable_auto_commit=value) for value in ("yes", 1, "True", None)),
    *(client(max_poll_records=value) for value in (0, "5", 2**31)),
    *(client(group_protocol=value) for value in ("", "mine", 5)),
    *(client(partition_assignment_strategy=value) for value in ("", [], [5], 5)),
    client(client_id=""),
    scenario(client={"client.rack": "a"}),
    scenario(broker={"group.max.size": 0}),
    scenario(broker={"group.consumer.migration.policy": "perhaps"}),
    # the timeline
    *(event("crash", part) for part in ([], "", None, {}, {"members": []}, 5)),
    *(event("crash", "c", at=at) for at in (-60, 60, "-1m", None)),
    events({"at": "1m", "crash": "c", "stop": "c"}),
    events({"at": "1m"}),
    event("explode", "c"),
    *(event("slow", {"members": "c", "factor": factor}) for factor in (0, -1, 1e7, "2")),
    event("slow", {"members": "c", "factor": 2, "for": "0s"}),
    *(event("restart", {"members": "c", "downtime": "1s", "times": 2} | more) for more in ({}, {"every": 0})),
    event("restart", "c"),
    event("pause", {"members": "c", "for": 0}),
    event("scale", {"members": "c", "to": -1}),
    event("autoscale", {"members": "c", "most": 5, "lag per member": 0}),
    event("subscribe", "c"),
    event("subscribe", {"members": "c", "topics": "orders", "pattern": "or.*"}),
    event("create topic", {"name": "a b", "partitions": 1}),
]


@pytest.mark.parametrize("data", GOOD, ids=lambda data: json.dumps(data)[:200])
def test_both_take_what_is_good(data: object) -> None:
    parse_scenario(data)
    VALIDATOR.validate(data)


@pytest.mark.parametrize("data", BAD, ids=lambda data: json.dumps(data)[:200])
def test_both_refuse_what_is_bad(data: object) -> None:
    assert not reads(data)
    assert not VALIDATOR.is_valid(data)


@pytest.mark.parametrize(
    "data",
    [
        member(topics=["order"]),
        event("crash", "nobody"),
        event("crash", "c", at="11m"),
        topic(skew=[1, 2]),
        rate({"daily": {"low": "5/s", "high": "5/s"}}),
        scenario(strategy="classic/best"),
        scenario(members={"c": {"pattern": "(or"}}),
        scenario(duration="0.5ms"),
        client(session_timeout_ms="2h"),
        topic(partitions=4.0),  # to JSON Schema a whole number
    ],
    ids=lambda data: json.dumps(data)[:200],
)
def test_what_takes_the_whole_or_arithmetic_is_for_the_reader(data: object) -> None:
    assert not reads(data)
    VALIDATOR.validate(data)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_schema_takes_every_example(path: Any) -> None:
    VALIDATOR.validate(decode_document(path.read_text()))
