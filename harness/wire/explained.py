"""Differences between Kafka 4.3.1 and our coordinator that are known, with the reason: nothing else may differ.

An entry is a name, which fields it is about, and when it applies. Who adds one writes why we do not follow Kafka there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    name: str
    kafka: str
    """The version it was seen with."""
    field: str
    """A regular expression for the path."""
    applies: Callable[[Any, Any], bool] = lambda broker, ours: True
    """Given what the broker says and what we say."""


def both_are_texts(broker: Any, ours: Any) -> bool:
    return isinstance(broker, str) and isinstance(ours, str)


EXPLAINED: tuple[Explained, ...] = (
    # For people: clients act on the code, which is compared. Ours say the same in our own words.
    Explained(name="wording", kafka="4.3.1", field=r"\.error_message$", applies=both_are_texts),
)


def explanation_of(path: str, broker: Any, ours: Any) -> str | None:
    for entry in EXPLAINED:
        if re.search(entry.field, path) and entry.applies(broker, ours):
            return f"{entry.name}, Kafka {entry.kafka}"
    return None
