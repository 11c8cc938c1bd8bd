"""Read a published decision table: what sweeps found out, for pages and for advice. It is plain JSON and needs no
Spark.

Given      the text of a decision_table.json
Returns    DecisionTable; ContractError where the text is none
Start at   read_table
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError

FORMAT = "rebalance-lab decision table 1"
PARTS = {"name": str, "provenance": dict, "strategies": list, "parameters": list, "cells": list}
CELL_PARTS = {"parameters", "features", "winner", "margin", "strategies"}


@dataclass(frozen=True, slots=True)
class Cell:
    data: Mapping[str, Any]

    @property
    def parameters(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.data["parameters"]
        return found

    @property
    def features(self) -> Mapping[str, float]:
        found: Mapping[str, float] = self.data["features"]
        return found

    @property
    def winner(self) -> str | None:
        """Return the winner, or None where no strategy got through every run."""
        found: str | None = self.data["winner"]
        return found

    @property
    def is_clear(self) -> bool:
        """Tell whether the next best costs more in every part of the interval of paired differences."""
        return bool(self.data["margin"]) and self.data["margin"][1] > 0

    @property
    def runs(self) -> int:
        return sum(one["runs"] for one in self.data["strategies"].values())

    def of(self, strategy: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.data["strategies"][strategy]
        return found


@dataclass(frozen=True, slots=True)
class DecisionTable:
    data: Mapping[str, Any]
    cells: tuple[Cell, ...]

    @property
    def strategies(self) -> list[str]:
        return list(self.data["strategies"])

    @property
    def parameters(self) -> dict[str, list[Any]]:
        """Return the parameters with their values in the order of the sweep."""
        return {one["name"]: one["values"] for one in self.data["parameters"]}


def read_table(text: str, path: str) -> DecisionTable:
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ContractError(path, "is no decision table of a sweep, or a damaged one")
    missing = [key for key, kind in PARTS.items() if not isinstance(data.get(key), kind)]
    if missing:
        raise ContractError(path, f"is damaged: it has no {missing[0]}")
    damaged = [i for i, one in enumerate(data["cells"]) if not (isinstance(one, dict) and one.keys() >= CELL_PARTS)]
    if damaged:
        raise ContractError(path, f"is damaged: cells[{damaged[0]}] is no cell of a decision table")
    return DecisionTable(data, tuple(Cell(one) for one in data["cells"]))
