"""Send hostile frames to the served coordinator and to our clients: none may end a process or stop an honest client.

In process     N requests through decoder and coordinator, and N answers through our clients' decoders; each in a child
               process whose end is seen
Over sockets   as many of each as --sockets says, on loopback, beside an honest client that is answered within a second
Failures       come with the last frame as hex, and with a file that replays it

    python -m tests.harness.kafka.wire.fuzz --frames 300000 --seed 1 --sockets 5000
    python -m tests.harness.kafka.wire.fuzz --replay FILE
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.harness.kafka.wire.fuzzing.hostile_frames import ANSWER, REQUEST
from tests.harness.kafka.wire.fuzzing.over_sockets import fuzz_clients, fuzz_server
from tests.harness.kafka.wire.fuzzing.watched_child import Ended, run_child

SOCKETS = 5_000


def fuzz(frames: int, seed: int, sockets: int, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the figures of each part; Ended says what failed."""
    found = {}
    for side in (REQUEST, ANSWER):
        if frames:
            found[f"{side}s in process"] = run_child(side, folder / side, frames=frames, seed=seed)
    if sockets:
        found["requests over sockets"] = fuzz_server(sockets, seed, folder / "server")
        found["answers over sockets"] = fuzz_clients(sockets, seed, folder / "clients")
    return found


def show(figures: dict[str, dict[str, Any]]) -> str:
    return "\n".join(
        f"{part}: {found['frames']:,} frames ({found['readable']:,} readable) in {found['seconds']:.0f} s, "
        f"{found['frames'] / max(0.1, found['seconds']):,.0f} a second; slowest {found['slowest_ms']} ms, "
        f"{found['memory_mb']} MB at most"
        for part, found in figures.items()
    )


def again(arguments: argparse.Namespace) -> str:
    return f"--frames {arguments.frames} --seed {arguments.seed} --sockets {arguments.sockets}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Send hostile frames to the served coordinator and to our clients.")
    parser.add_argument("--frames", type=int, default=20_000, help="of each direction, in process")
    parser.add_argument("--seed", type=int, help="from the clock without it")
    parser.add_argument("--sockets", type=int, default=SOCKETS, help="frames of each direction over sockets")
    parser.add_argument("--replay", type=Path, help="a file of frames that a failure left")
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = int(time.time())
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the child is stopped too
    folder = Path(tempfile.mkdtemp(prefix="wire-fuzz-"))
    print(f"seed {arguments.seed}, files in {folder}", flush=True)
    try:
        if arguments.replay is not None:
            side = arguments.replay.read_text().split(" ", 1)[0]
            print(show({"replayed": run_child(side, folder, replay=arguments.replay)}))
            return
        print(show(fuzz(arguments.frames, arguments.seed, arguments.sockets, folder)))
    except Ended as failure:
        sys.exit(f"{failure}\nor: python -m tests.harness.kafka.wire.fuzz {again(arguments)}")
    except KeyboardInterrupt:
        sys.exit("stopped")
    print("no process ended, and every honest request was answered in time")


if __name__ == "__main__":
    main()
