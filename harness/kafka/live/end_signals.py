"""End a live run soon after SIGTERM or SIGHUP, with all processes that it started.

How        a signal becomes Ctrl-C's KeyboardInterrupt, by which the run ends its consumers and its producer. A thread
           that waits for a cluster cannot be interrupted: after HARD_END_S this process kills its children and exits
Brokers    of a cluster that was started end with this process, whichever way it goes (../brokers/processes/keeper.py)
Start at   ended_by_signals
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rebalance_lab.harness.kafka.live.actors import kill_children

HARD_END_S = 3.5
SIGNALS = tuple(
    number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None
)  # fmt: skip


class EndedBySignal(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.exit_code = 128 + number


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise EndedBySignal after a signal, when everything has ended; exit hard if that takes too long."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        if received:
            return
        received.append(number)
        timer = threading.Timer(HARD_END_S, exit_hard, (number,))
        timer.daemon = True
        timer.start()
        signal.raise_signal(signal.SIGINT)

    before = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        yield
    except BaseException as error:
        if received:
            raise EndedBySignal(received[0]) from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        raise EndedBySignal(received[0])


def exit_hard(number: int) -> None:
    ended = EndedBySignal(number)
    kill_children()
    sys.stderr.write(f"rebalance-lab: {ended}\n")
    sys.stderr.flush()
    os._exit(ended.exit_code)
