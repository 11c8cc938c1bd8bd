"""Run a sweep from beginning to end, in waves: each is a Spark job whose results are kept before the next begins.

Given      a session, a Sweep and a folder
Returns    an Outcome; the folder then holds every run's row, and nothing is run that it held before
Ends       Ctrl-C and kill -9 lose the current wave, some twenty seconds of work; `resume` does the rest
Survives   a run that ends its worker process: halves of the wave are tried until that run is alone and becomes a row
Start at   run_sweep
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.evaluate.runs import Progress, Sample
from rebalance_lab.spark_eval.cells import Cell, cells_of
from rebalance_lab.spark_eval.folder import Folder, first_cause
from rebalance_lab.spark_eval.stages.expand_stage import cells_frame, expand
from rebalance_lab.spark_eval.stages.frame_schemas import RESULTS
from rebalance_lab.spark_eval.stages.plan import Task, dealt, pending, plan, task_ms, tasks_of
from rebalance_lab.spark_eval.stages.publish_stage import publish
from rebalance_lab.spark_eval.stages.run_stage import FAILED, row_of, simulate
from rebalance_lab.spark_eval.sweep_file import Sweep

WAVE_S = 20.0
WORKER_DIED = ("Python worker exited unexpectedly", "ExecutorLostFailure")
"""What Spark says of a run that ends its process. Any other failure is the cluster's, and no run's."""
DIED = "the worker process ended in the middle of this run"


@dataclass(frozen=True, slots=True)
class Failed:
    run_id: str
    seed: int
    error: str
    replay: str
    """The command that shows it again, in the sweep's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    runs: int
    """In the folder, all told."""
    new: int
    """Computed now."""
    failures: int
    failed: tuple[Failed, ...]
    """The first of them."""
    seconds: float
    """For the runs; the table is made after that."""
    table: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        told = {"runs": self.runs, "new": self.new, "failures": self.failures, "seconds": round(self.seconds, 3)}
        return {**told, "failed": [asdict(one) for one in self.failed], "provenance": self.table["provenance"]}


MOST_FAILED = 20
"""Are told one by one."""


def run_sweep(
    spark: SparkSession, sweep: Sweep, folder: Folder, *, resume: bool = False, progress: Progress | None = None
) -> Outcome:
    started = time.monotonic()
    cells = cells_of(sweep)
    folder.claim(sweep, resume=resume)
    folder.check_waves()
    total = len(cells) * len(sweep.strategies) * len(sweep.seeds)
    with folder.damage("runs"):
        work = Work(spark, sweep, cells, folder, progress or (lambda done: None))
    folder.remove_halves()  # not before what is finished has been read: a damaged folder stays as it is
    work.run()
    with folder.damage("runs"):
        failures, failed = failed_runs(folder.results())
    keep_failed(folder, cells)
    return Outcome(
        runs=total,
        new=work.new,
        failures=failures,
        failed=tuple(failed),
        seconds=time.monotonic() - started,
        table=publish(spark, sweep, cells, folder),
    )


