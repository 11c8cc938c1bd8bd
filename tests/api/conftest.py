"""Runs the command line in this process: as fast as a call, with what a shell would see."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from rebalance_lab.api.cli import main


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str, stdin: str | bytes = "") -> Ended:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "argv", ["rebalance-lab", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        monkeypatch.setattr(sys, "path", list(sys.path))
        code: Any = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return call
