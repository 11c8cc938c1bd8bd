"""The stages, from cells to the decision table: every run once, equal work for tasks, figures as `compare` has them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rebalance_lab.harness.evaluate.comparison import compare
from rebalance_lab.harness.scenario.reader import parse_scenario
from rebalance_lab.spark_eval.cells import cells_of
from rebalance_lab.spark_eval.folder import Folder
from rebalance_lab.spark_eval.stages.expand_stage import cells_frame, expand, run_id
from rebalance_lab.spark_eval.stages.frame_schemas import CELLS, PLAN, RESULTS, RUNS
from rebalance_lab.spark_eval.stages.plan import dealt, plan, tasks_of
from rebalance_lab.spark_eval.sweep import DIED, Outcome, run_sweep
from rebalance_lab.spark_eval.sweep_file import Sweep
from tests.spark_eval.small_sweeps import SCENARIO, STRATEGIES, small

CRASH_SEED = 2


class DiesWithSeed:
    """A stranger's assignor that takes its whole process with it in some runs: here, those with three members."""

    name = "dies"

    def assign(self, group: Any) -> dict[str, dict[str, list[int]]]:
        if len(group.members) == 3:
            os._exit(1)
        return {member: {} for member in group.members}


class RaisesSometimes:
    name = "raises"

    def assign(self, group: Any) -> dict[str, dict[str, list[int]]]:
        raise RuntimeError("out of luck")


@pytest.fixture(scope="module")
def swept(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Sweep, Folder, Outcome]:
    sweep = small()
    folder = Folder(spark, str(tmp_path_factory.mktemp("sweep")))
    return sweep, folder, run_sweep(spark, sweep, folder)


def names_and_types(schema: Any) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


def test_expand_gives_every_run_once(spark: Any) -> None:
    sweep = small()
    cells = cells_of(sweep)
    frame = cells_frame(spark, cells)
    runs = expand(frame, sweep.strategies, sweep.seeds)
    assert names_and_types(frame.schema) == names_and_types(CELLS)
    assert names_and_types(runs.schema) == names_and_types(RUNS)
    expected = {run_id(cell.cell_id, strategy, seed) for cell in cells for strategy in STRATEGIES for seed in (1, 2, 3)}
    found = [row["run_id"] for row in runs.collect()]
    assert len(found) == len(expected) == 36
    assert set(found) == expected


def test_tasks_have_equal_shares_and_every_run(spark: Any) -> None:
    runs = spark.range(100).selectExpr(
        "lpad(string(id), 3, '0') as run_id", "lpad(string(id), 3, '0') as cell_id", "'s' as strategy", "0L as seed",
        "if(id = 50, 700D, double(id % 7 + 1)) as predicted_ms",
    )  # fmt: skip
    planned = plan(runs, 40.0)
    assert names_and_types(planned.schema) == names_and_types(PLAN)
    tasks = tasks_of(planned)
    assert [task.first for task in tasks] == [0, *(task.last for task in tasks[:-1])]
    assert tasks[-1].last == 100
    assert [task.number for task in tasks] == list(range(len(tasks)))
    frame = dealt(planned, tasks)
    shares = frame.rdd.mapPartitions(lambda rows: [[(row["place"], row["predicted_ms"]) for row in rows]]).collect()
    assert sorted(place for share in shares for place, _ in share) == list(range(100))
    light = [sum(cost for _, cost in share) for share in shares if all(cost < 700 for _, cost in share)]
    assert len(light) >= 8
    assert max(light) <= 40 + 7


def test_figures_are_those_of_compare(swept: tuple[Sweep, Folder, Outcome]) -> None:
    """The same runs ranked by plain Python: medians, intervals, differences and wins agree to the last digit."""
    sweep, _, outcome = swept
    documents = {cell.cell_id: cell.document for cell in cells_of(sweep)}
    assert len(outcome.table["cells"]) == 4
    for cell in outcome.table["cells"]:
        comparison = compare(parse_scenario(json.loads(documents[cell["id"]])), STRATEGIES, sweep.seeds, jobs=1)
        assert cell["winner"] == comparison.ranking[0].strategy
        for ranked in comparison.ranking:
            row = cell["strategies"][ranked.strategy]
            assert ranked.score is not None
            assert row["cost"] == [ranked.score.median, ranked.score.low, ranked.score.high]
            assert row["wins"] == ranked.wins
            assert row["costs"]["moved"] == ranked.costs["moved"].median
            more = comparison.difference(ranked.strategy, cell["winner"])
            assert row["more"] == [more.median, more.low, more.high]


