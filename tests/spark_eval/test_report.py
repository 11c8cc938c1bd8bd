"""The sweep's report: one file that needs nothing else, wide and narrow, light and dark; and the table behind it."""

from __future__ import annotations

import json
import re
import zipfile
from copy import deepcopy
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.evaluate.recommend.decision_table import Cell, DecisionTable, read_table
from rebalance_lab.harness.evaluate.recommend.evidence import evidence
from rebalance_lab.harness.scenario.reader import parse_scenario
from rebalance_lab.spark_eval.default_table import default_table
from rebalance_lab.spark_eval.report.sweep_page import table_page
from rebalance_lab.spark_eval.sweep_file import load_sweep
from tests.harness.evaluate.test_report import NASTY, Outline, browser, opened  # noqa: F401 - a fixture
from tests.paths import ROOT
from tests.spark_eval.small_sweeps import SCENARIO

SWEEPS = ROOT / "examples" / "sweeps"
PARAMETERS = {
    "members": "members.consumer.count",
    "restart": "a restart takes",
    "session": "client.session.timeout.ms",
    "state": "state",
}
STRATEGIES = ["classic/range", "consumer/uniform"]
FEATURES = {
    "members": 2.0, "partitions": 4.0, "restarts": 1.0, "crashes": 0.0, "scaled": 0.0, "downtime_s": 5.0,
    "session_s": 10.0, "callbacks_s": 0.0, "busy": 0.1, "surge": 0.0,
}  # fmt: skip


def cell(count: int, downtime: str, cost: float, other: float) -> dict[str, Any]:
    """One in which classic/range costs `cost` and consumer/uniform `other`."""
    costs = {"unowned_s": cost, "stalled_s": 0.0, "read_twice": 3, "moved": 2, "rebalances": 2, "requests": 9}
    best = min(cost, other)
    rows = {
        strategy: {
            "runs": 5, "failed": 0, "cost": [one, one - 1, one + 1], "spread": [one, one], "wins": float(one == best),
            "more": [one - best, one - best, one - best], "front": one == best, "costs": {**costs, "unowned_s": one},
        }
        for strategy, one in zip(STRATEGIES, (cost, other), strict=True)
    }  # fmt: skip
    winner, second = STRATEGIES if cost <= other else reversed(STRATEGIES)
    return {
        "id": f"{count}{downtime}", "parameters": {"size": count, f"down{NASTY}": downtime}, "winner": winner,
        "features": {**FEATURES, "members": float(count), "downtime_s": float(downtime[:-1])}, "other": [],
        "next": second, "margin": [abs(cost - other), 0.5, 9.0], "strategies": rows,
    }  # fmt: skip


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    return {
        "format": "rebalance-lab decision table 1",
        "name": f"table {NASTY}",
        "description": "What to look for.",
        "provenance": {
            "version": "0.1.0", "python": "3.11", "spark": "4", "sweep_id": "0123", "cells": 4, "runs": 40, "failed": 0,
            "seeds": {"count": 5, "first": 1, "last": 5},
        },
        "weights": {"unowned_s": 1.0},
        "strategies": STRATEGIES,
        "parameters": [{"name": "size", "values": [2, 8]}, {"name": f"down{NASTY}", "values": ["5s", "60s"]}],
        "maps": [["size", f"down{NASTY}"]],
        "cells": [cell(2, "5s", 10, 20), cell(2, "60s", 30, 5), cell(8, "5s", 4, 6), cell(8, "60s", 50, 7)],
        "sensitivity": [
            {"parameter": "size", "strategy": one, "share": 0.25, "levels": [["2", 5.0]]} for one in STRATEGIES
        ],
    }  # fmt: skip


@pytest.fixture(scope="module")
def table(data: dict[str, Any]) -> DecisionTable:
    return read_table(json.dumps(data), "table")


@pytest.fixture(scope="module")
def page(table: DecisionTable) -> str:
    return table_page(table, command="rebalance-lab sweep report DIR --html")


