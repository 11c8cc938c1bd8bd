"""Every hand-made fault of mutants.py is noticed by the tests."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.protocol_v2.coordinator.mutants import MUTANTS, ROOT


@pytest.mark.parametrize("name", MUTANTS)
def test_the_fault_is_noticed(name):
    command = [sys.executable, "-m", "tests.protocol_v2.coordinator.mutants", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1, f"survived: {done.stdout}{done.stderr}"
    assert done.stdout, "ended in another way"
