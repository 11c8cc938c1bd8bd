"""`python -m benchmarks.service`: the HTTP service beside the same call in process and beside a bare FastAPI echo.

Group      100 members, 1,000 partitions. Every body differs in a number, so that no answer comes from the cache
Latency    one connection, request after request, each beside the same call in this process: both meet the same machine
Throughput as many connections as keep it busy; the echo is FastAPI and uvicorn answering the same body, in the same run
Overload   four times what it sustains, by the clock and not by its answers: what it sheds, how long /healthz takes
           meanwhile, what its memory does, and whether it is as before afterwards
Driver     own, on asyncio sockets, in another process than the service; loopback only
--quick    a few seconds of each
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from statistics import median, quantiles

import uvicorn
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from rebalance_lab.api.answers.assign_answer import Asked, answer_document
from rebalance_lab.assignors.json_contract import decode

MEMBERS, TOPICS, PARTITIONS = 100, 10, 100
STRATEGIES = ("classic/range", "classic/sticky", "classic/cooperative-sticky", "consumer/uniform")
BUSY = 8
"""Connections that keep two cores busy."""
MOST_OPEN = 400
WATCHER = ProcessPoolExecutor(1, get_context("spawn"))
CONFIG = "[limits]\ncache_bytes = 4000000\n"
"""A small cache is full at once: what grows after that is not the cache."""


class Bodies:
    """Requests that differ in eight digits of the name of a topic without partitions."""

    def __init__(self, strategy: str) -> None:
        topics: dict[str, object] = {f"topic-{i}": {"partitions": PARTITIONS} for i in range(TOPICS)}
        names = list(topics)
        members: dict[str, dict[str, object]] = {f"member-{i}": {"topics": names} for i in range(MEMBERS)}
        group = {"topics": {**topics, "number-00000000": {"partitions": 0}}, "members": members}
        held = answer_document({"strategy": strategy, "group": group}, Asked())["assignment"]
        for name in list(members)[:-1]:  # the last one has just come
            members[name] |= {"owned": held[name], "generation": 3}
        text = json.dumps({"strategy": strategy, "group": group}).encode()
        self.before, self.after = text.split(b"00000000")
        self.numbers = count()

    def next(self) -> bytes:
        return b"%s%08d%s" % (self.before, next(self.numbers), self.after)


def in_process(body: bytes) -> bytes:
    return json.dumps(answer_document(decode(body), Asked())).encode()


@dataclass(slots=True)
class Connection:
    """HTTP/1.1 as far as a benchmark needs it: one request, one answer with a length."""

    port: int
    path: str
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None

    async def ask(self, body: bytes | None = None) -> int:
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        assert self.reader is not None
        verb = "GET" if body is None else "POST"
        head = f"{verb} {self.path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        self.writer.write(f"{head}content-length: {len(body or b'')}\r\n\r\n".encode() + (body or b""))
        answer = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(answer.partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
        await self.reader.readexactly(length)
        return int(answer[9:12])

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


@contextmanager
def served(*command: str) -> Iterator[tuple[int, int]]:
    """Its port and its process; it says its address when it listens."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().rpartition(":")[2]), process.pid
    finally:
        process.terminate()
        process.wait(30)


def echo() -> None:
    """FastAPI with nothing around it."""
    app = FastAPI()

    @app.post("/echo")
    async def answer(request: Request) -> Response:
        return Response(await request.body(), media_type="application/json")

    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    # The same parser as the service's, so that the difference is the service.
    uvicorn.Server(uvicorn.Config(app, http="h11", log_level="error")).run(sockets=[listening])


def spread(seconds: list[float]) -> str:
    cuts = quantiles(seconds, n=100)
    return f"p50 {median(seconds) * 1e3:6.2f}   p95 {cuts[94] * 1e3:6.2f}   p99 {cuts[98] * 1e3:6.2f} ms"


async def timed(work: Callable[[], Awaitable[int]]) -> tuple[float, int]:
    started = time.perf_counter()
    status = await work()
    return time.perf_counter() - started, status


async def latency(port: int, strategy: str, requests: int) -> float:
    bodies, connection = Bodies(strategy), Connection(port, "/v1/assign")
    over_http: list[float] = []
    here: list[float] = []
    for i in range(requests + 20):
        body = bodies.next()
        started = time.perf_counter()
        in_process(body)
        middle = time.perf_counter()
        took, status = await timed(lambda body=body: connection.ask(body))  # type: ignore[misc]
        assert status == 200, status
        if i >= 20:
            here.append(middle - started)
            over_http.append(took)
    connection.close()
    ratio = median(over_http) / median(here)
    print(f"  {strategy:28} in process {spread(here)}")
    print(f"  {'':28} over HTTP  {spread(over_http)}   ratio of p50 {ratio:.2f}", flush=True)
    return ratio


async def throughput(port: int, path: str, bodies: Bodies, seconds: float) -> float:
    done: Counter[int] = Counter()
    end = time.perf_counter() + seconds

    async def keep_asking() -> None:
        connection = Connection(port, path)
        while time.perf_counter() < end:
            done[await connection.ask(bodies.next())] += 1
        connection.close()

    await asyncio.gather(*(keep_asking() for _ in range(BUSY)))
    assert set(done) == {200}, done
    return done[200] / seconds


