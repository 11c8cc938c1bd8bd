"""Read a sweep file: a scenario, what to vary in it, which strategies, which seeds.

```yaml
name: deploys and group size
scenario: ../scenarios/rolling_deploy.yaml     # or the scenario itself; `scenarios: [a.yaml, b.yaml]` for several
parameters:
  members.consumer.count: [3, 6, 12]           # sweep_parameters.py has all the forms
strategies: [classic/range, consumer/uniform]  # the usual seven without it
seeds: 20                                      # or a list
draws: 50                                      # of the distributions together, if there are any
map: [members.consumer.count, deploys]         # the axes of the report's map, or a list of such pairs for several maps;
                                               # the first two parameters without it
```

Given      a path, or decoded data and the folder that its files are in
Returns    a Sweep; ContractError with the path of the first bad field
Start at   load_sweep
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError, at, expect_list, expect_object, refuse_unknown
from rebalance_lab.harness.evaluate.comparison import DEFAULT_STRATEGIES, MOST_SEEDS, checked_strategies
from rebalance_lab.harness.measure.cost_weights import checked, checked_whole, default_weights
from rebalance_lab.harness.scenario.documents import decode_document
from rebalance_lab.harness.scenario.reader import parse_scenario
from rebalance_lab.harness.scenario.units import quoted
from rebalance_lab.spark_eval.sweep_parameters import Parameter, read_parameter

KEYS = ("name", "description", "scenario", "scenarios", "parameters", "strategies", "seeds", "draws", "weights", "map")
USUAL_SEEDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    name: str
    description: str = ""
    scenarios: Mapping[str, dict[str, Any]]
    """Scenarios as data, by name."""
    parameters: tuple[Parameter, ...]
    strategies: tuple[str, ...]
    seeds: tuple[int, ...]
    draws: int
    weights: Mapping[str, float]
    maps: tuple[tuple[str, str], ...]
    """The axes of the report's maps."""
    sweep_id: str
    """A hash of all that decides which runs there are."""


def load_sweep(file: str | Path) -> Sweep:
    path = Path(file)
    return read_sweep(decode_document(read_bytes(path)), path.parent)


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ContractError(str(path), error.strerror or str(error)) from None


def read_sweep(data: Any, folder: Path) -> Sweep:
    if not isinstance(data, dict):
        raise ContractError("", f"a sweep is a mapping with scenario, parameters and seeds, got {quoted(data)}")
    refuse_unknown(data, KEYS, "")
    scenarios = read_scenarios(data, folder)
    parameters = tuple(
        read_parameter(str(name), value, at("parameters", str(name)))
        for name, value in expect_object(data.get("parameters", {}), "parameters").items()
    )
    strategies = checked_strategies(read_strategies(data.get("strategies")), "strategies")
    seeds, draws = read_seeds(data.get("seeds", USUAL_SEEDS)), read_draws(data.get("draws"), parameters)
    return Sweep(
        name=str(data.get("name", "sweep")),
        description=str(data.get("description", "")).strip(),
        scenarios=scenarios,
        parameters=parameters,
        strategies=strategies,
        seeds=seeds,
        draws=draws,
        weights=read_weights(data.get("weights", {})),
        maps=read_maps(data.get("map"), parameters, scenarios),
        sweep_id=digest([data.get("parameters", {}), scenarios, strategies, seeds, draws]),
    )


def read_scenarios(data: Mapping[str, Any], folder: Path) -> dict[str, dict[str, Any]]:
    if "scenario" in data and "scenarios" in data:
        raise ContractError("scenarios", "stands beside scenario: give one of them")
    if "scenario" not in data and "scenarios" not in data:
        raise ContractError("scenario", "is missing: name a file, or write it here, or several in `scenarios: [...]`")
    listed = expect_list(data["scenarios"], "scenarios") if "scenarios" in data else [data["scenario"]]
    if not listed:
        raise ContractError("scenarios", "the list is empty: there is nothing to run")
    found: dict[str, dict[str, Any]] = {}
    for i, one in enumerate(listed):
        path = at("scenarios", i) if "scenarios" in data else "scenario"
        document = decode_document(read_bytes(folder / one)) if isinstance(one, str) else one
        name = parsed(document, path)
        if name in found:
            raise ContractError(path, f"there are two scenarios called {quoted(name)}")
        found[name] = document
    return found


def parsed(document: Any, path: str) -> str:
    try:
        return parse_scenario(document).name
    except ContractError as error:
        raise ContractError(path, str(error)) from None


def read_strategies(data: Any) -> list[str]:
    if data is None:
        return list(DEFAULT_STRATEGIES)
    listed = [data] if isinstance(data, str) else expect_list(data, "strategies")
    if not listed or not all(isinstance(one, str) for one in listed):
        raise ContractError("strategies", f"expected strategies such as classic/range, got {quoted(data)}")
    return listed


def read_seeds(data: Any) -> tuple[int, ...]:
    if type(data) is int and 1 <= data <= MOST_SEEDS:
        return tuple(range(1, data + 1))
    if isinstance(data, list) and data and all(type(one) is int for one in data) and len(set(data)) == len(data):
        return tuple(data)
    raise ContractError("seeds", f"expected how many, or a list of different whole numbers, got {quoted(data)}")


def read_draws(data: Any, parameters: tuple[Parameter, ...]) -> int:
    drawn = any(one.draw is not None for one in parameters)
    if data is None and not drawn:
        return 1
    if not drawn:
        raise ContractError("draws", "no parameter has a distribution to draw from")
    if type(data) is not int or data < 1:
        raise ContractError("draws", f"expected how many times to draw from the distributions, got {quoted(data)}")
    return data


def read_weights(data: Any) -> dict[str, float]:
    weights = default_weights()
    for name, weight in expect_object(data, "weights").items():
        weights[name] = checked(name, weight, at("weights", name))
    return checked_whole(weights, "weights")


def read_maps(
    data: Any, parameters: tuple[Parameter, ...], scenarios: Mapping[str, Any]
) -> tuple[tuple[str, str], ...]:
    names = [one.name for one in parameters] + (["scenario"] if len(scenarios) > 1 else [])
    if data is None:
        return ((names[0], names[1]),) if len(names) > 1 else ()
    listed = expect_list(data, "map")
    if listed and all(isinstance(one, list) for one in listed):
        return tuple(read_axes(one, names, at("map", i)) for i, one in enumerate(listed))
    return (read_axes(listed, names, "map"),)


def read_axes(listed: list[Any], names: list[str], path: str) -> tuple[str, str]:
    if len(listed) != 2 or listed[0] == listed[1] or not all(one in names for one in listed):
        raise ContractError(path, f"expected two of {', '.join(names)}, got {quoted(listed)}")
    return listed[0], listed[1]


def digest(data: Any) -> str:
    """Hash the content, whatever the order of keys: the same wherever it is computed."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
