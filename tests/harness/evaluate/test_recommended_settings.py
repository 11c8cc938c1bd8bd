"""What to paste and what to know before, where members have settings of their own and clients have limits of theirs."""

from __future__ import annotations

from typing import Any

import pytest

from rebalance_lab.assignors.model import Group, Member, Topic
from rebalance_lab.harness.evaluate.recommend.cautions import fetch_session_caution
from rebalance_lab.harness.evaluate.recommend.idle_members import idle_members
from rebalance_lab.harness.evaluate.recommend.properties_to_paste import Properties, properties
from rebalance_lab.harness.scenario.model import Scenario
from rebalance_lab.harness.scenario.reader import parse_scenario
from tests.harness.evaluate.test_recommend import COOPERATIVE, EAGER, UNIFORM, advise
from tests.harness.small_scenarios import RESTART

BEAT = "heartbeat.interval.ms"
SESSION, POLL, COMMIT = "session.timeout.ms", "max.poll.interval.ms", "auto.commit.interval.ms"


def of_members(**own: Any) -> Scenario:
    """Three that are like each other, and one that is not."""
    members = {"consumer": {"count": 3, "topics": "orders", **own}, "audit": {"topics": "orders"}}
    if "client" in own:
        members["audit"]["client"] = {**own["client"], POLL: "20s"}
    return parse_scenario({**RESTART, "members": members})


def java(paste: Properties) -> dict[str, str]:
    assert paste.java is not None
    return dict(paste.java)


def test_what_all_members_have_of_their_own_is_pasted_and_who_differs_is_said() -> None:
    paste = properties(EAGER, of_members(client={SESSION: "10s", POLL: "30s"}))
    assert java(paste)[SESSION] == "10000"
    assert POLL not in java(paste)
    assert "consumer-1, consumer-2 and consumer-3 have max.poll.interval.ms=30000 of their own" in paste.notes
    assert "audit has max.poll.interval.ms=20000 of its own" in paste.notes


def test_who_has_the_groups_own_value_is_not_told_of() -> None:
    members = {"consumer": {"count": 40, "topics": "orders"}, "audit": {"topics": "orders", "client": {POLL: "60s"}}}
    paste = properties(EAGER, parse_scenario({**RESTART, "members": members, "client": {POLL: "90s"}}))
    assert java(paste)[POLL] == "90000"
    assert [note for note in paste.notes if "of its own" in note] == ["audit has max.poll.interval.ms=60000 of its own"]


def test_settings_that_mean_nothing_are_pointed_out_wherever_they_stand() -> None:
    said = " ".join(advise(of_members(client={SESSION: "10s"}), {UNIFORM: [1.0] * 6}).cautions)
    assert "session.timeout.ms of the clients mean nothing in the consumer protocol" in said


def test_members_that_are_static_stay_so_and_come_with_the_warnings() -> None:
    some = of_members(instance_id="pod-{n}", client={SESSION: "10s"})
    advice = advise(some, {UNIFORM: [1.0] * 6})
    assert "group.instance.id" in java(advice.properties)
    assert "In these runs consumer-1, consumer-2 and consumer-3 had a group.instance.id" in advice.properties.notes
    assert "UNRELEASED_INSTANCE_ID" in " ".join(advice.cautions)
    assert "before its session ends (10s)" in " ".join(advise(some, {EAGER: [1.0] * 6}).cautions)
    assert "group.instance.id" not in java(properties(EAGER, of_members()))


def test_what_the_steps_change_is_not_pasted_as_it_is_now() -> None:
    broker = {"group.consumer.migration.policy": "disabled", "group.consumer.session.timeout.ms": 50_000}
    paste = properties(UNIFORM, parse_scenario({**RESTART, "broker": broker}))
    assert paste.broker == {"group.consumer.session.timeout.ms": "50000"}


def test_a_session_that_brokers_refuse_by_default_comes_with_the_brokers_setting() -> None:
    broker = {"group.min.session.timeout.ms": 2_000}
    paste = properties(EAGER, parse_scenario({**RESTART, "broker": broker, "client": {SESSION: "4s"}}))
    assert paste.broker == {"group.min.session.timeout.ms": "2000"}


@pytest.mark.parametrize(
    ("client", "strategy", "changed"),
    [
        ({POLL: "30s"}, COOPERATIVE, {POLL: "45000"}),
        ({POLL: "30s", SESSION: "10s"}, COOPERATIVE, {}),
        ({POLL: "30s"}, UNIFORM, {}),
        ({SESSION: "10m"}, EAGER, {POLL: "600000"}),
        ({SESSION: "10m"}, UNIFORM, {}),
        ({POLL: "2d", COMMIT: "2d"}, UNIFORM, {POLL: "86400000", COMMIT: "86400000"}),
        ({COMMIT: 0}, EAGER, {COMMIT: "1"}),  # to librdkafka that is no auto-commit at all
        ({SESSION: "2h", POLL: "3h"}, EAGER, {SESSION: "3600000"}),
    ],
)
def test_librdkafka_gets_what_it_takes_and_what_that_changes_is_said(
    client: dict[str, Any], strategy: str, changed: dict[str, str]
) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    broker = {"group.max.session.timeout.ms": 2**31 - 1}
    paste = properties(strategy, parse_scenario({**RESTART, "client": client, "broker": broker}))
    assert paste.librdkafka is not None
    asked = java(paste)
    different = {name: value for name, value in paste.librdkafka.items() if asked.get(name) != value}
    assert {name: value for name, value in different.items() if name.endswith(".ms")} == changed
    assert [name for name in changed if any(f"{name}={changed[name]}" in note for note in paste.notes)] == [*changed]
    settings = {**paste.librdkafka, "group.id": "g", "bootstrap.servers": "localhost:1", "log_level": 0}
    confluent_kafka.Consumer(settings).close()


