"""Run a child process that hostile frames may end, and say what became of it.

Seen       an end by a signal, an error of the program, anything on stderr, a frame that is never done with, more memory
           than MAX_MEMORY_MB
Last frame the child writes it into a file before it takes it, so that it is there whatever follows
Start at   run_child (the parent), main (the child)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import mmap
import resource
import subprocess
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.harness.kafka.wire.fuzzing.decoding import Answers, Failure, Requests, Target
from tests.harness.kafka.wire.fuzzing.hostile_frames import ANSWER, REQUEST, FrameSource, HostileFrame
from tests.paths import ROOT

MAX_MEMORY_MB = 300
MAX_FRAME_S = 30.0
"""A frame that takes longer is taken for a hang."""
SLOW_FRAME_S = 5.0
"""What is due by the clock runs with a frame, and other programs run beside it; a frame takes a millisecond."""
MEMORY_EVERY = 100
STATUS = Path("/proc/self/status")
PROGRESS = 20_000
KEPT = 500
"""Frames before a failure that are written down with it: the coordinator has seen them too."""
LAST_BYTES = 256 * 1024


class Ended(Exception):
    """The child failed; the message tells how, and how to replay it."""


def memory_mb() -> float:
    """Return the most that this process has had. On Linux getrusage would count what its parent had before it."""
    if STATUS.exists():
        return int(STATUS.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# The child


class LastFrame:
    """A number, and the frame as text, in a file that outlives the process."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(LAST_BYTES))
        with path.open("r+b") as file:
            self.map = mmap.mmap(file.fileno(), LAST_BYTES)

    def write(self, number: int, frame: HostileFrame) -> None:
        text = f"{number} {frame.line()}\n".encode()[:LAST_BYTES]
        self.map[: len(text)] = text


def read_last(path: Path) -> tuple[int, str]:
    text = path.read_bytes().split(b"\n", 1)[0].decode(errors="replace") if path.exists() else ""
    number, _, line = text.partition(" ")
    return (int(number), line) if number.isdecimal() else (-1, "")


def frames_of(arguments: argparse.Namespace, target: Target) -> Iterator[HostileFrame]:
    if arguments.replay is not None:
        yield from (HostileFrame.from_line(line) for line in arguments.replay.read_text().splitlines())
        return
    source = FrameSource(arguments.side, arguments.seed, target.known)
    for _ in range(arguments.frames):
        yield source.next_frame()


async def take_all(target: Target, frames: Iterable[HostileFrame], folder: Path) -> dict[str, Any]:
    last, recent = LastFrame(folder / "last"), deque[HostileFrame](maxlen=KEPT)
    began, number, readable, slowest_s = time.monotonic(), 0, 0, 0.0
    for number, frame in enumerate(frames, 1):
        last.write(number, frame)
        recent.append(frame)
        since = time.monotonic()
        try:
            readable += await target.take(frame)
            slowest_s = max(slowest_s, time.monotonic() - since)
            if slowest_s > SLOW_FRAME_S:
                raise Failure(f"the frame took {slowest_s:.1f} s, {SLOW_FRAME_S:g} s are allowed")
            if number % MEMORY_EVERY == 0 and memory_mb() > MAX_MEMORY_MB:
                raise Failure(f"{memory_mb():.0f} MB of memory, {MAX_MEMORY_MB} are allowed")
        except Exception:
            (folder / "replay").write_text("".join(f"{each.line()}\n" for each in recent))
            raise
        if number % PROGRESS == 0:
            print(f"{number:,} frames, {memory_mb():.0f} MB", flush=True)
    seconds = time.monotonic() - began
    return {
        "frames": number, "readable": readable, "seconds": round(seconds, 1), "slowest_ms": round(slowest_s * 1000),
        "memory_mb": round(memory_mb()),
    }  # fmt: skip


async def take_side(arguments: argparse.Namespace) -> dict[str, Any]:
    target: Target = await Requests.start() if arguments.side == REQUEST else Answers()
    try:
        return await take_all(target, frames_of(arguments, target), arguments.folder)
    finally:
        await target.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=(REQUEST, ANSWER))
    parser.add_argument("--frames", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--replay", type=Path)
    try:
        print(json.dumps(asyncio.run(take_side(parser.parse_args()))), flush=True)
    except Exception:  # noqa: BLE001 - whatever it is, the parent reports it
        print(traceback.format_exc(), flush=True)
        sys.exit(1)


# The parent


def run_child(side: str, folder: Path, *, frames: int = 0, seed: int = 0, replay: Path | None = None) -> dict[str, Any]:
    """Run one side to its end, print its progress, and return its figures."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.harness.kafka.wire.fuzzing.watched_child", side]
    command += ["--frames", str(frames), "--seed", str(seed), "--folder", str(folder)]
    command += ["--replay", str(replay)] if replay is not None else []
    out, err = folder / "out", folder / "err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        child = subprocess.Popen(command, cwd=ROOT, stdout=stdout, stderr=stderr)
        try:
            problem = wait_for(child, side, folder, out)
        finally:
            child.kill()
            child.wait()
    if problem is None and child.returncode < 0:
        problem = f"the process was ended by signal {-child.returncode}"
    if problem is None and child.returncode > 0:
        problem = out.read_text()[-4_000:]
    if problem is None and err.stat().st_size:
        problem = "something was printed on stderr"
    if problem is not None:
        raise Ended(describe_failure(problem, folder))
    figures: dict[str, Any] = json.loads(out.read_text().splitlines()[-1])
    return figures


def wait_for(child: subprocess.Popen[bytes], side: str, folder: Path, out: Path) -> str | None:
    """Wait for the end, or return why there is none."""
    shown, number, since = 0, -1, time.monotonic()
    while child.poll() is None:
        time.sleep(0.1)
        lines = out.read_text().splitlines()[:-1]
        for line in lines[shown:]:
            print(f"  {side}: {line}", flush=True)
        shown = len(lines)
        now = read_last(folder / "last")[0]
        if now != number:
            number, since = now, time.monotonic()
        elif time.monotonic() - since > MAX_FRAME_S:
            return f"a frame was not done with in {MAX_FRAME_S:.0f} s"
    return None


def describe_failure(problem: str, folder: Path) -> str:
    number, line = read_last(folder / "last")
    replay = folder / "replay"
    if not replay.exists():
        replay.write_text(line + "\n")
    return "\n".join(
        (
            problem,
            (folder / "err").read_text()[-4_000:],
            f"at frame {number}: {line}",
            f"replay: python -m tests.harness.kafka.wire.fuzz --replay {replay}",
        )
    )


if __name__ == "__main__":
    main()
