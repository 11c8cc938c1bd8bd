"""A process a peer, so that a call without end can be cut off: killed, and started anew for the next cell."""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass
from multiprocessing.connection import Connection

from benchmarks.groups import Cell
from benchmarks.peers import PEERS, Unsupported


@dataclass(frozen=True, slots=True)
class Result:
    seconds: float | None
    why: str = ""
    """Why there is no figure."""


def serve(peer: str, pipe: Connection) -> None:
    """Until the other end is gone."""
    while True:
        try:
            cell = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(Result(PEERS[peer](cell)))
        except Unsupported as error:
            pipe.send(Result(None, str(error)))
        except Exception as error:  # noqa: BLE001 - a peer's failure is a line in the table, not the end of the run
            pipe.send(Result(None, f"failed: {type(error).__name__}: {str(error)[:80]}"))


class Worker:
    def __init__(self, peer: str, cut_off_s: float) -> None:
        self.peer = peer
        self.cut_off_s = cut_off_s
        self._process: multiprocessing.process.BaseProcess | None = None

    def run(self, cell: Cell) -> Result:
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=serve, args=(self.peer, theirs), daemon=True)
            self._process.start()
        self._pipe.send(cell)
        if self._pipe.poll(self.cut_off_s):
            result: Result = self._pipe.recv()
            return result
        self.stop()
        return Result(None, f"> {self.cut_off_s:.0f} s")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None