def test_the_front_is_what_nobody_beats(swept: tuple[Sweep, Folder, Outcome], spark: Any) -> None:
    _, folder, _ = swept
    rows = spark.read.parquet(folder.at("table")).collect()
    assert {row["front"] for row in rows} >= {True}
    for row in rows:
        figures = [row["standstill_s"], row["moved"], row["read_twice"]]
        others = [[o["standstill_s"], o["moved"], o["read_twice"]] for o in rows if o["cell_id"] == row["cell_id"]]
        beaten = any(all(a <= b for a, b in zip(o, figures, strict=True)) and o != figures for o in others)
        assert row["front"] == (not beaten)


def test_sensitivity_tells_the_parameter_that_matters(swept: tuple[Sweep, Folder, Outcome]) -> None:
    _, _, outcome = swept
    shares = {(one["parameter"], one["strategy"]): one["share"] for one in outcome.table["sensitivity"]}
    assert len(shares) == 6
    assert all(0 <= share <= 1 for share in shares.values())
    levels = next(one["levels"] for one in outcome.table["sensitivity"] if "downtime" in one["parameter"])
    assert {level for level, _ in levels} == {"2s", "20s"}


def test_results_are_kept_as_declared_and_provenance_counts_them(
    spark: Any, swept: tuple[Sweep, Folder, Outcome]
) -> None:
    sweep, folder, outcome = swept
    results = folder.results()
    assert results is not None
    assert names_and_types(results.schema) == names_and_types(RESULTS)
    assert results.count() == results.select("run_id").distinct().count() == 36 == outcome.new
    assert outcome.table["provenance"]["runs"] == 36
    assert outcome.table["provenance"]["seeds"] == {"count": 3, "first": 1, "last": 3}
    assert outcome.table["provenance"]["spark"] == spark.version
    assert json.loads(folder.read_text("decision_table.json")) == outcome.table
    assert json.loads(folder.read_text("sweep.json"))["sweep_id"] == sweep.sweep_id


def test_nothing_is_run_again_and_what_is_missing_is(spark: Any, swept: tuple[Sweep, Folder, Outcome]) -> None:
    sweep, folder, outcome = swept
    again = run_sweep(spark, sweep, Folder(spark, folder.root), resume=True)
    assert (again.new, again.runs) == (0, 36)
    lost = folder.waves()[0]
    folder.remove("runs", lost, "_SUCCESS")
    healed = run_sweep(spark, sweep, Folder(spark, folder.root), resume=True)
    assert 0 < healed.new <= 36
    assert healed.table == outcome.table
    assert lost not in folder.names("runs")


def test_a_run_that_raises_is_a_row_with_its_replay(spark: Any, tmp_path: Path) -> None:
    strategy = "classic/tests.spark_eval.test_stages:RaisesSometimes"
    sweep = small(parameters={}, strategies=["classic/range", strategy], seeds=2)
    outcome = run_sweep(spark, sweep, Folder(spark, str(tmp_path)))
    assert (outcome.runs, outcome.failures) == (4, 2)
    first = outcome.failed[0]
    assert "out of luck" in first.error
    assert first.replay.startswith("rebalance-lab simulate failed/")
    assert json.loads((tmp_path / first.replay.split()[2]).read_text())["duration"] == SCENARIO["duration"]
    (cell,) = outcome.table["cells"]
    assert cell["winner"] == "classic/range"
    assert cell["strategies"][strategy]["failed"] == 2


def test_a_run_that_kills_its_worker_does_not_take_others_with_it(spark: Any, tmp_path: Path) -> None:
    strategy = "classic/tests.spark_eval.test_stages:DiesWithSeed"
    sweep = small(parameters={"members.consumer.count": [2, 3]}, strategies=["classic/range", strategy], seeds=1)
    outcome = run_sweep(spark, sweep, Folder(spark, str(tmp_path)))
    assert (outcome.runs, outcome.failures) == (4, 1)
    assert outcome.failed[0].error == DIED
    assert outcome.table["provenance"]["runs"] == 4
