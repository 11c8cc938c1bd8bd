"""Share what the commands do at a terminal: read input, print ranges, and report bad input as one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


class BadInput(Exception):
    """Report bad input as one line on standard error; the process ends with exit code 2."""


MOST_BYTES = 500_000_000
"""Of any input: what has no end, such as /dev/zero, is to end here and not when the memory does."""


def read_input(file: str) -> bytes:
    """Return a file's bytes, or standard input for `-`."""
    if file == "-" and (sys.stdin is None or sys.stdin.isatty()):
        raise BadInput("no input: name a FILE, or pipe JSON into the command")
    if not file:  # which pathlib takes for the folder that one is in
        raise BadInput("no input: the name of the file is empty")
    try:
        with sys.stdin.buffer if file == "-" else Path(file).open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror or error}") from error
    if len(data) > MOST_BYTES:
        raise BadInput(f"{file}: has more than {MOST_BYTES // 1_000_000} MB")
    return data


def print_json(value: Any) -> None:
    """Print JSON, escaped where the output's encoding lacks a name's letters: a question mark would be another name."""
    import json

    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value)
    sys.stdout.write(f"{text}\n")


_asides: list[str] = []


@contextmanager
def aside() -> Iterator[None]:
    """Keep apart what custom code prints and raises: it is no part of the answer, and follows on standard error."""
    from rebalance_lab.assignors.user_code import observed

    notes = None
    try:
        with observed() as notes:
            yield
    finally:
        if notes is not None:
            put_aside(notes.text())


def put_aside(text: str) -> None:
    """Show this text on standard error at the end of the command, once."""
    if text and text not in _asides:
        _asides.append(text)


def show_asides() -> None:
    while _asides:
        sys.stderr.write("".join(map(harmless, _asides.pop(0).splitlines(keepends=True))))


def console() -> Console:
    """Return a console that prints text as it is: names come from files, and `[red]` or `:warning:` in one is no order
    to rich.
    """
    from rich.console import Console
    from rich.segment import Segment

    class Plain(Console):
        def render(self, *given: Any) -> Iterator[Segment]:
            """Keep rich's own styles and moves of the cursor; the text in between is from a file."""
            for part in super().render(*given):
                yield part if part.control or part.text.isprintable() else Segment(harmless(part.text), part.style)

        def on_broken_pipe(self) -> None:
            """Avoid rich's exit code 1, which here means that the answer is no."""
            raise BrokenPipeError

    return Plain(highlight=False, soft_wrap=False, markup=False, emoji=False)


HARMLESS = {code: "\ufffd" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"}
HARMLESS |= dict.fromkeys((0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "")


def harmless(text: str) -> str:
    """Replace what clears a screen, renames a window or turns a line round: a name may hold it."""
    return text.translate(HARMLESS)


def headline(strong: str, rest: str = "", style: str = "bold") -> Text:
    """Return a line whose beginning stands out."""
    from rich.text import Text

    return Text.assemble((strong, style), rest)


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """Show a bar on a terminal only; a pipe sees the answer and nothing else. It begins with the first progress,
    because a bar has a thread, and workers are better forked without one.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task(what, total=total)

    def tell(done: int) -> None:
        bar.start()
        bar.update(task, completed=done)

    try:
        yield tell
    finally:
        bar.stop()


def check_place(file: str | None, given: str | None = None) -> None:
    """Check the place before the work: minutes of runs should not end in a missing folder, nor in what was `given`."""
    if file is None:
        return
    try:
        why = why_not_there(file)
        if not why and given is not None and Path(given).exists() and Path(file).exists():
            why = "it is the input" if Path(given).samefile(file) else None
        if why:
            raise BadInput(f"{file or 'the file'}: cannot be written: {why}")
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror or error}") from error


def why_not_there(file: str) -> str | None:
    place = Path(file)
    if file in ("", "-"):  # `-` is standard input elsewhere: no user wants a file of that name
        return "name a file"
    if place.is_dir():
        return "it is a folder"
    if not place.absolute().parent.is_dir():
        return "no such folder"
    if not os.access(place if place.exists() else place.absolute().parent, os.W_OK):
        return "permission denied"
    return None


def write_file(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror or error}") from error


def ranges(numbers: Iterable[int]) -> str:
    """Print `0-3 7 9-10`: a share of hundreds of partitions on one line."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def share_text(share: dict[str, Sequence[int]] | Any) -> str:
    """Print a member's partitions as people write them: `orders 0-3, payments 1`."""
    return ", ".join(f"{topic} {ranges(partitions)}" for topic, partitions in share.items() if partitions)
