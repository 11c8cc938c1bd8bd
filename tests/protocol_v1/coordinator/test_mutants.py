"""Every hand-made fault of mutants.py is noticed by some test."""

from __future__ import annotations

import subprocess
import sys


def test_every_hand_made_fault_is_caught():
    ended = subprocess.run(
        [sys.executable, "-m", "tests.protocol_v1.coordinator.mutants"], capture_output=True, text=True, timeout=600
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
