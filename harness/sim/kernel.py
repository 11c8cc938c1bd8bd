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

from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from protocol_v1.effects import TimerKey

Shift: TypeAlias = Callable[[TimerKey], int | None]
"""By how much a leap moves the timer of this key; None leaves it where it is."""
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

    def next_ms(self, timers: Timers, stays: Callable[[TimerKey], bool]) -> int | None:
        """When the first entry comes that a leap is not to move: one without a rhythm, or one of these timers."""
        first_ms: int | None = None
        for at_ms, _, _, given, rhythm in self._heap:
            if first_ms is not None and at_ms >= first_ms:
                continue
            if rhythm is None or (rhythm is timers and given[0].counts_at(at_ms) and stays(given[0].key)):
                first_ms = at_ms
        return first_ms

    def leap(self, to_ms: int, shifts: Mapping[object, Shift | None]) -> None:
        """Now is later. What would come too early after its shift comes at once. The caller tells the machines.

        `shifts` has the timers of everybody who lives, with None for those of which nothing moves; they are to leap
        after this. Other entries of timers are forgotten, as they mean nothing; what is no timer (a message on its way)
        keeps its distance from now.
        """
        ahead_ms, moved = to_ms - self.now_ms, []
        for entry in self._heap:
            at_ms, number, action, given, rhythm = entry
            if rhythm is None:
                moved.append(entry)
                continue
            if rhythm in shifts:
                timer: Timer = given[0]
                if not timer.counts_at(at_ms):
                    continue
                shift = shifts[rhythm]
                by_ms = shift(timer.key) if shift is not None else 0
            elif isinstance(rhythm, Timers):
                continue
            else:
                by_ms = ahead_ms
            if by_ms is not None and (by_ms or at_ms < to_ms):
                later_ms = at_ms + by_ms
                entry = (later_ms if later_ms > to_ms else to_ms, number, action, given, rhythm)
            moved.append(entry)
        heapify(moved)
        self._heap[:] = moved  # run() holds it
        self.now_ms = to_ms


class Timer:
    __slots__ = ("due_ms", "key", "queued_ms")

    def __init__(self, key: TimerKey) -> None:
        self.key = key
        self.due_ms: int | None = None
        """None: cancelled."""
        self.queued_ms: int | None = None
        """When its entry comes up, which may be before it is due. Other entries of it mean nothing."""

    def counts_at(self, at_ms: int) -> bool:
        """Whether its entry of that moment is to be carried along."""
        return self.queued_ms == at_ms and self.due_ms is not None


class Timers:
    """The timers of one machine."""

    __slots__ = ("_come_up", "_fire", "_kernel", "_timers")

    def __init__(self, kernel: Kernel, fire: Callable[[TimerKey], None]) -> None:
        self._kernel = kernel
        self._fire = fire
        self._timers: dict[TimerKey, Timer] = {}
        self._come_up = self._comes_up

    def set(self, key: TimerKey, delay_ms: int) -> None:
        timer = self._timers.get(key)
        if timer is None:
            timer = self._timers[key] = Timer(key)
        timer.due_ms = due_ms = self._kernel.now_ms + delay_ms
        queued_ms = timer.queued_ms
        if queued_ms is None or queued_ms > due_ms:
            timer.queued_ms = due_ms
            self._kernel.at(due_ms, self._come_up, timer, rhythm=self)

    def put_off(self, key: TimerKey, until_ms: int) -> None:
        """Not to go off before then."""
        timer = self._timers.get(key)
        if timer is None or timer.due_ms is None or timer.due_ms < until_ms:
            self.set(key, until_ms - self._kernel.now_ms)

    def runs(self, key: TimerKey) -> bool:
        timer = self._timers.get(key)
        return timer is not None and timer.due_ms is not None

    def cancel(self, key: TimerKey) -> None:
        timer = self._timers.get(key)
        if timer is not None:
            timer.due_ms = None

    def clear(self) -> None:
        for timer in self._timers.values():
            timer.due_ms = timer.queued_ms = None

    def _comes_up(self, timer: Timer) -> None:
        now_ms, due_ms = self._kernel.now_ms, timer.due_ms
        if timer.queued_ms != now_ms:
            return  # an earlier entry took its place
        if due_ms is not None and due_ms > now_ms:
            timer.queued_ms = due_ms
            self._kernel.at(due_ms, self._come_up, timer, rhythm=self)
            return
        timer.due_ms = timer.queued_ms = None
        if due_ms is not None:
            self._fire(timer.key)

    def leap(self, to_ms: int, shift: Shift) -> None:
        """After the kernel, which has forgotten the entries of those that are cancelled."""
        for key, timer in self._timers.items():
            due_ms, queued_ms = timer.due_ms, timer.queued_ms
            if due_ms is None or queued_ms is None:
                timer.queued_ms = None
                continue
            by_ms = shift(key)
            if by_ms is not None:
                timer.due_ms = max(due_ms + by_ms, to_ms)
                timer.queued_ms = max(queued_ms + by_ms, to_ms)
