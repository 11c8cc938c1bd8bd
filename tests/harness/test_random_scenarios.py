"""Random scenarios with faults break no invariant; a run repeats byte for byte; leaps over idle time change nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from random import Random
from typing import Any

import pytest

from rebalance_lab.harness.evaluate.simulation import Run, simulate
from rebalance_lab.harness.measure.costs import costs
from rebalance_lab.harness.measure.invariants import Broken, Checker
from rebalance_lab.harness.measure.known_violations import known_violation
from rebalance_lab.harness.measure.trace import Fact, lines
from rebalance_lab.harness.scenario.constants import Constants
from rebalance_lab.harness.scenario.model import Callbacks, DeleteTopic, Network, Rate, Scenario, TopicSpec
from rebalance_lab.harness.scenario.reader import parse_scenario
from rebalance_lab.harness.simulator.network import Wire
from tests.harness.random_scenarios import STRATEGIES, random_scenario, run

RUNS, AT_A_TIME, SEED = 300, 50, 1
UNPUNCTUAL = Constants(heartbeat_look_ms=100, head_start_ms=60_000)
"""What some of these scenarios were found with: they are about a rare moment, which other heartbeats miss."""


@pytest.mark.parametrize("first", range(0, RUNS, AT_A_TIME))
def test_random_scenarios_break_no_invariant(first: int) -> None:
    """What is wrong comes with the smallest scenario that shows it and the command that runs it again."""
    wrong = [found for number in range(first, first + AT_A_TIME) if (found := run(number, SEED)) is not None]
    assert not wrong, "\n\n".join(wrong)


def test_who_hears_where_to_begin_before_it_hears_that_it_was_removed_reads_as_a_stranger() -> None:
    """On a lossy network the answer about offsets may outlive the session; anybody may ask for a classic group's."""
    number, checker = 8023, Checker()
    random = Random(f"{SEED}/{number}")
    scenario, strategy = random_scenario(random), random.choice(STRATEGIES)
    facts = simulate(scenario, strategy, 3, constants=UNPUNCTUAL, watch=checker.feed).facts
    assert [fact["member"] for fact in facts if fact["fact"] == "reads" and "removed" in fact] == ["m-3"]


def test_no_leap_passes_over_a_heartbeat_that_tells_of_another_subscription() -> None:
    """Nothing else happens, and whoever sends it has nothing more on its mind: it must be heard all the same."""
    assert run(6727, SEED) is None


@pytest.mark.parametrize("strategy", ["consumer/uniform", "consumer/range"])
def test_no_leap_passes_over_the_answer_that_brings_new_partitions_to_a_group_that_stays_stable(strategy: str) -> None:
    """A group of one is given them in the very heartbeat that bumps its epoch, so that only the answer is to come."""
    alone = parse_scenario(
        {
            "duration": "20m",
            "topics": {"orders": {"partitions": 6, "rate": "6/s"}},
            "members": {"m": {"topics": ["orders"], "record": "2ms"}},
            "client": {"metadata.max.age.ms": 5_000},
            "network": {"latency": "200ms", "jitter": "0ms"},
            "timeline": [{"at": "60s", "add partitions": {"topic": "orders", "to": 9}}],
        }
    )
    for seed in range(10):
        facts = simulate(alone, strategy, seed).facts
        begun_ms = [fact["t"] for fact in facts if fact["fact"] == "reads" and 8 in fact["partitions"]["orders"]]
        assert 60_000 < begun_ms[0] < 67_000, seed  # a heartbeat's interval and three round trips at the latest


# The same run, again and elsewhere

SAME_RUNS = [(number, strategy) for number, strategy in enumerate(STRATEGIES[::2], start=900)]


def digest(number: int, strategy: str) -> str:
    """Of every byte that the run would write."""
    facts = simulate(random_scenario(Random(f"{SEED}/{number}")), strategy, seed=number).facts
    return sha256("\n".join(lines(facts)).encode()).hexdigest()


