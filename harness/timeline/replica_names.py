"""Track the replica name of each process: in a surge its successor takes it, under a name of its own (consumer-2~2).

Kept       replica names are kept and not read off process names: a member may be called consumer-2~2 itself
Start at   ReplicaNames.of
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from rebalance_lab.harness.scenario.presence import kind_of


class ReplicaNames:
    def __init__(self, declared: Iterable[str]) -> None:
        self._declared = frozenset(declared)
        self._successors: dict[str, tuple[str, int]] = {}
        """In whose place, and which process there."""

    def of(self, name: str) -> str:
        """Return the replica name that a process and its successors share: consumer-2, of consumer-2~3."""
        return self._successors[name][0] if name in self._successors else name

    def attempt(self, name: str) -> int:
        """Return the number of the process among those of its replica name: 1 before any surge."""
        return self._successors[name][1] if name in self._successors else 1

    def family(self, name: str) -> str:
        """Return the family of the replica: consumer, of consumer-2 and of consumer-2~3."""
        return kind_of(self.of(name))

    def succeed(self, name: str, taken: Container[str]) -> str:
        """Return the name of the process that takes the replica name next."""
        place, number = self.of(name), self.attempt(name) + 1
        while (successor := f"{place}~{number}") in taken or successor in self._declared:
            number += 1
        self._successors[successor] = place, number
        return successor
