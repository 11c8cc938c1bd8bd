"""What the examples' descriptions tell people to look for is there to be seen, whichever the seed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from rebalance_lab.harness.evaluate.comparison import usual_strategies
from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.measure.costs import costs
from rebalance_lab.harness.measure.ownership import Timelines, timelines
from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.harness.scenario.model import Scenario
from rebalance_lab.harness.scenario.reader import load_scenario
from tests.paths import SCENARIOS

SEEDS = (1, 2, 3)
EAGER = ("classic/range", "classic/sticky")


def example(name: str) -> Scenario:
    return load_scenario(SCENARIOS / f"{name}.yaml")


def drawn(scenario: Scenario, strategy: str, seed: int = 1) -> Timelines:
    return timelines(simulate(scenario, strategy, seed).facts)


def states(facts: list[Fact]) -> list[tuple[int, str]]:
    return [(fact["t"], fact["state"]) for fact in facts if fact["fact"] == "group"]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_fail_over_falls_into_a_rebalance_of_every_strategy(seed: int) -> None:
    scenario = example("fail_over_in_a_rebalance")
    for strategy in usual_strategies(scenario)[0]:
        facts = simulate(scenario, strategy, seed).facts
        before = [state for at_ms, state in states(facts) if at_ms < 121_000]
        assert before[-1] in {"PreparingRebalance", "Assigning", "Reconciling"}, strategy
        assert "Empty" not in [state for at_ms, state in states(facts) if at_ms >= 121_000]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_classic_rebalance_waits_for_the_slow_consumer_and_an_eager_group_stands_still(seed: int) -> None:
    scenario = example("slow_consumer")
    for strategy in (*EAGER, "classic/cooperative-sticky"):
        moments = states(simulate(scenario, strategy, seed).facts)
        [waited] = [
            (after - at_ms) / 1_000
            for (at_ms, state), (after, _) in pairwise(moments)
            if state == "PreparingRebalance" and 150_000 <= at_ms < 151_000
        ]
        assert 10 < waited < 30
    [eager, incremental] = (costs(simulate(scenario, one, seed).facts) for one in ("classic/range", "consumer/uniform"))
    assert eager.unowned_s > incremental.unowned_s + 20


def test_a_group_of_mixed_subscriptions_reads_all_it_has_and_sticky_strategies_are_even() -> None:
    scenario = example("mixed_subscriptions")
    for strategy in usual_strategies(scenario)[0]:
        owners = drawn(scenario, strategy).owners_at(scenario.duration_ms)
        assert sum(len(indexes) for share in owners.values() for indexes in share.values()) == 38, strategy
    for strategy, (least, most) in {"classic/roundrobin": (4, 6), "classic/sticky": (5, 5)}.items():
        owners = drawn(scenario, strategy).owners_at(120_000)
        shares = [sum(map(len, share.values())) for member, share in owners.items() if member != "archive"]
        assert (min(shares), max(shares)) == (least, most)


@pytest.mark.parametrize("seed", SEEDS)
def test_pauses_throw_nobody_out_of_a_consumer_group(seed: int) -> None:
    """Out of a classic one two of four, or three: who wakes soon after that comes back in the same rebalance."""
    scenario = example("gc_pauses")
    assert costs(simulate(scenario, "consumer/uniform", seed).facts).rebalances == 0
    classic = costs(simulate(scenario, "classic/sticky", seed).facts)
    assert 3 <= classic.rebalances <= 6
    assert classic.read_twice


def test_nobody_outlives_its_session_whoever_was_heard_last_a_commit_or_a_heartbeat() -> None:
    for seed in range(1, 31):
        facts = simulate(example("gc_pauses"), "classic/sticky", seed).facts
        out = [(f["t"], f["member"]) for f in facts if f["fact"] == "group" and f["because"] == "session timeout"]
        for name, paused_ms in (("consumer-3", 240_000), ("consumer-4", 360_000)):
            [at_ms] = [at_ms for at_ms, member in out if member.startswith(name)]
            assert 6_850 <= at_ms - paused_ms <= 10_010, seed


@pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky", "consumer/uniform"])
def test_a_poison_record_goes_to_and_fro_for_ever(strategy: str) -> None:
    spans = sorted(drawn(example("poison_record"), strategy).reads)
    readers = [span.member for span in spans if 3 in span.partitions and span.start_ms > 120_000]
    assert len(readers) >= 8
    assert all(one != other for one, other in pairwise(readers))
    assert any(readers[number] == readers[number + 2] for number in range(len(readers) - 2))


@pytest.mark.parametrize("strategy", EAGER)
def test_a_deleted_topic_stops_the_leader_first_and_then_everybody(strategy: str) -> None:
    run = drawn(example("deleted_topic"), strategy)
    idle = [sum(not share for share in run.owners_at(minute * 60_000).values()) for minute in (4, 8, 12, 18)]
    assert idle == [0, 1, 6, 0]


def test_a_step_of_the_upgrade_costs_no_more_than_a_step_of_a_deploy_after_it() -> None:
    """Of six steps each; a single one differs by more from seed to seed than the two sums do."""
    scenario = example("classic_to_consumer")
    upgrade = deploy = 0
    for seed in range(1, 9):
        for gap in drawn(scenario, scenario.strategy or "", seed).gaps:
            length_ms = (gap.end_ms - gap.start_ms) * len(gap.partitions)
            upgrade += length_ms * (120_000 <= gap.start_ms < 480_000)
            deploy += length_ms * (gap.start_ms >= 480_000)
    assert upgrade == pytest.approx(deploy, rel=0.15)
