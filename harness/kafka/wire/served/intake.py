"""Take frames from connections, and bound what connections may keep: seconds, and bytes of all of them together.

Given      a connection's reader
Returns    one frame after the other
Errors     TimeoutError for a frame that does not arrive in time, MalformedFrame for one that is too large,
           asyncio.IncompleteReadError where the client has gone
Bytes      they count from their arrival until the answer has left. Beyond MAX_WAITING the connection with the most of
           them is cancelled, so that a few large frames do not shut out the small ones
Start at   Intake.take_frame
"""

from __future__ import annotations

import asyncio

from rebalance_lab.harness.kafka.wire.frame_check import MalformedFrame

MAX_REQUEST = 8 * 1024 * 1024
MAX_WAITING = 32 * 1024 * 1024
FRAME_S = 10.0
"""From the first byte of a frame to its last; as long a client may take to read an answer."""
IDLE_S = 600.0
"""Between two frames; Kafka's connections.max.idle.ms."""
CHUNK = 64 * 1024
SIZE_BYTES = 4


class WaitingBytes:
    """Count the bytes that wait, by the task of their connection."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.by_task: dict[asyncio.Task[None], int] = {}
        self.total = 0

    def add(self, task: asyncio.Task[None], size: int) -> None:
        self.by_task[task] = self.by_task.get(task, 0) + size
        self.total += size
        if self.total > self.limit:
            largest = max(self.by_task, key=lambda each: self.by_task[each])
            self.release(largest)
            largest.cancel()

    def release(self, task: asyncio.Task[None]) -> None:
        self.total -= self.by_task.pop(task, 0)


def note_end(task: asyncio.Task[bytes] | asyncio.Task[bytes | None]) -> None:
    """Look at how a task ended: asyncio prints the error of a task that ends after its connection."""
    if not task.cancelled():
        task.exception()


class Intake:
    def __init__(self, task: asyncio.Task[None], reader: asyncio.StreamReader, waiting: WaitingBytes) -> None:
        self.task, self.reader, self.waiting = task, reader, waiting
        self.first: asyncio.Task[bytes] | None = None
        """The first byte of the next frame: whoever waits for an answer sees here that the client has gone."""

    def next_byte(self) -> asyncio.Task[bytes]:
        """Return the first byte of the next frame as a task; it is empty where the client has gone."""
        if self.first is None:
            self.first = asyncio.create_task(self.reader.read(1))
            self.first.add_done_callback(note_end)
        return self.first

    async def take_frame(self) -> bytes:
        async with asyncio.timeout(IDLE_S):
            first = await self.next_byte()
        self.first = None
        if not first:
            raise asyncio.IncompleteReadError(b"", SIZE_BYTES)
        async with asyncio.timeout(FRAME_S):
            size = int.from_bytes(first + await self.reader.readexactly(SIZE_BYTES - 1), signed=True)
            if not 0 <= size <= MAX_REQUEST:
                raise MalformedFrame(f"a frame of {size} bytes; {MAX_REQUEST} are allowed")
            return await self.take(size)

    async def take(self, size: int) -> bytes:
        chunks: list[bytes] = []
        left = size
        while left:
            chunk = await self.reader.read(min(left, CHUNK))
            if not chunk:
                raise asyncio.IncompleteReadError(b"", left)
            self.waiting.add(self.task, len(chunk))
            chunks.append(chunk)
            left -= len(chunk)
        return b"".join(chunks)

    def close(self) -> None:
        self.waiting.release(self.task)
        if self.first is not None:
            self.first.cancel()
