"""Define what each stage's frame holds. A stage that is given or gives anything else is a bug.

CELLS      a scenario each            RUNS       a cell, a strategy and a seed each
PLAN       runs with their place      RESULTS    what came of a run: its costs, or why it has none
"""

from __future__ import annotations

from dataclasses import fields

from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType, StructField, StructType

from rebalance_lab.harness.measure.costs import Costs


def text(name: str, *, may_miss: bool = False) -> StructField:
    return StructField(name, StringType(), may_miss)


CELLS = StructType([text("cell_id"), text("parameters"), text("document"), StructField("cell_ms", DoubleType(), False)])

RUNS = StructType(
    [
        text("run_id"),
        text("cell_id"),
        text("strategy"),
        StructField("seed", LongType(), False),
        StructField("predicted_ms", DoubleType(), False),
    ]
)

PLAN = StructType(
    [*RUNS.fields, StructField("place", LongType(), False), StructField("task", IntegerType(), False)],
)

COSTS = StructType(
    # `from __future__ import annotations` makes a field's type its name.
    [StructField(one.name, LongType() if one.type == "int" else DoubleType(), True) for one in fields(Costs)]
)

RESULTS = StructType(
    [
        text("run_id"),
        text("cell_id"),
        text("strategy"),
        StructField("seed", LongType(), False),
        *COSTS.fields,
        text("error", may_miss=True),
        StructField("error_at_ms", LongType(), True),
        text("replay", may_miss=True),
    ]
)
