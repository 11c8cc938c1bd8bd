"""`rebalance-lab check` as people run it: exit codes, the report card, JSON, replay, one clear line for bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT


def run(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "160"}
    command = [sys.executable, "-m", "rebalance_lab.api.cli", "check", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_a_good_assignor_ends_with_exit_code_0_and_a_row_per_property() -> None:
    done = run("tests.assignors.testing.good:GoodBlocks", "--examples", "200")
    assert done.returncode == 0, done.stderr
    assert "per-topic-balanced   yes" in done.stdout
    assert "measured: holds in" in done.stdout
    assert "everything promised holds" in done.stdout


def test_a_counterexample_is_a_table_json_that_assign_accepts_and_a_command_that_shows_it_again() -> None:
    done = run("tests.assignors.testing.zoo.balance:OverSticky", "--json")
    assert done.returncode == 1, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    found = answer["counterexample"]
    assert found["property"] == "balanced"
    verdicts = {row["name"]: row["verdict"] for row in answer["properties"]}
    assert verdicts["balanced"] == "broken"
    assert verdicts["valid"] == verdicts["sticky"] == "holds"
    assert verdicts["rack-aware"] == "measured"
    assert set(verdicts.values()) <= {"holds", "broken", "measured", "not-run"}
    command = [sys.executable, "-m", "rebalance_lab.api.cli", "assign", "-s", "classic/sticky", "--json"]
    assigned = subprocess.run(
        command, cwd=ROOT, input=json.dumps(found["group"]), capture_output=True, text=True, check=True
    )
    assert json.loads(assigned.stdout)["assignment"]
    again = subprocess.run(
        found["replay"].replace("rebalance-lab", f"{sys.executable} -m rebalance_lab.api.cli", 1),
        shell=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 1
    assert "balanced is broken" in again.stdout


def test_what_is_fixed_passes_its_old_counterexample(tmp_path: Path) -> None:
    group = {
        "topics": {"t": {"partitions": 1}},
        "members": {"A": {"topics": [], "owned": {"t": [0]}}, "B": {"topics": ["t"]}},
    }
    case = tmp_path / "case.json"
    case.write_text(json.dumps({"property": "valid", "group": group}))
    example = ROOT / "examples" / "custom_assignor"
    assert run("keeper:Keeper", "--replay", str(case), cwd=example).returncode == 1
    fixed = run("keeper_fixed:Keeper", "--replay", str(case), cwd=example)
    assert (fixed.returncode, fixed.stdout) == (0, "valid holds here\n")


def test_the_example_shows_what_its_guide_says() -> None:
    example = ROOT / "examples" / "custom_assignor"
    done = run("keeper:Keeper", cwd=example)
    kept = (example / "counterexample.txt").read_text()
    start = "valid is broken"
    assert done.stdout.partition(start)[2].partition("BROKEN:")[0] == kept.partition(start)[2].partition("BROKEN:")[0]


BROKEN_MODULE = """
class NoAssign:
    name = "no-assign"
class NeedsArguments:
    def __init__(self, size): self.size = size
    def assign(self, group): return {}
class Misspelt:
    promises = ("stiky",)
    def assign(self, group): return {}
class WaivesNonsense:
    waives = {"sticky with moonlight": ""}
    def assign(self, group): return {}
"""


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("no_such_module:Class", "no_such_module cannot be imported"),
        ("broken_module:Missing", "cannot be found"),
        ("broken_module:NoAssign", "has no method assign(group)"),
        ("broken_module:NeedsArguments", "cannot be made without arguments"),
        ("broken_module:Misspelt", "'stiky' is no promise"),
        ("broken_module:WaivesNonsense", "no such shape"),
        ("raises_on_import:Class", "raised ZeroDivisionError on import"),
        ("exits_on_import:Class", "raised SystemExit on import: 3"),
        ("nonsense", "names nothing to test"),
        ("command:./no-such-program", "there is no such command"),
        ("java:/no/such.jar:com.acme.Mine", "/no/such.jar does not exist"),
        ("kafka-python:no_such_module:Class", "cannot be imported"),
    ],
)
def test_what_cannot_be_loaded_is_one_line_and_exit_code_2(target: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "broken_module.py").write_text(BROKEN_MODULE)
    (tmp_path / "raises_on_import.py").write_text("1 / 0\n")
    (tmp_path / "exits_on_import.py").write_text("import sys\nsys.exit(3)\n")
    done = run(target, cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    first, *rest = done.stderr.splitlines()
    assert says in first
    assert not rest or rest[0].startswith("Traceback in your files"), "what the module raised follows its line"
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--examples", "0"], "at least 1"),
        (["--promise", "fast"], "'fast' is no promise"),
        (["--replay", "{}"], "group"),
        (["--replay", '{"property": "nice", "group": {"topics": {}, "members": {}}}'], "'nice' is no property"),
        (["--replay", '{"group": {"topics": {}, "members": {}}, "events": [{"event": "party"}]}'], "expected an event"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_code_2(options: list[str], says: str) -> None:
    done = run("classic/range", *options)
    assert done.returncode == 2, done.stdout
    assert says in done.stderr


def test_what_a_class_prints_does_not_mix_with_the_answer(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(
        "print('imported')\nclass Loud:\n    def __init__(self):\n        print('made')\n"
        "    def assign(self, group):\n        print('asked')\n        return {}\n"
    )
    done = run("loud:Loud", "--json", "--examples", "50", cwd=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["counterexample"]["property"] == "valid"
