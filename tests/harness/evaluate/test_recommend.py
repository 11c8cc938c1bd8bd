"""An answer from a comparison: which, why, how sure, what to paste, how to get there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rebalance_lab.assignors.json_contract import ContractError, decode, group_from_json
from rebalance_lab.harness.evaluate.recommend.advice import Advice, recommend, sureness
from rebalance_lab.harness.evaluate.recommend.cautions import fetch_session_caution
from rebalance_lab.harness.evaluate.recommend.group_life import life_of_group
from rebalance_lab.harness.evaluate.recommend.migration_steps import migration
from rebalance_lab.harness.evaluate.recommend.properties_to_paste import properties
from rebalance_lab.harness.scenario.model import Scenario
from rebalance_lab.harness.scenario.reader import load_scenario, parse_scenario
from tests.api.conftest import Run, run  # noqa: F401 - the fixture
from tests.harness.evaluate.test_comparison import made_up, row
from tests.harness.small_scenarios import RESTART, write

EAGER, COOPERATIVE, UNIFORM = "classic/range", "classic/cooperative-sticky", "consumer/uniform"


@pytest.fixture
def scenario() -> Scenario:
    return parse_scenario(RESTART)


def advise(scenario: Scenario, costs: dict[str, list[float]], **more: Any) -> Advice:
    rows: dict[str, list[dict[str, Any] | str]] = {
        strategy: [row(unowned_s=cost) for cost in values] for strategy, values in costs.items()
    }
    return recommend(made_up(scenario, rows), **more)


def test_a_difference_beyond_chance_is_clear_and_says_by_how_much(scenario: Scenario) -> None:
    costs = {EAGER: [50.0, 52, 55, 51, 50, 58], COOPERATIVE: [20.0, 22, 25, 21, 20, 28]}
    advice = advise(scenario, costs)
    assert (advice.strategy, advice.verdict, advice.wins) == (COOPERATIVE, "clear", 1.0)
    assert advice.summary == f"Take {COOPERATIVE}: it costs 58% less than {EAGER}, which runs now."
    assert advice.reasons == (f"partitions are without an owner for 21.5 s in all instead of 51.5 s with {EAGER}",)
    assert advice.difference is not None
    assert (advice.difference.low, advice.difference.high) == (30, 30)


@pytest.mark.parametrize(("left", "said"), [(0.0, "100%"), (1.0, "over 99%"), (10.0, "99%")])
def test_only_what_costs_nothing_costs_a_hundred_percent_less(scenario: Scenario, left: float, said: str) -> None:
    advice = advise(scenario, {EAGER: [1000.0] * 6, COOPERATIVE: [left] * 6})
    assert advice.summary == f"Take {COOPERATIVE}: it costs {said} less than {EAGER}, which runs now."


def test_what_runs_now_stays_when_it_is_too_close_to_call(scenario: Scenario) -> None:
    costs = {EAGER: [10.0, 12, 9, 11, 14, 8], COOPERATIVE: [11.0, 11, 10, 10, 12, 9]}
    advice = advise(scenario, costs)
    assert (advice.strategy, advice.verdict) == (EAGER, "too close to call")
    assert advice.summary == f"Stay with {EAGER}: {COOPERATIVE} costs about the same here."
    assert advice.steps == ()


def test_what_these_seeds_cannot_tell_is_not_called_the_same(scenario: Scenario) -> None:
    costs = {EAGER: [99.0, 98, 97, 99, 98, 10], COOPERATIVE: [20.0, 22, 25, 21, 20, 98]}
    advice = advise(scenario, costs, now="classic/sticky")
    assert advice.verdict == "too close to call"
    assert advice.summary == f"Take {COOPERATIVE}; {EAGER} cannot be told from it with 6 seeds."


def test_one_strategy_alone_is_neither_best_nor_clear(scenario: Scenario) -> None:
    """A timeline that migrates is run from where it starts only."""
    advice = advise(scenario, {EAGER: [50.0] * 6})
    assert advice.verdict == "nothing to compare with"
    assert advice.summary == f"Only {EAGER} was run: there is nothing to compare it with."


def test_a_certain_but_small_gain_is_not_worth_a_migration(scenario: Scenario) -> None:
    advice = advise(scenario, {EAGER: [100.0 + n for n in range(6)], COOPERATIVE: [98.0 + n for n in range(6)]})
    assert (advice.strategy, advice.verdict) == (EAGER, "a small difference")


def test_among_equals_the_one_without_ids(scenario: Scenario) -> None:
    costs = {"consumer/uniform+static": [5.0] * 6, "consumer/uniform": [5.0] * 6, EAGER: [50.0] * 6}
    assert advise(scenario, costs).strategy == "consumer/uniform"


def test_a_few_seeds_are_never_called_clear(scenario: Scenario) -> None:
    assert advise(scenario, {EAGER: [50.0] * 3, COOPERATIVE: [5.0] * 3}).verdict == "too few seeds"


def test_what_broke_is_not_recommended_and_that_is_said(scenario: Scenario) -> None:
    rows: dict[str, list[dict[str, Any] | str]] = {
        COOPERATIVE: ["one owner: a, b", row()],
        EAGER: [row(unowned_s=9), row(unowned_s=9)],
    }
    comparison = made_up(scenario, rows)
    advice = recommend(comparison)
    assert advice.strategy == EAGER
    assert f"{COOPERATIVE} did not get through every run and was left out of the choice." in advice.cautions
    assert sureness(advice, comparison).endswith("nothing else got through every run.")
    with pytest.raises(ContractError, match="none got through"):
        recommend(made_up(scenario, {EAGER: ["one owner: a, b"]}))


# What to paste


def test_java_takes_classes_and_librdkafka_names(scenario: Scenario) -> None:
    paste = properties("classic/cooperative-sticky+static", scenario)
    assert paste.java is not None
    assert paste.librdkafka is not None
    java = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    assert paste.java["partition.assignment.strategy"] == java
    assert paste.librdkafka["partition.assignment.strategy"] == "cooperative-sticky"
    assert "group.instance.id" in paste.java


def test_settings_that_the_consumer_protocol_refuses_are_left_out() -> None:
    client = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 3_000, "max.poll.interval.ms": 60_000}
    scenario = parse_scenario({**RESTART, "client": client})
    for paste, kept in (
        (properties("classic/range", scenario), True),
        (properties("consumer/uniform", scenario), False),
    ):
        assert paste.java is not None
        assert ("session.timeout.ms" in paste.java) is kept
        assert paste.java["max.poll.interval.ms"] == "60000"


@pytest.mark.parametrize(
    "strategy",
    ["classic/range", "classic/roundrobin", "classic/cooperative-sticky+static", "consumer/uniform+static"],
)
def test_librdkafka_itself_accepts_what_it_is_given(strategy: str) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    client = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 3_000, "max.poll.interval.ms": 60_000,
              "max.poll.records": 100, "auto.commit.interval.ms": 1_000}  # fmt: skip
    paste = properties(strategy, parse_scenario({**RESTART, "client": client})).librdkafka
    assert paste is not None
    settings = {**paste, "group.id": "g", "bootstrap.servers": "localhost:1", "log_level": 0}
    if "group.instance.id" in settings:
        settings["group.instance.id"] = "pod-1"
    confluent_kafka.Consumer(settings).close()


@pytest.mark.parametrize("strategy", ["classic/sticky", "classic/load-aware", "classic/range,cooperative-sticky"])
def test_what_librdkafka_does_not_have_is_said(scenario: Scenario, strategy: str) -> None:
    paste = properties(strategy, scenario)
    assert paste.librdkafka is None
    assert paste.notes


# How to get there


def steps(now: str | None, then: str, **changes: Any) -> list[str]:
    return [step.do for step in migration(now, then, parse_scenario({**RESTART, **changes}))]


def test_eager_to_cooperative_is_a_double_rolling_restart() -> None:
    first, second, librdkafka = steps(EAGER, COOPERATIVE)
    assert first.startswith("First rolling restart: ")
    assert first.endswith("CooperativeStickyAssignor,org.apache.kafka.clients.consumer.RangeAssignor.")
    assert second.startswith("Second rolling restart: ")
    assert second.endswith(".CooperativeStickyAssignor.")
    assert librdkafka.startswith("For librdkafka clients: stop all members")


def test_from_javas_default_list_one_restart_is_enough() -> None:
    restart, *_ = steps("classic/range,cooperative-sticky", COOPERATIVE)
    assert restart.startswith("One rolling restart: ")


@pytest.mark.parametrize(
    ("now", "then", "said"),
    [
        (EAGER, COOPERATIVE, "the group stays eager"),
        (COOPERATIVE, "classic/sticky", "whoever offers both is eager from then on"),
        (COOPERATIVE, "classic/load-aware", "the group stays cooperative"),
    ],
)
def test_what_a_group_is_between_two_restarts_is_said(now: str, then: str, said: str) -> None:
    first, *_ = migration(now, then, parse_scenario(RESTART))
    assert said in first.why


def test_to_the_consumer_protocol_online() -> None:
    brokers, restart, back = steps(COOPERATIVE, "consumer/uniform")
    assert brokers.startswith("Brokers: Kafka 4.0 or newer")
    assert "group.protocol=consumer, group.remote.assignor=uniform" in restart
    assert back.startswith("To go back")


def test_a_policy_that_forbids_it_is_pointed_out() -> None:
    scenario = parse_scenario({**RESTART, "broker": {"group.consumer.migration.policy": "disabled"}})
    brokers, *_ = migration(COOPERATIVE, "consumer/uniform", scenario)
    assert "group.consumer.migration.policy=bidirectional" in brokers.do
    assert "It is disabled now" in brokers.why


@pytest.mark.parametrize(
    ("now", "then", "said"),
    [
        (EAGER, EAGER, []),
        (None, EAGER, ["Set the properties and start the group."]),
        ("consumer/uniform", "consumer/range", ["Roll all members once with group.remote.assignor=range."]),
        ("classic/range+static", EAGER, ["Roll all members once without group.instance.id."]),
    ],
)
def test_small_steps(now: str | None, then: str, said: list[str]) -> None:
    assert steps(now, then) == said


def test_adding_ids_comes_with_the_session_timeout() -> None:
    ids, timeout = steps("consumer/uniform", "consumer/uniform+static")
    assert ids == "One rolling restart: give every member its own group.instance.id."
    assert timeout == "Set group.consumer.session.timeout.ms on the brokers above the time a restart takes."


def test_ids_come_with_the_restart_there_is_and_the_way_back_comes_last() -> None:
    _, restart, ids, _, back = steps(EAGER, "consumer/uniform+static")
    assert "group.protocol=consumer" in restart
    assert ids.startswith("In the same restart")
    assert back.startswith("To go back")


def test_librdkafka_clients_are_not_told_to_leave_a_list_that_they_cannot_have() -> None:
    assert len(steps("classic/range,cooperative-sticky", COOPERATIVE)) == 1


# Cautions, groups, the command


@pytest.mark.parametrize(
    ("strategy", "record", "said"),
    [
        (COOPERATIVE, "20ms", "takes up to 10s here, and session.timeout.ms is 10s: a cooperative member"),
        (COOPERATIVE, "20ms", "At most 349 records a poll"),
        (COOPERATIVE, "40ms", "At most 174 records a poll"),
        (EAGER, "20ms", None),
        (EAGER, "1s", "takes up to 500s here, and max.poll.interval.ms is 5m: who falls behind"),
        (COOPERATIVE, "1s", "At most 299 records a poll"),
        (EAGER, "5m", "Even a single record takes as long."),
        (COOPERATIVE, "14ms", "only an interval (3s, heartbeat.interval.ms) after it has"),
        (COOPERATIVE, "13ms", None),
        (UNIFORM, "300ms", "max.poll.interval.ms is 5m (a KIP-848 consumer's two batches have to fit into it"),
        (UNIFORM, "400ms", "At most 374 records a poll"),
        (UNIFORM, "299ms", None),
    ],
)
def test_batches_that_outlast_a_timeout_are_warned_of(strategy: str, record: str, said: str | None) -> None:
    """Warn where Java's consumers come to harm (tests/harness/kafka/live/test_slow_applications.py). A batch need not
    outlast the session. Of three cooperative members with batches of 5 s, a session of 6 s and heartbeats every 3 s,
    Java's follower was thrown out; with batches of 2 s it was not, as simulated."""
    members = {"consumer": {"count": 3, "topics": "orders", "record": record}}
    scenario = parse_scenario({**RESTART, "members": members, "client": {"session.timeout.ms": "10s"}})
    found = [text for text in advise(scenario, {strategy: [1.0] * 6}).cautions if "full batch" in text]
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


