"""Read what a sweep varies: each parameter is a list of choices, or a distribution that every draw takes a value from.

Grid       `[3, 6, 12]`
Range      `{from: 5s, to: 60s, steps: 4}`, evenly; with `scale: log` by equal factors
Drawn      `{uniform: [5s, 60s]}`, `{normal: [mean, sd]}`, `{lognormal: [median, sigma]}`, `{exponential: mean}`
Cases      `{cases: {quiet: {timeline: []}, busy: {...}}}`: a name for several places at once
Place      the parameter's own name, or `path: members.consumer.count` (a list of paths sets all of them)
Start at   read_parameter
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

from rebalance_lab.assignors.json_contract import ContractError, at, expect_list, expect_object, refuse_unknown
from rebalance_lab.harness.scenario.units import quoted

Label: TypeAlias = int | float | str | bool
Settings: TypeAlias = tuple[tuple[str, Any], ...]
"""Places and their values."""

NUMBER = re.compile(r"(\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)\s*([a-zA-Z%/]*)")
MOST_STEPS = 10_000
KEYS = ("path", "values", "from", "to", "steps", "scale", "cases", "uniform", "normal", "lognormal", "exponential")


@dataclass(frozen=True, slots=True)
class Choice:
    label: Label
    settings: Settings


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    choices: tuple[Choice, ...] = ()
    draw: Callable[[Random], Choice] | None = None
    """Instead of choices."""


def read_parameter(name: str, data: Any, path: str) -> Parameter:
    if isinstance(data, list):
        data = {"values": data}
    given = expect_object(data, path)
    refuse_unknown(given, KEYS, path)
    ways = [key for key in ("values", "from", "cases", *DRAWN) if key in given]
    if len(ways) != 1:
        raise ContractError(path, f"give one of values, from and to, cases, {', '.join(DRAWN)}")
    if ways[0] == "cases":
        return Parameter(name, read_cases(given["cases"], at(path, "cases")))
    places = read_places(given.get("path", name), at(path, "path"))
    if ways[0] in DRAWN:
        return Parameter(name, draw=read_distribution(ways[0], given[ways[0]], places, at(path, ways[0])))
    values = read_range(given, path) if ways[0] == "from" else expect_list(given["values"], at(path, "values"))
    if not values:
        raise ContractError(path, "the list is empty: there is nothing to run")
    return Parameter(name, tuple(choice(value, places, at(path, i)) for i, value in enumerate(values)))


def read_places(data: Any, path: str) -> tuple[str, ...]:
    places = data if isinstance(data, list) else [data]
    if not places or not all(isinstance(place, str) and place for place in places):
        raise ContractError(path, f"expected a path such as members.consumer.count, got {quoted(data)}")
    return tuple(places)


def choice(value: Any, places: tuple[str, ...], path: str) -> Choice:
    if not isinstance(value, int | float | str):
        raise ContractError(path, f"expected a number or text, got {quoted(value)}; `cases` sets anything else")
    return Choice(value, tuple((place, value) for place in places))


def read_cases(data: Any, path: str) -> tuple[Choice, ...]:
    if not isinstance(data, Mapping) or not data:
        raise ContractError(path, "expected a mapping of names to what each sets; it is empty or none")
    for label, settings in data.items():
        if not isinstance(label, int | float | str):
            raise ContractError(path, f"{quoted(label)} cannot be a name: put it in quotes")
        expect_object(settings, at(path, str(label)))
    return tuple(Choice(label, tuple(settings.items())) for label, settings in data.items())


# Ranges


def number_and_unit(value: Any, path: str) -> tuple[float, str]:
    found = NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if type(value) in (int, float):
        return value, ""
    if found is None:
        raise ContractError(path, f"expected a number, with a unit if it has one, got {quoted(value)}")
    return float(found[1]), found[2]


def with_unit(number: float, unit: str, *, whole: bool) -> Label:
    """Round to a thousandth of its unit, which is a whole number of milliseconds from seconds on; `ms` are whole."""
    if whole or unit == "ms":
        number = round(number)
    else:
        number = float(f"{number:.6g}") if unit == "" else round(number, 3)
    return f"{number:g}{unit}" if unit else number


def read_range(given: Mapping[str, Any], path: str) -> list[Label]:
    low, unit = number_and_unit(given["from"], at(path, "from"))
    high, other = number_and_unit(given.get("to"), at(path, "to"))
    if unit != other:
        raise ContractError(at(path, "to"), f"has the unit {quoted(other)}, but from has {quoted(unit)}")
    steps = given.get("steps")
    if type(steps) is not int or not 2 <= steps <= MOST_STEPS:
        raise ContractError(at(path, "steps"), f"expected how many values, 2 to {MOST_STEPS:,}, got {quoted(steps)}")
    scale = given.get("scale", "linear")
    if scale not in ("linear", "log") or high <= low or (scale == "log" and low <= 0):
        raise ContractError(path, "goes from low to high; scale is linear or log, and log needs a low above 0")
    whole = type(given["from"]) is int and type(given["to"]) is int
    parts = [step / (steps - 1) for step in range(steps)]
    numbers = [low * (high / low) ** part if scale == "log" else low + (high - low) * part for part in parts]
    return list(dict.fromkeys(with_unit(number, unit, whole=whole) for number in numbers))


# Distributions


def uniform(random: Random, low: float, high: float) -> float:
    return random.uniform(low, high)


def normal(random: Random, mean: float, deviation: float) -> float:
    return max(0.0, random.gauss(mean, deviation))


def lognormal(random: Random, median: float, sigma: float) -> float:
    return median * math.exp(random.gauss(0.0, sigma))


def exponential(random: Random, mean: float) -> float:
    return random.expovariate(1 / mean)


DRAWN: Mapping[str, tuple[Callable[..., float], int]] = {
    "uniform": (uniform, 2),
    "normal": (normal, 2),
    "lognormal": (lognormal, 2),
    "exponential": (exponential, 1),
}


def read_distribution(kind: str, data: Any, places: tuple[str, ...], path: str) -> Callable[[Random], Choice]:
    function, count = DRAWN[kind]
    listed = data if isinstance(data, list) else [data]
    if len(listed) != count:
        raise ContractError(path, f"{kind} takes {count} number{'s' * (count > 1)}, got {quoted(data)}")
    pairs = [number_and_unit(value, path) for value in listed]
    unit, numbers = pairs[0][1], [number for number, _ in pairs]
    if kind in ("uniform", "normal") and pairs[1][1] != unit:
        raise ContractError(path, "both numbers need the same unit")
    if (kind == "uniform" and numbers[0] > numbers[1]) or (kind in ("lognormal", "exponential") and numbers[0] <= 0):
        raise ContractError(path, f"{kind} of {quoted(data)} has no values")
    whole = all(type(value) is int for value in listed)

    def draw(random: Random) -> Choice:
        value = with_unit(function(random, *numbers), unit, whole=whole)
        return Choice(value, tuple((place, value) for place in places))

    return draw
