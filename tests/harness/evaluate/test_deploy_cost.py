"""What a rolling deploy of a sized group costs: held against what can be worked out, and estimates against runs."""

from __future__ import annotations

from statistics import fmean

import pytest

from rebalance_lab.harness.evaluate import deploy_cost
from rebalance_lab.harness.evaluate.deploy_cost import DeployCost, SizedGroup, stops_everybody

STRATEGIES = ("classic/range", "classic/cooperative-sticky", "consumer/uniform")
"""One of each protocol: a deploy of sticky's members stops everybody as one of range's does."""


def cost(strategy: str, partitions: int, consumers: int, *, unit: float = 1.0, downtime_ms: int = 10_000) -> DeployCost:
    group = SizedGroup(
        partitions=partitions, consumers=consumers, demand=consumers * 480 * unit, per_consumer=600 * unit
    )
    return deploy_cost.deploy_cost(strategy, group, downtime_ms)


def test_static_members_leave_each_partition_for_their_downtime_and_nothing_moves() -> None:
    found = cost("consumer/uniform+static", 12, 6)
    assert found.unowned_s / 12 == pytest.approx(10, abs=1.5)  # and until it polls again
    assert found.unowned_longest_s == pytest.approx(10, abs=1.5)
    assert (found.rebalances, found.moved, found.estimated) == (0, 0, False)
    # One consumer's records, for as long: the others keep up.
    assert found.waiting == pytest.approx(480 * found.unowned_longest_s, rel=0.3)


def test_an_eager_group_stops_for_everybody_and_a_cooperative_one_does_not() -> None:
    """Twice as many restarts stop twice as many partitions each time, or only those of who restarts."""
    eager, cooperative = cost("classic/range", 20, 20), cost("classic/cooperative-sticky", 20, 20)
    assert eager.rebalances == 40  # each leaves and joins
    assert eager.unowned_s / cost("classic/range", 10, 10).unowned_s > 3
    assert cooperative.unowned_s / cost("classic/cooperative-sticky", 10, 10).unowned_s < 2.5
    assert eager.moved > 2 * cooperative.moved


def test_bytes_and_rates_out_of_reach_are_only_another_unit() -> None:
    records, gigabytes = cost("classic/range", 12, 6, unit=100), cost("classic/range", 12, 6, unit=1e6)
    assert gigabytes.unowned_s == pytest.approx(records.unowned_s, rel=0.1)
    assert gigabytes.waiting == pytest.approx(records.waiting * 1e4, rel=0.1)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("partitions", "consumers"), [(12, 12), (60, 60)])
def test_what_waits_is_not_caught_up_with_faster_than_the_group_can_spare(
    strategy: str, partitions: int, consumers: int
) -> None:
    group = SizedGroup(partitions=partitions, consumers=consumers, demand=consumers * 25 / 3, per_consumer=10)
    found = deploy_cost.deploy_cost(strategy, group, 600_000)
    assert found.catch_up_s is not None
    assert found.catch_up_s >= found.waiting / (consumers * 10 - consumers * 25 / 3) * (1 - 1e-9)


def test_without_room_to_spare_nothing_is_caught_up_with() -> None:
    full = SizedGroup(partitions=3, consumers=3, demand=0.3 * 100, per_consumer=0.1 * 100)
    assert deploy_cost.deploy_cost("classic/range", full, 10_000).catch_up_s is None


@pytest.mark.parametrize("strategy", [*STRATEGIES, "consumer/uniform+static"])
@pytest.mark.parametrize(("partitions", "consumers"), [(96, 32), (60, 4)])
def test_an_estimate_is_near_to_what_a_run_of_the_whole_says(
    monkeypatch: pytest.MonkeyPatch, strategy: str, partitions: int, consumers: int
) -> None:
    estimated = cost(strategy, partitions, consumers)
    monkeypatch.setattr(deploy_cost, "MOST_CONSUMERS", 1_000)
    monkeypatch.setattr(deploy_cost, "MOST_PARTITIONS", 1_000)
    monkeypatch.setattr(deploy_cost, "SEEDS", (1, 2, 3))
    run = cost(strategy, partitions, consumers)
    assert (estimated.estimated, run.estimated) == (True, False)
    # What a restart meets is chance: four of them differ more than thirty.
    assert estimated.unowned_s == pytest.approx(run.unowned_s, rel=0.5)
    assert estimated.unowned_longest_s == pytest.approx(run.unowned_longest_s, rel=0.5)
    assert run.waiting / 4 < estimated.waiting < run.waiting * 4  # whether all stood still at a time is chance as well
    assert estimated.rebalances == pytest.approx(run.rebalances, rel=0.1)
    assert estimated.moved == pytest.approx(run.moved, rel=0.2)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_estimate_of_an_uneven_group_does_not_make_all_as_busy_as_the_fullest(
    monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    # Who has two partitions of these is busy for 97% of its time, and all together for 71% of theirs.
    group = SizedGroup(partitions=31, consumers=21, demand=1_500, per_consumer=100)
    estimated = deploy_cost.deploy_cost(strategy, group, 10_000)
    monkeypatch.setattr(deploy_cost, "MOST_CONSUMERS", 1_000)
    run = deploy_cost.deploy_cost(strategy, group, 10_000)
    assert (estimated.estimated, run.estimated) == (True, False)
    # What waits at the worst moment differs threefold from run to run where the fullest have hardly any room to spare.
    assert 0.5 < estimated.waiting / run.waiting < 2
    assert estimated.unowned_s == pytest.approx(run.unowned_s, rel=0.5)


@pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
def test_one_lucky_run_does_not_decide(strategy: str) -> None:
    """Runs with other seeds differ twofold; the answer is near to the mean of many."""
    scenario = deploy_cost.rolling_deploy(20, 20, 20 * 240.0, 500.0, 10_000)
    rows = [deploy_cost.sample_of(scenario, strategy, seed).costs or {} for seed in range(11, 22)]
    runs = [row["unowned_s"] for row in rows]
    group = SizedGroup(partitions=20, consumers=20, demand=20 * 240.0, per_consumer=500.0)
    assert deploy_cost.deploy_cost(strategy, group, 10_000).unowned_s == pytest.approx(fmean(runs), rel=0.35)


@pytest.mark.parametrize(
    ("strategy", "downtime_ms", "everybody"),
    [
        ("classic/range", 10_000, True),
        ("classic/range,cooperative-sticky", 10_000, True),  # the middle of a migration is eager
        ("classic/cooperative-sticky", 10_000, False),
        ("consumer/range", 10_000, False),
        ("classic/range+static", 10_000, False),
        ("classic/range+static", 60_000, True),  # its session ends before it is back
    ],
)
def test_who_stops_when_one_restarts(strategy: str, downtime_ms: int, everybody: bool) -> None:
    assert stops_everybody(strategy, downtime_ms) is everybody
