"""Run OS processes, and keep the folder they write to, so that neither outlives the Python process that owns them.

Given      a command and a run folder
Returns    a KeptProcess to signal and to wait for
Invariant  when the owner ends, even by kill -9, its processes are killed and its run folder goes (see keeper.py).
           Should the keepers have been killed with it, the next run sweeps the folder away
Start at   RunFolder, KeptProcess
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError
from rebalance_lab.harness.kafka.brokers.start_failures import last_words

if TYPE_CHECKING:
    from collections.abc import Sequence

PREFIX = "rebalance-lab-"
LOCK = "owner.lock"
FROZEN_WITHIN_S = 10.0
KEEPER = Path(__file__).with_name("keeper.py")


class RunFolder:
    """Keep a temp folder that is named after its owner's process id and locked by its owner.

    The lock, not the process id, tells a sweeper whether the owner lives: two process namespaces may share a /tmp.
    """

    def __init__(self, kind: str) -> None:
        sweep()
        self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}-{os.getpid()}-"))
        # Locked before it has its name: a sweeper passes over folders without a lock file.
        unnamed = self.path / (LOCK + ".new")
        self._lock = unnamed.open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        unnamed.rename(self.path / LOCK)

    def remove(self) -> None:
        self._lock.close()
        shutil.rmtree(self.path, ignore_errors=True)


def sweep() -> None:
    """Remove the run folders of owners that are gone."""
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
        # Leave alone a folder of another owner, or one that vanishes meanwhile.
        with suppress(OSError), lock.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)


class KeptProcess:
    """Run one command under its keeper."""

    def __init__(self, command: Sequence[str], *, folder: Path, log: Path) -> None:
        self.log = log
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(KEEPER), str(folder), str(log), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C in the terminal is for the owner, who then closes in order
        )
        try:
            self.pid = self._read_pid(command[0])
        except BaseException:  # a signal of the owner's may come right here, before any code holds this object
            self._close_pipes()
            self._keeper.wait()
            raise

    def _read_pid(self, program: str) -> int:
        assert self._keeper.stdout is not None
        first_line = self._keeper.stdout.readline()
        if not first_line:
            raise BrokerError(f"could not run {program}")
        return int(first_line)

    def _close_pipes(self) -> None:
        for pipe in (self._keeper.stdin, self._keeper.stdout):
            if pipe is not None:
                pipe.close()

    @property
    def alive(self) -> bool:
        return self._keeper.poll() is None

    def signal(self, number: signal.Signals) -> None:
        if self.alive:
            with suppress(ProcessLookupError):  # it ended just now
                os.kill(self.pid, number)

    def freeze(self) -> None:
        """Send SIGSTOP, and return when it has stopped: the signal alone only asks, and a busy computer takes a
        while.
        """
        self.signal(signal.SIGSTOP)
        deadline = time.monotonic() + FROZEN_WITHIN_S
        while self.alive and not _is_stopped(self.pid):
            if time.monotonic() > deadline:
                raise BrokerError(f"process {self.pid} does not stop")
            time.sleep(0.01)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    def wait(self, timeout_s: float) -> bool:
        """Wait, and tell whether the process has ended within this time."""
        try:
            self._keeper.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self._keeper.wait()
        self._close_pipes()

    def last_words(self) -> str:
        return last_words(self.log.read_text(errors="replace"))


def _is_stopped(pid: int) -> bool:
    tasks = Path(f"/proc/{pid}/task")
    try:
        if tasks.is_dir():
            # Every thread, each by itself; the state follows the name, which may itself hold parentheses.
            states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks.iterdir()]
        else:
            listed = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True)
            states = listed.stdout.split()
    except OSError:
        return False  # a thread ended while we looked; look again
    return all(state.startswith("T") for state in states)
