"""Sizing, held against what can be worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.harness.evaluate.sizing import Needs, size


def test_the_books_example_one_gigabyte_a_second_at_fifty_megabytes_a_consumer_is_twenty_partitions() -> None:
    sizing = size(Needs(target=1e9, per_consumer=50e6))
    assert (sizing.partitions, sizing.now.consumers, sizing.limited_by) == (20, 20, "consumer")


def test_the_slower_of_producer_and_consumer_decides() -> None:
    sizing = size(Needs(target=1_000, per_consumer=250, per_partition=100))
    assert (sizing.partitions, sizing.limited_by) == (10, "partition")
    # Two partitions bring 200 to a consumer of 250; three would bring 300.
    assert (sizing.now.consumers, sizing.now.most_partitions_a_consumer) == (5, 2)
    assert sizing.now.utilisation == pytest.approx(0.8)


def test_partitions_are_not_split_so_dividing_rates_promises_too_much() -> None:
    # 1000 / 170 is 5.9, but of 6 consumers four would have 2 of 10 partitions: 200 each.
    sizing = size(Needs(target=1_000, per_consumer=170, partitions=10))
    assert (sizing.now.consumers, sizing.now.most_partitions_a_consumer) == (10, 1)


def test_partitions_are_chosen_for_the_horizon_and_consumers_for_each_time() -> None:
    sizing = size(Needs(target=1_000, per_consumer=100, growth=1.0, horizon_years=2))
    assert (sizing.now.partitions, sizing.horizon.partitions, sizing.partitions) == (10, 40, 40)
    assert (sizing.now.consumers, sizing.horizon.consumers) == (10, 40)


def test_headroom_is_on_top_of_the_demand_and_floats_do_not_add_a_partition() -> None:
    assert size(Needs(target=1_000, per_consumer=100, headroom=0.1)).partitions == 11
    assert size(Needs(target=0.3, per_consumer=0.1)).partitions == 3


def test_catching_up_takes_the_backlog_over_what_is_to_spare() -> None:
    # Each of 10 consumers gets 100 a second and can do 150: an hour's 360,000 at 50 a second take two hours.
    sizing = size(Needs(target=1_000, per_consumer=150, headroom=0.5, outage_s=3_600))
    assert sizing.now.consumers == 10
    assert sizing.now.catch_up_s == pytest.approx(7_200)


def test_without_anything_to_spare_an_outage_is_never_caught_up() -> None:
    sizing = size(Needs(target=1_000, per_consumer=100, outage_s=60))
    assert sizing.now.catch_up_s is None
    assert any("never caught up" in note for note in sizing.notes)


def test_consumers_beyond_the_partitions_are_idle() -> None:
    sizing = size(Needs(target=1_000, per_consumer=100, consumers=12))
    assert sizing.idle_consumers == 2
    assert "2 of 12 consumers would have no partition" in sizing.notes
    assert "9 consumers are too few today" in size(Needs(target=1_000, per_consumer=100, consumers=9)).notes


def test_partitions_that_are_there_last_until_growth_has_used_them_up() -> None:
    sizing = size(Needs(target=1_000, per_consumer=100, growth=1.0, partitions=40))
    assert sizing.lasts_years == pytest.approx(2)  # doubled twice
    assert size(Needs(target=1_000, per_consumer=100, partitions=40)).lasts_years is None
    assert size(Needs(target=1_000, per_consumer=100, partitions=9)).lasts_years == 0


def test_a_partition_that_brings_more_than_a_consumer_can_do_cannot_be_helped() -> None:
    sizing = size(Needs(target=1_000, per_consumer=100, partitions=9))
    assert sizing.now.consumers is None
    assert any("more consumers would not help" in note for note in sizing.notes)


def test_next_to_nothing_takes_one_consumer_and_beyond_all_numbers_is_refused() -> None:
    assert size(Needs(target=1e-308, per_consumer=200)).now.consumers == 1
    with pytest.raises(ValueError, match="beyond all numbers"):
        size(Needs(target=1e12, per_consumer=1, partitions=3, headroom=1e300))


@pytest.mark.parametrize(
    ("partitions", "brokers", "needed", "each"),
    [
        (100, 3, 3, 100),  # three replicas need three brokers, however few
        (4_000, 3, 3, 4_000),
        (4_001, 3, 4, 4_001),  # 12,003 replicas at 4,000 each
    ],
)
def test_brokers_have_a_limit_of_replicas(partitions: int, brokers: int, needed: int, each: int) -> None:
    sizing = size(Needs(target=1, per_consumer=1, partitions=partitions, brokers=brokers))
    assert (sizing.brokers_needed, sizing.replicas_a_broker) == (needed, each)
    assert any("above the limit" in note for note in sizing.notes) == (each > 4_000)


def test_the_cost_of_rebalances_is_work_for_the_rest_of_the_time() -> None:
    asked: list[tuple[int, int]] = []

    def cost(partitions: int, consumers: int) -> float:
        asked.append((partitions, consumers))
        return partitions * 8_640.0  # every partition stands still for a tenth of a day

    needs = Needs(target=1_000, per_consumer=100, partitions=20, rebalances_per_day=1)
    assert size(needs).now.consumers == 10
    sizing = size(needs, cost)
    assert asked == [(20, 10)]
    assert sizing.standstill == pytest.approx(0.1)
    assert sizing.now.consumers == 20  # 1,111 a second: two partitions bring 111 to a consumer of 100


def test_headroom_covers_what_rebalances_hold_up_and_none_is_said() -> None:
    def cost(partitions: int, consumers: int) -> float:
        return partitions * 86.4  # a thousandth of a day

    with_room = Needs(target=1_000, per_consumer=100, partitions=12, headroom=0.2, rebalances_per_day=1)
    assert size(with_room, cost).now == size(with_room).now
    assert size(with_room, cost).notes == ()
    full = size(Needs(target=1_000, per_consumer=100, rebalances_per_day=1), cost)
    assert full.now.consumers == 10  # no number of them would help
    assert any("after a deploy is never caught up" in note for note in full.notes)


@pytest.mark.parametrize(
    ("a_day", "seconds", "counted", "note"),
    [
        (8, 900, 8, None),  # 12 consumers take three hours: eight are a day
        (24, 900, 8, "24 deploys of 3h each do not fit into a day: 8 are counted"),
        (2, 5_400, 1, "2 deploys of 18h each do not fit into a day: 1 is counted"),
        (1, 14_400, 0.5, "a deploy takes 48h, more than a day: one after the other is counted"),
    ],
)
def test_no_more_deploys_are_counted_than_fit_into_a_day(
    a_day: int, seconds: float, counted: float, note: str | None
) -> None:
    needs = Needs(target=100, per_consumer=10, headroom=0.2, rebalances_per_day=a_day, rebalance_s_a_consumer=seconds)
    sizing = size(needs, lambda partitions, consumers: partitions * 864.0)
    assert sizing.standstill == pytest.approx(0.01 * counted)
    assert sizing.notes == (() if note is None else (note,))


def test_headroom_that_deploys_use_up_is_not_said_to_be_missing() -> None:
    needs = Needs(target=100, per_consumer=10, headroom=0.2, rebalances_per_day=20)
    (note,) = size(needs, lambda partitions, consumers: partitions * 864.0).notes
    assert note == "deploys hold up more than can be caught up with between them: fewer, or more headroom"


@given(st.floats(1, 1e6), st.floats(1, 1e5), st.floats(1, 1e5), st.floats(0, 2), st.floats(0, 5), st.floats(0, 1))
def test_no_share_is_ever_more_than_a_consumer_can_do_and_one_consumer_less_would_not_do(
    target: float, per_consumer: float, per_partition: float, growth: float, years: float, headroom: float
) -> None:
    needs = Needs(
        target=target,
        per_consumer=per_consumer,
        per_partition=per_partition,
        growth=growth,
        horizon_years=years,
        headroom=headroom,
    )
    sizing = size(needs)
    for plan in (sizing.now, sizing.horizon):
        assert plan.consumers is not None
        each = plan.with_headroom / sizing.partitions
        assert each <= min(per_consumer, per_partition) * (1 + 1e-6)
        assert math.ceil(sizing.partitions / plan.consumers) * each <= per_consumer * (1 + 1e-6)
        if plan.consumers > 1:
            fewer = math.ceil(sizing.partitions / (plan.consumers - 1))
            assert fewer * each > per_consumer * (1 - 1e-6)
