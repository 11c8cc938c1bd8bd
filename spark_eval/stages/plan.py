"""Plan which run goes into which task: tasks of equal predicted cost, in the same order on every machine.

Place      runs stand in one row, a cell's runs side by side, so that a task reads few scenarios
Task       the row is cut where the predicted cost reaches the next multiple of a task's share
Start at   plan
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

LEAST_MS, MOST_MS = 1_000.0, 3_000.0
"""Of predicted cost. A core idles for some 0.1 s between two tasks; and the longer one is, the longer it waits for the
last."""
TASKS_PER_CORE = 12


@dataclass(frozen=True, slots=True)
class Task:
    """Hold the runs at `first` to `last` (not included) in the row."""

    number: int
    first: int
    last: int
    first_cell: str
    last_cell: str


def task_ms(runs: DataFrame, cores: int) -> float:
    """Return a task's share: few runs should still use all cores, and many should not become a million tasks."""
    ((total,),) = runs.agg(F.sum("predicted_ms")).collect()
    return min(MOST_MS, max(LEAST_MS, (total or 0.0) / (cores * TASKS_PER_CORE)))


def plan(runs: DataFrame, each_ms: float) -> DataFrame:
    """Turn RUNS into PLAN. One core sorts: it is narrow, and a second for a million runs."""
    row = Window.orderBy("cell_id", "strategy", "seed")
    before = F.sum("predicted_ms").over(row.rowsBetween(Window.unboundedPreceding, 0)) - F.col("predicted_ms")
    placed = runs.select(
        "*", (F.row_number().over(row) - 1).cast("bigint").alias("place"), F.floor(before / each_ms).alias("share")
    )
    # A run that is worth several shares leaves gaps between them; tasks are numbered without.
    return placed.select("*", (F.dense_rank().over(Window.orderBy("share")) - 1).alias("task")).drop("share")


def pending(runs: DataFrame, done: DataFrame | None) -> DataFrame:
    """Return the runs whose id is not among the results yet."""
    return runs if done is None else runs.join(done.select("run_id"), "run_id", "left_anti").select(runs.columns)


def tasks_of(planned: DataFrame) -> list[Task]:
    place, cell = F.col("place"), F.col("cell_id")
    rows = planned.groupBy("task").agg(F.min(place), F.max(place), F.min(cell), F.max(cell)).orderBy("task").collect()
    return [Task(number, first, last + 1, *cells) for number, first, last, *cells in rows]


def dealt(planned: DataFrame, tasks: Sequence[Task]) -> DataFrame:
    """Return the runs of tasks that follow each other, each task a partition of its own."""
    chosen = planned.where(F.col("place").between(tasks[0].first, tasks[-1].last - 1))
    return chosen.repartitionById(len(tasks), F.col("task") - F.lit(tasks[0].number))
