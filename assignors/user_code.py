"""Keep what a custom class raised and printed, so that a command can show it after its one line.

Given      a stretch of work that runs custom code: `with observed() as notes`
Returns    notes: the frames of a traceback that lie in the user's files, and the text that went to standard output
Kept       the first tracebacks that differ, and the last characters printed: custom code may raise in every run
Start at   observed, keep_error
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from types import FrameType

from rebalance_lab.assignors.assignor_error import error_line

LAB = "rebalance_lab."
MOST_TRACEBACKS = 3
MOST_PRINTED = 20_000


class LastPrinted(io.RawIOBase):
    """Keep the end of what is written."""

    def __init__(self) -> None:
        self.data = b""
        self.left_out = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        given = bytes(data)  # type: ignore[call-overload]
        self.data += given
        if len(self.data) > 2 * MOST_PRINTED:
            self.left_out += len(self.data) - MOST_PRINTED
            self.data = self.data[-MOST_PRINTED:]
        return len(given)


@dataclass(slots=True, eq=False)
class Notes:
    tracebacks: list[str] = field(default_factory=list)
    printed: str = ""

    @property
    def empty(self) -> bool:
        return not self.tracebacks and not self.printed

    def text(self) -> str:
        """Return the tracebacks, and below them what was printed. Each line ends with a line feed."""
        printed = self.printed if self.printed.endswith("\n") or not self.printed else f"{self.printed}\n"
        return "".join(self.tracebacks) + (f"printed:\n{printed}" if self.tracebacks and printed else printed)


_observers: list[Notes] = []


@contextmanager
def observed() -> Iterator[Notes]:
    """Note errors and printed text of custom code while the context is open. The innermost context notes them."""
    notes, printed = Notes(), LastPrinted()
    stream = io.TextIOWrapper(io.BufferedWriter(printed), encoding="utf-8", errors="replace", write_through=True)
    _observers.append(notes)
    try:
        with redirect_stdout(stream):
            yield notes
    finally:
        _observers.remove(notes)
        if not stream.closed:
            stream.flush()
        notes.printed = printed.data.decode("utf-8", "replace")
        if printed.left_out:
            notes.printed = f"... ({printed.left_out:,} bytes before this are left out)\n{notes.printed}"


def keep_error(error: BaseException) -> None:
    """Note the user's part of this error's traceback, if a command observes."""
    if not _observers or len(_observers[-1].tracebacks) >= MOST_TRACEBACKS:
        return
    text = user_traceback(error)
    if text and text not in _observers[-1].tracebacks:
        _observers[-1].tracebacks.append(text)


def user_traceback(error: BaseException) -> str:
    """Return the traceback with the frames of the user's files alone, or nothing where no frame is the user's."""
    import sysconfig
    import traceback

    libraries = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
    frames = traceback.walk_tb(error.__traceback__)
    own = [(frame, line) for frame, line in frames if is_users(frame, ("<frozen ", *libraries))]
    if not own:
        return ""
    told = "".join(traceback.StackSummary.extract(iter(own)).format())
    return f"Traceback in your files (most recent call last):\n{told}{error_line(error)}\n"


def is_users(frame: FrameType, libraries: tuple[str, ...]) -> bool:
    ours = str(frame.f_globals.get("__name__", "")).startswith(LAB)
    return not ours and not frame.f_code.co_filename.startswith(libraries)
