"""Whether anything keeps a process from being heard by the coordinator: what it is excused by, where it falls silent.

Given      facts about processes and coordinators; of one whose start is not among them nothing is known
Lossy      where messages are lost nobody can be expected to be heard, so nobody is well
Start at   Health.is_well
"""

from __future__ import annotations

from typing import TypeAlias

from rebalance_lab.harness.measure.trace import Fact

Life: TypeAlias = tuple[str, int]
"""A process by its name, and how often one of this name had been started before it."""


class Health:
    def __init__(self, *, lossy: bool = False) -> None:
        self.lossy = lossy
        self.lives: dict[str, int] = {}
        self.well_since_ms: dict[Life, int] = {}
        """Also of who was closed in good order."""
        self.troubles: dict[str, set[str]] = {}
        self.served_since_ms: int | None = 0

    def feed(self, fact: Fact) -> None:
        if fact["fact"] == "coordinator":
            self.served_since_ms = fact["t"] if fact["is"] == "up" else None
        elif fact["fact"] == "process":
            self.on_process(fact["member"], fact["is"], fact["t"])

    def on_process(self, name: str, what: str, now_ms: int) -> None:
        match what:
            case "started":
                self.lives[name] = self.lives.get(name, -1) + 1
                self.troubles[name] = set()
                self.well_since_ms[self.life_of(name)] = now_ms
            case "paused" | "cut off" | "killed" | "failed":
                self.troubles.setdefault(name, set()).add(what)
                self.well_since_ms.pop(self.life_of(name), None)
            case "resumed" | "connected":
                self.troubles[name].discard("paused" if what == "resumed" else "cut off")
                if not self.troubles[name]:
                    self.well_since_ms[self.life_of(name)] = now_ms

    def life_of(self, name: str) -> Life:
        return name, self.lives.get(name, -1)

    def is_well(self, life: Life, since_ms: int) -> bool:
        """And has been for so long, as has the coordinator."""
        if self.lossy or self.served_since_ms is None or life not in self.well_since_ms:
            return False
        return max(self.served_since_ms, self.well_since_ms[life]) <= since_ms
