"""Provide what all forms of a scenario file share: units as fields, strictness, and a short way to write a form.

A form is only the file's shape: it says what may stand where. ../reader.py reads what a form means, ../checks.py checks
whether the whole makes sense.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.scenario.forms import value_schemas as schemas
from rebalance_lab.harness.scenario.strategy_lists import normal_strategy
from rebalance_lab.harness.scenario.units import duration_ms, fine_ms, probability, quoted, rate_per_second

ONE_LINE = re.compile(f"[^{schemas.CONTROL}]+")
TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
RECORD_LIMITS = ("0.001us", "1440m")
"""How long one record takes."""
RATE_LIMITS = ("1/d", "1G/s")
"""Of a topic that has records."""
T = TypeVar("T")


def complaint(message: str, key: str | None = None) -> PydanticCustomError:
    """One line on what is wrong with a value, or with one of its keys."""
    # Through the context: a message is a template, and a user's braces are not ours.
    return PydanticCustomError("scenario", "{message}", {"message": message, "key": key})


def unit(
    read: Callable[[object], T], *, above: float | None = None, within: tuple[str, str] | None = None
) -> BeforeValidator:
    """`within`: the least and the most, in the unit that is read."""
    low, high = (read(within[0]), read(within[1])) if within is not None else (None, None)

    def reader(value: object) -> T:
        try:
            result = read(value)
        except ContractError as error:
            raise complaint(error.message) from None
        except ValueError as error:
            raise complaint(str(error)) from None
        if above is not None and result <= above:  # type: ignore[operator]
            raise complaint(f"must be above {above:g}, got {quoted(value)}")
        if within is not None and not low <= result <= high:  # type: ignore[operator]
            raise complaint(f"must be between {within[0]} and {within[1]}, got {quoted(value)}")
        return result

    return BeforeValidator(reader)


Duration = Annotated[int, unit(duration_ms), WithJsonSchema(schemas.DURATION)]
LongDuration = Annotated[int, unit(duration_ms, above=0), WithJsonSchema(schemas.LONG_DURATION)]
"""One that must not be nothing."""
FineDuration = Annotated[float, unit(fine_ms, above=0, within=RECORD_LIMITS), WithJsonSchema(schemas.FINE_DURATION)]
PerSecond = Annotated[float, unit(rate_per_second, within=("0/s", "1G/s")), WithJsonSchema(schemas.RATE)]
RealPerSecond = Annotated[float, unit(rate_per_second, above=0, within=RATE_LIMITS), WithJsonSchema(schemas.REAL_RATE)]
Chance = Annotated[float, unit(probability), WithJsonSchema(schemas.CHANCE)]


def strategy(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a strategy such as classic/range, got {quoted(value)}")
    return normal_strategy(value)


def names(value: object) -> list[str]:
    """Read one name, or a list of them."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(name, str) and name for name in listed):
        raise ValueError(f"expected a name or a list of names, got {quoted(value)}")
    if not listed:
        raise ValueError("the list is empty")
    twice = next((name for name, times in Counter(listed).items() if times > 1), None)
    if twice is not None:
        raise ValueError(f"{quoted(twice)} stands twice in the list")
    return listed


def topic_name(value: object) -> str:
    if not isinstance(value, str) or not TOPIC_NAME.fullmatch(value) or value in (".", ".."):
        raise ValueError(f"{quoted(value)} cannot be a topic's name: letters, digits, '.', '_' and '-', at most 249")
    return value


def member_name(value: object) -> str:
    if not isinstance(value, str) or not ONE_LINE.fullmatch(value):
        raise ValueError(f"{quoted(value)} cannot be a member's name: it has a line end or a control character in it")
    return value


StrategyText = Annotated[str, unit(strategy), WithJsonSchema(schemas.STRATEGY)]
Names = Annotated[list[str], unit(names), WithJsonSchema(schemas.NAMES)]
TopicName = Annotated[str, unit(topic_name), WithJsonSchema(schemas.TOPIC_NAME)]


def mapping(value: object) -> dict[str, Any]:
    """A mapping whose keys are text: YAML makes `on`, `1` and `2026-01-01` into something else."""
    if not isinstance(value, Mapping):
        raise complaint(f"expected a mapping, got {quoted(value)}")
    for key in value:
        if not isinstance(key, str):
            raise complaint(f"the key {quoted(key)} is not text: put it in quotes")
        if not key:
            raise complaint("a name must not be empty")
    return dict(value)


class Form(BaseModel):
    """A mapping with known keys. `short` names the one field that may stand alone instead of the mapping.

    `rules` are what build() demands of the keys together, for the schema.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
    short: ClassVar[str | None] = None
    rules: ClassVar[Sequence[schemas.Schema]] = ()
    meant: ClassVar[Mapping[str, str]] = {}
    """Other words for a key, where spelling alone would lead to a wrong one."""

    @model_validator(mode="before")
    @classmethod
    def known_keys(cls, value: object) -> dict[str, Any]:
        if cls.short is not None and not isinstance(value, Mapping):
            value = {cls.short: value}
        given = mapping(value)
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key in given:
            if key not in known:
                plain = key.replace("_", " ").replace("-", " ").lower()
                found = [cls.meant[plain]] if plain in cls.meant else get_close_matches(plain, known, n=1)
                hint = f"did you mean {found[0]!r}?" if found else f"known here: {', '.join(known)}"
                raise complaint(f"unknown key; {hint}", key)
        # `network:` with nothing below it is how YAML looks once its lines are commented out.
        return {key: one for key, one in given.items() if one is not None}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> Any:
        reference = handler(core_schema)
        schema = handler.resolve_ref_schema(reference)
        required = schema.get("required", ())
        for name, one in schema["properties"].items():
            if name not in required:
                schema["properties"][name] = schemas.or_null(one)
        if cls.rules:
            schema["allOf"] = list(cls.rules)
        alone = cls.schema_alone(schema)
        if alone is not None:
            full = dict(schema)
            schema.clear()
            schema["anyOf"] = [alone, full]
        return reference

    @classmethod
    def schema_alone(cls, schema: Mapping[str, Any]) -> Any:
        """Describe the short way; it suffices only where no other key is required."""
        if cls.short is None or not set(schema.get("required", ())) <= {cls.short}:
            return None
        return schema["properties"][cls.short]


def words(alias: str, default: Any = ..., **options: Any) -> Any:
    """A field whose key in the file has spaces."""
    return Field(default, alias=alias, **options)
