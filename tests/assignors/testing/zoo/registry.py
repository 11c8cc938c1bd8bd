"""What a bug says of itself: the property that has to find it, and what it promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BUGS: list[type] = []


def bug(caught_by: str, promises: tuple[str, ...] = (), **more: Any) -> Callable[[type], type]:
    """`small=False` where the bug does not show in 3 members and 4 partitions at all."""

    def add(cls: type) -> type:
        described = {"name": cls.__name__, "caught_by": caught_by, "promises": promises, "small": True} | more
        for key, value in described.items():
            setattr(cls, key, value)
        BUGS.append(cls)
        return cls

    return add
