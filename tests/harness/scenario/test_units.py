"""Units as people write them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.harness.scenario.units import (
    LONGEST_MS,
    duration_ms,
    duration_text,
    fine_ms,
    fine_text,
    probability,
    rate_per_second,
    rate_text,
    setting_ms,
    share,
    size_bytes,
    throughput,
)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("500ms", 500),
        ("20s", 20_000),
        ("5m", 300_000),
        ("2h", 7_200_000),
        ("1d", 86_400_000),
        ("1m30s", 90_000),
        ("1h 30m", 5_400_000),
        ("1.5s", 1_500),
        ("0.1s", 100),  # exact: in floats it would be 100.00000000000001 of something, sooner or later
        (0, 0),  # zero needs no unit
    ],
)
def test_a_duration_is_whole_milliseconds(text: object, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("20 parsecs", "'20 parsecs' is not a duration: say 500ms, 20s, 5m, 2h or 1d"),
        (90, "90 has no unit: say 500ms, 20s, 5m, 2h or 1d"),
        ("90", "'90' is not a duration: say 500ms, 20s, 5m, 2h or 1d"),
        ("-5s", "'-5s' is not a duration: say 500ms, 20s, 5m, 2h or 1d"),
        ("٣s", "'٣s' is not a duration: say 500ms, 20s, 5m, 2h or 1d"),  # a digit, but not one of these
        ("0.5ms", "'0.5ms' is not a whole number of milliseconds"),
        ("99999d", "'99999d' is longer than ten years"),
        ("9" * 5_000 + "s", "'" + "9" * 56 + "... is not a duration: say 500ms, 20s, 5m, 2h or 1d"),
        (True, "yes is not a duration: say 500ms, 20s, 5m, 2h or 1d"),
        (None, "nothing is not a duration: say 500ms, 20s, 5m, 2h or 1d"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_duration_says_what_to_write(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        duration_ms(value)


@pytest.mark.parametrize(
    ("text", "per_second"), [("100/s", 100), ("6000/m", 100), ("1.5k/s", 1500), ("2M/h", 2e6 / 3600), ("0/s", 0)]
)
def test_a_rate_is_per_second(text: str, per_second: float) -> None:
    assert rate_per_second(text) == per_second


@pytest.mark.parametrize("value", ["100", 100, "100/fortnight", "-1/s", "fast", None, "1e999/s"])
def test_what_is_no_rate_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"rate|unit|large"):
        rate_per_second(value)


def test_kafkas_settings_are_plain_milliseconds_or_durations() -> None:
    assert [setting_ms(value) for value in (45000, "45000", "45s")] == [45_000] * 3
    with pytest.raises(ValueError, match="say 45000 or 45s"):
        setting_ms(True)


def test_a_probability_is_a_percentage_or_a_number() -> None:
    assert probability("0.1%") == probability(0.001) == probability("0.001") == 0.001
    assert (probability("100%"), probability(0), probability("0")) == (1.0, 0.0, 0.0)
    for value in ("120%", "1.2", "-0.1", "", 30, 10**400):
        with pytest.raises(ValueError, match=r"100%|percent|too large"):
            probability(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (30, "30 has no percent sign: say 30%"),
        ("0.3", "'0.3' has no percent sign: say 30% or 0.3%"),
        (-0.1, "-0.1 is not a percentage"),
        ("", "'' is not a percentage"),
        (True, "yes is not a percentage"),
        (10**400, "too large"),
        ("1e999%", "too large"),
    ],
)
def test_a_percentage_needs_its_sign(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        share(value)


def test_sizes_and_throughputs() -> None:
    assert size_bytes("1.5MB") == 1_500_000
    assert size_bytes("1KiB") == 1_024
    assert throughput("60MB/m") == (1_000_000, "bytes")
    assert throughput("5k/s") == (5_000, "records")


@given(st.integers(0, LONGEST_MS))
def test_a_duration_written_reads_as_the_same(ms: int) -> None:
    assert duration_ms(duration_text(ms)) == ms


@given(st.floats(0, 1e12, allow_subnormal=False))
def test_rates_and_record_times_written_read_as_the_same(number: float) -> None:
    assert rate_per_second(rate_text(number)) == number
    assert fine_ms(fine_text(number)) == number
