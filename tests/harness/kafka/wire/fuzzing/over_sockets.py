"""Send hostile frames over loopback sockets: to the served coordinator beside an honest client, and to our clients.

Peers      the server, or the client, is a child process (socket_child.py); the hostile side runs here
Habits     a hostile client waits for its answer, reads nothing, goes at once, or stops in the middle of a frame
Asserted   the child does not end and prints nothing, keeps within its memory, and names no failure. The honest client
           is answered within a second throughout
Start at   fuzz_server, fuzz_clients
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from rebalance_lab.harness.kafka.wire.addresses import WireError
from rebalance_lab.harness.kafka.wire.broker_connection import framed
from rebalance_lab.harness.kafka.wire.cluster import Cluster
from tests.harness.kafka.wire.fuzzing.hostile_frames import ANSWER, REQUEST, FrameSource, HostileFrame
from tests.harness.kafka.wire.fuzzing.watched_child import KEPT, MAX_MEMORY_MB, Ended
from tests.paths import ROOT

HOST = "127.0.0.1"
CONNECTIONS = 12
HONEST_WITHIN_S = 1.0
HONEST_EVERY_S = 0.02
HOSTILE_PATIENCE_S = 0.05
"""How long a hostile client waits for an answer: parked requests have none."""
FRAMES_A_CONNECTION = 20
END_S, MAX_FRAME_S = 30.0, 0.1
GONE_S = 1.0
"""By then the end of a process that accepts no connections is known."""


class SocketChild:
    """The other side: a process that is told to end by closing its input, and then gives its figures."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.recent = folder, deque[HostileFrame](maxlen=KEPT)
        self.err = (folder / "err").open("w+b")
        command = [sys.executable, "-m", "tests.harness.kafka.wire.fuzzing.socket_child", *arguments]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.err, text=True
        )

    def read_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def check(self) -> None:
        if self.process.poll() is not None:
            raise Ended(self.describe(f"the process ended with {self.process.returncode}"))

    def finish(self, within_s: float = END_S) -> dict[str, Any]:
        try:
            out, _ = self.process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            raise Ended(self.describe(f"the process did not end within {within_s:.0f} s")) from None
        if self.process.returncode or not out:
            raise Ended(self.describe(f"the process ended with {self.process.returncode}"))
        if self.err.seek(0, 2):
            raise Ended(self.describe("something was printed on stderr"))
        found: dict[str, Any] = json.loads(out.splitlines()[-1])
        if found["failures"]:
            raise Ended(self.describe("\n".join(found["failures"])))
        if found["memory_mb"] > MAX_MEMORY_MB:
            raise Ended(self.describe(f"{found['memory_mb']} MB of memory, {MAX_MEMORY_MB} are allowed"))
        return found

    def describe(self, problem: str) -> str:
        self.err.seek(0)
        replay = self.folder / "replay"
        replay.write_text("".join(f"{each.line()}\n" for each in self.recent))
        return "\n".join(
            (
                problem,
                self.err.read().decode(errors="replace")[-4_000:],
                f"the last frame: {self.recent[-1].line() if self.recent else 'none'}",
                f"replay the last {len(self.recent)}: python -m tests.harness.kafka.wire.fuzz --replay {replay}",
            )
        )

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.err):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


# Hostile clients


def fuzz_server(frames: int, seed: int, folder: Path) -> dict[str, Any]:
    child = SocketChild(folder, "server")
    try:
        port = int(child.read_line())
        began = time.monotonic()
        with honest_client(port) as honest:
            answered = asyncio.run(attack_server(child, FrameSource(REQUEST, seed), Random(seed), port, frames))
        if honest.problem is not None:
            raise Ended(child.describe(f"the honest client: {honest.problem}"))
        seconds = round(time.monotonic() - began, 1)
        return {
            "frames": frames, "readable": answered, "seconds": seconds, "slowest_ms": round(honest.slowest_s * 1000),
            **child.finish(),
        }  # fmt: skip
    finally:
        child.close()


class HonestClient:
    """Ask for metadata again and again over one connection, in a thread of its own."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.slowest_s = 0.0
        self.problem: str | None = None
        self.stop = threading.Event()

    def run(self) -> None:
        try:
            asyncio.run(self.ask_on())
        except WireError as error:
            self.problem = str(error)

    async def ask_on(self) -> None:
        cluster = await Cluster.open([(HOST, self.port)], "honest", HONEST_WITHIN_S)
        try:
            while not self.stop.is_set():
                began = time.monotonic()
                await cluster.refresh()
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                await asyncio.sleep(HONEST_EVERY_S)
        finally:
            await cluster.close()


@contextmanager
def honest_client(port: int) -> Iterator[HonestClient]:
    client = HonestClient(port)
    thread = threading.Thread(target=client.run)
    thread.start()
    try:
        yield client
    finally:
        client.stop.set()
        thread.join()


async def attack_server(child: SocketChild, source: FrameSource, random: Random, port: int, frames: int) -> int:
    """Return how many frames were answered."""
    left, answered = frames, 0

    async def attack() -> None:
        nonlocal left, answered
        while left > 0:
            child.check()
            try:
                reader, writer = await asyncio.open_connection(HOST, port)
            except OSError:
                await asyncio.sleep(GONE_S)
                child.check()
                raise
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                for _ in range(random.randrange(1, FRAMES_A_CONNECTION)):
                    if left <= 0:
                        break
                    left -= 1
                    frame = source.next_frame()
                    child.recent.append(frame)
                    if not await say(reader, writer, frame.data, random):
                        break
                    answered += 1
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    await asyncio.gather(*(attack() for _ in range(CONNECTIONS)))
    return answered


async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes, random: Random) -> bool:
    """Send a frame, and return whether it was answered."""
    habit = random.random()
    if habit < 0.05:
        writer.write(framed(data)[: random.randrange(len(data) + 4)])
        await asyncio.sleep(HOSTILE_PATIENCE_S)
        return False
    writer.write(framed(data))
    if habit < 0.1:
        return False
    if habit < 0.15:
        return True
    try:
        async with asyncio.timeout(HOSTILE_PATIENCE_S):
            await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
    except TimeoutError:
        return False
    return True


# A hostile broker


def fuzz_clients(frames: int, seed: int, folder: Path) -> dict[str, Any]:
    return asyncio.run(attack_clients(frames, seed, folder))


async def attack_clients(frames: int, seed: int, folder: Path) -> dict[str, Any]:
    source, child = FrameSource(ANSWER, seed), None

    async def hostile(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer every request with the next answer, which says itself what the client is to take it for."""
        assert child is not None
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                request = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
                key, version = int.from_bytes(request[:2]), int.from_bytes(request[2:4])
                frame = source.frame_of(key, version)
                child.recent.append(frame)
                writer.write(framed(request[4:8] + frame.data[4:]))
        writer.close()

    listener = await asyncio.start_server(hostile, HOST, 0)
    port = listener.sockets[0].getsockname()[1]
    child = SocketChild(folder, "clients", "--port", str(port), "--requests", str(frames), "--seed", str(seed))
    try:
        began = time.monotonic()
        found = await asyncio.to_thread(child.finish, END_S + frames * MAX_FRAME_S)
        return {"frames": frames, "seconds": round(time.monotonic() - began, 1), **found}
    finally:
        child.close()
        listener.close()
