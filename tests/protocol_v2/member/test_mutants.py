"""Hand-made faults are noticed by some test: every sixth of mutants.py here, all of them in `make test-deep`."""

from __future__ import annotations

import subprocess
import sys


def test_hand_made_faults_are_caught():
    command = [sys.executable, "-m", "tests.protocol_v2.member.mutants", "6"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
