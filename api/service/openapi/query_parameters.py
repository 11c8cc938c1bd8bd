"""Describe the parameters of a query once, and read them strictly by the same description.

An unknown parameter is refused: ?optimun=true would otherwise be ignored in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import QueryParams

from rebalance_lab.api.service.connection.problems import Problem
from rebalance_lab.api.service.openapi.schemas import OFFERED, STRATEGY_NAMES
from rebalance_lab.assignors.json_contract import shown
from rebalance_lab.harness.measure.cost_weights import NAMES

WEIGHT = rf"({'|'.join(NAMES)})=[0-9]{{1,10}}(\.[0-9]{{1,9}})?"
BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    name: str
    schema: dict[str, Any]
    description: str
    example: Any = None
    place: str = "query"

    def documented(self) -> dict[str, Any]:
        made = {"name": self.name, "in": self.place, "description": self.description, "schema": self.schema}
        required = {"required": True} if self.place == "path" else {}
        return made | required | ({} if self.example is None else {"example": self.example})

    def read(self, text: str) -> Any:
        if self.schema["type"] == "boolean":
            return self.expect(BOOLEANS.get(text), text, "true or false")
        if self.schema["type"] == "integer":
            low, high = self.schema["minimum"], self.schema["maximum"]
            found = int(text) if re.fullmatch(r"-?[0-9]{1,10}", text) else None
            good = found is not None and low <= found <= high
            return self.expect(found if good else None, text, f"a whole number from {low:,} to {high:,}")
        if "enum" in self.schema:
            return self.expect(text if text in self.schema["enum"] else None, text, "one of those at /v1/strategies")
        fits = len(text) <= self.schema["maxLength"] and re.fullmatch(self.schema["pattern"], text)
        return self.expect(text if fits else None, text, f"text such as {self.example}")

    def expect(self, value: Any, text: str, wanted: str) -> Any:
        if value is None:
            raise Problem("invalid", f"expected {wanted}, got {shown(text)}", path=self.name)
        return value


def read_query(query: QueryParams, known: Sequence[Parameter]) -> dict[str, Any]:
    """Return the parameters that are given."""
    by_name = {one.name: one for one in known}
    found: dict[str, Any] = {}
    for name, text in query.multi_items():
        if name not in by_name:
            names = ", ".join(by_name) or "none"
            raise Problem("invalid", f"unknown parameter; known here: {names}", path=name[:80])
        if name in found:
            raise Problem("invalid", "stands twice", path=name)
        found[name] = by_name[name].read(text)
    return found


def documented(parameters: Iterable[Parameter]) -> list[dict[str, Any]]:
    return [one.documented() for one in parameters]


def text(pattern: str, most: int = 1_000) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^({pattern})$", "maxLength": most}


STRATEGY = Parameter(
    name="strategy",
    schema={"type": "string", "enum": STRATEGY_NAMES},
    description="Wins over the request's own.",
    example="classic/sticky",
)
EXPLAIN = Parameter(
    name="explain", schema={"type": "boolean"}, description="Say in words why each partition went there.", example=True
)
OPTIMUM = Parameter(
    name="optimum", schema={"type": "boolean"}, description="Compute the exact optimum and the gap to it.", example=True
)
NOW = Parameter(
    name="from", schema=text(OFFERED, 120), description="What runs now; wins over the scenario's own.",
    example="classic/range",
)  # fmt: skip
STRATEGIES = Parameter(
    name="strategies",
    schema=text(rf"({OFFERED})([,;]({OFFERED}))*"),
    description="Which to compare, with commas (or semicolons) between them; the usual ones without it.",
    example="classic/range,classic/cooperative-sticky,consumer/uniform",
)
WEIGHTS = Parameter(
    name="weights",
    schema=text(rf"{WEIGHT}(,{WEIGHT})*"),
    description="What costs how much, over the usual weights: 1 is one partition standing still for one second.",
    example="moved=3,read_twice=0",
)
BROKERS = Parameter(
    name="brokers",
    schema={"type": "integer", "minimum": 1, "maximum": 10_000},
    description="How many there are: then fetch session slots are checked too.",
    example=3,
)
SEED = Parameter(
    name="seed",
    schema={"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
    description="The same seed, the same run.",
    example=1,
)
UNTIL = Parameter(
    name="until",
    schema=text(r"([0-9]{1,9}(\.[0-9]{1,3})?(ms|s|m|h|d)){1,5}", 40),
    description="Stop there: 90s, 12.5s or 2m31s.",
    example="5m",
)
CLUSTER = Parameter(
    name="cluster",
    schema=text(r"[A-Za-z0-9._-]{1,64}", 64),
    description="One that the operator configured; not needed where there is only one.",
    example="production",
)


def seeds(most: int, default: int) -> Parameter:
    return Parameter(
        name="seeds",
        schema={"type": "integer", "minimum": 1, "maximum": most, "default": min(default, most)},
        description="Runs of each strategy, with the same seeds; six or more give a 95 % interval.",
        example=min(default, most),
    )
