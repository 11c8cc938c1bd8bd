"""Logs and snapshots into scenarios; what makes no sense is counted and set aside, with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.spark_eval.cells import cells_of
from rebalance_lab.spark_eval.folder import Folder
from rebalance_lab.spark_eval.ingest.ingest import ingest
from rebalance_lab.spark_eval.sweep_file import load_sweep
from tests.paths import ROOT

LINES = [
    {"time": 1_760_000_000_000, "group": "orders", "member": "pod-a", "event": "join"},
    {"time": "2025-10-09T08:53:25Z", "group": "orders", "member": "pod-b", "event": "JOIN"},
    {"time": 1_760_000_600_000, "group": "orders", "member": "pod-a", "event": "crash"},
]
BAD = ["{broken", '{"time": 5, "group": "orders", "member": "x", "event": "dance"}', '{"time": 5, "member": "x"}']


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "one.jsonl").write_text("\n".join([*(json.dumps(line) for line in LINES), *BAD]) + "\n")
    (folder / "two.csv").write_text(
        "time,group,member,event\n2026-01-01T00:00:00Z,billing,a,join\nnever,billing,a,leave\n1767225700000,billing,a,restart\n"
    )
    rows = [{"time": 1_760_000_000_000 + i, "group": "audit", "member": f"m{i}", "event": "join"} for i in range(3)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "three.parquet")
    (folder / "orders.json").write_text((ROOT / "examples" / "orders.json").read_text())
    return folder


def test_every_form_becomes_a_scenario_and_nothing_is_dropped_in_silence(
    spark: Any, sources: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    found = ingest(spark, [str(sources)], Folder(spark, str(out)))
    assert set(found.groups) == {"orders", "billing", "audit"}
    assert (found.events, found.set_aside, found.passed_over) == (8, 4, ())
    aside = [json.loads(line) for file in (out / "set_aside").glob("*.json") for line in file.read_text().splitlines()]
    assert sorted((line["file"].rsplit("/", 1)[1], line["why"]) for line in aside) == [
        ("one.jsonl", "no group"),
        ("one.jsonl", "not a line of a log"),
        ("one.jsonl", "the event is none of join, leave, crash, restart"),
        ("two.csv", "no time"),
    ]
    cells = cells_of(load_sweep(out / "sweep.yaml"))
    documents = {cell.parameters["scenario"]: json.loads(cell.document) for cell in cells}
    # The snapshot of the group knows its topics, the log what happened.
    assert {name: topic["partitions"] for name, topic in documents["orders"]["topics"].items()} == {
        "orders": 8,
        "payments": 4,
    }
    assert documents["orders"]["timeline"] == [{"at": "660000ms", "crash": "pod-a"}]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"when,who\n1,2\n", "has no column time, group, member, event"),
        ("a.parquet", b"no parquet at all", "cannot be read as Parquet"),
        ("a.json", b'{"group": {"topics": 5, "members": {}}}', "a.json: group.topics"),
        ("a.txt", b"", "expected .json for a snapshot"),
    ],
)
def test_a_file_of_another_kind_is_one_line(spark: Any, tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ContractError) as error:
        ingest(spark, [str(tmp_path / name)], Folder(spark, str(tmp_path / "out")))
    assert said in str(error.value)
    assert "\n" not in str(error.value)
