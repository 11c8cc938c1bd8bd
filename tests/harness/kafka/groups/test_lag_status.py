"""Burrow's judgement from a window of looks."""

from __future__ import annotations

from itertools import accumulate

import pytest

from rebalance_lab.harness.kafka.groups.lag_status import Look, Offsets, commits_apart, lag_status

EVERY_S = 2.0
Seen = tuple[int, int | None]
"""The end, and what is committed."""


def window(*seen: Seen, begin: int = 0, every_s: float = EVERY_S) -> list[Look]:
    return [Look(number * every_s, Offsets(begin, *one)) for number, one in enumerate(seen)]


@pytest.mark.parametrize(
    ("seen", "owned", "status"),
    [
        ([(10, 10), (20, 20), (30, 30), (40, 40)], True, "working"),  # nothing waits
        ([(10, 5), (20, 18), (30, 24), (40, 31)], True, "working"),  # the lag shrinks at times
        ([(10, 5), (20, 10), (30, 20), (40, 25)], True, "working"),  # reached what was written by the look before
        ([(100, 5), (200, 15), (300, 25), (400, 35)], True, "behind"),
        ([(100, 5), (200, 25), (300, 105), (400, 225)], True, "working"),  # 75, 95, 75
        ([(100, 5), (100, 15), (100, 25), (100, 35)], True, "working"),
        ([(10, 5), (20, 5), (30, 5), (40, 5)], True, "stalled"),
        ([(10, 5), (10, 5), (10, 5), (10, 5)], True, "stalled"),  # nothing new, and what is there is left
        ([(10, None), (20, None), (30, None), (40, None)], True, "stalled"),
        ([(0, None), (0, None), (0, None), (0, None)], True, "working"),  # has never committed, and had nothing to
        ([(10, 10), (10, 10), (20, 10), (30, 10)], True, "working"),  # a lag of the window is 0
        ([(10, 5), (20, 5), (30, 5), (40, 5)], False, "stopped"),
        ([(10, 10), (10, 10), (10, 10), (10, 10)], False, "working"),  # no record waits
        ([(100, 5), (200, 120), (300, 210), (400, 310)], False, "working"),  # assign(): no member, and it commits
        ([(100, 5), (200, 15), (300, 25), (400, 35)], False, "behind"),
        ([(100, 50), (100, 20), (100, 30), (100, 40)], True, "rewound"),
        ([(100, 100), (100, 0), (110, 0), (120, 0)], False, "rewound"),
        ([(100, 50), (100, None), (100, None), (100, None)], True, "rewound"),  # the offset is gone
        ([(100, 50), (100, 20), (100, 60), (100, 100)], True, "working"),  # and has read it all again
        ([(100, 5)], True, "unknown"),
        ([(100, 5)], False, "unknown"),
        ([(100, 5), (110, 5)], True, "unknown"),  # two seconds say nothing of a consumer that commits every five
        ([(100, 5), (110, 5)], False, "unknown"),
    ],
)
def test_a_window_of_looks_at_a_partition(seen: list[Seen], owned: bool, status: str) -> None:
    assert lag_status(window(*seen), owned=owned) == status


def test_a_consumer_that_is_no_member_has_stopped_when_its_last_commit_is_longer_ago_than_its_commits_span() -> None:
    """Commits until the third look, and silence: Burrow's rule needs no membership."""
    seen: list[Seen] = [(1_000, 10), (1_000, 20), (1_000, 30)]
    silent = [lag_status(window(*seen, *[(1_000, 30)] * n), owned=False) for n in range(6)]
    assert silent == ["working", "working", "working", "stopped", "stopped", "stopped"]


def test_a_window_shorter_than_the_time_between_commits_tells_nothing() -> None:
    """Ten seconds without a commit: a group that commits every thirty is not judged by them."""
    still = window(*[(100 + n, 5) for n in range(6)])
    assert lag_status(still, owned=True) == "stalled"
    assert lag_status(still, owned=True, commits_apart_s=30.0) == "unknown"


@pytest.mark.parametrize("phase", range(5))
@pytest.mark.parametrize("rate", [1, 100, 5_000])
@pytest.mark.parametrize("backlog", [0, 20_000])
def test_a_healthy_consumer_that_commits_every_five_seconds_works(phase: int, rate: int, backlog: int) -> None:
    """Looks every second, wherever the window begins. It reads as fast as records are written, or catches up."""
    seconds = range(phase, phase + 20)
    catches_up = 1_000 if backlog else 0
    seen = [(50_000 + backlog + at * rate, 50_000 + (at - at % 5) * (rate + catches_up)) for at in seconds]
    assert {lag_status(window(*seen[:n], every_s=1.0), owned=True) for n in range(6, 21)} <= {"working", "unknown"}
    assert lag_status(window(*seen, every_s=1.0), owned=True, commits_apart_s=5.0) == "working"


def test_a_consumer_that_loses_ground_is_behind_wherever_its_window_begins() -> None:
    ends = list(accumulate([1_000] * 30))
    for begin in range(5):
        seen = [(ends[at], 100 * (at - at % 5)) for at in range(begin, begin + 20)]
        assert lag_status(window(*seen, every_s=1.0), owned=True) == "behind"


def test_the_longest_time_between_two_commits_is_the_groups() -> None:
    quick = window((9, 0), (9, 1), (9, 2), (9, 3))
    slow = window((9, 0), (9, 1), (9, 1), (9, 3))
    assert commits_apart([quick]) == EVERY_S
    assert commits_apart([quick, slow]) == 2 * EVERY_S
    assert commits_apart([window((9, 0), (9, 0))]) == 0.0