@pytest.mark.parametrize(
    ("strategy", "client", "warned"),
    [
        (EAGER, {}, True),
        (EAGER, {"enable.auto.commit": False}, False),  # who commits nothing before a rebalance waits for nothing
        (COOPERATIVE, {}, False),
    ],
)
def test_an_eager_group_is_warned_of_a_topic_that_is_deleted(
    strategy: str, client: dict[str, object], warned: bool
) -> None:
    """As Java's consumers stand still (tests/harness/kafka/live/test_slow_applications.py)."""
    scenario = replace(load_scenario(Path("examples/scenarios/deleted_topic.yaml")), client=client)
    found = [text for text in advise(scenario, {strategy: [1.0] * 6}).cautions if "is deleted" in text]
    assert len(found) == warned
    assert not warned or "max.poll.interval.ms (5m)" in found[0]


def test_static_members_of_kip_848_come_with_their_warnings(scenario: Scenario) -> None:
    costs = {"consumer/uniform+static": [1.0] * 6, EAGER: [50.0] * 6}
    said = " ".join(advise(scenario, costs).cautions)
    assert "nobody takes over from a member that crashed" in said
    assert "UNRELEASED_INSTANCE_ID" in said


def test_fetch_session_slots_are_checked_where_brokers_are_known() -> None:
    small = parse_scenario(RESTART)
    assert fetch_session_caution(small, 3, "consumer/uniform+static") is None
    members = {"consumer": {"count": 1200, "topics": "orders"}}
    large = parse_scenario({**RESTART, "topics": {"orders": {"partitions": 2400}}, "members": members, "timeline": []})
    said = fetch_session_caution(large, 1, "classic/range")
    assert said is not None
    assert "max.incremental.fetch.session.cache.slots=" in said


