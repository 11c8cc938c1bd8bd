"""Events that come early, meet members that are only about to start, or overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.measure.invariants import Checker
from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.harness.scenario.reader import parse_scenario
from tests.harness.small_scenarios import RESTART


def facts_of(timeline: Sequence[dict[str, Any]], strategy: str = "classic/range", **changes: Any) -> list[Fact]:
    scenario = parse_scenario({**RESTART, "timeline": timeline, **changes})
    return simulate(scenario, strategy, 1, watch=Checker().feed).facts


def starts(facts: Sequence[Fact]) -> Counter[str]:
    return Counter(fact["member"] for fact in facts if fact["fact"] == "process" and fact["is"] == "started")


def alive_at_the_end(facts: Sequence[Fact]) -> set[str]:
    found: set[str] = set()
    for fact in facts:
        if fact["fact"] == "process" and fact["is"] == "started":
            found.add(fact["member"])
        elif fact["fact"] == "process" and fact["is"] in ("closed", "killed", "failed"):
            found.discard(fact["member"])
    return found


def lags(facts: Sequence[Fact]) -> list[int]:
    return [fact["records"] for fact in facts if fact["fact"] == "lag"]


@pytest.mark.parametrize("strategy", ["classic/sticky", "consumer/uniform+static"])
def test_a_scale_out_in_the_first_moment_starts_nobody_twice(strategy: str) -> None:
    facts = facts_of([{"at": 0, "scale": {"members": "consumer", "to": 5}}], strategy)
    assert starts(facts) == {f"consumer-{n}": 1 for n in range(1, 6)}


def test_who_is_stopped_before_it_came_up_does_not_come_up() -> None:
    facts = facts_of([{"at": 0, "stop": "consumer-1"}, {"at": 0, "crash": "consumer-2"}])
    assert starts(facts) == {"consumer-3": 1}


def test_a_scale_in_reaches_those_who_are_still_to_start() -> None:
    grows = {"at": "10s", "scale": {"members": "consumer", "to": 6, "every": "20s"}}
    facts = facts_of([grows, {"at": "35s", "scale": {"members": "consumer", "to": 2}}])
    assert alive_at_the_end(facts) == {"consumer-1", "consumer-2"}
    assert max(starts(facts).values()) == 1


def test_a_rolling_restart_in_the_first_moment_is_of_everybody() -> None:
    facts = facts_of([{"at": 0, "rolling restart": {"downtime": "5s", "gap": "5s"}}])
    assert alive_at_the_end(facts) == {"consumer-1", "consumer-2", "consumer-3"}
    assert min(fact["t"] for fact in facts if fact["fact"] == "reads") > 5_000


@pytest.mark.parametrize("at", [0, "30s"])
def test_who_is_slow_from_some_moment_on_stays_slow(at: str | int) -> None:
    """Without `for` there is no end to it; and who is slow from the beginning is so once it has started."""
    facts = facts_of([{"at": at, "slow": {"members": "consumer-1", "factor": 100}}])
    assert lags(facts)[-1] > 300


def test_a_pause_in_the_first_moment_is_of_those_who_come_up() -> None:
    facts = facts_of([{"at": 0, "pause": {"members": "consumer-1", "for": "20s"}}])
    told = [fact["is"] for fact in facts if fact["fact"] == "process" and fact["member"] == "consumer-1"]
    assert told == ["started", "paused", "resumed"]


def test_an_autoscaler_that_wants_the_impossible_gets_the_most() -> None:
    wants = {"at": "30s", "autoscale": {"members": "consumer", "most": 5, "lag per member": 1e-320, "every": "10s"}}
    facts = facts_of([wants, {"at": "20s", "slow": {"members": "consumer", "factor": 1_000, "for": "30s"}}])
    assert len(starts(facts)) == 5


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"poison": [{"topic": "orders", "partition": 3, "offset": 900, "stall": "2m"}]}, "walks from one to the next"),
        ({"callbacks": {"assigned per partition": "5m"}}, "is still in its callback"),
        ({"network": {"latency": "2d"}}, "has heard nothing yet"),
    ],
)
@pytest.mark.parametrize("strategy", ["classic/cooperative-sticky", "consumer/uniform+static"])
def test_nobody_is_expected_to_come_to_rest_who_is_held_up(changes: dict[str, Any], why: str, strategy: str) -> None:
    client = {"max.poll.interval.ms": "60s", "session.timeout.ms": "10s"}
    end = next(
        fact for fact in facts_of([], strategy, client=client, duration="12m", **changes) if fact["fact"] == "end"
    )
    assert end["quiet"] is False, why


def test_an_application_that_polls_in_time_is_expected_to_come_to_rest() -> None:
    end = next(fact for fact in facts_of(RESTART["timeline"], duration="12m") if fact["fact"] == "end")
    assert end == {**end, "quiet": True, "unread": {}}


@pytest.mark.parametrize("surge", [False, True])
def test_a_rolling_restart_is_also_of_those_who_are_still_to_start(surge: bool) -> None:
    grows = {"at": "10s", "scale": {"members": "consumer", "to": 6, "every": "20s"}}
    deploy = {"at": "35s", "rolling restart": {"downtime": "1s", "gap": "1s", "surge": surge}}
    facts = facts_of([grows, deploy], duration="4m")
    assert {name.partition("~")[0] for name in alive_at_the_end(facts)} == {f"consumer-{n}" for n in range(1, 7)}
    assert len(alive_at_the_end(facts)) == 6


@pytest.mark.parametrize(
    "timeline",
    [
        [{"at": "1m", "fail over": {"down": "9m"}}],
        [
            {"at": "1m", "slow": {"members": "consumer-1", "factor": 2, "for": "9m"}},
            {"at": "2m", "crash": "consumer-2"},
        ],
        [{"at": "1m", "scale": {"members": "consumer", "to": 9, "every": "90s"}}],
    ],
)
def test_nobody_is_expected_to_come_to_rest_before_the_last_event_is_over(timeline: list[dict[str, Any]]) -> None:
    end = next(fact for fact in facts_of(timeline, duration="12m") if fact["fact"] == "end")
    assert end["quiet"] is False


DOUBLE_BOUNCE = [
    {"at": "1m", "rolling restart": {"downtime": "5s", "gap": "20s", "strategy": "classic/cooperative-sticky,range"}},
    {"at": "3m", "rolling restart": {"downtime": "5s", "gap": "20s", "strategy": "classic/cooperative-sticky"}},
]


def failures(facts: Sequence[Fact]) -> int:
    return sum(fact["fact"] == "process" and fact["is"] == "failed" for fact in facts)


@pytest.mark.parametrize(
    "grows",
    [
        {"scale": {"members": "consumer", "to": 5}},
        {"autoscale": {"members": "consumer", "least": 5, "most": 6, "lag per member": 1_000, "every": "15s"}},
        {"start": "consumer-3"},
    ],
)
def test_who_comes_new_after_a_migration_has_what_the_others_were_migrated_to(grows: dict[str, Any]) -> None:
    """Range alone would be refused: INCONSISTENT_GROUP_PROTOCOL."""
    away = [{"at": "20s", "stop": "consumer-3"}] if "start" in grows else []
    facts = facts_of([*away, *DOUBLE_BOUNCE, {"at": "6m", **grows}], duration="10m")
    assert failures(facts) == 0
    assert len(alive_at_the_end(facts)) == (3 if away else 5)


def test_a_canary_does_not_decide_for_newcomers() -> None:
    canary = {"members": ["consumer-1"], "downtime": "5s", "gap": "5s", "strategy": "classic/roundrobin,range"}
    timeline = [{"at": "30s", "rolling restart": canary}, {"at": "1m", "scale": {"members": "consumer", "to": 4}}]
    facts = facts_of(timeline, duration="3m")
    assert failures(facts) == 0
    assert alive_at_the_end(facts) == {f"consumer-{n}" for n in range(1, 5)}


def test_after_a_surge_a_family_is_as_large_as_before() -> None:
    surge = {"at": "30s", "rolling restart": {"downtime": "5s", "gap": "5s", "surge": True}}
    facts = facts_of([surge, {"at": "2m", "scale": {"members": "consumer", "to": 4}}], duration="4m")
    assert len(alive_at_the_end(facts)) == 4


@pytest.mark.parametrize("subscribes", [{"topics": "orders"}, {"pattern": "ord.*"}])
def test_an_autoscaler_starts_the_first_when_records_wait_for_nobody(subscribes: dict[str, str]) -> None:
    """Scale to zero: it let nobody begin, and what nobody had subscribed to was no lag, for ever and at no cost."""
    autoscale = {"members": "c", "least": 0, "most": 2, "lag per member": 500, "every": "10s", "cooldown": 0}
    members = {"c": {"count": 2, "record": "2ms", **subscribes}}
    facts = facts_of([{"at": 0, "autoscale": autoscale}], members=members)
    assert next(fact["t"] for fact in facts if fact["fact"] == "process") < 30_000


def test_an_autoscaler_does_not_start_who_is_about_to_be_started_again() -> None:
    """Everybody fails, as two strategies that exclude each other do: one restart in ten seconds each."""
    apart = {"members": ["consumer-1"], "downtime": "5s", "gap": "5s", "strategy": "classic/cooperative-sticky"}
    autoscale = {"members": "consumer", "least": 3, "most": 3, "lag per member": 1, "every": "1s"}
    facts = facts_of([{"at": "30s", "rolling restart": apart}, {"at": "1m", "autoscale": autoscale}], duration="5m")
    assert 0 < failures(facts) <= 300 / 10


RESTARTS = {"at": "30s", "restart": {"members": "consumer-1", "downtime": "30s"}}


@pytest.mark.parametrize(
    ("event", "left"),
    [
        ({"stop": "consumer-1"}, {"consumer-2", "consumer-3"}),
        ({"crash": "consumer-1"}, {"consumer-2", "consumer-3"}),
        ({"scale": {"members": "consumer", "to": 1}}, {"consumer-2"}),
        ({"scale": {"members": "consumer", "to": 0}}, set()),
        ({"scale": {"members": "consumer", "to": 4}}, {f"consumer-{n}" for n in range(1, 5)}),
    ],
)
@pytest.mark.parametrize("at", ["30s", "45s"])
def test_who_is_down_for_a_restart_is_reached_and_counted(event: dict[str, Any], left: set[str], at: str) -> None:
    facts = facts_of([RESTARTS, {"at": at, **event}])
    assert alive_at_the_end(facts) == left


def test_an_autoscaler_counts_who_is_down_for_a_restart() -> None:
    autoscale = {"members": "consumer", "least": 3, "most": 6, "lag per member": 100_000, "every": "5s"}
    deploy = {"at": "40s", "rolling restart": {"downtime": "20s", "gap": "5s"}}
    facts = facts_of([{"at": "30s", "autoscale": autoscale}, deploy], duration="4m")
    assert starts(facts) == {f"consumer-{n}": 2 for n in range(1, 4)}


def test_a_migration_is_also_of_who_is_down_meanwhile() -> None:
    migration = {"at": "40s", "rolling restart": {"downtime": "2s", "gap": "5s", "strategy": "consumer/uniform"}}
    facts = facts_of([RESTARTS, migration], "classic/range,cooperative-sticky", duration="4m")
    deployed = [name for fact in facts if fact["fact"] == "event" for name in fact["members"]]
    assert deployed == ["consumer-1", "consumer-2", "consumer-3", "consumer-1"]
    assert alive_at_the_end(facts) == {"consumer-1", "consumer-2", "consumer-3"}


@pytest.mark.parametrize("event", [{"stop": "consumer-3"}, {"scale": {"members": "consumer", "to": 2}}])
@pytest.mark.parametrize("surge", [False, True])
def test_a_rolling_restart_does_not_bring_up_who_was_stopped_before_its_turn(
    event: dict[str, Any], surge: bool
) -> None:
    deploy = {"at": "30s", "rolling restart": {"downtime": "2s", "gap": "20s", "surge": surge}}
    facts = facts_of([deploy, {"at": "45s", **event}], duration="4m")
    assert len(alive_at_the_end(facts)) == 2


def test_restarts_that_overlap_start_a_process_once_each_time_it_is_down() -> None:
    often = {"members": "consumer-1", "downtime": "10s", "times": 3, "every": "5s"}
    facts = facts_of([{"at": "30s", "restart": often}])
    assert starts(facts)["consumer-1"] == 2
    assert alive_at_the_end(facts) == {"consumer-1", "consumer-2", "consumer-3"}


def test_who_is_stopped_between_two_restarts_stays_down() -> None:
    often = {"members": "consumer-1", "downtime": "2s", "times": 3, "every": "10s"}
    facts = facts_of([{"at": "30s", "restart": often}, {"at": "36s", "stop": "consumer-1"}])
    assert alive_at_the_end(facts) == {"consumer-2", "consumer-3"}


AGAIN = {"at": "50s", "start": "consumer-1"}
SURGE = {"at": "20s", "rolling restart": {"downtime": "2s", "gap": "2s", "surge": True}}


@pytest.mark.parametrize(
    ("event", "what", "is_"),
    [
        ({"stop": "consumer-1"}, "stop", "closed"),
        ({"crash": "consumer-1"}, "crash", "killed"),
        ({"restart": {"members": "consumer-1", "downtime": "5s"}}, "restart", "closed"),
        ({"rolling restart": {"members": "consumer-1", "downtime": "5s"}}, "rolling restart", "closed"),
        ({"pause": {"members": "consumer-1", "for": "20s"}}, "pause", "paused"),
    ],
)
def test_after_a_surge_a_name_means_who_has_its_place(event: dict[str, Any], what: str, is_: str) -> None:
    facts = facts_of([SURGE, {"at": "1m", **event}])
    late = [fact for fact in facts if fact["t"] >= 60_000]
    assert [fact["members"] for fact in late if fact["fact"] == "event"] == [["consumer-1~2"]]
    assert [fact["member"] for fact in late if fact["fact"] == "process" and fact["is"] == is_] == ["consumer-1~2"]
    assert len(alive_at_the_end(facts)) == (2 if what in ("stop", "crash") else 3)


@pytest.mark.parametrize(
    "event",
    [{"slow": {"members": "consumer-1", "factor": 100}}, {"isolate": {"members": "consumer-1", "for": "40s"}}],
)
def test_after_a_surge_who_has_the_place_is_slow_or_cut_off(event: dict[str, Any]) -> None:
    assert max(lags(facts_of([SURGE, {"at": "1m", **event}]))) > 300


def test_a_name_means_also_who_has_its_place_and_is_down_for_a_restart() -> None:
    restart = {"at": "40s", "restart": {"members": "consumer-1", "downtime": "30s"}}
    facts = facts_of([SURGE, restart, {"at": "50s", "stop": "consumer-1"}])
    assert alive_at_the_end(facts) == {"consumer-2~2", "consumer-3~2"}


def test_after_a_surge_nobody_is_started_beside_who_has_its_place() -> None:
    facts = facts_of([{"at": "10s", "stop": "consumer-1"}, {"at": "12s", "start": "consumer-1"}, SURGE, AGAIN])
    assert alive_at_the_end(facts) == {"consumer-1~2", "consumer-2~2", "consumer-3~2"}


def test_who_comes_back_after_two_surges_has_what_the_second_brought() -> None:
    """The others cannot be with it, so that it fails if it has."""
    canary = {"members": "consumer-1", "downtime": "2s", "surge": True}
    first, second = ({"rolling restart": canary | {"strategy": f"classic/{one}"}} for one in ("range", "roundrobin"))
    away = [{"at": "70s", "stop": "consumer-1"}, {"at": "2m", "start": "consumer-1"}]
    facts = facts_of([{"at": "20s"} | first, {"at": "40s"} | second, *away], duration="3m")
    assert any(fact["t"] > 120_000 for fact in facts if fact["fact"] == "process" and fact["is"] == "failed")


def test_who_comes_new_after_a_surge_has_a_place_of_its_own() -> None:
    facts = facts_of([SURGE, {"at": "40s", "scale": {"members": "consumer", "to": 4}}])
    assert alive_at_the_end(facts) == {"consumer-1~2", "consumer-2~2", "consumer-3~2", "consumer-4"}


@pytest.mark.parametrize("name", ["a~b", "a~2"])
def test_a_tilde_in_a_members_own_name_is_no_surge(name: str) -> None:
    members = {each: {"topics": "orders", "record": "2ms"} for each in (name, "a~3")}
    facts = facts_of([{"at": "1m", "stop": name}], members=members)
    assert alive_at_the_end(facts) == {"a~3"}


def of_two(first: str, second: str) -> dict[str, Any]:
    return {first: {"topics": "orders", "record": "2ms"}, second: {"topics": "orders", "record": "2ms"}}


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("a", "a~1"), ("a", "a~2"), ("a~2", "a"), ("a~1", "a~2")])
def test_a_surge_replaces_each_once_whatever_they_are_called(first: str, second: str) -> None:
    facts = facts_of([SURGE], members=of_two(first, second))
    assert list(starts(facts).values()) == [1] * 4
    assert len(alive_at_the_end(facts) - {first, second}) == 2


def test_a_surge_takes_no_name_of_somebody_who_is_down() -> None:
    away = [{"at": "10s", "stop": "a~2"}, {"at": "1m", "start": "a~2"}]
    facts = facts_of([away[0], SURGE, away[1]], members=of_two("a", "a~2"))
    assert alive_at_the_end(facts) == {"a~3", "a~2"}


@pytest.mark.parametrize("takes", ["5s", "25s"])
def test_who_was_fenced_by_its_successor_is_gone_when_the_surge_is_over(takes: str) -> None:
    """Both have the same id: the first fails, and its supervisor starts it again, which is to end with the surge."""
    surge = {"at": "1m", "rolling restart": {"downtime": takes, "gap": "5s", "surge": True}}
    members = {"consumer": {"count": 2, "topics": "orders", "record": "2ms", "instance_id": "pod-{n}"}}
    facts = facts_of([surge], members=members, duration="5m")
    assert failures(facts)
    assert alive_at_the_end(facts) == {"consumer-1~2", "consumer-2~2"}


@pytest.mark.parametrize("strategy", ["classic/range+static", "consumer/uniform+static"])
def test_an_id_that_is_anothers_name_puts_nobody_out(strategy: str) -> None:
    members = of_two("a", "b") | {"a": {"topics": "orders", "record": "2ms", "instance_id": "b"}}
    assert failures(facts_of([], strategy, members=members)) == 0


def test_a_number_without_end_after_a_tilde_is_a_name() -> None:
    longest = "a~" + "9" * 5_000
    facts = facts_of([{"at": "20s", "stop": longest}], members=of_two("a", longest))
    assert alive_at_the_end(facts) == {"a"}


@pytest.mark.parametrize("first", ["scale", "autoscale"])
@pytest.mark.parametrize(
    ("event", "more"),
    [
        ({"start": "consumer-5"}, {"consumer-5"}),
        ({"restart": {"members": "consumer-5", "downtime": "1s"}}, {"consumer-5"}),
        ({"scale": {"members": "consumer-5", "to": 4}}, {"consumer-4"}),
        ({"autoscale": {"members": "consumer-5", "least": 4, "most": 4, "lag per member": 1e9}}, {"consumer-4"}),
        ({"subscribe": {"members": "consumer-5", "topics": "orders"}}, set()),
    ],
)
def test_who_could_have_been_scaled_up_to_and_was_not(event: dict[str, Any], more: set[str], first: str) -> None:
    """The timeline may name it from then on, as nobody knows before the run."""
    grows = {"members": "consumer", "least": 3, "most": 5, "lag per member": 1e9}
    scales = {"autoscale": [{"at": "20s", "autoscale": grows}], "scale": [up_to(5, "20s"), up_to(3, "20s")]}
    facts = facts_of([*scales[first], {"at": "1m"} | event], duration="90s")
    assert alive_at_the_end(facts) == {"consumer-1", "consumer-2", "consumer-3"} | more


def up_to(size: int, at: str) -> dict[str, Any]:
    return {"at": at, "scale": {"members": "consumer", "to": size}}


def test_a_scaling_that_is_overtaken_by_another_stops_nobody_any_more() -> None:
    shrinks = {"at": "20s", "scale": {"members": "consumer", "to": 1, "every": "20s"}}
    facts = facts_of([shrinks, {"at": "30s", "scale": {"members": "consumer", "to": 3}}])
    assert alive_at_the_end(facts) == {"consumer-1", "consumer-2", "consumer-3"}
    assert starts(facts) == {"consumer-1": 1, "consumer-2": 1, "consumer-3": 2}


def migrates(at: str, strategy: str, *members: str) -> dict[str, Any]:
    which = {"members": list(members)} if members else {}
    return {"at": at, "rolling restart": {"downtime": "2s", "gap": "2s", "strategy": strategy, **which}}


BOTH, ONE = "classic/cooperative-sticky,range", "classic/cooperative-sticky"


def test_a_family_that_was_migrated_in_several_events_is_migrated() -> None:
    """Range alone would be refused."""
    canary, rest = migrates("80s", ONE, "consumer-1"), migrates("100s", ONE, "consumer-2", "consumer-3")
    grows = {"at": "3m", "scale": {"members": "consumer", "to": 4}}
    facts = facts_of([migrates("30s", BOTH), canary, rest, grows], duration="5m")
    assert failures(facts) == 0
    assert len(alive_at_the_end(facts)) == 4


@pytest.mark.parametrize("at", ["70s", "83s"])
def test_who_was_stopped_meanwhile_comes_up_with_what_was_deployed_last(at: str) -> None:
    away = [{"at": at, "stop": "consumer-3"}, {"at": "3m", "start": "consumer-3"}]
    facts = facts_of([migrates("30s", BOTH), migrates("80s", ONE), *away], duration="5m")
    assert failures(facts) == 0
    assert len(alive_at_the_end(facts)) == 3


def test_a_canary_that_is_stopped_and_started_again_is_what_it_was() -> None:
    """It cannot be with the others once more: all fail when it has its own, and the first migration's is theirs."""
    away = [{"at": "70s", "stop": "consumer-1"}, {"at": "3m", "start": "consumer-1"}]
    timeline = [migrates("20s", "classic/range"), migrates("50s", "classic/roundrobin", "consumer-1"), *away]
    facts = facts_of(timeline, duration="5m")
    assert any(fact["t"] > 180_000 for fact in facts if fact["fact"] == "process" and fact["is"] == "failed")


