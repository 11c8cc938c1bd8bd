"""Define a topic's shape in a scenario file: the records that come in over time, and the spread of records and
replicas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from rebalance_lab.harness.scenario.forms import value_schemas as schemas
from rebalance_lab.harness.scenario.forms.form_base import (
    Duration,
    Form,
    LongDuration,
    PerSecond,
    RealPerSecond,
    TopicName,
    complaint,
    words,
)
from rebalance_lab.harness.scenario.forms.value_schemas import given, needs
from rebalance_lab.harness.scenario.units import quoted, rate_per_second

MAX_PARTITIONS = 2_000_000
ZIPF = re.compile(schemas.ZIPF)


class DailyForm(Form):
    """A day's curve: lowest twelve hours away from its peak."""

    low: PerSecond
    high: RealPerSecond
    peak: Duration = Field(14 * 3_600_000, description="The time of day with the highest rate, such as 14h.")
    start: Duration = Field(0, description="The time of day at which the scenario begins.")


class BurstForm(Form):
    """The rate is this one while the burst lasts."""

    at: Duration
    lasts: LongDuration = words("for")
    rate: RealPerSecond


class StepForm(Form):
    at: Duration
    rate: PerSecond


DAILY = given("daily")
STEPS = given("steps", {"type": "array", "minItems": 1})
ZERO_WITH_BURSTS: schemas.Schema = {
    "required": ["base", "bursts"],
    "properties": {
        "base": {"not": {"pattern": schemas.SOME_MANTISSA}},
        "bursts": {"type": "array", "minItems": 1},
    },
}


class RateForm(Form):
    """Records per second: `600/s`, or a curve with bursts, or steps."""

    short = "base"
    rules = (
        {
            "oneOf": [
                given("base", schemas.text(schemas.SOME_MANTISSA)),
                DAILY,
                STEPS | {"allOf": [{"properties": {"bursts": {"maxItems": 0}}}]},
                ZERO_WITH_BURSTS | {"not": {"anyOf": [DAILY, STEPS]}},
            ]
        },
    )
    base: PerSecond | None = None
    daily: DailyForm | None = None
    bursts: list[BurstForm] = Field(default_factory=list)
    steps: list[StepForm] = Field(default_factory=list)

    @classmethod
    def schema_alone(cls, schema: Mapping[str, Any]) -> schemas.Schema:
        return schemas.REAL_RATE


def known_rate(value: object) -> object:
    """A topic whose rate is zero has none; zero under `base`, between bursts, is another matter."""
    if isinstance(value, list):
        raise complaint(f"expected a rate such as 600/s, got {quoted(value)}")
    if isinstance(value, str):
        try:
            number = rate_per_second(value)
        except ValueError as error:
            raise complaint(str(error)) from None
        if number <= 0:
            raise complaint(f"must be above 0, got {quoted(value)}; leave it out for a topic without records")
    elif not isinstance(value, dict):
        raise complaint(f"{quoted(value)} is not a rate: say 100/s, 6000/m or 1.5k/s")
    return value


def known_skew(value: object) -> object:
    """Check a skew: `zipf 1.1`, or a weight for each partition."""
    if isinstance(value, str):
        if ZIPF.fullmatch(value) and float(value.split()[1]) <= 10:
            return value
    elif isinstance(value, list) and all(type(weight) in (int, float) and 0 <= weight < 1e300 for weight in value):
        if sum(value) > 0:
            return value
        raise complaint("all weights are 0")
    raise complaint(f"{quoted(value)} is not a skew: say zipf 1.1, or a list with a weight for each partition")


def topic_racks(value: object) -> object:
    """Racks to spread the replicas over, or each partition's own."""
    if isinstance(value, list) and value:
        if all(isinstance(rack, str) and rack for rack in value):
            return value
        if all(isinstance(racks, list) and all(isinstance(rack, str) and rack for rack in racks) for racks in value):
            return value
    raise complaint(f"expected racks such as [a, b, c], or a list of racks for each partition, got {quoted(value)}")


class TopicForm(Form):
    rules = (needs(given("replicas"), given("racks", {"type": "array", "items": {"type": "string"}})),)
    partitions: int = Field(ge=1, le=MAX_PARTITIONS)
    rate: Annotated[RateForm, BeforeValidator(known_rate)] | None = None
    skew: Annotated[Any, BeforeValidator(known_skew), WithJsonSchema(schemas.SKEW)] = None
    racks: Annotated[Any, BeforeValidator(topic_racks), WithJsonSchema(schemas.RACKS)] = None
    replicas: int | None = Field(None, ge=1, le=100, description="With a plain list of racks; 3 without it.")


class CreateTopicForm(TopicForm):
    name: TopicName
