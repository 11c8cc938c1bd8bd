"""Virtual time: a heap of what is to happen, timers that are cheap to put off, and leaps over idle time.

Order      by time, then by the order of scheduling: the same calls give the same run
Timers     one heap entry a key: a timer that is put off again and again (a session, with every heartbeat) is moved when
           its entry comes up, not each time it is set
Leaps      while a group is at rest its machines repeat themselves. Machines know time only as differences, so the whole
           rhythm can be carried over to a later moment: `leap` moves every entry that belongs to it, each by whole
           periods of its own, so that heartbeats come when they would have come
Start at   Kernel.run
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from protocol_v1.effects import TimerKey

Shift: TypeAlias = Callable[[object, tuple[Any, ...]], int | None]
"""By how much a leap moves the entry of this owner with these arguments; None leaves it where it is."""
Entry: TypeAlias = tuple[int, int, Callable[..., None], tuple[Any, ...], object]


class Kernel:
    __slots__ = ("_heap", "_number", "events", "now_ms")

    def __init__(self) -> None:
        self.now_ms = 0
        self.events = 0
        self._heap: list[Entry] = []
        self._number = 0

    def at(self, at_ms: int, action: Callable[..., None], *given: Any, rhythm: object = None) -> None:
        """`rhythm` names whose steady life the entry is a part of; without one it stays where it is in a leap."""
        self._number = number = self._number + 1
        heappush(self._heap, (at_ms, number, action, given, rhythm))

    def after(self, delay_ms: int, action: Callable[..., None], *given: Any, rhythm: object = None) -> None:
        self._number = number = self._number + 1
        heappush(self._heap, (self.now_ms + delay_ms, number, action, given, rhythm))

    def run(self, until_ms: int) -> None:
        """Everything up to and including that moment."""
        heap, events = self._heap, 0
        while heap and heap[0][0] <= until_ms:
            self.now_ms, _, action, given, _ = heappop(heap)
            events += 1
            action(*given)
        self.events += events
        self.now_ms = max(self.now_ms, until_ms)

    def next_ms(self, stays: Callable[[object, tuple[Any, ...]], bool]) -> int | None:
        """When the first entry comes that a leap is not to move."""
        return min((entry[0] for entry in self._heap if stays(entry[4], entry[3])), default=None)

    def leap(self, to_ms: int, shift: Shift) -> None:
        """Now is later. What would come too early after its shift comes at once. The caller tells the machines."""
        self._heap[:] = [self._moved(entry, shift(entry[4], entry[3]), to_ms) for entry in self._heap]  # run() holds it
        heapify(self._heap)
        self.now_ms = to_ms

    def _moved(self, entry: Entry, by_ms: int | None, to_ms: int) -> Entry:
        if by_ms is None:
            return entry
        at_ms, number, action, given, rhythm = entry
        return max(at_ms + by_ms, to_ms), number, action, given, rhythm


class Timers:
    """The timers of one machine."""

    __slots__ = ("_due", "_fire", "_kernel", "_queued")

    def __init__(self, kernel: Kernel, fire: Callable[[TimerKey], None]) -> None:
        self._kernel = kernel
        self._fire = fire
        self._due: dict[TimerKey, int] = {}
        self._queued: dict[TimerKey, int] = {}

    def set(self, key: TimerKey, delay_ms: int) -> None:
        self._due[key] = due = self._kernel.now_ms + delay_ms
        queued = self._queued.get(key)
        if queued is None or queued > due:
            self._queued[key] = due
            self._kernel.at(due, self._come_up, key, rhythm=self)

    def cancel(self, key: TimerKey) -> None:
        self._due.pop(key, None)

    def clear(self) -> None:
        self._due.clear()
        self._queued.clear()

    def _come_up(self, key: TimerKey) -> None:
        now_ms = self._kernel.now_ms
        if self._queued.get(key) != now_ms:
            return  # an earlier entry took its place
        del self._queued[key]
        due = self._due.get(key)
        if due is None:
            return
        if due > now_ms:
            self._queued[key] = due
            self._kernel.at(due, self._come_up, key, rhythm=self)
        else:
            del self._due[key]
            self._fire(key)

    def leap(self, to_ms: int, shift: Callable[[TimerKey], int | None]) -> None:
        for times in (self._due, self._queued):
            for key, at_ms in times.items():
                by_ms = shift(key)
                if by_ms is not None:
                    times[key] = max(at_ms + by_ms, to_ms)
