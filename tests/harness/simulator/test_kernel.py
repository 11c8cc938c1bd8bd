"""The kernel alone: what happens when, and what a leap does to timers that were put off, hastened and cancelled."""

from __future__ import annotations

import pytest

from rebalance_lab.harness.simulator.kernel import Kernel, Timers
from rebalance_lab.protocol_v1.common.effects import TimerKey

TICK: TimerKey = ("tick",)
OTHER: TimerKey = ("other",)


class Clock:
    """A kernel, one machine's timers, and when each of them went off."""

    def __init__(self) -> None:
        self.kernel = Kernel()
        self.fired: list[tuple[int, TimerKey]] = []
        self.timers = Timers(self.kernel, lambda key: self.fired.append((self.kernel.now_ms, key)))

    def leap(self, to_ms: int, by_ms: int) -> None:
        self.kernel.leap(to_ms, {self.timers: lambda key: by_ms})
        self.timers.leap(to_ms, lambda key: by_ms)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_what_is_due_at_the_same_moment_comes_in_the_order_of_asking() -> None:
    kernel = Kernel()
    seen: list[str] = []
    kernel.at(5, seen.append, "first")
    kernel.after(3, seen.append, "sooner")
    kernel.at(5, seen.append, "second")
    kernel.run(4)
    assert (seen, kernel.now_ms) == (["sooner"], 4)
    kernel.run(5)
    assert seen == ["sooner", "first", "second"]


@pytest.mark.parametrize(("first", "then"), [(10, 30), (30, 10)])
def test_a_timer_that_is_set_again_goes_off_once(clock: Clock, first: int, then: int) -> None:
    clock.timers.set(TICK, first)
    clock.timers.set(TICK, then)
    clock.kernel.run(100)
    assert clock.fired == [(then, TICK)]


@pytest.mark.parametrize("again_ms", [5, 60, 500])
def test_a_timer_that_was_cancelled_before_a_leap_can_be_set_after_it(clock: Clock, again_ms: int) -> None:
    clock.timers.set(TICK, 50)
    clock.timers.cancel(TICK)
    clock.leap(1_000, by_ms=1_000)
    clock.timers.set(TICK, again_ms)
    clock.kernel.run(2_000)
    assert clock.fired == [(1_000 + again_ms, TICK)]


@pytest.mark.parametrize(("first", "then"), [(10, 30), (30, 10)])
def test_a_leap_carries_a_timer_along_however_often_it_was_set(clock: Clock, first: int, then: int) -> None:
    clock.timers.set(TICK, first)
    clock.timers.set(TICK, then)
    clock.leap(1_000, by_ms=1_000)
    clock.kernel.run(2_000)
    assert clock.fired == [(1_000 + then, TICK)]


def test_what_would_come_too_early_after_a_leap_comes_at_once(clock: Clock) -> None:
    clock.timers.set(TICK, 10)
    clock.leap(1_000, by_ms=0)
    clock.kernel.run(2_000)
    assert clock.fired == [(1_000, TICK)]


def test_entries_that_mean_nothing_end_no_leap_and_are_not_carried_along_for_ever(clock: Clock) -> None:
    clock.timers.set(TICK, 900)
    clock.timers.set(TICK, 500)
    clock.timers.set(OTHER, 300)
    clock.timers.cancel(OTHER)
    assert clock.kernel.next_ms(clock.timers, stays=lambda key: True) == 500
    for n in range(1, 20):
        clock.leap(100 * n, by_ms=100)
        clock.timers.set(OTHER, 300)
        clock.timers.cancel(OTHER)
    events = clock.kernel.events
    clock.kernel.run(100_000)
    assert clock.fired == [(2_400, TICK)]
    assert clock.kernel.events - events <= 2


def test_timers_of_somebody_who_is_gone_are_forgotten_and_messages_keep_their_distance(clock: Clock) -> None:
    seen: list[int] = []
    clock.timers.set(TICK, 10)
    clock.kernel.at(20, lambda: seen.append(clock.kernel.now_ms), rhythm="a message")
    clock.kernel.at(1_500, lambda: seen.append(clock.kernel.now_ms))
    clock.kernel.leap(1_000, {})
    clock.kernel.run(2_000)
    assert (clock.fired, seen) == ([], [1_020, 1_500])