def test_it_is_one_file_that_fetches_nothing_and_runs_nothing(page: str) -> None:
    outline = Outline(page)
    assert outline.fetched == []
    assert "url(" not in page
    assert "<script" not in page
    assert NASTY not in page
    assert outline.headings.count(1) == 1
    assert all(b <= a + 1 for a, b in zip(outline.headings, outline.headings[1:], strict=False))
    assert outline.bare_headers == 0
    assert len(outline.ids) == len(set(outline.ids))


def test_the_map_names_the_winner_and_its_margin(page: str) -> None:
    first = page.split('<table class="map">')[1].split("</table>")[0]
    fields = first.split("<td")[1:]
    assert ["classic/range" in field for field in fields] == [True, True, False, False]
    assert "next costs 10 more" in fields[0]
    assert "consumer/uniform" in fields[3]
    assert "next costs 43 more" in fields[3]


@pytest.mark.parametrize("margin", [0, -1.6])
def test_the_map_does_not_say_that_nothing_is_more(data: dict[str, Any], margin: float) -> None:
    close = deepcopy(data)
    for one in close["cells"]:
        one["margin"][0] = margin
    made = table_page(read_table(json.dumps(close), "table"), command="rebalance-lab sweep report DIR --html")
    assert "next costs about as much" in made
    assert "next costs 0" not in made
    assert "next costs -" not in made


def test_every_pair_of_axes_has_a_map_of_its_own(data: dict[str, Any]) -> None:
    swapped = {**data, "maps": [*data["maps"], data["maps"][0][::-1]]}
    captions = table_page(read_table(json.dumps(swapped), "table")).split("<caption>")[1:]
    assert [caption.split("Across: ")[1].startswith("size") for caption in captions] == [True, False]


def test_it_says_where_it_comes_from(page: str) -> None:
    assert "rebalance-lab sweep report DIR --html" in page
    assert "Rebalance Lab 0.1.0, Spark 4, Python 3.11" in page
    assert "<b>40</b> runs" in page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_renders_without_errors_or_sideways_scrolling(
    browser: Any,  # noqa: F811
    page: str,
    tmp_path: Path,
    width: int,
    scheme: str,
) -> None:
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    tab, troubles = opened(browser, file.as_uri(), width, scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    assert tab.locator(".map td").count() == 4
    assert tab.locator(".pareto circle").count() == 2
    assert tab.locator(".sensitivity li").count() == 1
    small = tab.evaluate(
        "Math.min(...[...document.querySelectorAll('.pareto text')].map(t => t.getBoundingClientRect().height))"
    )
    assert small >= 9
    assert troubles == []


# The table as evidence


def test_the_nearest_cells_and_their_counts(table: DecisionTable) -> None:
    found = evidence(parse_scenario(SCENARIO), table)
    assert found.outside is None
    nearest, distance = found.near[0]
    assert nearest.parameters["size"] == 2
    assert list(nearest.parameters.values())[1] == "5s"
    assert distance == min(far for _, far in found.near)
    assert "40 runs" in found.summary
    assert found.to_json()["nearest"][0]["runs"] == 10


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"members": {"consumer": {"count": 90, "topics": "orders"}}}, "90 members, and it has 2 to 8"),
        ({"timeline": [{"at": "30s", "pause": {"members": "consumer-1", "for": "5s"}}]}, "it has no pause"),
        ({"network": {"loss": "1%"}}, "it has no lossy network"),
        ({"client": {"session.timeout.ms": "100s"}}, "100 s of session timeout"),
    ],
)
def test_outside_it_says_why(table: DecisionTable, change: dict[str, Any], said: str) -> None:
    found = evidence(parse_scenario({**deepcopy(SCENARIO), **change}), table)
    assert found.near == ()
    assert said in found.summary
    assert "live simulation" in found.summary


