"""Hand-made faults are noticed by some test: every third of mutants.py here, all of them in `make test-deep`."""

from __future__ import annotations

import subprocess
import sys


def test_hand_made_faults_are_caught():
    ended = subprocess.run(
        [sys.executable, "-m", "tests.protocol_v1.member.mutants", "3"], capture_output=True, text=True, timeout=600
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
