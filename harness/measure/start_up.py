"""Find the end of a group's start-up, because what it takes to get going is no cost of later events.

Over       once the group has come to rest. It is stable, every started process has been called with an assignment, and
           every partition that a member wants is read. Or as soon as something happens to it: an event, or a record
           that holds a process up
Not yet    while new processes start and nothing has happened: a KIP-848 group is at rest with its first member, long
           before the others are up. Nor between the two rounds of a cooperative rebalance: in the first a stable group
           gives up the partitions that it assigns in the second
No event   what the scenario begins with, at 0 or before any process is started; an autoscaler that is switched on
In vain    a start-up that lasts five minutes counts in full, so that no strategy gains by never getting going
Start at   StartUp.feed
"""

from __future__ import annotations

from collections.abc import Callable

from rebalance_lab.harness.measure.trace import Fact

LONGEST_MS = 300_000
"""The default of max.poll.interval.ms: so long a group may wait for one of its members."""


class StartUp:
    def __init__(self) -> None:
        self.over = False
        self.at_rest = False
        """That is how it came to be over."""
        self.in_vain = False
        self._for_good = False
        """Nothing changes that any more."""
        self._began_ms: int | None = None
        self._is_stable = False
        self._known: set[str] = set()
        self._waiting: set[str] = set()
        """Started, and not called yet."""

    def feed(self, fact: Fact, all_is_read: Callable[[], bool]) -> None:
        if self._for_good:
            return
        if not self.over and self._began_ms is not None and fact["t"] - self._began_ms >= LONGEST_MS:
            self.in_vain = self._for_good = True
            return
        match fact["fact"]:
            case "event":
                self._for_good = bool(fact["t"] and self._known) and not is_switched_on(fact)
            case "process":
                self._on_process(fact["member"], fact["is"], fact["t"])
            case "callback":
                self._waiting.discard(fact["member"])
                if fact["callback"] == "onPartitionsRevoked" and fact["partitions"]:
                    self._is_stable = self.over = False
            case "group":
                self._is_stable = fact["state"] == "Stable"
                self._for_good = self.over and not self._is_stable  # for no new process: that is trouble
        if not self.over:
            self.at_rest = self._is_stable and not self._waiting and bool(self._known) and all_is_read()
            self.over = self.at_rest or self._for_good

    def _on_process(self, name: str, what: str, now_ms: int) -> None:
        if what == "started":
            self.over = self.over and name in self._known
            self._began_ms = now_ms if self._began_ms is None else self._began_ms
            self._known.add(name)
            self._waiting.add(name)
        elif what == "stalled":
            self._for_good = True
        elif what in ("killed", "closed", "failed"):
            self._waiting.discard(name)


def is_switched_on(event: Fact) -> bool:
    """Tell whether the fact is an autoscaler that has not scaled anything yet."""
    return event.get("what") == "autoscale" and "to" not in event
