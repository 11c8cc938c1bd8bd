"""Read units as users write them: 500ms, 1m30s, 600/s, 1.5k/s, 0.1%, 20MB.

Given      a value from a file or a command line
Returns    whole milliseconds, records per second, a probability or bytes; ValueError with one line on what to write
Strict     a bare number is refused where a unit belongs: `at: 90` is as likely to mean seconds as milliseconds, and
           `--growth 30` was read as 3,000 %. Zero needs no unit, and settings under a Kafka name that ends in `.ms`
           may stay plain numbers, as in Kafka.
Start at   duration_ms, rate_per_second
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
THOUSANDS = {"": 1, "k": 1_000, "K": 1_000, "M": 1_000_000, "G": 1_000_000_000}
BYTES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

# 0 to 9: \d is every script's digits. Fifteen are more than any clock has; a number of a million digits would be a way
# to stop the reader.
PART = r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*(ms|s|m|h|d)"
DURATION = re.compile(rf"(?:{PART}\s*)+")
NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?"
FINE = re.compile(rf"({NUMBER})\s*(us|ms|s|m)")
RATE = re.compile(rf"({NUMBER})\s*([kKMG]?)\s*/\s*(s|m|h|d)")
SHARE = re.compile(rf"({NUMBER})\s*(%?)")
SIZE = re.compile(rf"({NUMBER})\s*({'|'.join(BYTES)})")
SIZE_RATE = re.compile(rf"({NUMBER})\s*({'|'.join(BYTES)})\s*/\s*(s|m|h|d)")
LONGEST_MS = 10 * 366 * MS["d"]

SAY_DURATION = "say 500ms, 20s, 5m, 2h or 1d"
SAY_RATE = "say 100/s, 6000/m or 1.5k/s"


def duration_ms(value: object) -> int:
    """Return the whole milliseconds of `20s` or `1m30s`."""
    if is_number(value):
        if value == 0:
            return 0
        raise ValueError(f"{quoted(value)} has no unit: {SAY_DURATION}")
    if not isinstance(value, str) or not DURATION.fullmatch(value.strip()):
        raise ValueError(f"{quoted(value)} is not a duration: {SAY_DURATION}")
    total = sum(Fraction(number) * MS[unit] for number, unit in re.findall(PART, value))
    if total.denominator != 1:
        raise ValueError(f"{quoted(value)} is not a whole number of milliseconds")
    if total > LONGEST_MS:
        raise ValueError(f"{quoted(value)} is longer than ten years")
    return int(total)


def setting_ms(value: object) -> int:
    """Read a Kafka setting in milliseconds: a plain number, or a duration."""
    if type(value) is int and 0 <= value <= LONGEST_MS:
        return value
    if is_number(value) or not isinstance(value, str):
        raise ValueError(f"{quoted(value)} is not a number of milliseconds: say 45000 or 45s")
    return setting_ms(int(value)) if value.isascii() and value.isdigit() and len(value) < 16 else duration_ms(value)


def fine_ms(value: object) -> float:
    """Read milliseconds with a fraction, for what one record takes: `2ms`, `0.5ms`, `200us`."""
    found = FINE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{quoted(value)} is not a duration: say 200us, 0.5ms, 2ms or 1s")
    number, unit = float(found[1]), found[2]
    return finite(number / 1_000 if unit == "us" else number * MS[unit], value)


def rate_per_second(value: object) -> float:
    found = RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        if is_number(value):
            raise ValueError(f"{quoted(value)} has no unit: {SAY_RATE}")
        raise ValueError(f"{quoted(value)} is not a rate: {SAY_RATE}")
    return finite(float(found[1]) * THOUSANDS[found[2]] / SECONDS[found[3]], value)


def share(value: object) -> float:
    """Read a percentage such as `30%`. More than 100% is allowed, and zero needs no sign."""
    found = SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is not None and found[2]:
        return finite(float(Decimal(found[1]) / 100), value)
    number = math.nan
    if found is not None:
        number = float(found[1])
    elif isinstance(value, int | float) and is_number(value):
        number = as_float(value)
    if number == 0:
        return 0.0
    if not 0 < number < math.inf:
        raise ValueError(f"{quoted(value)} is not a percentage: say 30%")
    raise ValueError(f"{quoted(value)} has no percent sign: say {percentages_meant(number)}")


def percentages_meant(number: float) -> str:
    """Return what a user can have meant by a bare number: 0.3 may stand for 30% and for 0.3%."""
    texts = [f"{number:.15g}%"]
    return " or ".join([f"{number * 100:.15g}%", *texts] if number <= 1 else texts)


def probability(value: object) -> float:
    """Read a percentage of at most 100%, or a fraction such as 0.001."""
    chance = fraction(value)
    if chance is None:
        chance = share(value)
    if not chance <= 1:
        raise ValueError(f"{quoted(value)} is more than 100%: say 0.1% or 0.001")
    return chance


def fraction(value: object) -> float | None:
    """Return a number between 0 and 1, also as text; None for whatever else."""
    if isinstance(value, str):
        found = SHARE.fullmatch(value.strip())
        number = float(found[1]) if found is not None and not found[2] else math.nan
    elif isinstance(value, int | float) and is_number(value):
        number = value
    else:
        return None
    return float(number) if 0 <= number <= 1 else None


def size_bytes(value: object) -> float:
    found = SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{quoted(value)} is not a size: say 512B, 20kB, 1.5MB or 1GiB")
    return finite(float(found[1]) * BYTES[found[2]], value)


def throughput(value: object) -> tuple[float, str]:
    """Read a rate of records or of bytes, and return which of the two: ("records", "bytes")."""
    found = SIZE_RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is not None:
        return finite(float(found[1]) * BYTES[found[2]] / SECONDS[found[3]], value), "bytes"
    try:
        return rate_per_second(value), "records"
    except ValueError:
        raise ValueError(f"{quoted(value)} is not a throughput: say 5k/s for records or 50MB/s for bytes") from None


def duration_text(ms: int) -> str:
    """Return what duration_ms reads back to the same number, in the largest unit that stays whole."""
    unit = next((unit for unit in reversed(MS) if ms and ms % MS[unit] == 0), "ms")
    return f"{ms // MS[unit]}{unit}"


def fine_text(ms: float) -> str:
    return f"{ms!r}ms"


def rate_text(per_second: float) -> str:
    return f"{per_second!r}/s"


def as_float(number: float) -> float:
    """Return a float, or refuse a number that is too large for one, as whole numbers may be."""
    try:
        return float(number)
    except OverflowError:
        raise ValueError(f"{quoted(number)} is too large") from None


def finite(number: float, value: object) -> float:
    if not math.isfinite(number):
        raise ValueError(f"{quoted(value)} is too large")
    return number


def is_number(value: object) -> bool:
    return type(value) in (int, float)


def quoted(value: object) -> str:
    """Return a value as part of a one-line message, short; text in quotes, nothing as itself."""
    if value is None:
        return "nothing"
    try:
        text = ("yes" if value else "no") if isinstance(value, bool) else repr(value)
    except RecursionError:
        return "a deeply nested value"
    except ValueError:  # Python prints no number of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 60 else text[:57] + "..."
