"""Values that are made by the hundred thousand: what protocol_v1/light.py is, for this package.

Twice      the packages share messages, effects and errors, and nothing else; a request of this protocol is a subclass
           of one that is light, and so has to be light itself
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def light(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]:
    return dataclass(slots=True, kw_only=kw_only, unsafe_hash=True)
