"""Examples are run as a reader would run them; what they print is kept beside them."""

from __future__ import annotations

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
