"""Ask the assignor under test for an answer under a time limit, and turn its mistakes into findings.

Given      a class (or whatever makes an instance), what it promises, and what it openly waives
Returns    Placed answers, or Broken
Instances  `ask` takes a fresh instance every time; `ask_again` keeps one for the life of the Subject. A finding must
           not depend on where a class keeps its state
Time       a timer ticks a few times a second; a tick during a call that has lasted too long raises inside it. A call
           that cannot be interrupted (one long operation in C, a JVM) is left to ../search/sandbox.py
Start at   Subject
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import FrozenInstanceError
from typing import Any

from rebalance_lab.assignors.assignor_error import AssignorError, error_line, error_text
from rebalance_lab.assignors.model import Group
from rebalance_lab.assignors.testing.sampling.group_shapes import Shapes, Waiver
from rebalance_lab.assignors.testing.subject.answers import Broken, Ground, NotApplicable, Placed, View
from rebalance_lab.assignors.testing.subprocess_oracle.line_format import materialised
from rebalance_lab.assignors.user_code import keep_error

CALL_LIMIT_S = 5.0
"""Kafka gives a leader max.poll.interval.ms, five minutes, for groups a hundred times the size of those drawn here."""
TICK_S = 0.05


class TooLong(BaseException):
    """Stop a call that takes too long. It is not an Exception: a class that catches those should not catch this."""


class Subject:
    def __init__(
        self,
        make: Callable[[], Any],
        *,
        name: str,
        promises: Collection[str] = (),
        waivers: Collection[Waiver] = (),
        cooperative: bool = False,
        threshold: float = 0.1,
        moves_within: int = 0,
        server_side: bool = False,
        call_limit_s: float = CALL_LIMIT_S,
    ) -> None:
        self.make = make
        self.name = name
        self.promises = frozenset(promises)
        self.waivers = tuple(waivers)
        self.cooperative = cooperative
        """It may withhold a partition that a member claims."""
        self.threshold = threshold
        self.moves_within = moves_within
        self.server_side = server_side
        """It runs in a broker (KIP-848), not in a consumer that leads."""
        self.call_limit_s = call_limit_s
        self.everywhere = tuple(waiver for waiver in waivers if waiver.property == "*")
        """The waivers under which a group is not asked about at all."""
        self.calls = 0
        self.spent_s = 0.0
        """In making an instance, inside `assign`, and reading an answer that is built when it is read."""
        self.machine_s = 0.0
        """In a protocol that asked it, between its answers."""
        self.slowest_s = 0.0
        self.slowest: Group | None = None
        self.on_call: Callable[[Group], None] | None = None
        """Told of each group before it is asked about: the sandbox's way of knowing where a killed child stood."""
        self.on_tick: Callable[[], None] | None = None
        """Told a few times a second, as long as one call follows the other."""
        self._calls_told = 0
        self._veteran: Any = None
        self._ground: Ground | None = None
        """Of the last group: the next one often differs in its members only."""
        self._started: float | None = None

    def ask(
        self, group: Group, view: View | None = None, like: Placed | None = None, instance: object = None
    ) -> Placed:
        """Ask for an answer; where `like`, the expected answer for the same members and topics, comes, it is returned
        without a second check. A group that comes with a view or a likeness is one that no waiver covers: it was asked
        about before, or its members only own what they were given. Without an instance a new one is asked; otherwise it
        is one that the caller has made, and keeps.
        """
        if self.everywhere and view is None and like is None:
            self._stop_where_waived(group)
        answer = self._timed(instance, group)
        try:
            if like is not None and type(answer) is dict and answer is not like.answer and answer == like.answer:
                return like
            if view is None:
                view = self.view_of(group)
            return view.place(answer, may_withhold=self.cooperative)
        except Broken:
            raise
        except BaseException as error:  # mappings and numbers of a custom class may raise anything when looked at
            if not is_theirs(error):
                raise
            keep_error(error)
            raise Broken(f"its answer cannot be read: {error_line(error)}", group, answer, blames="valid") from error

    def ask_again(self, group: Group, view: View | None = None, like: Placed | None = None) -> Placed:
        if self._veteran is None:
            self._veteran = self.new_instance(group)
        return self.ask(group, view, like, self._veteran)

    def tell(self, group: Group) -> None:
        """Ask the veteran in passing, for what the question may leave behind; the answer is not used. It is for a part
        of a group that no waiver covers: it has no shape that the whole did not have.
        """
        self._timed(self._veteran, group)

    def new_instance(self, group: Group) -> Any:
        try:
            return self.make()
        except TooLong:
            self._started = None
            raise self._too_long(group) from None
        except BaseException as error:
            self._started = None
            if not is_theirs(error):
                raise
            keep_error(error)
            raise Broken(f"cannot be made: {error_line(error)}", group, blames="valid") from error

    def view_of(self, group: Group) -> View:
        view = View(group, self._ground)
        self._ground = view.ground
        return view

    def _stop_where_waived(self, group: Group) -> None:
        shapes = Shapes(group)
        for waiver in self.everywhere:
            if waiver.covers(shapes):
                raise NotApplicable

    def _timed(self, instance: Any, group: Group) -> Any:
        """Time a call of an instance; None stands for a new one. Only the class's own time is counted."""
        if self.on_call is not None:
            self.on_call(group)
        self.calls += 1
        self._started = started = time.perf_counter()
        if instance is None:
            instance = self.new_instance(group)
        try:
            answer = materialised(instance.assign(group))
        except TooLong:
            raise self._too_long(group) from None
        except BaseException as error:
            if not is_theirs(error):
                raise
            blames = "pure" if changes_input(error) else "valid"
            if not group.members and blames == "valid" and isinstance(error, Exception):
                # A leader is always a member: Java's own refuse a group without members, which harms no member.
                raise NotApplicable from error
            if isinstance(error, AssignorError):
                raise Broken(f"gives no answer: {error_text(error)}", group, blames="valid") from error
            keep_error(error)
            raise Broken(f"raised {error_line(error)}", group, blames=blames) from error
        finally:
            took = time.perf_counter() - started
            self._started = None
            self.spent_s += took
            if took > self.slowest_s:
                self.slowest_s, self.slowest = took, group
        if took > self.call_limit_s:  # it was deaf to the timer, or caught what that raises and answered after all
            raise self._too_long(group)
        return answer

    def _too_long(self, group: Group) -> Broken:
        message = f"no answer within {self.call_limit_s:g} s"
        return Broken(message, group, badness=self.call_limit_s, blames="bounded-time")

    def tick(self, *_: object) -> None:
        started = self._started
        if started is not None and time.perf_counter() - started > self.call_limit_s:
            raise TooLong
        if self.on_tick is not None and self.calls > self._calls_told:
            self._calls_told = self.calls
            self.on_tick()

    def watched(self) -> AbstractContextManager[None]:
        """Interrupt calls that last too long while the context is open."""
        return ticking(self.tick, TICK_S)


@contextmanager
def ticking(tick: Callable[..., None], every_s: float) -> Iterator[None]:
    """Call `tick` again and again in the middle of whatever runs inside. Only a main thread can be interrupted so."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, every_s, every_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def is_theirs(error: BaseException) -> bool:
    """Tell whether the class raised it. A KeyboardInterrupt is the user's, unless none can come (search/sandbox.py)."""
    return not isinstance(error, KeyboardInterrupt) or signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def changes_input(error: BaseException) -> bool:
    """Tell whether the error comes of a change to the group: the model is frozen, so most attempts end in one of
    these.
    """
    text = error_text(error)
    if isinstance(error, FrozenInstanceError):
        return True
    if isinstance(error, TypeError):
        return ("mappingproxy" in text and "support item" in text) or "'tuple' object does not support item" in text
    if isinstance(error, AttributeError):
        methods = ("append", "sort", "remove", "pop", "clear", "update", "setdefault", "popitem", "extend", "insert")
        return any(
            text == f"'{kind}' object has no attribute '{m}'" for kind in ("mappingproxy", "tuple") for m in methods
        )
    return False
