"""Run all work that costs time in processes. The event loop only waits.

Given      how many processes, how many questions may wait for one, and the limits the processes hold to
Bound      when enough questions wait, or one would wait too long, it is refused at once (Busy) with a time to retry
Time       a process is killed when its question takes too long, or when the client of its question went away
Clients    take turns, and none of them has more than `most_per_client` processes at a time
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
from rebalance_lab.api.service.workers.line import Line
from rebalance_lab.api.service.workers.worker import main

Progress = Callable[[Mapping[str, Any]], None]


REST_S = 0.2


class Busy(Exception):
    """Tell that there is no process for a question; `limit` is the limit's name in the settings."""

    def __init__(self, message: str, limit: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.limit, self.retry_after_s = limit, retry_after_s


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


@dataclass(frozen=True, slots=True)
class Ask:
    """A question with the time that it may take, and the client that it is for."""

    question: Question
    time_s: float
    progress: Progress | None
    client: str
    waiting_s: float


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
        self,
        name: str,
        size: int,
        limits: Limits,
        *,
        waiting: int,
        waiting_s: float = math.inf,
        waiting_name: str = "waiting_s",
        most_per_client: float = math.inf,
        niceness: int,
    ) -> None:
        self.name, self.size, self.most_waiting, self.most_waiting_s = name, size, waiting, waiting_s
        self.limits, self.niceness, self.waiting_name = limits, niceness, waiting_name
        self.restarts = 0
        self.usual_s = 0.01
        """How long a question takes of late: what Retry-After is guessed from."""
        self.workers: set[Worker] = set()
        self._line: Line[Worker] = Line(most_per_client)
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
        return len(self.workers) - len(self._line.free)

    @property
    def waiting(self) -> int:
        return self._line.waiting

    def expect_wait_s(self, client: str) -> float:
        """Return how long the next question of a client is going to wait."""
        return self.usual_s * self._line.count_ahead(client) / min(self.size, self._line.most_per_client)

    def check_room(self, client: str, waiting_s: float) -> None:
        if self.waiting >= self.most_waiting:
            raise self.make_busy("enough wait already", "waiting", client)
        if self._line.count_ahead(client) > self.size and self.expect_wait_s(client) > waiting_s:
            raise self.make_busy(f"this would wait for more than {waiting_s:g} s", self.waiting_name, client)

    def make_busy(self, message: str, limit: str, client: str) -> Busy:
        return Busy(message, limit, max(1, min(60, math.ceil(self.expect_wait_s(client)))))

    async def run(
        self,
        question: Question,
        *,
        time_s: float,
        progress: Progress | None = None,
        client: str = "",
        waiting_s: float | None = None,
    ) -> bytes:
        """Return the answer. `waiting_s` wins over the pool's own limit on waiting for a process."""
        ask = Ask(question, time_s, progress, client, self.most_waiting_s if waiting_s is None else waiting_s)
        self.check_room(client, ask.waiting_s)
        try:
            return await self._ask(ask)
        except Died:
            return await self._ask(ask)

    async def _ask(self, ask: Ask) -> bytes:
        """Ask the next process that lives. However many were killed in their sleep, they are being replaced."""
        while True:
            with suppress(WasDead):
                return await self._once(ask)

    async def _once(self, ask: Ask) -> bytes:
        worker = await self._next(ask)
        started = time.monotonic()
        whole = is_gone = False
        try:
            async with asyncio.timeout(ask.time_s):
                answer = await worker.ask(ask.question, ask.progress)
            whole = True
            return answer
        except (Refused, Failed):
            whole = True
            raise
        except asyncio.CancelledError:
            is_gone = True
            raise
        except TimeoutError:
            raise TookTooLong from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Died from None
        finally:
            if not is_gone:  # a cancelled question does not show how long questions take
                self.usual_s += 0.1 * (time.monotonic() - started - self.usual_s)
            self._line.leave(ask.client)
            self._line.put(worker) if whole else self._replace(worker)

    async def _next(self, ask: Ask) -> Worker:
        try:
            async with asyncio.timeout(None if math.isinf(ask.waiting_s) else ask.waiting_s):
                while (worker := await self._line.take(ask.client)).reader.at_eof():
                    self._line.leave(ask.client)
                    self._replace(worker)
                return worker
        except TimeoutError:
            raise self.make_busy(f"this waited for {ask.waiting_s:g} s", self.waiting_name, ask.client) from None

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
        self._line.put(worker)


def context() -> ForkServerContext:
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["rebalance_lab.api.service.workers.work"])
    return found
