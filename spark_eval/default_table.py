"""Load the decision table that ships with the package, made by its own sweep: examples/sweeps/small_groups.yaml."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from rebalance_lab.harness.evaluate.recommend.decision_table import DecisionTable, read_table

FILE = "decision_table.json"


@lru_cache
def default_table() -> DecisionTable | None:
    """Return the table, or None where the package was built without it."""
    file = files("rebalance_lab.spark_eval.data") / FILE
    return read_table(file.read_text("utf-8"), str(file)) if file.is_file() else None