@pytest.mark.parametrize(
    ("timeline", "need"),
    [
        ([], None),
        ([{"at": "1m", "scale": {"members": "consumer", "to": 1500}}], 1_500),
        ([{"at": "1m", "autoscale": {"members": "consumer", "most": 1400, "lag per member": 10}}], 1_400),
    ],
)
def test_fetch_session_slots_are_to_suffice_for_the_group_at_its_largest(
    timeline: list[dict[str, Any]], need: int | None
) -> None:
    topics = {"orders": {"partitions": 3_000}}
    said = fetch_session_caution(parse_scenario({**RESTART, "topics": topics, "timeline": timeline}), 1, EAGER)
    assert (said is not None) == (need is not None)
    assert need is None or f"needs {need:,} ({need:,} consumers" in str(said)


@pytest.mark.parametrize(
    "event",
    [
        {"add partitions": {"topic": "orders", "to": 3_000}},
        {"create topic": {"name": "more-orders", "partitions": 3_000}},
    ],
)
def test_fetch_session_slots_are_to_suffice_for_partitions_yet_to_come(event: dict[str, Any]) -> None:
    members = {"consumer": {"count": 1_200, "pattern": ".*orders"}}
    life = {"members": members, "timeline": [{"at": "1m", **event}]}
    said = fetch_session_caution(parse_scenario({**RESTART, **life}), 1, EAGER)
    assert "needs 1,200" in str(said)


@pytest.mark.parametrize(
    ("strategy", "client", "broker", "said"),
    [
        (
            EAGER,
            {SESSION: "10s", BEAT: "9900ms"},
            {},
            "heartbeat.interval.ms is 9,900 ms, and session.timeout.ms is 10,000 ms",
        ),
        (EAGER, {SESSION: "10s", BEAT: "9900ms"}, {}, "whose heartbeat is late or lost"),
        (EAGER, {SESSION: "10s", BEAT: "4s"}, {}, "whose 2 heartbeats are late or lost"),
        (EAGER, {SESSION: "10s", BEAT: "3400ms"}, {}, "at most 3,333 ms."),
        (EAGER, {SESSION: "10s", BEAT: "3333ms"}, {}, None),
        (EAGER, {}, {}, None),
        (UNIFORM, {SESSION: "10s", BEAT: "9900ms"}, {}, None),
        (
            UNIFORM,
            {},
            {"group.consumer.heartbeat.interval.ms": 16_000, "group.consumer.max.heartbeat.interval.ms": 16_000},
            "group.consumer.heartbeat.interval.ms is 16,000 ms, and group.consumer.session.timeout.ms is 45,000 ms",
        ),
    ],
)
def test_heartbeats_above_a_third_of_the_session_are_warned_of(
    strategy: str, client: dict[str, str], broker: dict[str, int], said: str | None
) -> None:
    scenario = parse_scenario({**RESTART, "client": client, "broker": broker})
    found = [text for text in advise(scenario, {strategy: [1.0] * 6}).cautions if "a third of the session" in text]
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


def test_the_member_with_the_fewest_heartbeats_in_its_session_is_warned_of() -> None:
    some = {"consumer": {"count": 3, "topics": "orders"}, "audit": {"topics": "orders", "client": {BEAT: "20s"}}}
    said = " ".join(advise(parse_scenario({**RESTART, "members": some}), {EAGER: [1.0] * 6}).cautions)
    assert "heartbeat.interval.ms is 20,000 ms" in said


@pytest.mark.parametrize(
    ("partitions", "timeline", "said"),
    [
        (2, [], "The group has 3 members and 2 partitions at the start: 1 member is idle, whatever the strategy."),
        (1, [], "The group has 3 members and 1 partition at the start: 2 members are idle, whatever the strategy."),
        (3, [], None),
        (
            3,
            [{"at": "40s", "scale": {"members": "consumer", "to": 5}}],
            "5 members and 3 partitions when the group is largest",
        ),
    ],
)
def test_members_without_a_partition_are_warned_of(partitions: int, timeline: list[Any], said: str | None) -> None:
    topics = {"orders": {"partitions": partitions, "rate": "60/s"}}
    scenario = parse_scenario({**RESTART, "topics": topics, "timeline": timeline})
    found = [text for text in advise(scenario, {EAGER: [1.0] * 6}).cautions if "idle" in text]
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


@pytest.mark.parametrize(
    ("partitions", "subscriptions", "idle"),
    [
        ({"a": 1, "b": 5}, ["a", "a", "b"], 1),  # two members share a topic of one partition
        ({"a": 1, "b": 1, "c": 1}, ["ab", "ac", "a"], 0),  # the first two have to leave `a` to the third
        ({"a": 2, "b": 1}, ["ab", "ab", "a", "b"], 1),
        ({"a": 2}, ["a", "", "z"], 2),
        ({"a": 900}, ["a"] * 800, 0),
    ],
)
def test_idle_members_are_counted_by_what_they_subscribe_to(
    partitions: dict[str, int], subscriptions: list[str], idle: int
) -> None:
    members = {f"m-{number}": Member(tuple(topics)) for number, topics in enumerate(subscriptions)}
    assert idle_members(Group(topics={name: Topic(n) for name, n in partitions.items()}, members=members)) == idle
