"""Run each experiment in a child process: a custom class may hang, eat memory, end the process or keep state in it.

Given      a piece of work, and how long it may stay silent
Returns    what the work returned, or Ended with how it went: hung (killed) or died
Fork       the child starts with everything imported and nothing asked yet, in a few milliseconds; so each experiment
           finds the class as new. The parent never asks the assignor anything. Without fork (Windows) the work runs in
           this process: then a call that cannot be interrupted is not survived
Start at   in_child
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import select
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Send = Callable[[Any], None]
MEMORY_BYTES = 3 << 30
"""On top of what the process has: far more than any group drawn here needs."""
BEAT_S = 0.2


@dataclass(frozen=True, slots=True)
class Ended:
    """Report that the work did not come to its end. `said` is the last thing it sent before."""

    how: str
    said: Any = None


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    value: T


def in_child(
    work: Callable[[Send], T],
    *,
    quiet_s: float,
    hear: Callable[[Any], None] | None = None,
    limit_memory: bool = True,
) -> Done[T] | Ended:
    if not hasattr(os, "fork"):
        return Done(work(hear or (lambda _: None)))
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _be_the_child(work, writer, limit_memory=limit_memory)
    os.close(writer)
    try:
        return _listen(reader, pid, quiet_s, hear)
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _be_the_child(work: Callable[[Send], Any], writer: int, *, limit_memory: bool) -> None:
    code = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # what the class prints is not part of a report
            os.dup2(nowhere, stream)
        gc.freeze()  # what the parent has made will not become garbage here; a look at it would also copy its pages
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a person stops the parent, which kills the child
        if limit_memory:
            _limit_memory()

        def send(message: Any) -> None:
            _write(writer, ("said", message))

        try:
            _write(writer, ("done", work(send)))
        except BaseException:  # noqa: BLE001 - a bug of ours must reach the parent as what it is
            _write(writer, ("error", traceback.format_exc()))
        code = 0
    finally:
        os._exit(code)


def _limit_memory() -> None:
    try:
        import resource

        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, resource.RLIM_INFINITY))
    except (ImportError, OSError, ValueError):  # not Linux: there the machine's own limits have to do
        return


def _write(writer: int, message: object) -> None:
    data = pickle.dumps(message)
    data = struct.pack("!I", len(data)) + data
    while data:
        data = data[os.write(writer, data) :]


def _listen(reader: int, pid: int, quiet_s: float, hear: Callable[[Any], None] | None) -> Done[Any] | Ended:
    said: Any = None
    buffer = b""
    deadline = time.monotonic() + quiet_s
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return Ended("hung", said)
        chunk = os.read(reader, 1 << 16)
        if not chunk:
            _, status = os.waitpid(pid, 0)
            return Ended(_how_it_died(status), said)
        buffer += chunk
        while len(buffer) >= 4 and len(buffer) >= 4 + (size := struct.unpack("!I", buffer[:4])[0]):
            kind, message = pickle.loads(buffer[4 : 4 + size])
            buffer = buffer[4 + size :]
            deadline = time.monotonic() + quiet_s
            if kind == "done":
                return Done(message)
            if kind == "error":
                raise RuntimeError(f"the property kit itself failed in its child process:\n{message}")
            said = message
            if hear is not None:
                hear(message)


def _how_it_died(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"ended the process with signal {os.WTERMSIG(status)}"
    return f"ended the process with exit code {os.WEXITSTATUS(status)}"


class Beat:
    """Report now and then that the work goes on; a message costs a system call, so mostly it says nothing."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.number = 0
        self._next = 0.0

    def __call__(self, *_: object) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + BEAT_S
            self.send(self.number)
