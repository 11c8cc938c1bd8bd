"""Examples are run as a reader would run them; what they print is kept beside them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_is_kept_beside_it(example: Path, tmp_path: Path) -> None:
    ended = run(sys.executable, str(example), cwd=tmp_path)
    assert ended.stderr == ""
    assert ended.stdout == example.with_suffix(".out").read_text()


def test_the_readmes_table_is_the_demos() -> None:
    readme = (ROOT / "README.md").read_text()
    shown = {line.strip() for line in (ROOT / "examples" / "side_by_side.out").read_text().splitlines()}
    table = readme.split("## What you get to see")[1].split("```")[1]
    rows = [line.strip() for line in table.splitlines() if line.strip() and "─" not in line]
    assert rows
    assert [row for row in rows if row not in shown] == []


def test_the_readmes_commands_run() -> None:
    readme = (ROOT / "README.md").read_text()
    kinds = "assign|play|compare|recommend|simulate"
    commands = re.findall(rf"^(rebalance-lab (?:{kinds}) [^#<\n]*)(?:#.*)?$", readme, flags=re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        ended = run(sys.executable, "-m", "rebalance_lab.api.cli", *shlex.split(command)[1:])
        assert (ended.returncode, ended.stderr) == (0, ""), command


def test_the_readmes_comparison_is_what_its_command_prints() -> None:
    section = (ROOT / "README.md").read_text().split("## Choose a strategy")[1]
    command = re.search(r"^rebalance-lab (compare [^#\n]*?) --html", section, flags=re.MULTILINE)
    assert command is not None
    wide = {**os.environ, "COLUMNS": "100"}
    ended = subprocess.run(
        [sys.executable, "-m", "rebalance_lab.api.cli", *shlex.split(command[1])],
        cwd=ROOT, env=wide, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    printed = {line.rstrip() for line in ended.stdout.splitlines()}
    rows = [line.rstrip() for line in section.split("```")[3].splitlines() if line.strip()]
    assert len(rows) >= 9
    assert [row for row in rows if row not in printed] == []  # else paste what it prints now


def test_the_readmes_group_is_a_good_one() -> None:
    from rebalance_lab.assignors.json_contract import decode, group_from_json

    readme = (ROOT / "README.md").read_text()
    group = group_from_json(decode(readme.split("```json")[1].split("```")[0]))
    assert group.members["c1"].owned == {"orders": [0]}
