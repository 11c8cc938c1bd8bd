"""Order texts as java.lang.String does, which is by UTF-16 unit."""

from __future__ import annotations

from collections.abc import Iterable


def java_string_order(text: str) -> bytes:
    """Sort key of java.lang.String: by UTF-16 unit, so characters above U+FFFF come before U+E000..U+FFFF."""
    return text.encode("utf-16-be", "surrogatepass")


def in_java_order(names: Iterable[str]) -> list[str]:
    names = list(names)
    # ASCII sorts alike by code point and by UTF-16 unit, and the plain sort is far faster.
    if all(name.isascii() for name in names):
        return sorted(names)
    return sorted(names, key=java_string_order)