def test_a_group_alone_gets_a_life() -> None:
    group = group_from_json(decode(Path("examples/orders.json").read_bytes()))
    found = life_of_group(group, strategy="classic/sticky")
    assert [event.KIND for event in found.timeline] == ["rolling restart", "crash", "start"]
    assert found.strategy == "classic/sticky"
    assert {member.name for member in found.members} == {*group.members, "new-1"}


def test_a_group_that_reads_nothing_has_no_life() -> None:
    with pytest.raises(ContractError, match="nothing to simulate"):
        life_of_group(group_from_json({"topics": {}, "members": {"a": {"topics": ["x"]}}}))


def test_the_command_on_a_scenario_as_json(run: Run, tmp_path: Path) -> None:  # noqa: F811
    arguments = ["--strategies", "range,cooperative-sticky", "--seeds", "6", "--jobs", "1", "--json"]
    ended = run("recommend", write(tmp_path), *arguments)
    answer = json.loads(ended.out)
    assert ended.code == 0
    assert answer["strategy"] in (EAGER, COOPERATIVE)
    assert answer["now"] == EAGER
    assert {"verdict", "reasons", "warnings", "properties", "migration", "sureness", "comparison"} <= answer.keys()


def test_the_command_on_a_group_for_people(run: Run) -> None:  # noqa: F811
    arguments = ["--strategies", "range,uniform", "--seeds", "1", "--from", "range", "--jobs", "1"]
    ended = run("recommend", "examples/orders.json", *arguments)
    assert ended.code == 0
    assert "Too few seeds: " in ended.out
    assert "a life was assumed for the group" in ended.out
    assert "Java clients" in ended.out


