"""Scenario files: what they mean, and the one line for each way to get them wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.scenario import model
from rebalance_lab.harness.scenario.documents import decode_document
from rebalance_lab.harness.scenario.presence import late_starters
from rebalance_lab.harness.scenario.reader import load_scenario, parse_scenario
from tests.paths import ROOT


def scenario(**parts: Any) -> dict[str, Any]:
    """The smallest scenario, with these parts instead of its own."""
    least = {
        "duration": "10m",
        "topics": {"orders": {"partitions": 4, "rate": "10/s"}},
        "members": {"c": {"count": 2, "topics": "orders"}},
    }
    return least | parts


def topic(**parts: Any) -> dict[str, Any]:
    return scenario(topics={"orders": {"partitions": 4} | parts})


def member(**parts: Any) -> dict[str, Any]:
    return scenario(members={"c": {"topics": "orders"} | parts})


def events(*events: dict[str, Any]) -> dict[str, Any]:
    return scenario(timeline=list(events))


def refusal(data: object) -> str:
    with pytest.raises(ContractError) as caught:
        parse_scenario(data)
    text = str(caught.value)
    assert "\n" not in text
    return text


# What files mean.


def test_a_count_makes_numbered_members_with_racks_dealt_round() -> None:
    read = parse_scenario(
        scenario(
            members={"c": {"count": 4, "topics": ["orders"], "racks": ["a", "b", "c"], "capacity": "500/s"}},
        )
    )
    assert [(one.name, one.rack, one.record_ms) for one in read.members] == [
        ("c-1", "a", 2.0),
        ("c-2", "b", 2.0),
        ("c-3", "c", 2.0),
        ("c-4", "a", 2.0),
    ]


def test_without_a_count_there_is_one_member_of_that_name() -> None:
    read = parse_scenario(scenario(members={"audit": {"pattern": "or.*", "instance_id": "x"}}))
    assert read.members == (model.MemberSpec(name="audit", pattern="or.*", instance_id="x"),)


def test_instance_ids_of_a_count_are_numbered() -> None:
    read = parse_scenario(scenario(members={"c": {"count": 2, "topics": "orders", "instance_id": "pod-{n}"}}))
    assert [one.instance_id for one in read.members] == ["pod-1", "pod-2"]


def test_a_burst_is_the_rate_while_it_lasts() -> None:
    rate = {
        "base": "10/s",
        "bursts": [{"at": "1m", "for": "30s", "rate": "2k/s"}, {"at": 0, "for": "1s", "rate": "1/s"}],
    }
    assert refusal(topic(rate=rate)) == "topics.orders.rate.bursts[1].at: begins before the burst before it has ended"
    rate["bursts"].reverse()  # type: ignore[attr-defined]
    read = parse_scenario(topic(rate=rate))
    assert read.topics[0].rate.steps == ((0, 1.0), (1_000, 10.0), (60_000, 2_000.0), (90_000, 10.0))


def test_a_daily_curve_peaks_at_its_hour_and_keeps_its_mean() -> None:
    data = topic(rate={"daily": {"low": "100/s", "high": "300/s", "peak": "14h"}}) | {"duration": "24h"}
    steps = parse_scenario(data).topics[0].rate.steps
    rates = [rate for _, rate in steps]
    assert len(steps) == 96  # quarters of an hour
    assert sum(rates) / len(rates) == pytest.approx(200)
    assert max(rates) == pytest.approx(300, rel=0.001)
    assert steps[rates.index(max(rates))][0] in (13.75 * 3_600_000, 14 * 3_600_000)


def test_a_burst_over_a_curve_ends_where_the_curve_has_got_to() -> None:
    daily = {"low": "100/s", "high": "300/s"}
    plain = parse_scenario(topic(rate={"daily": daily}) | {"duration": "4h"}).topics[0].rate.steps
    burst = {"at": "1h", "for": "1h", "rate": "9k/s"}
    steps = parse_scenario(topic(rate={"daily": daily, "bursts": [burst]}) | {"duration": "4h"}).topics[0].rate.steps
    hour = 3_600_000
    before = [step for step in plain if step[0] < hour]
    after = [step for step in plain if step[0] >= 2 * hour]
    assert list(steps) == [*before, (hour, 9_000.0), *after]


def test_skews_become_weights_that_add_up_to_one() -> None:
    assert parse_scenario(topic(skew="zipf 1")).topics[0].weights == pytest.approx([12 / 25, 6 / 25, 4 / 25, 3 / 25])
    assert parse_scenario(topic(skew=[7, 1, 1, 1])).topics[0].weights == (0.7, 0.1, 0.1, 0.1)


def test_racks_are_dealt_round_the_partitions() -> None:
    read = parse_scenario(topic(racks=["a", "b", "c"], replicas=2))
    assert read.topics[0].racks == (("a", "b"), ("b", "c"), ("c", "a"), ("a", "b"))


def test_the_timeline_is_put_in_order_and_kinds_stand_for_their_members() -> None:
    read = parse_scenario(events({"at": "2m", "crash": "c"}, {"at": "1m", "scale": {"members": "c", "to": 5}}))
    assert read.timeline == (
        model.Scale(at_ms=60_000, to=5, template="c-1"),
        model.Crash(at_ms=120_000, members=("c-1", "c-2")),
    )


def test_who_is_first_started_by_the_timeline_begins_late() -> None:
    read = parse_scenario(
        events({"at": "1m", "stop": "c-1"}, {"at": "2m", "start": "c-1"}, {"at": "3m", "start": "c-2"})
    )
    assert late_starters(read.timeline) == {"c-2"}


@pytest.mark.parametrize(
    ("client", "strategy"),
    [
        ({"group.protocol": "consumer"}, "consumer/uniform"),
        ({"group.protocol": "CONSUMER", "group.remote.assignor": "range"}, "consumer/range"),
        ({"group.protocol": "classic"}, "classic/range,cooperative-sticky"),  # Java's default list
        ({"partition.assignment.strategy": "cooperative-sticky"}, "classic/cooperative-sticky"),
        (
            {"partition.assignment.strategy": ["org.apache.kafka.clients.consumer.StickyAssignor"]},
            "classic/sticky",
        ),
        ({"session.timeout.ms": "20s"}, None),
    ],
)
def test_kafkas_three_properties_say_the_strategy(client: dict[str, Any], strategy: str | None) -> None:
    read = parse_scenario(scenario(client=client))
    assert read.strategy == strategy
    assert set(read.client) <= {"session.timeout.ms"}


def test_settings_become_what_the_machines_want() -> None:
    read = parse_scenario(
        scenario(
            client={"session.timeout.ms": "20s", "enable.auto.commit": "false", "metadata.max.age.ms": "1m"},
            broker={"group.initial.rebalance.delay.ms": "3s", "group.max.size": 10},
            members={"a": {"topics": "orders", "client": {"client.rack": "r", "group.instance.id": "i"}}},
        )
    )
    assert read.client == {"session.timeout.ms": 20_000, "enable.auto.commit": False}
    assert read.metadata_max_age_ms == 60_000
    assert read.broker == {"group.initial.rebalance.delay.ms": 3_000, "group.max.size": 10}
    assert (read.members[0].rack, read.members[0].instance_id, read.members[0].client) == ("r", "i", {})


def test_a_section_with_nothing_in_it_is_as_good_as_none() -> None:
    text = "duration: 1m\ntopics: {t: {partitions: 1}}\nmembers: {c: {topics: t}}\nnetwork:\nclient:\ntimeline:\n"
    assert parse_scenario(decode_document(text)).network == model.Network()


# What is wrong with files.


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "the scenario is empty: it needs duration, topics and members"),
        ([], "a scenario is a mapping with duration, topics and members, got []"),
        ({}, "duration: is missing"),
        (scenario(nmae="x"), "nmae: unknown key; did you mean 'name'?"),
        (scenario(duration=600), "duration: 600 has no unit: say 500ms, 20s, 5m, 2h or 1d"),
        (scenario(duration="0s"), "duration: must be above 0, got '0s'"),
        (scenario(strategy="classic/best"), 'strategy: unknown strategy "classic/best"; known: classic/range'),
        (scenario(strategy="consumer/uniform,range"), "strategy: only classic members offer several assignors"),
        (scenario(network={"loss": 2}), "network.loss: 2 has no percent sign: say 2%"),
        (
            scenario(callbacks={"assigned_per_partition": "1s"}),
            "callbacks.assigned_per_partition: unknown key; did you",
        ),
        # topics
        (scenario(topics={}), "topics: must not be empty"),
        (scenario(topics={True: {"partitions": 1}}), "topics: the key yes is not text: put it in quotes"),
        (scenario(topics={"a b": {"partitions": 1}}), "topics: 'a b' cannot be a topic's name: letters"),
        (topic(partitions="4"), "topics.orders.partitions: expected a whole number, got '4'"),
        (topic(partitions=0), "topics.orders.partitions: must be at least 1, got 0"),
        (topic(partitions=2_000_001), "topics.orders.partitions: must be at most 2,000,000, got 2000001"),
        (topic(rate="0/s"), "topics.orders.rate: must be above 0, got '0/s'; leave it out for a topic without records"),
        (topic(rate="-1/s"), "topics.orders.rate: '-1/s' is not a rate: say 100/s, 6000/m or 1.5k/s"),
        (topic(rate="1e12/s"), "topics.orders.rate: must be between 0/s and 1G/s, got '1e12/s'"),
        (topic(rate={"base": "1e12/s"}), "topics.orders.rate.base: must be between 0/s and 1G/s, got '1e12/s'"),
        (topic(rate=5), "topics.orders.rate: 5 is not a rate: say 100/s, 6000/m or 1.5k/s"),
        (topic(rate={"base": "0/s"}), "topics.orders.rate.base: must be above 0, unless there are bursts"),
        (
            topic(rate={"base": "1/s", "bursts": [{"at": "1d", "for": "1s", "rate": "5/s"}]}),
            "topics.orders.rate.bursts[0].at: comes after the scenario's duration",
        ),
        (
            topic(rate={"steps": [{"at": 0, "rate": "1/s"}, {"at": "1d", "rate": "5/s"}]}),
            "topics.orders.rate.steps[1].at: comes after the scenario's duration",
        ),
        (
            topic(rate={"daily": {"low": "5/s", "high": "5/s"}}),
            "topics.orders.rate.daily.high: must be above low (5/s)",
        ),
        (
            topic(rate={"base": "5/s", "daily": {"low": "5/s", "high": "6/s"}}),
            "topics.orders.rate.daily: a rate has base",
        ),
        (topic(rate={"steps": [{"at": "1s", "rate": "1/s"}]}), "topics.orders.rate.steps[0].at: the first step begins"),
        (topic(skew=[1, 2]), "topics.orders.skew: has 2 weights for 4 partitions; it needs one each"),
        (topic(skew="pareto"), "topics.orders.skew: 'pareto' is not a skew: say zipf 1.1"),
        (topic(skew=[1, 1, 1, -1]), "topics.orders.skew: [1, 1, 1, -1] is not a skew"),
        (topic(racks=[["a"]]), "topics.orders.racks: has 1 entries for 4 partitions; it needs one each"),
        (topic(replicas=2), "topics.orders.replicas: goes with a plain list of racks"),
        # members
        (scenario(members={}), "members: must not be empty"),
        (scenario(members={"c": {}}), "members.c: a member has either topics or a pattern"),
        (
            scenario(members={"a\nb": {"topics": "orders"}}),
            "members: 'a\\nb' cannot be a member's name",
        ),
        (scenario(members={"a\u2028b": {"topics": "orders"}}), "members: 'a\\u2028b' cannot be a member's name"),
        (scenario(members={"\x1b[31m": {"topics": "orders"}}), "members: '\\x1b[31m' cannot be a member's name"),
        (scenario(members={"\u202evil": {"topics": "orders"}}), "members: '\\u202evil' cannot be a member's name"),
        (member(count=0), "members.c.count: must be at least 1, got 0"),
        (member(count=20_001), "members.c.count: must be at most 20,000, got 20001"),
        (member(topics=["order"]), "members.c.topics: there is never a topic order; did you mean orders?"),
        (member(topics=[]), "members.c.topics: the list is empty"),
        (member(count=2, topics=["a\nb"]), "members.c.topics: there is never a topic 'a\\nb'"),
        (scenario(members={"c": {"pattern": "(or"}}), "members.c.pattern: '(or' does not compile: missing )"),
        (member(capacity="0/s"), "members.c.capacity: must be above 0, got '0/s'"),
        (member(capacity="1e308/s"), "members.c.capacity: must be between 1/d and 1G/s, got '1e308/s'"),
        (member(record="1e-9us"), "members.c.record: must be between 0.001us and 1440m, got '1e-9us'"),
        (member(capacity="5/s", record="1ms"), "members.c.capacity: says the same as record: give one of them"),
        (member(racks=["a"]), "members.c.racks: is for a count of members: one member stands in one rack"),
        (member(count=2, instance_id="x"), "members.c.instance_id: 2 members cannot share one: put {n} in it"),
        (
            scenario(members={"c": {"count": 2, "topics": "orders"}, "c-2": {"topics": "orders"}}),
            "members.c: two members would be called 'c-2'",
        ),
        (
            scenario(members={name: {"topics": "orders", "instance_id": "x"} for name in "ab"}),
            "members.b.instance_id: x is a's already",
        ),
        (
            scenario(members={name: {"topics": "orders", "client": {"group.instance.id": "x"}} for name in "ab"}),
            'members.b.client["group.instance.id"]: x is a\'s already',
        ),
        (
            member(count=2, client={"group.instance.id": "x"}),
            'members.c.client["group.instance.id"]: 2 members cannot share one: put {n} in it',
        ),
        # settings
        (
            scenario(client={"session.timeout": 1}),
            'client["session.timeout"]: is no consumer setting that the lab knows; did',
        ),
        (
            scenario(client={"socket.timeout.ms": 1}),
            "client[\"socket.timeout.ms\"]: is librdkafka's own setting: Kafka's name",
        ),
        (
            scenario(client={"bootstrap.servers": "x"}),
            'client["bootstrap.servers"]: means nothing to the lab: leave it out',
        ),
        (scenario(client={"client.rack": "x"}), 'client["client.rack"]: is one member\'s own'),
        (
            scenario(client={"group.max.size": 1}),
            'client["group.max.size"]: is a broker\'s setting: write it in `broker`',
        ),
        (
            member(client={"group.protocol": "classic"}),
            'members.c.client["group.protocol"]: is set for the whole group',
        ),
        (
            scenario(client={"heartbeat.interval.ms": "45s"}),
            'client["heartbeat.interval.ms"]: is 45000, and must be lower than session.timeout.ms (45000)',
        ),
        (
            member(client={"session.timeout.ms": "3s"}),
            'members.c.client["session.timeout.ms"]: is 3000, and must be above heartbeat.interval.ms (3000)',
        ),
        (
            scenario(
                client={"heartbeat.interval.ms": "9s"},
                members={"c": {"topics": "orders", "client": {"session.timeout.ms": "8s"}}},
            ),
            'members.c.client["session.timeout.ms"]: is 8000, and must be above heartbeat.interval.ms (9000)',
        ),
        (
            scenario(broker={"group.min.session.timeout.ms": "1m"}),
            'broker["group.min.session.timeout.ms"]: is 60000; members have a session.timeout.ms of 45000',
        ),
        (
            scenario(broker={"group.max.session.timeout.ms": "40s"}),
            'broker["group.max.session.timeout.ms"]: is 40000; members have a session.timeout.ms of 45000',
        ),
        (
            scenario(broker={"group.max.session.timeout.ms": "5s"}),
            'broker["group.max.session.timeout.ms"]: is 5000, below group.min.session.timeout.ms (6000)',
        ),
        (
            scenario(broker={"group.consumer.min.session.timeout.ms": "50s"}),
            'broker["group.consumer.min.session.timeout.ms"]: is 50000, and group.consumer.session.timeout.ms 45000',
        ),
        (
            scenario(broker={"group.consumer.max.heartbeat.interval.ms": "4s"}),
            'broker["group.consumer.max.heartbeat.interval.ms"]: is 4000, and group.consumer.heartbeat',
        ),
        (
            scenario(broker={"group.consumer.min.session.timeout.ms": "4s", "group.consumer.session.timeout.ms": "5s"}),
            'broker["group.consumer.session.timeout.ms"]: is 5000, and must be above group.consumer.heartbeat',
        ),
        (
            scenario(client={"session.timeout.ms": "2h"}),
            'client["session.timeout.ms"]: is 7200000; brokers take 6000 to 1800000',
        ),
        (
            scenario(strategy="classic/range", client={"group.protocol": "consumer"}),
            "strategy: is classic/range, but the client's settings say consumer/uniform",
        ),
        (
            scenario(strategy="classic/range+static,sticky"),
            'strategy: +static stands once, at the end, and holds for all assignors: "classic/range+static,sticky"',
        ),
        (scenario(strategy="classic/range+static+static"), "strategy: +static stands once, at the end"),
        (
            scenario(client={"group.protocol": "consumer", "partition.assignment.strategy": "range"}),
            'client["partition.assignment.strategy"]: means nothing with group.protocol=consumer, and Kafka refuses it',
        ),
        (
            scenario(broker={"group.max.sise": 1}),
            'broker["group.max.sise"]: is no broker setting that the lab knows; did you',
        ),
        (
            scenario(broker={"group.consumer.session.timeout.ms": "1s"}),
            'broker["group.consumer.session.timeout.ms"]: must be between its own minimum 45000 and maximum 60000',
        ),
        # poison
        (
            scenario(poison=[{"topic": "orders", "partition": 4, "offset": 0, "stall": "1m"}]),
            "poison[0].partition: orders has partitions 0 to 3 at most",
        ),
        (
            scenario(poison=[{"topic": "orders", "partition": 0, "offset": 2**63, "stall": "1m"}]),
            "poison[0].offset: must be at most 9,223,372,036,854,775,807, got",
        ),
    ],
)
def test_what_is_wrong_is_one_line_with_its_path(data: object, message: str) -> None:
    assert refusal(data).startswith(message)


def test_names_may_count_from_zero_as_in_a_stateful_set() -> None:
    """Who is scaled out is called pod-2 in a run: the reader said that there is no such member."""
    pods = {"pod-0": {"topics": "orders"}, "pod-1": {"topics": "orders"}}
    scales = {"at": "1m", "scale": {"members": "pod-0", "to": 3}}
    good = parse_scenario(scenario(members=pods, timeline=[scales, {"at": "2m", "stop": "pod-2"}]))
    facts = simulate(good, "classic/range", 1).facts
    closed = [fact["member"] for fact in facts if fact["fact"] == "process" and fact["is"] == "closed"]
    assert closed == ["pod-2"]


@pytest.mark.parametrize(
    "data",
    [
        member(topics=None, pattern="x\n" * 9_000 + "("),
        member(rack="x\n" * 9_000, client={"client.rack": "y"}),
        member(instance_id="x", client={"group.instance.id": "y\n" * 9_000}),
    ],
)
def test_a_value_without_end_is_still_a_line(data: object) -> None:
    message = refusal(data)
    assert "\n" not in message
    assert len(message) < 200


@pytest.mark.parametrize("word", ["x", "x y "])
def test_a_key_without_end_is_still_a_line(word: str) -> None:
    key = word * 100_000
    assert refusal(topic(**{key: 1})).startswith(f'topics.orders["{key[:248]}…"]: unknown key; known here: ')


@pytest.mark.parametrize(
    ("timeline", "message"),
    [
        ([{"crash": "c-1"}], "timeline[0].at: is missing"),
        ([{"at": "1m"}], "timeline[0]: says no event: one of start, stop, crash"),
        ([{"at": "1m", "crash": "c-1", "stop": "c-2"}], "timeline[0]: has stop and crash: one event a line"),
        ([{"at": "1m", "explode": "c-1"}], "timeline[0].explode: unknown key; known here: at, start"),
        (
            [{"at": "1m", "network partition": "c-1"}],
            "timeline[0].network partition: unknown key; did you mean 'isolate'?",
        ),
        ([{"at": "1m", "failover": {"down": "1s"}}], "timeline[0].failover: unknown key; did you mean 'fail over'?"),
        ([{"at": "11m", "crash": "c-1"}], "timeline[0].at: comes after the scenario's duration"),
        ([{"at": "-1m", "crash": "c-1"}], "timeline[0].at: '-1m' is not a duration"),
        (
            [{"at": "1m", "rolling restart": {"downtime": "20 parsecs", "gap": "1s"}}],
            "timeline[0].rolling restart.downtime: '20 parsecs' is not a duration: say 500ms, 20s, 5m, 2h or 1d",
        ),
        (
            [{"at": "1m", "rolling_restart": {}}],
            "timeline[0].rolling_restart: unknown key; did you mean 'rolling restart'?",
        ),
        (
            [{"at": "1m", "restart": {"members": "c-9", "downtime": "1s"}}],
            "timeline[0].restart.members: there is no member c-9",
        ),
        (
            [{"at": "2m", "start": "c-1"}, {"at": "1m", "restart": {"members": "c-1", "downtime": "1s"}}],
            "timeline[1].restart.members: c-1 has not started by 1m",
        ),
        (
            [{"at": "1m", "restart": {"members": "c-1", "downtime": "1s", "times": 3}}],
            "timeline[0].restart.every: is missing: 3 restarts, one every how long?",
        ),
        (
            [{"at": "1m", "restart": {"members": "c-1", "downtime": "1s", "every": "20s"}}],
            "timeline[0].restart.times: is missing: one every 20s, and how often? Say 2 or more",
        ),
        ([{"at": "1m", "pause": "c-1"}], "timeline[0].pause.for: is missing"),
        ([{"at": "1m", "slow": {"members": "c-1", "factor": 0}}], "timeline[0].slow.factor: must be above 0, got 0"),
        ([{"at": "1m", "scale": {"members": "d", "to": 3}}], "timeline[0].scale.members: there is no member d"),
        ([{"at": "1m", "crash": ["c-1", "c-9"]}], "timeline[0].crash: there is no member c-9"),
        ([{"at": "1m", "start": {"members": "c-9"}}], "timeline[0].start.members: there is no member c-9"),
        (
            [{"at": "1m", "scale": {"members": "c", "to": 20_001}}],
            "timeline[0].scale.to: the scenario would have more than 20,000 members",
        ),
        (
            [{"at": "2m", "crash": "c-3"}, {"at": "3m", "scale": {"members": "c", "to": 3}}],
            "timeline[0].crash: there is no member c-3",  # not yet
        ),
        (
            [{"at": "1m", "autoscale": {"members": "c", "least": 3, "most": 2, "lag per member": 5}}],
            "timeline[0].autoscale.most: is 2, below least (3)",
        ),
        (
            [{"at": "1m", "add partitions": {"topic": "orders", "to": 4}}],
            "timeline[0].add partitions.to: orders has 4 partitions then, and they only become more",
        ),
        (
            [{"at": "1m", "add partitions": {"topic": "refunds", "to": 4}}],
            "timeline[0].add partitions.topic: there is no topic refunds at 1m",
        ),
        (
            [{"at": "1m", "delete topic": "orders"}, {"at": "2m", "delete topic": "orders"}],
            "timeline[1].delete topic: there is no topic orders at 2m",
        ),
        (
            [{"at": "1m", "create topic": {"name": "orders", "partitions": 1}}],
            "timeline[0].create topic.name: there is a topic orders already",
        ),
        ([{"at": "1m", "subscribe": "c"}], "timeline[0].subscribe: say either topics or a pattern"),
        (
            [{"at": "1m", "rolling restart": {"downtime": "1s", "strategy": "nope"}}],
            'timeline[0].rolling restart.strategy: unknown strategy "nope"',
        ),
    ],
)
def test_a_timeline_that_cannot_happen_is_refused(timeline: list[Any], message: str) -> None:
    assert refusal(events(*timeline)).startswith(message)


def test_scaling_brings_members_that_the_timeline_may_name_from_then_on() -> None:
    parse_scenario(events({"at": "1m", "scale": {"members": "c", "to": 3}}, {"at": "2m", "crash": "c-3"}))


def test_a_kinds_name_in_a_long_timeline_does_not_grow_without_end() -> None:
    data = scenario(members={"c": {"count": 20_000, "topics": "orders"}}, timeline=[{"at": "1m", "crash": "c"}] * 101)
    assert refusal(data) == "timeline[100].crash: up to here the timeline names members more than 2,000,000 times"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("partitions: 4", "partitions: 010"), "topics.orders.partitions: expected a whole number, got '010'"),
        (("partitions: 4", "partitions: 1:30"), "topics.orders.partitions: expected a whole number, got '1:30'"),
        (("10m", "10:00"), "duration: '10:00' is not a duration: say"),
        (("members:", "on: 1\nmembers:"), "on: unknown key; known here"),
        (("orders: {p", "2026-01-01: {q"), "topics.2026-01-01.qartitions: unknown key; did you mean 'partitions'?"),
    ],
)
def test_yaml_of_its_own_kind_is_told_as_it_is_written(change: tuple[str, str], message: str) -> None:
    text = "duration: 10m\ntopics: {orders: {partitions: 4}}\nmembers: {c: {topics: orders}}\n"
    assert message in refusal(decode_document(text.replace(*change)))


def test_a_number_may_be_written_with_an_exponent() -> None:
    text = (
        "duration: 10m\ntopics: {orders: {partitions: 4}}\nmembers: {c: {topics: orders}}\n"
        "timeline: [{at: 1m, slow: {members: c, factor: 1e3}}]"
    )
    assert parse_scenario(decode_document(text)).timeline == (model.Slow(at_ms=60_000, members=("c",), factor=1_000.0),)


def test_files_that_are_not_there_are_one_line_too(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"nowhere\.yaml: No such file or directory"):
        load_scenario(tmp_path / "nowhere.yaml")
    with pytest.raises(ContractError, match="Is a directory"):
        load_scenario(tmp_path)


def test_assign_and_the_model_start_without_pydantic_and_yaml() -> None:
    code = (
        "import sys; from rebalance_lab.api import cli; from rebalance_lab.api.commands import assign_command; "
        "from rebalance_lab.harness.scenario import model, presence; "
        "print([name for name in ('pydantic', 'yaml') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