def digests() -> list[str]:
    return [digest(number, strategy) for number, strategy in SAME_RUNS]


def test_a_run_repeats_byte_for_byte_under_any_hash_seed() -> None:
    here = digests()
    assert here == digests()
    program = "from tests.harness.test_random_scenarios import digests; print(*digests())"
    environment = {**os.environ, "PYTHONHASHSEED": "4711" if os.environ.get("PYTHONHASHSEED") != "4711" else "1"}
    there = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert there.stdout.split() == here


def test_another_seed_is_another_run() -> None:
    scenario = random_scenario(Random(f"{SEED}/901"))
    assert [*lines(simulate(scenario, STRATEGIES[0], 1).facts)] != [*lines(simulate(scenario, STRATEGIES[0], 2).facts)]


# Leaps over idle time

OWNERSHIP = ("reads", "stops", "group", "callback", "process", "event", "topic", "coordinator")
TIMELINES: dict[str, list[dict[str, object]]] = {
    "restart": [{"at": "100s", "restart": {"members": "consumer-2", "downtime": "5s"}}],
    "rolling restart": [{"at": "90s", "rolling restart": {"downtime": "3s", "gap": "20s"}}],
    "add partitions": [{"at": "2m", "add partitions": {"topic": "orders", "to": 9}}],
    "fail over": [{"at": "2m", "fail over": {"down": "3s"}}],
    "crash": [{"at": "100s", "crash": {"members": "consumer-2"}}],
    "pause": [{"at": "100s", "pause": {"members": "consumer-1", "for": "20s"}}],
}
LATENCY_MS = 2
PUNCTUAL = Constants(heartbeat_look_ms=0, head_start_ms=0)


def small(timeline: list[dict[str, object]]) -> Scenario:
    return parse_scenario(
        {
            "name": "small",
            "duration": "6m",
            "topics": {"orders": {"partitions": 6, "rate": "60/s"}},
            "members": {"consumer": {"count": 3, "topics": "orders", "record": "2ms"}},
            "network": {"latency": f"{LATENCY_MS}ms"},
            "client": {"session.timeout.ms": 10_000},
            "timeline": timeline,
        }
    )


def ownership(run: Run) -> list[Fact]:
    return [fact for fact in run.facts if fact["fact"] in OWNERSHIP]


@pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky+static", "consumer/uniform"])
@pytest.mark.parametrize("kind", TIMELINES)
def test_leaps_over_idle_time_change_nothing_but_the_cost(kind: str, strategy: str) -> None:
    """Without jitter and with punctual heartbeats nothing is drawn while a group is at rest: both runs go the same way.

    Times, offsets and epochs are equal wherever a group is disturbed from outside. Where a classic session runs out
    they may be a message's latency apart: commits put a session off, too, and a leap carries it by heartbeats only.
    How many requests the coordinator was sent is left out: leaps do not count them all.
    """
    leaping = simulate(small(TIMELINES[kind]), strategy, 3, watch=Checker().feed, constants=PUNCTUAL)
    walking = simulate(small(TIMELINES[kind]), strategy, 3, watch=Checker().feed, constants=PUNCTUAL, leaps=False)
    assert walking.events > 2 * leaping.events
    if kind in ("crash", "pause") and strategy.startswith("classic"):
        ours, theirs = ownership(leaping), ownership(walking)
        assert [timeless(fact) for fact in ours] == [timeless(fact) for fact in theirs]
        assert all(abs(a["t"] - b["t"]) <= LATENCY_MS for a, b in zip(ours, theirs, strict=True))
    else:
        assert ownership(leaping) == ownership(walking)


