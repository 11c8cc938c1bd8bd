"""Keep virtual time: a heap of scheduled events, timers that are cheap to put off, and leaps over idle time.

Order      by time, then by the order of scheduling: the same calls give the same run
Timers     one heap entry a key. A timer that is put off again and again (a session, with every heartbeat) is moved when
           its entry comes up, not each time it is set
Leaps      while a group is at rest, its machines repeat themselves. Machines know time only as differences, so `leap`
           can move all their entries to a later moment. It moves each by whole periods of its own, so that heartbeats
           come when they would have come
Start at   Kernel.run
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Any, TypeAlias

from rebalance_lab.protocol_v1.common.effects import TimerKey

Shift: TypeAlias = Callable[[TimerKey], int | None]
"""By how much a leap moves the timer of this key; None leaves it where it is."""
Entry: TypeAlias = tuple[Callable[..., None], tuple[Any, ...], object]
"""What to do, with what, and the rhythm that it is a part of."""
ORDER_BITS = 32
LAST_NUMBER = (1 << ORDER_BITS) - 1


class Kernel:
    __slots__ = ("_end", "_entries", "_forgotten", "_heap", "_number", "now_ms")

    def __init__(self) -> None:
        self.now_ms = 0
        self._heap: list[int] = []
        """When, and in which order of scheduling, in one number: they are compared all the time."""
        self._entries: dict[int, Entry] = {}
        self._number = 0
        self._forgotten = 0
        """Entries that a leap left behind."""
        self._end = 0
        """What `run` does not come to."""

    @property
    def events(self) -> int:
        """Return how many events have happened."""
        return self._number - self._forgotten - len(self._entries)

    def at(self, at_ms: int, action: Callable[..., None], *given: Any, rhythm: object = None) -> None:
        """Schedule an entry; `rhythm` names whose steady life it is a part of, and without one it stays where it is in
        a leap.
        """
        self._number = number = self._number + 1
        key = at_ms << ORDER_BITS | number
        self._entries[key] = (action, given, rhythm)
        heappush(self._heap, key)

    def after(self, delay_ms: int, action: Callable[..., None], *given: Any, rhythm: object = None) -> None:
        self._number = number = self._number + 1
        key = (self.now_ms + delay_ms) << ORDER_BITS | number
        self._entries[key] = (action, given, rhythm)
        heappush(self._heap, key)

    def put(self, at_ms: int, entry: Entry) -> None:
        self._number = number = self._number + 1
        key = at_ms << ORDER_BITS | number
        self._entries[key] = entry
        heappush(self._heap, key)

    def run(self, until_ms: int) -> None:
        """Run everything up to and including that moment, or an earlier one if `run_until` says so meanwhile."""
        heap, pop, take, bits = self._heap, heappop, self._entries.pop, ORDER_BITS
        self._end = (until_ms + 1) << bits
        while True:  # CPython 3.11 speeds up a loop as it turns only if it ends like this
            if not heap or heap[0] >= self._end:
                break
            key = pop(heap)
            self.now_ms = key >> bits
            action, given, _ = take(key)
            action(*given)
        self.now_ms = max(self.now_ms, (self._end >> bits) - 1)

    def run_until(self, earlier_ms: int) -> None:
        """Stop earlier, because a caller wants to look at everything from outside then."""
        self._end = min(self._end, (earlier_ms + 1) << ORDER_BITS)

    def next_ms(self, timers: Timers, stays: Callable[[TimerKey], bool]) -> int | None:
        """Return when the first entry comes that a leap is not to move: one without a rhythm, or one of these
        timers.
        """
        for key in sorted(self._heap):
            _, given, rhythm = self._entries[key]
            at_ms = key >> ORDER_BITS
            if rhythm is None or (rhythm is timers and given[0].counts_at(at_ms) and stays(given[0].key)):
                return at_ms
        return None

    def leap(self, to_ms: int, shifts: Mapping[object, Shift | None]) -> None:
        """Move now to a later time. What would come too early after its shift comes at once. The caller tells the
        machines.

        `shifts` has the timers of all live processes, with None for those of which nothing moves; they are to leap
        after this. Other entries of timers are forgotten, as they mean nothing; what is no timer (a message on its way)
        keeps its distance from now.
        """
        ahead_ms, moved = to_ms - self.now_ms, {}
        for key, entry in self._entries.items():
            _, given, rhythm = entry
            at_ms = key >> ORDER_BITS
            by_ms: int | None = None
            if rhythm in shifts:
                timer: Timer = given[0]
                if not timer.counts_at(at_ms):
                    continue
                shift = shifts[rhythm]
                by_ms = shift(timer.key) if shift is not None else 0
            elif isinstance(rhythm, Timers):
                continue
            elif rhythm is not None:
                by_ms = ahead_ms
            if by_ms is not None and (by_ms or at_ms < to_ms):
                key = max(at_ms + by_ms, to_ms) << ORDER_BITS | key & LAST_NUMBER
            moved[key] = entry
        self._forgotten += len(self._entries) - len(moved)
        # run() holds both.
        self._entries.clear()
        self._entries.update(moved)
        self._heap[:] = sorted(moved)
        self.now_ms = to_ms


class Timer:
    __slots__ = ("due_ms", "entry", "key", "queued_ms")

    def __init__(self, key: TimerKey, timers: Timers) -> None:
        self.key = key
        self.entry: Entry = (timers.come_up, (self,), timers)
        """The same whenever it comes up."""
        self.due_ms: int | None = None
        """None: cancelled."""
        self.queued_ms: int | None = None
        """When its entry comes up, which may be before it is due. Other entries of it mean nothing."""

    def counts_at(self, at_ms: int) -> bool:
        """Tell whether its entry of that moment is to be carried along."""
        return self.queued_ms == at_ms and self.due_ms is not None


class Timers:
    """Keep the timers of one machine."""

    __slots__ = ("_fire", "_kernel", "_timers", "come_up")

    def __init__(self, kernel: Kernel, fire: Callable[[TimerKey], None]) -> None:
        self._kernel = kernel
        self._fire = fire
        self._timers: dict[TimerKey, Timer] = {}
        self.come_up = self._comes_up

    def set(self, key: TimerKey, delay_ms: int) -> None:
        timer = self._timers.get(key)
        if timer is None:
            timer = self._timers[key] = Timer(key, self)
        kernel = self._kernel
        timer.due_ms = due_ms = kernel.now_ms + delay_ms
        queued_ms = timer.queued_ms
        if queued_ms is None or queued_ms > due_ms:
            timer.queued_ms = due_ms
            kernel.put(due_ms, timer.entry)

    def put_off(self, key: TimerKey, until_ms: int) -> None:
        """Put a timer off: it does not go off before then."""
        timer = self._timers.get(key)
        if timer is None or timer.due_ms is None or timer.due_ms < until_ms:
            self.set(key, until_ms - self._kernel.now_ms)

    def due_ms(self, key: TimerKey) -> int | None:
        timer = self._timers.get(key)
        return None if timer is None else timer.due_ms

    def next_due_ms(self, counts: Callable[[TimerKey], bool]) -> int | None:
        """Return when the first of these timers is due."""
        due_ms = [one.due_ms for key, one in self._timers.items() if one.due_ms is not None and counts(key)]
        return min(due_ms, default=None)

    def runs(self, key: TimerKey) -> bool:
        return self.due_ms(key) is not None

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
            self._kernel.put(due_ms, timer.entry)
            return
        timer.due_ms = timer.queued_ms = None
        if due_ms is not None:
            self._fire(timer.key)

    def leap(self, to_ms: int, shift: Shift) -> None:
        """Move the timers after the kernel, which has forgotten the entries of cancelled ones."""
        for key, timer in self._timers.items():
            due_ms, queued_ms = timer.due_ms, timer.queued_ms
            if due_ms is None or queued_ms is None:
                timer.queued_ms = None
                continue
            by_ms = shift(key)
            if by_ms is not None:
                timer.due_ms = max(due_ms + by_ms, to_ms)
                timer.queued_ms = max(queued_ms + by_ms, to_ms)
