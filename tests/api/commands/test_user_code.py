"""Custom classes that hang, raise and print, in every command that runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.conftest import Run
from tests.harness.small_scenarios import write
from tests.paths import EXAMPLES, ROOT

ORDERS = str(EXAMPLES / "orders.json")

RAISES = """
def divide(number):
    print("about to divide")
    return 1 / number


class Raises:
    name = "raises"

    def assign(self, group):
        return divide(0)


class RaisesWhenMade(Raises):
    def __init__(self):
        raise OSError("no such port")
"""
HANGS = """
import time


class Hangs:
    name = "hangs"

    def assign(self, group):
        time.sleep(3_600)


class HangsWhenMade(Hangs):
    def __init__(self):
        time.sleep(3_600)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder, in which modules of these names are imported anew."""
    (tmp_path / "raises_here.py").write_text(RAISES)
    (tmp_path / "hangs_here.py").write_text(HANGS)
    (tmp_path / "hangs_on_import.py").write_text(f"{HANGS}\ntime.sleep(3_600)\n")
    monkeypatch.chdir(tmp_path)
    for name in ("raises_here", "hangs_here", "hangs_on_import"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr("rebalance_lab.harness.evaluate.call_timeout.LIMIT_S", 0.5)
    monkeypatch.setattr("rebalance_lab.harness.evaluate.call_timeout._stopped_before", set())
    return tmp_path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hangs_here:Hangs", "gave no answer within 0.5 s"),
        ("hangs_here:HangsWhenMade", "cannot be loaded: it is not done within 0.5 s"),
        ("hangs_on_import:Hangs", "cannot be loaded: it is not done within 0.5 s"),
    ],
)
def test_assign_ends_a_class_that_hangs(run: Run, folder: Path, name: str, said: str) -> None:
    ended = run("assign", ORDERS, "--strategy", f"classic/{name}", "--json")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[0] == f"rebalance-lab: strategy: {name} {said}"


@pytest.mark.parametrize("name", ["hangs_here:HangsWhenMade", "hangs_on_import:Hangs"])
def test_runs_are_refused_of_a_class_that_hangs_when_it_is_loaded(run: Run, folder: Path, name: str) -> None:
    file, strategy = write(folder), f"classic/{name}"
    for arguments in (
        ["compare", file, "--strategies", strategy, "--seeds", "2"],
        ["simulate", file, "--strategy", strategy],
    ):
        ended = run(*arguments)
        assert (ended.code, ended.out) == (2, "")
        assert f"{name} cannot be loaded: it is not done within" in ended.err.splitlines()[0]


def own_lines(err: str) -> bool:
    """Whether the traceback has the user's frames, and no other."""
    files = [line for line in err.splitlines() if line.startswith("  File ")]
    return bool(files) and all("raises_here.py" in line for line in files)


def test_assign_shows_the_users_frames_and_prints_below_its_line(run: Run, folder: Path) -> None:
    ended = run("assign", ORDERS, "--strategy", "classic/raises_here:Raises", "--json")
    assert (ended.code, ended.out) == (2, "")
    first, *rest = ended.err.splitlines()
    assert first == "rebalance-lab: group: Raises.assign raised ZeroDivisionError: division by zero"
    assert own_lines(ended.err)
    assert ("in assign" in ended.err, "return 1 / number" in ended.err) == (True, True)
    assert rest[-2:] == ["printed:", "about to divide"]


def test_a_constructor_that_raises_shows_its_frames(run: Run, folder: Path) -> None:
    ended = run("assign", ORDERS, "--strategy", "classic/raises_here:RaisesWhenMade")
    assert "cannot be made without arguments: OSError: no such port" in ended.err.splitlines()[0]
    assert own_lines(ended.err)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("command", ["compare", "compare in workers", "simulate", "recommend", "size", "check"])
def test_every_command_shows_them_and_json_stays_clean(folder: Path, command: str, protocol: str) -> None:
    strategy = f"{protocol}/raises_here:Raises"
    file = write(folder)
    arguments = {
        "compare": ["compare", file, "--strategies", f"{strategy},range", "--seeds", "2", "--jobs", "1"],
        "compare in workers": ["compare", file, "--strategies", f"{strategy},range", "--seeds", "2", "--jobs", "2"],
        "simulate": ["simulate", file, "--strategy", strategy],
        "recommend": ["recommend", file, "--strategies", f"{strategy},range", "--seeds", "2"],
        "size": ["size", "--target", "1k/s", "--per-consumer", "500/s", "--strategies", strategy],
        "check": ["check", strategy, "--examples", "20"],
    }[command]
    ended = subprocess.run(
        [sys.executable, "-m", "rebalance_lab", *arguments, "--json"],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not ended.stdout or json.loads(ended.stdout)
    assert "about to divide" not in ended.stdout
    assert own_lines(ended.stderr), ended.stderr
    assert ended.stderr.rstrip().endswith("about to divide"), ended.stderr
    assert ended.stderr.count("Traceback") == 1