@pytest.mark.parametrize("leaps", [True, False])
@pytest.mark.parametrize("client", [{"auto.commit.interval.ms": 200}, {"enable.auto.commit": False}])
def test_a_classic_session_is_counted_from_the_last_commit(client: dict[str, object], leaps: bool) -> None:
    """Which comes long after the last heartbeat here, and is itself never worth a message while all are at rest."""
    scenario = small([{"at": "100s", "crash": {"members": "consumer-2"}}])
    client = {**client, "session.timeout.ms": 20_000, "heartbeat.interval.ms": 15_000}
    facts = simulate(replace(scenario, client=client), "classic/range", 3, constants=PUNCTUAL, leaps=leaps).facts
    removed = [fact["t"] for fact in facts if fact["fact"] == "group" and fact["because"] == "session timeout"]
    assert removed == [pytest.approx(120_000, abs=250)]


@pytest.mark.parametrize("leaps", [True, False])
def test_what_was_committed_after_a_batch_is_in_the_log_when_the_coordinator_dies(leaps: bool) -> None:
    """Who takes over from a process that dies a second later reads that second's records again, and no others."""
    fails = {"at": "100s", "fail over": {"down": "3s"}}
    scenario = small([fails, {"at": "101s", "crash": {"members": "consumer-2"}}])
    client = {"enable.auto.commit": False, "session.timeout.ms": 10_000}
    facts = simulate(replace(scenario, client=client), "classic/range", 3, leaps=leaps, watch=Checker().feed).facts
    assert 0 < costs(facts).read_twice <= 25


@pytest.mark.parametrize("leaps", [True, False])
def test_what_a_member_commits_behind_a_cut_puts_nothing_off(leaps: bool) -> None:
    cut = {"at": "100s", "isolate": {"members": "consumer-2", "for": "60s"}}
    scenario = small([cut, {"at": "110s", "crash": {"members": "consumer-2"}}])
    client = {"enable.auto.commit": False, "session.timeout.ms": 20_000}
    facts = simulate(replace(scenario, client=client), "classic/range", 3, constants=PUNCTUAL, leaps=leaps).facts
    removed = [fact["t"] for fact in facts if fact["fact"] == "group" and fact["because"] == "session timeout"]
    assert removed == [pytest.approx(120_000, abs=250)]


@pytest.mark.parametrize("strategy", ["classic/range", "classic/range+static", "consumer/uniform"])
def test_leaps_over_idle_time_count_as_many_requests_as_a_walk_through_it(strategy: str) -> None:
    """A classic member's heartbeats are each a little late, and so fewer than its interval would have."""
    idle = replace(small([{"at": "200s", "crash": {"members": "consumer-2"}}]), duration_ms=3_600_000)
    leaping, walking = (costs(simulate(idle, strategy, 3, leaps=leaps).facts) for leaps in (True, False))
    assert leaping.requests == pytest.approx(walking.requests, rel=0.003)
    assert leaping.request_bytes == pytest.approx(walking.request_bytes, rel=0.005)


@pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
@pytest.mark.parametrize("record_ms", [12, 30])
def test_who_is_behind_auto_commits_between_its_batches_over_idle_time_too(record_ms: int, strategy: str) -> None:
    """Only in poll(): that is every 6 or 15 seconds here, though the interval is 5. What a killed member has read since
    is read again."""
    for at_s in (207, 211, 220):
        overdriven = parse_scenario(
            {
                "duration": "6m",
                "topics": {"orders": {"partitions": 4, "rate": "200/s"}},
                "members": {"consumer": {"count": 2, "topics": "orders", "record": f"{record_ms}ms"}},
                "network": {"latency": "2ms"},
                "timeline": [{"at": f"{at_s}s", "restart": {"members": "consumer-1", "downtime": "5s", "kill": True}}],
            }
        )
        leaping, walking = (
            costs(simulate(overdriven, strategy, 3, constants=PUNCTUAL, leaps=leaps).facts) for leaps in (True, False)
        )
        assert leaping.read_twice == walking.read_twice
        assert leaping.requests == pytest.approx(walking.requests, rel=0.02)


@pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
def test_leaps_over_idle_time_lose_as_many_messages_as_a_walk_through_it(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lossy = replace(small([]), network=Network(latency_ms=LATENCY_MS, loss=0.01), duration_ms=1_800_000)
    lost, is_lost = [0], Wire.lost

    def counted(self: Wire) -> bool:
        found = is_lost(self)
        lost[0] += found
        return found

    monkeypatch.setattr(Wire, "lost", counted)

    def losses(leaps: bool) -> int:
        lost[0] = 0
        for seed in range(6):
            simulate(lossy, strategy, seed, leaps=leaps)
        return lost[0]

    assert losses(leaps=False) > 150
    assert losses(leaps=True) == pytest.approx(losses(leaps=False), rel=0.25)


def test_a_group_that_has_not_heard_of_a_deleted_topic_commits_ten_times_a_second() -> None:
    """Each member that has some of it: the commit is refused for that, and tried again after retry.backoff.ms."""
    topics = (*small([]).topics, TopicSpec(name="gone", partitions=3, rate=Rate(((0, 30.0),))))
    members = tuple(replace(member, topics=("orders", "gone")) for member in small([]).members)
    timeline = (DeleteTopic(at_ms=100_000, topic="gone"),)
    scenario = replace(small([]), topics=topics, members=members, timeline=timeline, duration_ms=130_000)

    def commits(leaps: bool) -> int:
        facts = simulate(scenario, "classic/range", 3, constants=PUNCTUAL, leaps=leaps).facts
        return int(next(fact["count"]["OffsetCommit"] for fact in facts if fact["fact"] == "requests"))

    every_ms = 100 + 2 * LATENCY_MS + PUNCTUAL.append_ms
    assert commits(leaps=False) == pytest.approx(3 * (100 // 5 + 30_000 // every_ms), rel=0.05)
    assert commits(leaps=True) == pytest.approx(commits(leaps=False), rel=0.05)


@pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
def test_a_group_with_slow_callbacks_comes_to_rest_so_a_day_costs_what_an_hour_does(strategy: str) -> None:
    """Whoever starts first is given everything, restores it for 36 s, and meanwhile loses most of it to the others."""
    callbacks = Callbacks(revoked_ms_per_partition=200, assigned_ms_per_partition=3_000)
    topics = (TopicSpec(name="orders", partitions=12, rate=Rate(((0, 60.0),))),)
    hour = replace(small(TIMELINES["restart"]), callbacks=callbacks, topics=topics, duration_ms=3_600_000)
    day = replace(hour, duration_ms=24 * hour.duration_ms)
    assert simulate(day, strategy, 1).events < 1.5 * simulate(hour, strategy, 1).events


@pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky+static", "consumer/uniform"])
@pytest.mark.parametrize("client", [{}, {"enable.auto.commit": False}])
@pytest.mark.parametrize(
    "trouble",
    [
        lambda lasts: {"isolate": {"members": ["consumer-1", "consumer-2"], "for": lasts}},
        lambda lasts: {"pause": {"members": "consumer-1", "for": lasts}},
        lambda lasts: {"fail over": {"down": lasts}},
    ],
    ids=["isolate", "pause", "fail over"],
)
def test_an_outage_of_a_day_costs_what_one_of_an_hour_does(
    strategy: str, client: dict[str, Any], trouble: Callable[[str], dict[str, Any]]
) -> None:
    """Members that look for their coordinator several times a second for all that time, and find it in the end."""

    def after(lasts: str) -> Run:
        scenario = small([{"at": "200s", **trouble(lasts)}])
        scenario = replace(scenario, duration_ms=26 * 3_600_000, client={**scenario.client, **client})
        return simulate(scenario, strategy, 1, watch=Checker().feed)

    hour, day = after("1h"), after("24h")
    assert day.events < 1.5 * hour.events
    assert [fact["quiet"] for run in (hour, day) for fact in run.facts if fact["fact"] == "end"] == [True, True]


def timeless(fact: Fact) -> Fact:
    return {key: value for key, value in fact.items() if key != "t"}


def test_who_is_called_back_about_its_loss_does_not_read() -> None:
    """A group is downgraded and upgraded within a second; the classic member that stays is told of neither, finds its
    generation gone, and is in onPartitionsLost when somebody else is given what it was to give up."""
    ups_and_downs = [
        {"at": at, "autoscale": {"members": "c", "most": 6, "every": every, "cooldown": cooldown} | more}
        for at, every, cooldown, more in (
            (0, "6052ms", "51239ms", {"least": 0, "lag per member": 50}),
            ("121564ms", "8777ms", "62106ms", {"least": 2, "lag per member": 1}),
            ("226384ms", "10833ms", "1770ms", {"least": 2, "lag per member": 1}),
        )
    ]
    migrates = {"downtime": "5831ms", "gap": "6671ms", "parallelism": 10, "kill": True, "members": ["c-1", "c-2"]}
    scenario = parse_scenario(
        {
            "duration": "40m",
            "topics": {"o": {"partitions": 4, "rate": "10/s"}, "p": {"partitions": 2, "rate": "5/s"}},
            "members": {"c": {"count": 2, "topics": ["o", "p"], "record": "0.5ms"}},
            "client": {"session.timeout.ms": 6000, "heartbeat.interval.ms": 2000},
            "callbacks": {"revoked": "3242ms", "assigned per partition": "156ms"},
            "timeline": [
                {"at": 0, "crash": ["c-2"]},
                {"at": "555853ms", "restart": {"members": ["c-2"], "downtime": "15215ms"}},
                {"at": "286916ms", "scale": {"members": "c", "to": 0, "every": "4355ms"}},
                {"at": "138227ms", "rolling restart": {**migrates, "strategy": "consumer/uniform"}},
                ups_and_downs[2],
                ups_and_downs[0],
                ups_and_downs[1],
            ],
        }
    )
    strategy, checker = "classic/cooperative-sticky+static", Checker()
    facts = simulate(scenario, strategy, 51, constants=UNPUNCTUAL, watch=checker.feed).facts
    assert any(fact["fact"] == "removed" for fact in facts)
    with pytest.raises(Broken, match="one owner") as broken:  # it is still in onPartitionsRevoked
        simulate(scenario, strategy, 32, constants=UNPUNCTUAL, watch=Checker().feed)
    told = known_violation(scenario, strategy, broken.value)
    assert told is not None
    assert "still to revoke" in told


def test_who_was_removed_hears_of_it_in_the_end() -> None:
    """Two may read for a while, if one of them has not heard yet; not for ever."""
    both: list[Fact] = [
        {"t": 0, "fact": "reads", "member": "a", "partitions": {"o": [0]}, "from": {"o": [0]}},
        {"t": 5, "fact": "removed", "member": "a"},
        {"t": 5, "fact": "reads", "member": "b", "partitions": {"o": [0]}, "from": {"o": [0]}},
    ]
    for quiet in (False, True):
        checker = Checker()
        for fact in both:
            checker.feed(fact)
        end: Fact = {"t": 900_000, "fact": "end", "quiet": quiet, "unread": {}}
        with pytest.raises(Broken, match="a and b both read o-0 to the end") if quiet else nullcontext():
            checker.feed(end)


@pytest.mark.parametrize(
    ("number", "seed"),
    [
        (157, 71),  # a static member joins a stable group again, which does not put its session off
        (860, 72),  # likewise
        (468, 63),  # two readers, where a rebalance passes a static cooperative member over: Kafka's own
        (4466, 20261118),  # the first while the group waits for its leader; who led before sends its assignment late
        (4114, 20261118),  # an upgrade that breaks off answers a static member, and keeps its place
    ],
)
def test_what_was_a_false_alarm_once_is_none(number: int, seed: int) -> None:
    assert run(number, seed) is None
