"""Describe the values of a scenario file as JSON Schema: durations, rates, names, and which keys go together.

The schema is never tighter than the reader, because an editor must not underline what runs. A test gives the same
documents to both. The reader checks what a schema cannot say: how much a text like `1e3/s` amounts to, and whether
what one part names is there in another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalance_lab.assignors.json_contract import INT32_MAX

Schema = dict[str, Any]

# Patterns without lookaheads and without \d, which is more than 0 to 9 to some readers.
NUMBER = r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?"
WITH_EXPONENT = r"[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]{1,3}"
PARTS_OF_TIME = r"([0-9]{1,15}(\.[0-9]{1,9})?\s*(ms|s|m|h|d)\s*)+"
SOME_DIGIT = "[1-9]"
SOME_MANTISSA = "^[^eE]*[1-9]"
ZERO = r"^\s*0+(\.0+)?([eE][+-]?[0-9]{1,3})?\s*$"
AT_MOST_ALL = rf"^\s*(0*(100(\.0+)?|[0-9]{{1,2}}(\.[0-9]+)?)|{WITH_EXPONENT})\s*%\s*$"
CONTROL = r"\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Line ends, what terminals take as orders, and what turns a line round: nobody's name, and a table or a lane of its
own where it is shown."""


def text(pattern: str, *examples: str, also: str | None = None) -> Schema:
    """`also`: a second pattern that must be found in it."""
    made: Schema = {"type": "string", "pattern": pattern}
    if also is not None:
        made["allOf"] = [{"pattern": also}]
    return made | ({"examples": list(examples)} if examples else {})


NULL: Schema = {"type": "null"}
NAME: Schema = {"type": "string", "minLength": 1}
TIME_EXAMPLES = ("500ms", "20s", "1m30s", "2h")
DURATION: Schema = {"anyOf": [text(rf"^\s*{PARTS_OF_TIME}$", *TIME_EXAMPLES), {"const": 0}]}
LONG_DURATION = text(rf"^\s*{PARTS_OF_TIME}$", *TIME_EXAMPLES, also=SOME_DIGIT)
FINE_DURATION = text(rf"^\s*{NUMBER}\s*(us|ms|s|m)\s*$", "200us", "2ms", also=SOME_MANTISSA)
RATE_PATTERN = rf"^\s*{NUMBER}\s*[kKMG]?\s*/\s*(s|m|h|d)\s*$"
RATE = text(RATE_PATTERN, "100/s", "6000/m", "1.5k/s")
REAL_RATE = text(RATE_PATTERN, "100/s", "6000/m", "1.5k/s", also=SOME_MANTISSA)
CHANCE: Schema = {"anyOf": [text(AT_MOST_ALL, "0.1%"), {"const": 0}, text(ZERO)]}
NAMES: Schema = {"anyOf": [NAME, {"type": "array", "items": NAME, "minItems": 1, "uniqueItems": True}]}
TOPIC_NAME = text("^[a-zA-Z0-9._-]{1,249}$") | {"not": {"enum": [".", ".."]}}
MEMBER_NAME: Schema = {"pattern": f"^[^{CONTROL}]+$"}
STRATEGY: Schema = NAME | {"examples": ["classic/range"]}

ZIPF = r"zipf\s+([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?"
WEIGHT: Schema = {"type": "number", "minimum": 0, "exclusiveMaximum": 1e300}
SKEW: Schema = {
    "anyOf": [
        text(f"^{ZIPF}$", "zipf 1.1"),
        {"type": "array", "items": WEIGHT, "contains": {"exclusiveMinimum": 0}},
    ]
}
RACKS: Schema = {
    "anyOf": [
        {"type": "array", "items": NAME, "minItems": 1},
        {"type": "array", "items": {"type": "array", "items": NAME}, "minItems": 1},
    ]
}


def milliseconds(least: int) -> Schema:
    """Describe a Kafka setting: a plain number, as in Kafka, or a duration."""
    written = rf"^([0-9]{{1,15}}|\s*{PARTS_OF_TIME})$"
    return {
        "anyOf": [
            {"type": "integer", "minimum": least, "maximum": INT32_MAX},
            text(written, also=SOME_DIGIT if least else None),
        ],
        "examples": [45000, "45s"],
    }


def or_null(schema: Mapping[str, Any]) -> Schema:
    """Allow null: `network:` with nothing below it is as good as no network."""
    outside = {key: one for key, one in schema.items() if key in ("description", "default")}
    inside = {key: one for key, one in schema.items() if key not in outside}
    options = inside["anyOf"] if set(inside) <= {"anyOf", "title"} else [inside]
    return {"anyOf": [*options, *([] if NULL in options else [NULL])], **outside}


def given(key: str, value: Mapping[str, Any] | None = None) -> Schema:
    """Require that a key is there, and not left empty."""
    return {"required": [key], "properties": {key: dict(value or {"not": NULL})}}


def one_of(*keys: str) -> Schema:
    return {"oneOf": [given(key) for key in keys]}


def not_both(one: str, other: str) -> Schema:
    return {"not": {"allOf": [given(one), given(other)]}}


def needs(condition: Mapping[str, Any], then: Mapping[str, Any]) -> Schema:
    return {"if": dict(condition), "then": dict(then)}
