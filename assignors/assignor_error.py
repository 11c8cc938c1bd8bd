"""Define what an assignor raises, and word the errors of custom code."""

from __future__ import annotations


class AssignorError(Exception):
    """Report that the assignor gives no answer for this group. For Kafka's own, `java_exception` names what Java
    throws.
    """

    def __init__(self, message: str, *, path: str = "group", java_exception: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.java_exception = java_exception


def error_line(error: BaseException) -> str:
    """Put what custom code has raised in one line, even where the error's own text cannot be had."""
    text = error_text(error)
    return f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__


def error_text(error: BaseException) -> str:
    try:
        return " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - a stranger's __str__ may raise anything, too
        return ""
