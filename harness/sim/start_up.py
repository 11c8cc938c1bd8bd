"""The start-up of a group: what it takes to get going is no cost of what happens to it later.

Over       with the first event, or once the group has come to rest: it is stable, everybody who was started has been
           called with an assignment, and everything that somebody wants is read
Not yet    somebody is started who has not been there before, and there has been no event: a KIP-848 group is at rest
           with its first member, long before the others are up
Start at   StartUp.feed
"""

from __future__ import annotations

from collections.abc import Callable

from harness.sim.trace import Fact


class StartUp:
    def __init__(self) -> None:
        self.over = False
        self._for_good = False
        """There has been an event."""
        self._is_stable = False
        self._known: set[str] = set()
        self._waiting: set[str] = set()
        """Started, and not called yet."""

    def feed(self, fact: Fact, all_is_read: Callable[[], bool]) -> None:
        if self._for_good:
            return
        match fact["fact"]:
            case "event":
                self.over = self._for_good = True
            case "process":
                self._on_process(fact["member"], fact["is"])
            case "callback":
                self._waiting.discard(fact["member"])
            case "group":
                self._is_stable = fact["state"] == "Stable"
        if not self.over:
            self.over = self._is_stable and not self._waiting and bool(self._known) and all_is_read()

    def _on_process(self, name: str, what: str) -> None:
        if what == "started":
            self.over = self.over and name in self._known
            self._known.add(name)
            self._waiting.add(name)
        elif what in ("killed", "closed", "failed"):
            self._waiting.discard(name)
