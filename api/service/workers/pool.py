"""Run all work that costs time in processes. The event loop only waits.

Given      how many processes, how many questions may wait for one, and the limits the processes hold to
Bound      when enough questions wait, or one would wait too long, it is refused at once (Busy) with a time to retry
Time       a process is killed when its question takes too long, or when the client of its question went away
Death      a process that dies with a question (kill -9, out of memory) is replaced, and the question asked once more
Start at   Pool.run
"""

from __future__ import annotations

import asyncio
import json
import math
import multiprocessing
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Any

from rebalance_lab.api.service.service_settings import Limits
from rebalance_lab.api.service.workers.frames import PREFIX, Kind, frame, frame_json
from rebalance_lab.api.service.workers.worker import main

Progress = Callable[[Mapping[str, Any]], None]


REST_S = 0.2


class Busy(Exception):
    def __init__(self, retry_after_s: int) -> None:
        super().__init__("enough wait already")
        self.retry_after_s = retry_after_s


class Refused(Exception):
    """Report that the question is wrong: where, what, and which limit if it is one."""

    def __init__(self, path: str, message: str, limit: str | None) -> None:
        super().__init__(message)
        self.path, self.message, self.limit = path, message, limit


class TookTooLong(Exception):
    pass


class Died(Exception):
    """Report that the process is gone, and so is the one that tried again."""


class WasDead(Exception):
    """Tell that a process died before it knew what was asked: the question is not to blame."""


class Failed(Exception):
    """Report a bug of ours; the text is its trace."""


@dataclass(frozen=True, slots=True)
class Question:
    operation: str
    body: bytes
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Worker:
    process: ForkServerProcess
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, question: Question, progress: Progress | None) -> bytes:
        head = {"operation": question.operation, "options": dict(question.options)}
        self.writer.write(frame_json(Kind.HEAD, head) + frame(Kind.BODY, question.body))
        await self.taken()
        while True:
            kind, payload = await self.receive()
            if kind is Kind.DONE:
                return payload
            told = json.loads(payload)
            if kind is Kind.REFUSED:
                raise Refused(told["path"], told["message"], told["limit"])
            if kind is Kind.FAILED:
                raise Failed(told["trace"])
            if progress is not None:
                progress(told)

    async def taken(self) -> None:
        try:
            await self.receive()
        except (asyncio.IncompleteReadError, ConnectionError):
            raise WasDead from None

    async def receive(self) -> tuple[Kind, bytes]:
        kind, length = PREFIX.unpack(await self.reader.readexactly(PREFIX.size))
        return Kind(kind), await self.reader.readexactly(length)

    def kill(self) -> None:
        self.writer.close()
        self.process.kill()


class Pool:
    def __init__(
        self, name: str, size: int, limits: Limits, *, waiting: int, waiting_s: float = math.inf, niceness: int
    ) -> None:
        self.name, self.size, self.most_waiting, self.most_waiting_s = name, size, waiting, waiting_s
        self.limits, self.niceness = limits, niceness
        self.waiting = 0
        self.restarts = 0
        self.usual_s = 0.01
        """How long a question takes of late: what Retry-After is guessed from."""
        self.workers: set[Worker] = set()
        self._idle: asyncio.Queue[Worker] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = self._stopped = False
        self._no_new_one = False
        """The last process that was to take another's place did not come up."""

    async def start(self) -> None:
        await asyncio.gather(*(self._add() for _ in range(self.size)))
        self._started = True

    async def stop(self) -> None:
        self._stopped = True
        for task in self._tasks:
            task.cancel()
        for worker in self.workers:
            worker.kill()
        for worker in self.workers:
            await asyncio.to_thread(worker.process.join, 5)
        self.workers.clear()

    @property
    def ready(self) -> bool:
        """Tell whether the pool can work, also in the moment in which its only process is replaced. A question then
        waits for milliseconds, and a load balancer must not take the service out for that.
        """
        return self._started and not self._stopped and (bool(self.workers) or not self._no_new_one)

    @property
    def busy(self) -> int:
        return len(self.workers) - self._idle.qsize()

    def check_room(self) -> None:
        wait_s = self.usual_s * self.waiting / self.size
        if self.waiting >= self.most_waiting or (self.waiting > self.size and wait_s > self.most_waiting_s):
            raise Busy(max(1, min(60, math.ceil(wait_s))))

    async def run(self, question: Question, *, time_s: float, progress: Progress | None = None) -> bytes:
        self.check_room()
        try:
            return await self._ask(question, time_s, progress)
        except Died:
            return await self._ask(question, time_s, progress)

    async def _ask(self, question: Question, time_s: float, progress: Progress | None) -> bytes:
        """Ask the next process that lives. However many were killed in their sleep, they are being replaced."""
        while True:
            with suppress(WasDead):
                return await self._once(question, time_s, progress)

    async def _once(self, question: Question, time_s: float, progress: Progress | None) -> bytes:
        worker = await self._next()
        started = time.monotonic()
        whole = False
        try:
            async with asyncio.timeout(time_s):
                answer = await worker.ask(question, progress)
            whole = True
            return answer
        except (Refused, Failed):
            whole = True
            raise
        except TimeoutError:
            raise TookTooLong from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Died from None
        finally:
            self.usual_s += 0.1 * (time.monotonic() - started - self.usual_s)
            self._give_back(worker) if whole else self._replace(worker)

    async def _next(self) -> Worker:
        self.waiting += 1
        try:
            while (worker := await self._idle.get()).reader.at_eof():
                self._replace(worker)
            return worker
        finally:
            self.waiting -= 1

    def _give_back(self, worker: Worker) -> None:
        self._idle.put_nowait(worker)

    def _replace(self, worker: Worker) -> None:
        self.workers.discard(worker)
        worker.kill()
        self.restarts += 1
        if not self._stopped:
            task = asyncio.get_running_loop().create_task(self._refill())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _refill(self) -> None:
        """Start missing processes again: one that dies while it starts must not leave the pool smaller for good."""
        while True:
            try:
                return await self._add()
            except (OSError, EOFError):  # asyncio's IncompleteReadError is an EOFError
                self._no_new_one = True
            await asyncio.sleep(REST_S)

    async def _add(self) -> None:
        """Start a process, forked from one that has everything imported and nothing else: it is there in
        milliseconds.
        """
        ours, theirs = socket.socketpair()
        process = context().Process(target=main, args=(theirs, self.limits, self.niceness), daemon=True)
        await asyncio.to_thread(process.start)
        theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 20)
        worker = Worker(process, reader, writer)
        await worker.receive()
        self.workers.add(worker)
        self._no_new_one = False
        self._idle.put_nowait(worker)


def context() -> ForkServerContext:
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["rebalance_lab.api.service.workers.work"])
    return found
