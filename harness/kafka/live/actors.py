"""Control the processes of a live run, as the timeline sees them.

Facts      come from a consumer's standard output, in its own words. This module adds what a consumer cannot say itself:
           that it was killed, and where it was then
Start at   Actor.start
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rebalance_lab.harness.measure.trace import Fact, offsets_by_topic

STOP_WITHIN_S = 35.0
STOP_INTERRUPTED_WITHIN_S = 2.0
"""Where the run itself was interrupted: its results are lost anyway."""

_children: set[Child] = set()


class Child:
    """Run a Python process that is given one line, and tells in lines."""

    def __init__(self, module: str, on_line: Callable[[dict[str, Any]], None], on_end: Callable[[], None]) -> None:
        self.module, self.on_line, self.on_end = module, on_line, on_end
        self.process: asyncio.subprocess.Process | None = None
        self.reading: asyncio.Task[None] | None = None

    async def start(self, setup: Mapping[str, Any]) -> None:
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", self.module),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 22,
            start_new_session=True,
        )
        _children.add(self)
        self.say(setup)
        self.reading = asyncio.create_task(self.read(self.process))

    async def read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            if line.endswith(b"\n"):  # a killed process leaves half a line
                self.on_line(json.loads(line))
        await process.wait()
        _children.discard(self)
        self.on_end()

    @property
    def failed(self) -> bool:
        return self.process is not None and self.process.returncode not in (None, 0)

    def say(self, command: Mapping[str, Any]) -> None:
        if self.process is not None and self.process.returncode is None and self.process.stdin is not None:
            self.process.stdin.write(json.dumps(command).encode() + b"\n")

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(number)

    async def end(self, within_s: float = STOP_WITHIN_S) -> None:
        """End the process in order, then by force."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        if self.reading is not None:
            try:
                await asyncio.wait_for(asyncio.shield(self.reading), within_s)
            except TimeoutError:
                self.signal(signal.SIGKILL)
                await self.reading


def kill_children() -> None:
    """Kill every process that a live run of this process has started."""
    for child in list(_children):
        child.signal(signal.SIGKILL)


class Actor:
    def __init__(
        self,
        name: str,
        now_ms: Callable[[], int],
        tell: Callable[[Fact], None],
        ended: Callable[[Actor], None],
        wants: Callable[[str, Sequence[str], str | None], None],
    ) -> None:
        self.name, self.now_ms, self.tell, self.ended, self.wants = name, now_ms, tell, ended, wants
        self.alive = True
        self.stopping = False
        self.paused = False
        self.failed = False
        self.killed_ms: int | None = None
        self.positions: dict[tuple[str, int], int] = {}
        self.child = Child("rebalance_lab.harness.kafka.live.consumer", self.on_fact, self.on_end)

    async def start(self, setup: Mapping[str, Any]) -> None:
        await self.child.start(setup)

    # What it tells

    def on_fact(self, fact: Fact) -> None:
        match fact["fact"]:
            case "reads":
                self.note(fact["partitions"], fact["from"])
            case "stops":
                for topic, numbers in fact["partitions"].items():
                    for number in numbers:
                        self.positions.pop((topic, number), None)
            case "processed" if (fact["topic"], fact["partition"]) in self.positions:
                self.positions[fact["topic"], fact["partition"]] = fact["span"][1]
            case "process" if fact["is"] == "failed":
                self.failed = True
        self.tell(fact)

    def note(self, partitions: Mapping[str, Sequence[int]], offsets: Mapping[str, Sequence[int]]) -> None:
        for topic, numbers in partitions.items():
            self.positions |= {(topic, n): offset for n, offset in zip(numbers, offsets[topic], strict=True)}

    def on_end(self) -> None:
        at_ms = self.killed_ms if self.killed_ms is not None else self.now_ms()
        if self.killed_ms is not None:
            self.tell({"t": at_ms, "fact": "process", "member": self.name, "is": "killed"})
        elif self.child.failed and not self.failed:
            self.tell({"t": at_ms, "fact": "process", "member": self.name, "is": "failed", "why": "an exception"})
        self.stop_reading(at_ms)
        self.alive = False
        self.ended(self)

    def stop_reading(self, at_ms: int) -> None:
        if self.positions:
            partitions, reached = offsets_by_topic(self.positions)
            self.positions.clear()
            self.tell({"t": at_ms, "fact": "stops", "member": self.name, "partitions": partitions, "at": reached})

    def process(self, what: str) -> None:
        self.tell({"t": self.now_ms(), "fact": "process", "member": self.name, "is": what})

    # What is done to it

    def stop(self) -> None:
        self.stopping = True
        self.process("closing")
        self.child.signal(signal.SIGTERM)

    def kill(self) -> None:
        self.killed_ms = self.now_ms()
        self.child.signal(signal.SIGKILL)

    def pause(self) -> None:
        if self.paused:
            return
        self.paused = True
        self.process("paused")
        self.child.signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self.alive and self.paused:
            self.paused = False
            self.child.signal(signal.SIGCONT)
            self.process("resumed")

    def slow_down(self, factor: float) -> None:
        self.child.say({"slow": factor})

    def subscribe(self, topics: Sequence[str], pattern: str | None) -> None:
        self.wants(self.name, topics, pattern)
        self.child.say({"subscribe": {"topics": list(topics), "pattern": pattern}})
