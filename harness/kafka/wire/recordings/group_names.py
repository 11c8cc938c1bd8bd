"""Give the groups of a sequence fresh names on the broker, so that two recordings never meet there.

Given      a request's body, or an answer's
Returns    the body with the broker's names in it, or with the sequence's
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rebalance_lab.harness.conversation.sequence_file import SequenceFile

GROUP_FIELDS = ("group_id", "resource_name", "groups", "group_ids", "groups_names")


@dataclass(frozen=True, slots=True)
class GroupNames:
    on_broker: Mapping[str, str]
    """By the sequence's name."""

    def has(self, name: str) -> bool:
        return name in self.on_broker.values()

    def outward(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self.outward(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self.outward(item, key) for item in value]
        return self.on_broker.get(value, value) if key in GROUP_FIELDS and isinstance(value, str) else value

    def inward(self, value: Any) -> Any:
        """Replace names wherever they stand: error messages name groups, too."""
        if isinstance(value, dict):
            return {key: self.inward(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.inward(item) for item in value]
        if isinstance(value, str):
            for ours, theirs in self.on_broker.items():
                value = value.replace(theirs, ours)
        return value


def groups_of(sequence: SequenceFile) -> set[str]:
    """Return every group that a sequence names."""
    found: set[str] = set()

    def look(value: Any, key: str = "") -> None:
        if isinstance(value, dict):
            for name, item in value.items():
                look(item, name)
        elif isinstance(value, list):
            for item in value:
                look(item, key)
        elif isinstance(value, str) and value and key in GROUP_FIELDS:
            found.add(value)

    for step in sequence.steps:
        look(step.body)
    return found
