"""Publish the decision table, as Parquet for machines and as JSON for people, pages and `recommend`: stage four.

Given      the results and the cells of a sweep
Returns    the table as data, with its provenance: versions, seeds, counts. It does not say when or where it was made,
           so that the same runs give the same bytes
Start at   publish
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from rebalance_lab.harness.evaluate.recommend.decision_table import FORMAT
from rebalance_lab.harness.evaluate.recommend.features import features_of
from rebalance_lab.harness.evaluate.report.page import lab_version
from rebalance_lab.harness.measure.cost_weights import DEFAULT, NAMES
from rebalance_lab.spark_eval.cells import SCENARIO, Cell
from rebalance_lab.spark_eval.folder import Folder
from rebalance_lab.spark_eval.stages.aggregate_stage import by_strategy, sensitivity
from rebalance_lab.spark_eval.stages.run_stage import scenario_of
from rebalance_lab.spark_eval.sweep_file import Sweep
from rebalance_lab.spark_eval.sweep_parameters import Label

FILE = "decision_table.json"
BINS = 5
"""Into so many levels the values of a distribution are sorted."""
KEPT = (*(name for name in NAMES if name in DEFAULT), "rebalances", "requests")
"""Whose medians the JSON has; the Parquet has all."""


def publish(spark: SparkSession, sweep: Sweep, cells: Sequence[Cell], folder: Folder) -> dict[str, Any]:
    results = folder.results()
    assert results is not None
    levels = spark.createDataFrame(levels_of(sweep, cells), "cell_id string, parameter string, level string")
    table = by_strategy(results, sweep.weights, sweep.strategies).persist()
    table.coalesce(1).write.mode("overwrite").parquet(folder.at("table"))
    decided = sensitivity(results, sweep.weights, levels)
    data = table_json(sweep, cells, table, decided, spark.version)
    table.unpersist()
    folder.write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n", FILE)
    return data


def table_json(
    sweep: Sweep, cells: Sequence[Cell], table: DataFrame, decided: DataFrame, spark_version: str
) -> dict[str, Any]:
    rows: dict[str, dict[str, Any]] = {}
    for row in table.collect():
        rows.setdefault(row["cell_id"], {})[row["strategy"]] = row
    listed = [cell_json(cell, rows[cell.cell_id], sweep.strategies) for cell in cells]
    counted = [one for cell in listed for one in cell["strategies"].values()]
    return {
        "format": FORMAT,
        "name": sweep.name,
        "description": sweep.description,
        "provenance": {
            "version": lab_version(),
            "python": platform.python_version(),
            "spark": spark_version,
            "sweep_id": sweep.sweep_id,
            "cells": len(cells),
            "seeds": {"count": len(sweep.seeds), "first": min(sweep.seeds), "last": max(sweep.seeds)},
            "runs": sum(one["runs"] for one in counted),
            "failed": sum(one["failed"] for one in counted),
        },
        "weights": dict(sweep.weights),
        "strategies": list(sweep.strategies),
        "parameters": [{"name": name, "values": values} for name, values in values_of(cells).items()],
        "maps": [list(axes) for axes in sweep.maps],
        "cells": listed,
        "sensitivity": [
            {
                "parameter": row["parameter"],
                "strategy": row["strategy"],
                "share": row["share"],
                "levels": [[one["level"], one["median"]] for one in row["levels"]],
            }
            for row in decided.orderBy("parameter", "strategy").collect()
        ],
    }


def cell_json(cell: Cell, rows: dict[str, Any], strategies: Sequence[str]) -> dict[str, Any]:
    ranked = sorted((row for row in rows.values() if row["place"]), key=lambda row: row["place"])
    second = ranked[1] if len(ranked) > 1 else None
    features = features_of(scenario_of(cell.document))
    return {
        "id": cell.cell_id,
        "parameters": dict(cell.parameters),
        "features": {name: float(f"{value:.6g}") for name, value in features.numbers().items()},
        "other": list(features.other),
        "winner": ranked[0]["strategy"] if ranked else None,
        "next": second["strategy"] if second else None,
        "margin": interval(second, "more") if second else None,
        "strategies": {one: strategy_json(rows[one]) for one in strategies},
    }


def strategy_json(row: Any) -> dict[str, Any]:
    counted = {"runs": row["runs"], "failed": row["failed"]}
    if row["cost"] is None:
        return {**counted, "wins": 0.0, "front": False}
    return {
        **counted,
        "cost": interval(row, "cost"),
        "spread": [row["cost_p10"], row["cost_p90"]],
        "more": interval(row, "more"),
        "wins": row["wins"],
        "front": row["front"],
        "costs": {name: row[name] for name in KEPT},
    }


def interval(row: Any, name: str) -> list[float]:
    """Return median, low and high."""
    return [row[name], row[f"{name}_low"], row[f"{name}_high"]]


def values_of(cells: Sequence[Cell]) -> dict[str, list[Label]]:
    """Return each parameter's values, in the order in which they were given."""
    found: dict[str, dict[Label, None]] = {}
    for cell in cells:
        for name, label in cell.parameters.items():
            found.setdefault(name, {})[label] = None
    return {name: list(values) for name, values in found.items()}


def levels_of(sweep: Sweep, cells: Sequence[Cell]) -> list[tuple[str, str, str]]:
    """Return which level of each parameter a cell is at: its value, or which fifth of what was drawn."""
    drawn = {one.name for one in sweep.parameters if one.draw is not None}
    names = [*([SCENARIO] if len(sweep.scenarios) > 1 else []), *(one.name for one in sweep.parameters)]
    found = []
    for name in names:
        levels = fifths(cells, name) if name in drawn else {cell.cell_id: str(cell.parameters[name]) for cell in cells}
        found += [(cell_id, name, level) for cell_id, level in levels.items()]
    return found or [(cell.cell_id, "", "") for cell in cells]


def fifths(cells: Sequence[Cell], name: str) -> dict[str, str]:
    from rebalance_lab.spark_eval.sweep_parameters import number_and_unit

    ordered = sorted(cells, key=lambda cell: number_and_unit(cell.parameters[name], name)[0])
    found = {}
    for place in range(BINS):
        part = ordered[len(ordered) * place // BINS : len(ordered) * (place + 1) // BINS]
        for cell in part:
            found[cell.cell_id] = f"{part[0].parameters[name]} to {part[-1].parameters[name]}"
    return found
