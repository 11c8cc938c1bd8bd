"""`compare` and `recommend`, interrupted: what is finished is shown, and how much it is worth."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rebalance_lab.harness.evaluate.comparison import compare
from rebalance_lab.harness.evaluate.runs import RunsInterrupted
from rebalance_lab.harness.scenario.reader import parse_scenario
from tests.harness.small_scenarios import RESTART, write
from tests.paths import ROOT

STRATEGIES = ("classic/range", "consumer/uniform", "classic/sticky")
COUNTS = """
from rebalance_lab.assignors.classic.range import RangeAssignor


class Counts(RangeAssignor):
    name = "counts"

    def assign(self, group):
        with open("assignments", "a") as file:
            file.write(".")
        return super().assign(group)
"""
ENOUGH = 60
"""Assignments: many runs, of which each has a few."""


@pytest.mark.parametrize(
    ("runs", "counts", "ranked"), [(8, (3, 3, 2), 2), (3, (1, 1, 1), 1), (1, (1, 0, 0), 1), (2, (1, 1, 0), 1)]
)
def test_what_is_finished_is_compared(runs: int, counts: tuple[int, ...], ranked: int) -> None:
    def stop(done: int) -> None:
        if done == runs:
            raise KeyboardInterrupt

    scenario = parse_scenario(RESTART)
    found = compare(scenario, STRATEGIES, range(1, 11), jobs=1, progress=stop, keep_finished=True)
    shown = STRATEGIES[: sum(count > 0 for count in counts)]
    whole = compare(scenario, shown, range(1, ranked + 1), jobs=1)
    assert found.partial is not None
    assert (found.partial.runs_finished, found.partial.runs_asked, found.partial.seeds_ranked) == (runs, 30, ranked)
    assert found.partial.seeds_by_strategy == dict(zip(STRATEGIES, counts, strict=True))
    assert found.to_json(measured=False)["ranking"] == whole.to_json(measured=False)["ranking"]
    assert found.notes[0] == found.partial.words()


def test_without_a_finished_run_there_is_nothing_to_compare() -> None:
    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(RunsInterrupted):
        compare(parse_scenario(RESTART), STRATEGIES, range(1, 11), jobs=1, progress=stop)


def interrupted(folder: Path, number: signal.Signals, *arguments: str) -> tuple[int, str, str]:
    """Start a command with far too many runs, and end it when some are finished."""
    (folder / "counts_here.py").write_text(COUNTS)
    count = folder / "assignments"
    process = subprocess.Popen(
        [sys.executable, "-m", "rebalance_lab", *arguments, "--seeds", "5000", "--jobs", "2"],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        ends_at = time.monotonic() + 60
        while (not count.exists() or count.stat().st_size < ENOUGH) and time.monotonic() < ends_at:
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    return process.returncode, out, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", ["compare", "recommend"])
def test_json_says_that_it_is_partial(tmp_path: Path, command: str, number: signal.Signals) -> None:
    strategies = "classic/counts_here:Counts,classic/range"
    asked = [command, write(tmp_path), "--strategies", strategies, "--json", "--html", "report.html"]
    code, out, err = interrupted(tmp_path, number, *asked)
    assert code == 128 + number, err
    answer: dict[str, Any] = json.loads(out)
    partial = answer["partial"]
    assert (partial["signal"], partial["runs_asked"]) == (number.name, 10_000)
    assert 0 < partial["runs_finished"] < 10_000
    assert sum(partial["seeds_by_strategy"].values()) == partial["runs_finished"]
    assert err.startswith(f"rebalance-lab: stopped by {number.name}: {partial['runs_finished']:,} of 10,000 runs are")
    assert err.count("\n") == 1
    assert f"stopped by {number.name}" in (tmp_path / "report.html").read_text()
    compared = answer if command == "compare" else answer["comparison"]
    assert len(compared["runs"]) == 2 * partial["seeds_ranked"] == 2 * len(compared["seeds"])


def test_the_table_says_how_much_it_is_worth(tmp_path: Path) -> None:
    strategies = "classic/counts_here:Counts,classic/range"
    code, out, _ = interrupted(tmp_path, signal.SIGINT, "compare", write(tmp_path), "--strategies", strategies)
    assert code == 130
    assert "note: stopped by SIGINT: " in out
    assert "seeds finished: classic/counts_here:Counts " in out
    assert "classic/range" in out
