"""Read membership logs, which members came and went, from JSON lines, CSV or Parquet files.

Columns    time (milliseconds since 1970, or ISO 8601), group, member, event; topics if known, with commas
Events     join, leave, crash, restart
Bad lines  a line without time, group or member, or with an unknown event, is set aside with its file and the reason
Start at   read_logs
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.spark_eval.ingest.group_scenario import EVENTS

COLUMNS = ("time", "group", "member", "event", "topics")
NEEDED = COLUMNS[:-1]
TIME_MS = "coalesce(try_cast(time as bigint), unix_millis(try_cast(time as timestamp)))"


def read_logs(spark: SparkSession, files: Sequence[str]) -> tuple[DataFrame, DataFrame]:
    """Return events, and lines set aside: file, line and reason."""
    by_form = {form: [file for file in files if form_of(file) == form] for form in READERS}
    frames = [READERS[form](spark, found) for form, found in by_form.items() if found]
    lines = frames[0]
    for frame in frames[1:]:
        lines = lines.unionByName(frame)
    checked = lines.select("*", F.expr(TIME_MS).alias("time_ms"), why().alias("why"))
    good = checked.where("why is null").select("time_ms", "group", "member", F.lower("event").alias("event"), "topics")
    return good, checked.where("why is not null").select("file", "line", "why")


def form_of(file: str) -> str:
    name = file.lower().removesuffix(".gz")
    form = next((form for form, endings in ENDINGS.items() if name.endswith(endings)), None)
    if form is None:
        raise ContractError(file, "is no log that can be read: .jsonl, .ndjson, .csv or .parquet")
    return form


def why() -> Any:
    """Return what is wrong with a line, or null."""
    known = ", ".join(f"'{one}'" for one in EVENTS)
    return F.expr(
        f"""case when time is null and `group` is null and member is null then 'not a line of a log'
                 when {TIME_MS} is null then 'no time'
                 when coalesce(trim(`group`), '') = '' then 'no group'
                 when coalesce(trim(member), '') = '' then 'no member'
                 when coalesce(lower(event), '') not in ({known}) then 'the event is none of {", ".join(EVENTS)}'
            end"""
    )


def read_json(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    schema = ", ".join(f"`{name}` string" for name in COLUMNS)
    lines = spark.read.text(list(files)).where("trim(value) != ''")
    read = F.from_json("value", schema).alias("read")
    return lines.select(F.input_file_name().alias("file"), F.col("value").alias("line"), read).select(
        "file", "line", "read.*"
    )


def read_csv(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    return named(spark.read.option("header", True).csv(list(files)), files)


def read_parquet(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return named(spark.read.parquet(*files), files)
    except (Py4JJavaError, PySparkException):
        raise ContractError(files[0], "cannot be read as Parquet") from None


def named(frame: DataFrame, files: Sequence[str]) -> DataFrame:
    missing = [name for name in NEEDED if name not in frame.columns]
    if missing:
        raise ContractError(files[0], f"has no column {', '.join(missing)}; needed are {', '.join(NEEDED)}")
    topics = F.col("topics") if "topics" in frame.columns else F.lit(None)
    line = F.concat_ws(",", *(F.col(f"`{name}`").cast("string") for name in frame.columns))
    values = [F.col(f"`{name}`").cast("string").alias(name) for name in NEEDED]
    return frame.select(
        F.input_file_name().alias("file"), line.alias("line"), *values, topics.cast("string").alias("topics")
    )


READERS = {"json": read_json, "csv": read_csv, "parquet": read_parquet}
ENDINGS = {"json": (".jsonl", ".ndjson"), "csv": (".csv",), "parquet": (".parquet",)}
