"""Run the runs in Python workers beside the data, and return results: stage two.

Given      a frame of RUNS with the cells' documents beside them
Returns    a frame of RESULTS, one row a run; a run that fails is a row as well, with what replays it here
Start at   simulate
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.evaluate.runs import Sample, sample
from rebalance_lab.harness.scenario.documents import decode_document
from rebalance_lab.harness.scenario.model import Scenario
from rebalance_lab.harness.scenario.reader import parse_scenario
from rebalance_lab.spark_eval.stages.frame_schemas import COSTS, RESULTS

if TYPE_CHECKING:
    import pyarrow

GIVEN = ("run_id", "cell_id", "strategy", "seed", "document")
FAILED = "failed"
"""The folder in a sweep's own that holds the scenarios of failed runs."""


def simulate(runs: DataFrame, cells: DataFrame) -> DataFrame:
    documents = F.broadcast(cells.select("cell_id", "document"))
    return runs.join(documents, "cell_id").select(*GIVEN).mapInArrow(run_batches, RESULTS)


def run_batches(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Run in a worker. A batch in is a batch out; Spark makes as many as a task needs."""
    import pyarrow

    schema = to_arrow_schema(RESULTS)
    for batch in batches:
        rows = [result(**run) for run in batch.to_pylist()]
        yield pyarrow.RecordBatch.from_pylist(rows, schema=schema)


def result(run_id: str, cell_id: str, strategy: str, seed: int, document: str) -> dict[str, Any]:
    try:
        one = sample(scenario_of(document), strategy, seed)
    except ContractError as error:
        one = Sample(strategy=strategy, seed=seed, broken=f"the scenario cannot be read: {error}")
    return row_of(run_id, cell_id, one)


def row_of(run_id: str, cell_id: str, one: Sample) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "cell_id": cell_id,
        "strategy": one.strategy,
        "seed": one.seed,
        **dict.fromkeys(COSTS.names),
        **(one.costs or {}),
        "error": one.broken,
        "error_at_ms": one.broken_at_ms,
        "replay": None if one.broken is None else replay(cell_id, one.strategy, one.seed),
    }


def replay(cell_id: str, strategy: str, seed: int) -> str:
    """Return the command that replays a run in the sweep's folder."""
    file = f"{FAILED}/{cell_id}.json"
    return shlex.join(["rebalance-lab", "simulate", file, "--strategy", strategy, "--seed", str(seed)])


@lru_cache(maxsize=32)
def scenario_of(document: str) -> Scenario:
    """Read a scenario once for all runs of a cell that a worker meets: they come side by side."""
    return parse_scenario(decode_document(document))