@dataclass(frozen=True, slots=True)
class Look:
    healthz_s: float
    megabytes: float


def watch(port: int, pid: int, seconds: float) -> list[Look]:
    """Of a service under load: how long /healthz takes, and how much memory it and its processes hold.

    In a process of its own: the one that drives the load is late itself.
    """
    return asyncio.run(looks(port, pid, time.perf_counter() + seconds))


async def looks(port: int, pid: int, end: float) -> list[Look]:
    connection, seen = Connection(port, "/healthz"), list[Look]()
    while time.perf_counter() < end:
        took, status = await timed(connection.ask)
        assert status == 200, status
        seen.append(Look(took, memory_mb(pid)))
        await asyncio.sleep(0.1)
    connection.close()
    return seen


def memory_mb(pid: int) -> float:
    total, waiting = 0, [pid]
    while waiting:
        one = waiting.pop()
        try:
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            for thread in Path(f"/proc/{one}/task").iterdir():
                waiting += map(int, (thread / "children").read_text().split())
        except OSError:
            continue
    return total / 1e6


async def overload(port: int, pid: int, rate: float, seconds: float) -> None:
    bodies, idle, statuses = Bodies("classic/sticky"), list[Connection](), Counter[str]()
    answered_s: list[float] = []
    watching = asyncio.get_running_loop().run_in_executor(WATCHER, watch, port, pid, seconds)
    end = time.perf_counter() + seconds
    asking: set[asyncio.Task[None]] = set()

    async def one() -> None:
        connection = idle.pop() if idle else Connection(port, "/v1/assign")
        try:
            took, status = await timed(lambda: connection.ask(bodies.next()))
            statuses[str(status)] += 1
            if status == 200:
                answered_s.append(took)
            idle.append(connection)
        except (OSError, asyncio.IncompleteReadError):
            statuses["connection lost"] += 1
            connection.close()

    started, sent = time.perf_counter(), 0
    while (now := time.perf_counter()) < end:
        due = int((now - started) * rate) - sent
        for _ in range(due):
            sent += 1
            if len(asking) >= MOST_OPEN:
                statuses["not sent"] += 1
                continue
            task = asyncio.create_task(one())
            asking.add(task)
            task.add_done_callback(asking.discard)
        await asyncio.sleep(0.002)
    await asyncio.gather(*asking)
    seen = await watching
    for connection in idle:
        connection.close()
    tell_overload(rate, seconds, sent, statuses, answered_s, seen)


def tell_overload(
    rate: float, seconds: float, sent: int, statuses: Counter[str], answered_s: list[float], seen: list[Look]
) -> None:
    healthz_s, third = [look.healthz_s for look in seen], max(1, len(seen) // 3)
    early, late = (median(look.megabytes for look in part) for part in (seen[:third], seen[-third:]))
    print(f"  asked {rate:,.0f} a second for {seconds:g} s, {sent:,} in all: {dict(statuses.most_common())}")
    print(f"  answered with 200: {statuses['200'] / seconds:,.0f} a second, {spread(answered_s)}")
    slowest = max(healthz_s) * 1e3
    print(f"  /healthz meanwhile: {spread(healthz_s)}   slowest {slowest:.1f} ms, goal 100")
    print(f"  memory of all its processes: {early:,.0f} MB in the first third, {late:,.0f} MB in the last", flush=True)


async def measure(port: int, pid: int, echo_port: int, *, requests: int, seconds: float, overload_s: float) -> None:
    print(f"Latency, {MEMBERS} members x {TOPICS * PARTITIONS:,} partitions, one at a time; goal: within 3 times")
    for strategy in STRATEGIES:
        await latency(port, strategy, requests)
    print(f"\nThroughput with {BUSY} connections, the same bodies, {os.cpu_count()} cores")
    bodies = Bodies("classic/sticky")
    plain = await throughput(echo_port, "/echo", bodies, seconds)
    print(f"  bare FastAPI echo   {plain:8,.0f} a second")
    sustained = await throughput(port, "/v1/assign", bodies, seconds)
    print(f"  /v1/assign          {sustained:8,.0f} a second ({sustained / plain:.0%} of the echo)", flush=True)
    print("\nOverload: four times that")
    await overload(port, pid, 4 * sustained, overload_s)
    await asyncio.sleep(1)
    after = await throughput(port, "/v1/assign", bodies, seconds)
    print(f"  afterwards          {after:8,.0f} a second ({after / sustained:.0%} of before)")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a few seconds of each")
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.echo:
        echo()
        return
    sizes = {"requests": 60, "seconds": 3.0, "overload_s": 6.0} if arguments.quick else {
        "requests": 500, "seconds": 10.0, "overload_s": 30.0
    }  # fmt: skip
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        config.write(CONFIG)
        config.flush()
        serve = (
            "-m",
            "rebalance_lab.api.cli",
            "serve",
            "--port",
            "0",
            "--config",
            config.name,
            "--log-level",
            "warning",
        )
        with served(*serve) as (port, pid), served("-m", "benchmarks.service", "--echo") as (echo_port, _):
            asyncio.run(measure(port, pid, echo_port, **sizes))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
