"""Values that are made by the hundred thousand: frozen to the type checker, and as cheap to make as any object.

Why        a frozen dataclass sets each field through object.__setattr__, which was a fifth of a simulated run: a record
           for every offset of every commit, an effect for every timer, a message for every question and answer
Like       @dataclass(frozen=True, slots=True): equal and hashed by value, and nobody may change one. Only that it is
           mypy which says so, and not the run
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def light(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]:
    return dataclass(slots=True, kw_only=kw_only, unsafe_hash=True)
