"""How much waited and for how long, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.harness.measure.lag_curve import most_of_the_time
from tests.harness.one_group import cost, facts_of


def test_who_is_behind_is_so_until_it_has_caught_up_also_when_nothing_comes_any_more() -> None:
    """120,000 records, 5 ms each."""
    bursts = {"partitions": 4, "rate": {"steps": [{"at": "0s", "rate": "1000/s"}, {"at": "2m", "rate": "0/s"}]}}
    found = cost(topics={"t": bursts}, members={"c": {"count": 1, "topics": "t", "record": "5ms"}}, duration="20m")
    assert found.recover_s == pytest.approx(600, abs=10)


def test_the_time_to_recover_is_the_longest_time_behind() -> None:
    """A pause of 30 s leaves 300 records; at twice the rate in which they come they take another 30 s."""
    pauses = [{"at": at, "pause": {"members": "c-1", "for": lasts}} for at, lasts in (("1m", "30s"), ("5m", "10s"))]
    found = cost(*pauses, members={"c": {"count": 1, "topics": "t", "record": "50ms"}})
    assert found.recover_s == pytest.approx(59, abs=4)
    assert found.behind_s == pytest.approx(59 + 19, abs=8)


@pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform+static"])
def test_what_a_deploy_leaves_behind_is_seen_however_long_the_run_is(strategy: str) -> None:
    """Four hundred points of a day are 216 s apart, and a deploy is over in less."""
    topics = {"t": {"partitions": 12, "rate": "600/s"}}
    group = {"topics": topics, "members": {"c": {"count": 4, "topics": "t", "record": "6ms"}}, "strategy": strategy}
    deploy = {"at": "5m", "rolling restart": {"downtime": "20s", "gap": "10s"}}
    short, long = cost(deploy, duration="13m", **group), cost(deploy, duration="1d", **group)
    assert short.behind_s > 2
    assert long.lag_peak == pytest.approx(short.lag_peak, rel=0.25)
    assert long.behind_s == pytest.approx(short.behind_s, abs=6)
    assert long.recover_s == pytest.approx(short.recover_s, abs=6)
    assert long.lag_p99 < short.lag_p99


@pytest.mark.parametrize("downtime", ["1s", "4s", "4500ms"])
@pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
def test_a_peak_is_seen_however_short_it_is(strategy: str, downtime: str) -> None:
    """What has come in until its only reader is back, of which it does a second's worth in a tenth of that."""
    changes: dict[str, Any] = {"topics": {"t": {"partitions": 4, "rate": "100/s"}}, "duration": "1h"}
    restarts = {"at": "5m", "restart": {"members": "c-1", "downtime": downtime}}
    found = cost(restarts, strategy=strategy, members={"c": {"count": 1, "topics": "t", "record": "1ms"}}, **changes)
    assert found.lag_peak == pytest.approx(100 * found.unowned_longest_s, abs=10)
    assert found.behind_s == pytest.approx((found.unowned_longest_s - 1) * 1.1, abs=1)


def test_a_group_that_never_keeps_up_is_behind_all_the_time() -> None:
    topics = {"t": {"partitions": 4, "rate": "100/s"}}
    found = cost(duration="1d", topics=topics, members={"c": {"count": 1, "topics": "t", "record": "20ms"}})
    assert found.behind_s == pytest.approx(86_400, rel=0.01)
    assert found.lag_peak == pytest.approx(86_400 * 50, rel=0.01)
    assert found.lag_p99 == pytest.approx(86_400 * 50 * 0.99, rel=0.01)


@pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
@pytest.mark.parametrize("kind", ["pause", "isolate"])
def test_lag_is_at_its_peak_when_a_standstill_ends(kind: str, strategy: str) -> None:
    """Nobody is put out: sessions are longer than that."""
    found = cost({"at": "2m", kind: {"members": "c", "for": "24700ms"}}, strategy=strategy)
    assert found.lag_peak == pytest.approx(247, abs=2)


@pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky", "consumer/uniform"])
def test_the_lag_curve_has_a_point_at_each_of_its_bends(strategy: str) -> None:
    """From one to the next it is straight: somebody begins to read or stops, comes or goes. Facts come in order. Who is
    to close works on to the end of its batch."""
    deploy = {"at": "100s", "rolling restart": {"downtime": "3s", "gap": "7s"}}
    members = {"c": {"count": 3, "topics": "t", "record": "50ms"}}
    facts = facts_of(deploy, strategy=strategy, members=members, callbacks={"assigned": "500ms"}, duration="200s")
    assert [fact["t"] for fact in facts] == sorted(fact["t"] for fact in facts)
    looks_ms = [fact["t"] for fact in facts if fact["fact"] == "lag"]
    bends = [fact for fact in facts if fact["fact"] in ("reads", "stops", "process") and fact.get("is") != "closing"]
    bends_ms = [fact["t"] for fact in bends]
    assert max(min(abs(look_ms - bend_ms) for look_ms in looks_ms) for bend_ms in bends_ms) <= 10


@pytest.mark.parametrize("rate", [400, 500, 800])
def test_who_has_caught_up_is_not_behind_until_somebody_looks(rate: int) -> None:
    """A pause of 3 s, and 1,000 records a second that can be done: a second's worth waits after one, and again once
    all but that much of the three is done."""
    paused = {"at": "2m", "pause": {"members": "c", "for": "3s"}}
    found = cost(paused, topics={"t": {"partitions": 4, "rate": f"{rate}/s"}}, duration="1h")
    assert found.behind_s == pytest.approx(2 + 2 * rate / (1_000 - rate), rel=0.01)
    assert found.lag_peak == pytest.approx(3 * rate, rel=0.01)


def test_lag_of_most_of_the_time_is_that_of_the_curve_and_not_of_the_moments_it_was_looked_at() -> None:
    """Three times 10 records a second wait for 20 s. In a hundredth of the time, 2 s each time, it is more than 180."""
    pauses = [{"at": at, "pause": {"members": "c", "for": "20s"}} for at in ("2m", "4m", "6m")]
    found = cost(*pauses, members={"c": {"count": 1, "topics": "t", "record": "1ms"}})
    assert found.lag_p99 == pytest.approx(181, abs=3)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 400)), min_size=1, max_size=9))
def test_no_more_waits_in_99_percent_of_the_time(points: list[tuple[int, int]]) -> None:
    waiting, lasts_ms = [list(one) for one in zip(*points, strict=True)]
    ends = [*waiting[1:], waiting[-1]]
    curve = sorted(
        one + (other - one) * (ms + 0.5) / all_ms
        for one, other, all_ms in zip(waiting, ends, lasts_ms, strict=True)
        for ms in range(all_ms)
    )
    found = most_of_the_time(waiting, lasts_ms)
    above, below = sum(value > found + 1 for value in curve), sum(value > found - 1 for value in curve)
    assert above <= len(curve) / 100 + len(points)
    assert not found or below >= len(curve) / 100 - len(points)