def told_of(facts: Sequence[Fact], kind: str = "process") -> list[tuple[int, str]]:
    """What happened to consumer-1, or to the coordinator, apart from its start."""
    return [
        (fact["t"], fact["is"])
        for fact in facts
        if fact["fact"] == kind and fact.get("member", "consumer-1") == "consumer-1" and fact["is"] != "started"
    ]


def twice(kind: str, first: dict[str, Any], second: dict[str, Any], at: str = "50s") -> list[dict[str, Any]]:
    return [{"at": "20s", kind: first}, {"at": at, kind: second}]


@pytest.mark.parametrize("lasts", [("40s", "20s"), ("60s", "5s")])
@pytest.mark.parametrize(
    ("kind", "begun", "over"), [("pause", "paused", "resumed"), ("isolate", "cut off", "connected")]
)
def test_of_two_troubles_that_overlap_the_later_end_is_the_end(
    kind: str, begun: str, over: str, lasts: tuple[str, str]
) -> None:
    one, other = ({"members": "consumer-1", "for": time} for time in lasts)
    end_ms = 70_000 if lasts[1] == "20s" else 80_000
    assert told_of(facts_of(twice(kind, one, other), "consumer/uniform"))[:2] == [(20_000, begun), (end_ms, over)]


def test_a_broker_that_dies_while_the_coordinator_is_down_is_waited_for_as_well() -> None:
    facts = facts_of(twice("fail over", {"down": "40s"}, {"down": "20s"}))
    assert told_of(facts, "coordinator") == [(20_000, "down"), (70_000, "up")]
    facts = facts_of(twice("fail over", {"down": "60s"}, {"down": "5s"}))
    assert told_of(facts, "coordinator") == [(20_000, "down"), (80_000, "up")]


