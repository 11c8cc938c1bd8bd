"""Every hand-made fault of mutants.py is noticed by some test."""

from __future__ import annotations

import subprocess
import sys


def test_every_hand_made_fault_is_caught():
    command = [sys.executable, "-m", "tests.protocol_v2_member.mutants"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
