"""Ask the same questions in another process, with another hash seed and in another order; answering.py runs there.

The order of a set of strings differs from process to process, an id() from object to object. A class may also remember
what it was asked before. None of this shows inside one process.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from types import TracebackType
from typing import Any

from rebalance_lab.assignors.testing.subject.targets import Target
from rebalance_lab.assignors.testing.subprocess_oracle.line_format import from_line, to_line

ANSWERING = "rebalance_lab.assignors.testing.subprocess_oracle.answering"


class SubprocessOracle:
    """Run one such process as a context manager. `ask` returns None when the process does not answer in time."""

    def __init__(self, target: Target, hash_seed: int) -> None:
        environment = os.environ | {
            "PYTHONHASHSEED": str(hash_seed),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        # Not -m, whose machinery takes as long to import as a third of what is needed here; main() turns gc on again.
        start = f"import gc; gc.disable(); from {ANSWERING} import main; main()"
        command = [sys.executable, "-c", start, target.where, target.text, *target.promises]
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.buffer = b""

    def __enter__(self) -> SubprocessOracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(self, question: Any, within_s: float) -> Any:
        assert self.process.stdin is not None
        deadline = time.monotonic() + within_s
        try:
            self.process.stdin.write(to_line(question))
            self.process.stdin.flush()
            answer = self._line(deadline)
        except OSError:
            return None
        return None if answer is None else from_line(answer)

    def _line(self, deadline: float) -> bytes | None:
        assert self.process.stdout is not None
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not chunk:
                return None
            self.buffer += chunk
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line