def test_the_published_table_is_of_the_sweep_that_is_kept_beside_its_page() -> None:
    table = default_table()
    assert table is not None
    sweep = load_sweep(SWEEPS / "small_groups.yaml")
    known = table.data["provenance"]
    assert (known["sweep_id"], known["failed"]) == (sweep.sweep_id, 0)
    assert known["runs"] == len(table.cells) * len(sweep.strategies) * len(sweep.seeds) >= 50_000
    command = "rebalance-lab sweep report spark_eval/data/decision_table.json --html"
    assert (SWEEPS / "small_groups.html").read_text("utf-8") == table_page(table, command=command)


def test_the_findings_of_the_guide_are_in_the_published_table() -> None:
    table = default_table()
    assert table is not None
    static, uniform = "classic/cooperative-sticky+static", "consumer/uniform"
    eager = ("classic/range", "classic/sticky")

    def won(strategy: str, *, clearly: bool = False, **where: object) -> int:
        return sum(cell.winner == strategy and (cell.is_clear or not clearly) for cell in among(**where))

    def among(**where: object) -> list[Cell]:
        named = {PARAMETERS[name]: value for name, value in where.items()}
        return [cell for cell in table.cells if named.items() <= cell.parameters.items()]

    def typical(strategy: str, **where: object) -> str:
        return f"{median(cell.of(strategy)['cost'][0] for cell in among(**where)):,.0f}"

    winners = ("classic/cooperative-sticky", static, "classic/sticky", "classic/range", uniform)
    wins = [[won(one), won(one, clearly=True)] for one in winners]
    assert wins == [[35, 27], [40, 40], [44, 37], [14, 0], [6, 5]]
    assert (won(uniform, session="45s"), won("classic/roundrobin")) == (6, 5)
    assert [sum(won(one, members=members) for one in eager) for members in (2, 6)] == [32, 14]
    assert (won(static, restart="5s"), len(among(restart="5s")), won(static)) == (36, 48, 36 + 4)
    worst = {"restart": "60s", "session": "45s", "state": "none"}
    figures = [typical(static, **worst), typical("classic/range", **worst)]
    figures += [typical(one, session=session) for one in ("classic/range", uniform) for session in ("45s", "10s")]
    assert figures == ["3,169", "701", "897", "413", "842", "842"]
    guide = (ROOT / "docs" / "sweeps.md").read_text("utf-8")
    assert [figure for figure in figures if figure not in guide] == []
    rows = re.findall(r"^\| `([\w/+-]+)` \| (\d+) \| (\d+) \|", guide, flags=re.MULTILINE)
    assert {name: [int(wins), int(clear)] for name, wins, clear in rows} == {
        one: [won(one), won(one, clearly=True)] for one in (*winners, "classic/roundrobin")
    }


def test_a_small_group_finds_itself_in_the_published_table() -> None:
    table = default_table()
    assert table is not None
    restart = {"at": "1h", "rolling restart": {"downtime": "5s", "gap": "10s"}}
    crash = {"at": "2h", "restart": {"members": "consumer-1", "downtime": "5s", "kill": True}}
    members = {"consumer": {"count": 3, "topics": "orders", "record": "20ms"}}
    topics = {"orders": {"partitions": 12, "rate": "60/s"}}
    scenario = {"name": "like it", "duration": "3h", "topics": topics, "members": members, "timeline": [restart, crash]}
    found = evidence(parse_scenario(scenario), table)
    assert found.outside is None
    assert {cell.parameters["a restart takes"] for cell, _ in found.near} == {"5s"}
    assert all(cell.runs == 350 for cell, _ in found.near)


def test_what_is_no_table_is_one_line() -> None:
    with pytest.raises(ContractError, match=r"x\.json: is no decision table"):
        read_table('{"format": "something"}', "x.json")


def test_the_wheel_holds_what_the_page_is_made_of(tmp_path: Path) -> None:
    hatchling = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is not installed")
    (built,) = hatchling.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = set(zipfile.ZipFile(built).namelist())
    assert {f"rebalance_lab/spark_eval/{name}" for name in ("report/page.html", "report/extra.css", "job.py")} <= names
    assert "rebalance_lab/spark_eval/data/decision_table.json" in names