class Work:
    """Track what is left to do, and how far it is."""

    def __init__(
        self, spark: SparkSession, sweep: Sweep, cells: Sequence[Cell], folder: Folder, tell: Progress
    ) -> None:
        self.spark, self.folder, self.tell = spark, folder, tell
        self.cores = spark.sparkContext.defaultParallelism
        self.cells = self.kept_cells(cells)
        runs = expand(self.cells, sweep.strategies, sweep.seeds)
        todo = pending(runs, folder.results())
        self.planned = plan(todo, task_ms(todo, self.cores)).persist()
        self.tasks = tasks_of(self.planned)
        self.new = self.tasks[-1].last if self.tasks else 0
        self.before = len(cells) * len(sweep.strategies) * len(sweep.seeds) - self.new

    def kept_cells(self, cells: Sequence[Cell]) -> DataFrame:
        frame = cells_frame(self.spark, cells)
        if not self.folder.exists("cells", "_SUCCESS"):
            frame.coalesce(1).write.mode("overwrite").parquet(self.folder.at("cells"))
        return frame

    def run(self) -> None:
        self.tell(self.before)
        done, per_second = 0, 0.0
        while done < len(self.tasks):
            # The first wave is short: it tells how fast this cluster is.
            count = max(4 * self.cores, round(per_second * WAVE_S)) if done else 4 * self.cores
            wave, began = self.tasks[done : done + count], time.monotonic()
            self.run_wave(wave)
            done += len(wave)
            per_second = len(wave) / (time.monotonic() - began)
            self.tell(self.before + wave[-1].last)
        self.planned.unpersist()

    def run_wave(self, wave: Sequence[Task]) -> None:
        """Run a wave, or, where a task kills its worker, what can be run of it."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            with self.watched(wave):
                self.keep(simulate(dealt(self.planned, wave), self.cells_of_wave(wave)))
        except (Py4JJavaError, PySparkException) as error:
            if not any(said in str(error) for said in WORKER_DIED):
                raise ContractError("--master", f"the job failed (--resume goes on): {first_cause(error)}") from None
            self.folder.remove_halves()
            for part in halves(wave):
                self.run_wave(part)
            if len(wave) == 1 and wave[0].last - wave[0].first == 1:
                self.keep(self.died(wave[0]))

    def keep(self, results: DataFrame) -> None:
        results.write.parquet(self.folder.at("runs", self.folder.next_wave()))

    def cells_of_wave(self, wave: Sequence[Task]) -> DataFrame:
        """Return the cells of a wave, a stretch of them, since runs stand in the order of cells: no executor gets them
        all.
        """
        return self.cells.where(F.col("cell_id").between(wave[0].first_cell, wave[-1].last_cell))

    def died(self, task: Task) -> DataFrame:
        (run,) = self.planned.where(F.col("place") == task.first).collect()
        one = Sample(strategy=run["strategy"], seed=run["seed"], broken=DIED)
        row = row_of(run["run_id"], run["cell_id"], one)
        return self.spark.createDataFrame([tuple(row[name] for name in RESULTS.names)], RESULTS)

    @contextmanager
    def watched(self, wave: Sequence[Task]) -> Iterator[None]:
        """Report now and then how many of the wave's tasks are done."""
        over = threading.Event()
        tracker = self.spark.sparkContext.statusTracker()

        def watch() -> None:
            while not over.wait(0.5):
                stages = [tracker.getStageInfo(one) for one in tracker.getActiveStageIds()]
                done = max((one.numCompletedTasks for one in stages if one and one.numTasks == len(wave)), default=0)
                if done:
                    self.tell(self.before + wave[done - 1].last)

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def halves(wave: Sequence[Task]) -> list[Sequence[Task]]:
    """Split a list of tasks, or the one task in it; return nothing where there is one run."""
    if len(wave) > 1:
        return [wave[: len(wave) // 2], wave[len(wave) // 2 :]]
    only = wave[0]
    middle = (only.first + only.last) // 2
    if middle == only.first:
        return []
    cells = (only.first_cell, only.last_cell)
    return [[Task(only.number, only.first, middle, *cells)], [Task(only.number, middle, only.last, *cells)]]


def failed_runs(results: Any) -> tuple[int, list[Failed]]:
    failed = results.where(F.col("error").isNotNull())
    rows = failed.orderBy("cell_id", "strategy", "seed").limit(MOST_FAILED).collect()
    return failed.count(), [Failed(row["run_id"], row["seed"], row["error"], row["replay"]) for row in rows]


def keep_failed(folder: Folder, cells: Sequence[Cell]) -> None:
    """Keep the scenarios that failed runs are replayed with."""
    failed: Any = folder.results()
    wanted = {row[0] for row in failed.where(F.col("error").isNotNull()).select("cell_id").distinct().collect()}
    for cell in cells:
        if cell.cell_id in wanted:
            folder.write_text(cell.document, FAILED, f"{cell.cell_id}.json")
