"""List a sweep's cells: every combination of its parameters' values, as a scenario of its own.

Given      a Sweep
Returns    Cells, each once however many combinations lead to it; ContractError where a value makes no scenario
Names      a cell's id is a hash of its scenario's content, so that the same scenario has the same id in every sweep
Start at   cells_of
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError, at
from rebalance_lab.harness.scenario.model import Scenario
from rebalance_lab.harness.scenario.reader import parse_scenario
from rebalance_lab.harness.scenario.units import quoted
from rebalance_lab.spark_eval.run_cost import predicted_ms
from rebalance_lab.spark_eval.scenario_paths import put
from rebalance_lab.spark_eval.sweep_file import Sweep, digest
from rebalance_lab.spark_eval.sweep_parameters import Choice, Label, Parameter

SCENARIO = "scenario"
"""The parameter that a sweep over several scenarios has besides its own."""
MOST_CELLS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    cell_id: str
    parameters: Mapping[str, Label]
    document: str
    """The scenario as JSON."""
    predicted_ms: float


def cells_of(sweep: Sweep) -> list[Cell]:
    found: dict[str, Cell] = {}
    for name, choices in combinations(sweep):
        cell = cell_of(sweep, name, choices)
        found.setdefault(cell.cell_id, cell)
        if len(found) > MOST_CELLS:
            raise ContractError("parameters", f"there are more than {MOST_CELLS:,} combinations")
    return list(found.values())


def combinations(sweep: Sweep) -> Iterator[tuple[str, Mapping[str, Choice]]]:
    """Return every scenario with every choice of the grids, once for each draw of the distributions."""
    grids = [one for one in sweep.parameters if one.draw is None]
    for name in sweep.scenarios:
        for chosen in product(*(one.choices for one in grids)):
            fixed = {one.name: choice for one, choice in zip(grids, chosen, strict=True)}
            for number in range(sweep.draws):
                yield name, {one.name: fixed.get(one.name) or drawn(one, number) for one in sweep.parameters}


def drawn(parameter: Parameter, number: int) -> Choice:
    """Draw by the parameter's own seed: another parameter beside it, or more draws, leave these as they are."""
    assert parameter.draw is not None
    return parameter.draw(Random(f"{parameter.name}:{number}"))


def cell_of(sweep: Sweep, name: str, choices: Mapping[str, Choice]) -> Cell:
    document = deepcopy(sweep.scenarios[name])
    for parameter, choice in choices.items():
        for place, value in choice.settings:
            put(document, place, deepcopy(value), at("parameters", parameter))
    scenario = read(document, choices)
    labels = {parameter: choice.label for parameter, choice in choices.items()}
    told = {"name": f"{name}: {labels_text(labels)}" if labels else name}
    content = {key: value for key, value in document.items() if key not in ("name", "description")}
    return Cell(
        cell_id=digest(content),
        parameters=labels if len(sweep.scenarios) == 1 else {SCENARIO: name, **labels},
        document=json.dumps({**told, **content}, ensure_ascii=False, separators=(",", ":")),
        predicted_ms=predicted_ms(scenario),
    )


def labels_text(labels: Mapping[str, Label]) -> str:
    return ", ".join(f"{name} {value}" for name, value in labels.items())


def read(document: dict[str, Any], choices: Mapping[str, Choice]) -> Scenario:
    try:
        return parse_scenario(document)
    except ContractError as error:
        values = ", ".join(f"{name} = {quoted(choice.label)}" for name, choice in choices.items())
        raise ContractError("parameters", f"with {values}: {error}") from None
