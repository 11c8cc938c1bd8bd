"""End a comparison that a signal interrupts with what is finished: Ctrl-C's exit code is 130, SIGTERM's 143.

Start at   sigterm_interrupts, exit_if_partial
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rebalance_lab.harness.evaluate.comparison import Comparison


class Terminated(KeyboardInterrupt):
    """Interrupt as Ctrl-C does."""

    number = int(signal.SIGTERM)


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM interrupt the runs of this context, as Ctrl-C does. Without a finished run the command ends here."""
    from rebalance_lab.harness.evaluate.runs import RunsInterrupted

    def on_sigterm(number: int, frame: FrameType | None) -> None:
        raise Terminated

    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, on_sigterm) if in_main else None
    try:
        yield
    except RunsInterrupted as nothing:
        sys.stderr.write(f"rebalance-lab: {nothing} before the first run was finished\n")
        raise typer.Exit(128 + nothing.number) from None
    except Terminated as early:
        raise typer.Exit(128 + early.number) from None
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, before)


def exit_if_partial(comparison: Comparison) -> None:
    """End the command with the signal's exit code, and say on standard error how much the answer is worth."""
    if comparison.partial is not None:
        sys.stderr.write(f"rebalance-lab: {comparison.partial.words()}\n")
        raise typer.Exit(128 + comparison.partial.number)