@pytest.mark.parametrize("path", ["group.", ""])
def test_a_wrong_group_is_told_by_its_place_in_the_document(run: Run, path: str) -> None:  # noqa: F811
    def said(**members: Any) -> str:
        group = {"topics": {"t": {"partitions": 1}}, "members": members}
        return run("recommend", "-", stdin=json.dumps({"group": group} if path else group)).err

    twice = {"topics": ["t"], "instance_id": "i"}
    assert said(a=twice, b=twice) == f"rebalance-lab: {path}members.b.instance_id: i is a's already\n"
    assert said(a={}) == f"rebalance-lab: {path}members.a.topics: is missing\n"
    assert said(a={"topics": ["u"]}).startswith(f"rebalance-lab: {path}members: nobody subscribes")


def test_an_empty_option_is_told_by_its_own_name(run: Run) -> None:  # noqa: F811
    assert run("recommend", "examples/orders.json", "--from", "").err.startswith("rebalance-lab: --from: unknown")


def test_a_report_is_written_also_when_nothing_got_through(
    run: Run,  # noqa: F811
    tmp_path: Path,
    scenario: Scenario,
) -> None:
    """It says what broke; who had asked for one found none."""
    saved, report = tmp_path / "runs.json", tmp_path / "report.html"
    saved.write_text(json.dumps(made_up(scenario, {EAGER: ["one owner: a, b"]}).to_json()))
    ended = run("recommend", str(saved), "--html", str(report), "--jobs", "1")
    assert ended.code == 1
    assert ended.err.startswith("broken: none got through every run: there is nothing to recommend\n")
    assert "No strategy got through every run." in report.read_text()
