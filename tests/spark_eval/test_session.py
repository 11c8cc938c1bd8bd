"""Spark as people meet it: what is missing or does not answer is one clear line, before anything is started."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.spark_eval.folder import Folder
from rebalance_lab.spark_eval.session import ROOMS, archive_of_packages, check_java, check_master, set_environment
from tests.spark_eval.small_sweeps import SMALL, small


def test_no_java_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ContractError, match="java: no java on the PATH"):
        check_java()


def test_an_old_java_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ContractError, match=r"Java 11 .* is too old: Spark needs Java 17"):
        check_java()


def test_a_master_that_does_not_answer_is_one_line_and_soon() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    began = time.monotonic()
    with pytest.raises(ContractError, match="does not answer"):
        check_master(f"spark://127.0.0.1:{port}")
    with pytest.raises(ContractError, match="expected spark://host:port"):
        check_master("spark://nowhere")
    assert time.monotonic() - began < 10


def test_workers_get_this_python_and_this_machine_unless_somebody_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", "/my/python")
    set_environment("local[2]")
    assert os.environ["PYSPARK_PYTHON"] == "/my/python"
    assert os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert os.environ["SPARK_LOCAL_IP"] == os.environ["SPARK_LOCAL_HOSTNAME"] == "127.0.0.1"


def test_the_archive_for_executors_can_be_imported_from(tmp_path: Path) -> None:
    archive = archive_of_packages(tmp_path)
    code = (
        f"from rebalance_lab import {', '.join(ROOMS)}; from rebalance_lab.spark_eval.stages import run_stage;"
        "print(run_stage.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env={"PYTHONPATH": str(archive)}
    )
    assert done.stdout.startswith(str(archive)), done.stderr


def test_a_folder_belongs_to_one_sweep(spark: Any, tmp_path: Path) -> None:
    folder = Folder(spark, str(tmp_path / "out"))
    folder.claim(small(), resume=False)
    folder.claim(small(name="another name, the same runs"), resume=True)
    with pytest.raises(ContractError, match="holds this sweep already: --resume goes on"):
        folder.claim(small(), resume=False)
    with pytest.raises(ContractError, match="holds another sweep, 'small sweep'"):
        folder.claim(small(seeds=SMALL["seeds"] + 1), resume=True)
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "letter.txt").write_text("x")
    with pytest.raises(ContractError, match="holds something else"):
        Folder(spark, str(tmp_path / "else")).claim(small(), resume=False)
