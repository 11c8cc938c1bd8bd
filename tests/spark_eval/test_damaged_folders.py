"""A sweep's folder with damaged files: one line, and nothing is deleted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.evaluate.recommend.decision_table import read_table
from rebalance_lab.spark_eval.folder import Folder
from rebalance_lab.spark_eval.sweep import run_sweep
from tests.spark_eval.small_sweeps import small

SWEEP = {"parameters": {"members.consumer.count": [2]}, "strategies": ["classic/range"], "seeds": 2}


def halve(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def garbage(file: Path) -> None:
    file.write_bytes(b"no Parquet file and no JSON" * 40)


def false_footer(file: Path) -> None:
    """A file with Parquet's first and last bytes and nothing that could be read in between."""
    file.write_bytes(b"PAR1" + b"x" * 200 + b"PAR1")


def empty(file: Path) -> None:
    file.write_bytes(b"")


def another_value(file: Path) -> None:
    file.write_text("[1, 2]\n")


def no_keys(file: Path) -> None:
    file.write_text('{"format": "rebalance-lab sweep 1"}\n')


@pytest.fixture(scope="module")
def finished(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep") / "out"
    run_sweep(spark, small(**SWEEP), Folder(spark, str(folder)))
    return folder


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """The folder with a half wave beside the finished one, which only a healthy folder may lose."""
    folder = Path(shutil.copytree(finished, tmp_path / "out"))
    (folder / "runs" / "wave-00009").mkdir()
    (folder / "runs" / "wave-00009" / "part-0.parquet").write_bytes(b"half")
    return folder


def files_of(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("damage", [halve, garbage, empty, another_value, no_keys])
def test_a_damaged_manifest_is_one_line(
    spark: Any, copied: Path, damage: Callable[[Path], None], checksums: bool
) -> None:
    refused(spark, copied, copied / "sweep.json", damage, checksums)


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("damage", [halve, garbage, empty, false_footer])
def test_a_damaged_part_is_one_line(spark: Any, copied: Path, damage: Callable[[Path], None], checksums: bool) -> None:
    part = next((copied / "runs" / "wave-00001").glob("*.parquet"))
    refused(spark, copied, part, damage, checksums)


def refused(spark: Any, folder: Path, file: Path, damage: Callable[[Path], None], checksums: bool) -> None:
    damage(file)
    if not checksums:
        file.with_name(f".{file.name}.crc").unlink()
    before = files_of(folder)
    with pytest.raises(ContractError, match="damaged") as error:
        run_sweep(spark, small(**SWEEP), Folder(spark, str(folder)), resume=True)
    assert (error.value.path, str(error.value).count("\n")) == ("--out", 0)
    assert str(folder) in str(error.value)
    assert files_of(folder) == before


def test_a_stray_folder_beside_the_waves_is_no_wave(spark: Any, copied: Path) -> None:
    (copied / "runs" / "notes").mkdir()
    assert Folder(spark, str(copied)).last_wave == 9


@pytest.mark.parametrize(
    "data",
    ["", "{", "[]", '{"format": "rebalance-lab decision table 1"}', "garbage", "cells"],
)
def test_a_damaged_table_is_one_line(data: str) -> None:
    if data == "cells":
        parts = {"name": "n", "provenance": {}, "strategies": [], "parameters": [], "cells": [{}]}
        data = json.dumps({"format": "rebalance-lab decision table 1", **parts})
    with pytest.raises(ContractError, match=r"^out: .*damaged"):
        read_table(data, "out")
