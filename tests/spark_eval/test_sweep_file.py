"""Sweep files: what they vary, which scenarios come of it, and one line with a path for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.scenario.reader import parse_scenario
from rebalance_lab.spark_eval.cells import cells_of
from rebalance_lab.spark_eval.stages.expand_stage import run_id
from rebalance_lab.spark_eval.sweep_file import load_sweep
from tests.paths import ROOT
from tests.spark_eval.small_sweeps import SCENARIO, SMALL, small


def documents(**changes: Any) -> list[dict[str, Any]]:
    return [json.loads(cell.document) for cell in cells_of(small(**changes))]


def test_a_grid_is_every_combination() -> None:
    cells = cells_of(small())
    assert [dict(cell.parameters) for cell in cells] == [
        {"members.consumer.count": count, "timeline[0].restart.downtime": downtime}
        for count in (2, 3)
        for downtime in ("2s", "20s")
    ]
    scenario = parse_scenario(json.loads(cells[3].document))
    assert (len(scenario.members), scenario.timeline[0].downtime_ms) == (3, 20_000)  # type: ignore[union-attr]


def test_ids_depend_on_the_content_alone() -> None:
    cells = {cell.cell_id for cell in cells_of(small())}
    assert len(cells) == 4
    turned = {**SMALL["parameters"]}
    turned = dict(reversed(list(turned.items())))
    assert {cell.cell_id for cell in cells_of(small(parameters=turned, name="another"))} == cells
    assert cells_of(small(parameters={"duration": ["91s"]}))[0].cell_id not in cells
    assert len(run_id("a", "classic/range", 1)) == 20
    assert len({run_id("a", "classic/range", 1), run_id("a", "classic/range", 2), run_id("a", "x", 1)}) == 3


def test_ranges_go_from_end_to_end() -> None:
    even = documents(parameters={"timeline[0].restart.downtime": {"from": "2s", "to": "8s", "steps": 3}})
    assert [one["timeline"][0]["restart"]["downtime"] for one in even] == ["2s", "5s", "8s"]
    factors = documents(parameters={"members.consumer.count": {"from": 1, "to": 16, "steps": 5, "scale": "log"}})
    assert [one["members"]["consumer"]["count"] for one in factors] == [1, 2, 4, 8, 16]


def test_distributions_draw_together_and_the_same_each_time() -> None:
    varied = {
        "members.consumer.count": {"uniform": [1, 9]},
        "timeline[0].restart.downtime": {"lognormal": ["8s", 0.5]},
        "network.loss": {"uniform": ["0%", "10%"]},
        "network.jitter": [0, "4ms"],
    }
    first = documents(parameters=varied, draws=20)
    assert first == documents(parameters=varied, draws=20)
    assert len(first) == 40
    assert {type(one["members"]["consumer"]["count"]) for one in first} == {int}
    assert all(1 <= one["members"]["consumer"]["count"] <= 9 for one in first)
    assert first[:10] == documents(parameters={**varied, "network.jitter": [0]}, draws=10)


def test_cases_and_paths_set_several_places() -> None:
    cases = {"none": {"timeline": []}, "busy": {"timeline[0].restart.downtime": "9s", "client.max.poll.records": 5}}
    none, busy = documents(parameters={"events": {"cases": cases}})
    assert none["timeline"] == []
    assert (busy["timeline"][0]["restart"]["downtime"], busy["client"]["max.poll.records"]) == ("9s", 5)
    both = {"size": {"path": ["members.consumer.count", "topics.orders.partitions"], "values": [5]}}
    (five,) = documents(parameters=both)
    assert (five["members"]["consumer"]["count"], five["topics"]["orders"]["partitions"]) == (5, 5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"parameters": {"members.consmer.count": [1]}}, "did you mean consumer?"),
        ({"parameters": {"members.consumer.cuont": [1]}}, "members.consumer.cuont"),
        ({"parameters": {"client.sesion.timeout.ms": [1]}}, "did you mean session.timeout.ms?"),
        ({"parameters": {"timeline[4].at": ["1s"]}}, "a list of 1"),
        ({"parameters": {"members.consumer.count": []}}, 'parameters["members.consumer.count"]: the list is empty'),
        ({"parameters": {"members.consumer.count": ["many"]}}, "members.consumer.count = 'many'"),
        ({"parameters": {"duration": {"from": "1m", "to": "60s", "steps": 2}}}, "unit"),
        ({"parameters": {"duration": {"from": "1m", "to": "2m"}}}, "steps"),
        ({"parameters": {"duration": {"uniform": ["2m", "1m"]}}, "draws": 2}, "has no values"),
        ({"parameters": {"duration": {"uniform": ["1m", "2m"]}}}, "draws"),
        ({"parameters": {"x": {"cases": {}}}}, "empty"),
        ({"strategies": []}, "strategies"),
        ({"strategies": ["classic/rang"]}, "strategies"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": [1, 1]}, "seeds"),
        ({"map": ["a", "b"]}, "map: expected two of"),
        ({"map": [["members.consumer.count", "a"]]}, "map[0]: expected two of"),
        ({"map": [[], []]}, "map[0]: expected two of"),
        ({"colour": 1}, "colour"),
        ({"scenarios": ["a.yaml"]}, "scenarios: stands beside scenario: give one of them"),
        ({"scenario": {**SCENARIO, "duration": "5"}}, "scenario: duration"),
        ({"weights": {"speed": 1}}, "weights.speed"),
    ],
)
def test_bad_input_is_one_line_with_the_place(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ContractError) as error:
        cells_of(small(**changes))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("file", sorted((ROOT / "examples" / "sweeps").glob("*.yaml")), ids=lambda file: file.stem)
def test_the_examples_can_be_read(file: Path) -> None:
    assert cells_of(load_sweep(file))