def test_who_is_slow_for_longer_is_slow_again_after_another_slowness() -> None:
    slow = {"members": "consumer", "factor": 1_000}
    facts = facts_of(twice("slow", slow, {"members": "consumer", "factor": 1, "for": "10s"}), duration="3m")
    at_a_minute, at_the_end = lags(facts)[len(lags(facts)) // 3 + 1], lags(facts)[-1]
    assert at_the_end - at_a_minute > 60 * 100  # of 60 records a second hardly any is read in the last two minutes


def test_a_topic_that_grows_has_the_records_it_had() -> None:
    """Skewed or not: a new partition's part is taken from the others."""
    topics = {"orders": {"partitions": 4, "rate": "60/s", "skew": [0.7, 0.1, 0.1, 0.1]}}
    facts = facts_of([{"at": "60s", "add partitions": {"topic": "orders", "to": 8}}], topics=topics)
    assert {fact["rate"] for fact in facts if fact["fact"] == "lag" and fact["t"] > 10_000} == {60}


@pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
@pytest.mark.parametrize("pattern", [r"\p{L}+", r"\Qorders\E", "(o+)+x|orders", "[[:alpha:]]+"])
def test_patterns_are_read_in_one_way_by_all(pattern: str, strategy: str) -> None:
    """What is checked when a scenario is read is what members match with; nested repeats have an end."""
    topics = {name: {"partitions": 2, "rate": "10/s"} for name in ("orders", "o" * 60)}
    members = {"consumer": {"count": 2, "pattern": pattern}}
    facts = facts_of([], strategy, topics=topics, members=members)
    wanted = [fact["topics"] for fact in facts if fact["fact"] == "wanted"]
    assert (wanted[0], "orders" in wanted[-1]) == ([], True)
    assert next(fact for fact in facts if fact["fact"] == "reads")


def test_metadata_that_is_never_young_enough_is_fetched_at_once() -> None:
    grows = {"at": "60s", "add partitions": {"topic": "orders", "to": 8}}
    facts = facts_of([grows], client={"metadata.max.age.ms": 0})
    assert min(fact["t"] for fact in facts if fact["fact"] == "reads" and fact["t"] > 60_000) < 70_000


def test_time_after_everybody_has_left_is_free_in_both_protocols() -> None:
    for strategy in ("classic/range", "consumer/uniform", "consumer/uniform+static"):
        scenarios = [parse_scenario({**RESTART, "duration": one, "timeline": STOP_ALL}) for one in ("1h", "24h")]
        hour, day = (simulate(scenario, strategy, 1).events for scenario in scenarios)
        assert day == hour


STOP_ALL = [{"at": "40s", "stop": "consumer"}]


def test_who_was_cut_off_for_long_does_not_ask_everything_at_once() -> None:
    """It looks for its coordinator several times a second, and nobody waits for the earlier answers any more."""
    cut_off = {"at": "40s", "isolate": {"members": "consumer-1", "for": "10m"}}
    scenario = parse_scenario({**RESTART, "duration": "20m", "timeline": [cut_off]})
    before, after = (simulate(scenario, "classic/range", 1, until_ms=at_ms).events for at_ms in (639_900, 641_000))
    assert after - before < 100


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_leader_asks_for_what_others_subscribe_to(first: str) -> None:
    """Whoever of the two leads, the topic that only one of them wants is read within seconds of its creation."""
    wanted = {"a": ["orders"], "b": ["orders", "late"]}
    members = {name: {"topics": wanted[name]} for name in (first, *(wanted.keys() - {first}))}
    made = {"at": "60s", "create topic": {"name": "late", "partitions": 2, "rate": "10/s"}}
    for seed in range(1, 7):
        scenario = parse_scenario({**RESTART, "duration": "10m", "members": members, "timeline": [made]})
        facts = simulate(scenario, "classic/range", seed, watch=Checker().feed).facts
        [at_ms, *_] = [fact["t"] for fact in facts if fact["fact"] == "reads" and "late" in fact["partitions"]]
        assert at_ms < 70_000
