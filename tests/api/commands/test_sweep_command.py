"""`rebalance-lab sweep` from outside: its two forms, its errors, its exit codes. Nothing here starts Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark_eval.small_sweeps import SMALL


def lab(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rebalance_lab.api.cli", "sweep", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parameters": {"members.consmer.count": [1]}}, "did you mean consumer?"),
        ({"parameters": {"members.consumer.count": []}}, "the list is empty"),
        ({}, "spark://127.0.0.1:1 does not answer"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path, change: dict[str, object], said: str) -> None:
    (tmp_path / "sweep.json").write_text(json.dumps({**SMALL, **change}))
    for form in ((), ("run",)):
        done = lab(*form, "sweep.json", "--out", "out", "--master", "spark://127.0.0.1:1", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_report_needs_a_table(tmp_path: Path) -> None:
    done = lab("report", str(tmp_path), "--html", cwd=tmp_path)
    assert done.returncode == 2
    assert "decision_table.json" in done.stderr


def test_help_tells_of_all_three(tmp_path: Path) -> None:
    said = lab("--help", cwd=tmp_path).stdout
    assert all(word in said for word in ("run", "report", "ingest"))
    assert "--resume" in lab("run", "--help", cwd=tmp_path).stdout
