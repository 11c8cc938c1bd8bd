"""The same questions in another process, with another hash seed and in another order: `python -m` this module answers.

A set of strings is walked in an order that differs from process to process, an id() from object to object, and what a
class remembers from what it was asked before. None of it shows inside one process.
Given      a target on the command line; one JSON line per question: {"seed": .., "number": ..} or {"group": {..}}
Returns    one JSON line per answer: {"digest": .., "answer": ..}, or {"digest": null} where there is none
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from assignors.testing.answers import Broken, NotApplicable, plain
from assignors.testing.cases import case_from_json, draw_case
from assignors.testing.targets import Target, load_target


class Elsewhere:
    """One such process. A context manager; None instead of an answer when it does not answer in time."""

    def __init__(self, target: Target, hash_seed: int) -> None:
        environment = os.environ | {
            "PYTHONHASHSEED": str(hash_seed),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        command = [sys.executable, "-m", "assignors.testing.elsewhere", target.text, *target.promises]
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.buffer = b""

    def __enter__(self) -> Elsewhere:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(self, questions: Iterable[Any], within_s: float) -> list[Any] | None:
        assert self.process.stdin is not None
        lines = [json.dumps(question).encode() + b"\n" for question in questions]
        deadline = time.monotonic() + within_s
        answers = []
        try:
            for line in lines:
                self.process.stdin.write(line)
                self.process.stdin.flush()
                answer = self._line(deadline)
                if answer is None:
                    return None
                answers.append(json.loads(answer))
        except OSError:
            return None
        return answers

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


def answer(target: Target, question: Any) -> dict[str, Any]:
    from assignors.testing.search import digest

    if "number" in question:
        group = draw_case(question["seed"], question["number"]).group
    else:
        group = case_from_json(question).group
    subject = target.subject()
    try:
        with subject.watched():
            placed = subject.ask(group)
    except (Broken, NotApplicable) as error:
        return {"digest": None, "answer": str(error)}
    return {"digest": digest(placed.owner), "answer": plain(placed.answer)}


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the class prints must not mix with the answers
    target = load_target(sys.argv[1], sys.argv[2:])
    for line in sys.stdin:
        out.write(json.dumps(answer(target, json.loads(line))) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
