"""Make dataclasses that are frozen for the type checker only, so that creating one costs no more than any object.

Why        a frozen dataclass sets each field through object.__setattr__, which was a fifth of a simulated run. A run
           creates a record for each committed offset, an effect for each timer, and every request and response
Like       @dataclass(frozen=True, slots=True): equal and hashed by value, and no code may change one. mypy checks that,
           the running program does not
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def fast_dataclass(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]:
    return dataclass(slots=True, kw_only=kw_only, unsafe_hash=True)
