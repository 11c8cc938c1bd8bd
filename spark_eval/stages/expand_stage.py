"""Expand cells into runs, each cell with each strategy and each seed: stage one.

Given      a frame of CELLS, and strategies and seeds
Returns    a frame of RUNS; a run's id is a hash of its content, the same in every sweep and on every machine
Start at   expand
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rebalance_lab.spark_eval.cells import Cell
from rebalance_lab.spark_eval.stages.frame_schemas import CELLS

ID_LENGTH = 20
STATIC = 0.5
"""A static member that comes back causes no rebalance: such runs take about half as long."""


def cells_frame(spark: SparkSession, cells: Sequence[Cell]) -> DataFrame:
    import json

    rows = [
        (cell.cell_id, json.dumps(dict(cell.parameters), ensure_ascii=False), cell.document, cell.predicted_ms)
        for cell in cells
    ]
    return spark.createDataFrame(rows, CELLS)


def expand(cells: DataFrame, strategies: Sequence[str], seeds: Sequence[int]) -> DataFrame:
    chosen = F.explode(F.array(*(F.lit(one) for one in strategies)))
    drawn = F.explode(F.lit(list(seeds)).cast("array<bigint>"))
    runs = cells.select("cell_id", "cell_ms", chosen.alias("strategy")).select("*", drawn.alias("seed"))
    content = F.concat_ws("\n", "cell_id", "strategy", F.col("seed").cast("string"))
    slower = F.when(F.col("strategy").endswith("+static"), F.lit(STATIC)).otherwise(F.lit(1.0))
    return runs.select(
        F.substring(F.sha2(content, 256), 1, ID_LENGTH).alias("run_id"),
        "cell_id",
        "strategy",
        "seed",
        (F.col("cell_ms") * slower).alias("predicted_ms"),
    )


def run_id(cell_id: str, strategy: str, seed: int) -> str:
    """Return the same id without Spark."""
    return hashlib.sha256(f"{cell_id}\n{strategy}\n{seed}".encode()).hexdigest()[:ID_LENGTH]
