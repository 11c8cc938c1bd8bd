"""Write real inputs into a folder: a scenario for each group, a sweep file over all of them, and unreadable lines.

Given      files and folders (snapshots as .json, logs as .jsonl, .csv or .parquet), and a cluster's address
Returns    Ingested: how many groups, events and lines set aside
Start at   ingest
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rebalance_lab.assignors.json_contract import ContractError, group_from_json, parse_request
from rebalance_lab.harness.evaluate.recommend.group_life import life_of_group
from rebalance_lab.harness.scenario.documents import decode_document
from rebalance_lab.harness.scenario.reader import parse_scenario
from rebalance_lab.harness.scenario.writer import scenario_json
from rebalance_lab.spark_eval.folder import Folder
from rebalance_lab.spark_eval.ingest.event_logs import ENDINGS, read_logs
from rebalance_lab.spark_eval.ingest.group_scenario import Happening, scenario_of_history
from rebalance_lab.spark_eval.ingest.membership_records import happenings
from rebalance_lab.spark_eval.ingest.offsets_source import register

SET_ASIDE = "set_aside"
SEEDS = 10
LOGS = tuple(ending for endings in ENDINGS.values() for ending in endings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    groups: tuple[str, ...]
    events: int
    set_aside: int
    passed_over: tuple[str, ...]
    """Groups whose history makes no scenario, each with the reason."""


def ingest(spark: SparkSession, sources: Sequence[str], folder: Folder, *, bootstrap: str | None = None) -> Ingested:
    if folder.names():
        raise ContractError("--out", f"{folder.root} is not empty: name a new folder")
    files = [file for source in sources for file in files_of(source)]
    snapshots, logs = [one for one in files if one.endswith(".json")], [one for one in files if is_log(one)]
    if not files and bootstrap is None:
        raise ContractError("SOURCE", f"no file that ends in .json, {', '.join(LOGS)}, and no --bootstrap")
    scenarios = {name: document for file in snapshots for name, document in [snapshot_scenario(file)]}
    partitions = {name: partitions_of(document) for name, document in scenarios.items()}
    events, set_aside, passed_over = 0, 0, []
    for histories, aside in told(spark, logs, bootstrap, folder):
        set_aside += aside
        for group, history in histories:
            events += len(history)
            document = scenario_of_history(group, history, partitions.get(group, {}))
            try:
                parse_scenario(document)
            except ContractError as error:
                passed_over.append(f"{group}: {error}")
            else:
                scenarios[group] = document
    write(folder, scenarios)
    return Ingested(groups=tuple(scenarios), events=events, set_aside=set_aside, passed_over=tuple(passed_over))


Histories = Iterable[tuple[str, list[Happening]]]


def told(
    spark: SparkSession, logs: Sequence[str], bootstrap: str | None, folder: Folder
) -> Iterator[tuple[Histories, int]]:
    """Return each source's histories by group, and how many of its lines are set aside."""
    if logs:
        good, bad = read_logs(spark, logs)
        count = bad.count()
        if count:
            bad.coalesce(1).write.json(folder.at(SET_ASIDE))
        yield of_logs(good), count
    if bootstrap is not None:
        yield of_topic(register(spark, bootstrap)), 0


def of_logs(events: DataFrame) -> Histories:
    """Return one group at a time: no more than one has to fit in memory."""
    listed = F.sort_array(F.collect_list(F.struct("time_ms", "member", "event", "topics")))
    for group, rows in events.groupBy("group").agg(listed).orderBy("group").toLocalIterator():
        yield group, [Happening(row[0], row[1], row[2], split(row[3])) for row in rows]


def split(topics: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (topics or "").split(",") if part.strip())


def of_topic(records: DataFrame) -> Histories:
    told = records.where("kind in ('GroupMetadata', 'ConsumerGroupMemberMetadata')").orderBy("partition", "offset")
    found: dict[str, list[Happening]] = {}
    for group, happening in happenings(row.asDict() for row in told.toLocalIterator()):
        found.setdefault(group, []).append(happening)
    return sorted(found.items())


# Files


def files_of(source: str) -> list[str]:
    path = Path(source)
    if path.is_dir():
        return sorted(str(one) for one in path.rglob("*") if one.suffix == ".json" or is_log(one.name))
    if not path.is_file():
        raise ContractError(source, "no such file or folder")
    if not (source.endswith(".json") or is_log(source)):
        raise ContractError(source, f"expected .json for a snapshot, or {', '.join(LOGS)} for a log")
    return [source]


def is_log(name: str) -> bool:
    return name.lower().removesuffix(".gz").endswith(LOGS)


def snapshot_scenario(file: str) -> tuple[str, dict[str, Any]]:
    """Make a scenario of a snapshot: a group of which only the present is known gets the life that `recommend`
    assumes.
    """
    try:
        data = decode_document(Path(file).read_bytes())
        path = "group" if isinstance(data, dict) and "group" in data else ""
        strategy, group = parse_request(data) if path else (None, group_from_json(data, path))
        name = Path(file).stem
        return name, scenario_json(life_of_group(group, name=name, strategy=strategy, path=path))
    except ContractError as error:
        raise ContractError(file, str(error)) from None


def partitions_of(document: Mapping[str, Any]) -> dict[str, int]:
    return {name: topic["partitions"] for name, topic in document["topics"].items()}


def write(folder: Folder, scenarios: Mapping[str, Any]) -> None:
    names = {}
    for number, (group, document) in enumerate(scenarios.items(), start=1):
        names[group] = f"scenarios/{number:04}-{re.sub(r'[^a-zA-Z0-9._-]+', '-', group)[:80]}.json"
        folder.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", names[group])
    sweep = {"name": "recorded groups", "scenarios": list(names.values()), "seeds": SEEDS}
    if scenarios:
        folder.write_text(json.dumps(sweep, ensure_ascii=False, indent=1) + "\n", "sweep.yaml")
