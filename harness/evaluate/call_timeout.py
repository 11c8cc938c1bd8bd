"""End a run, or a request, whose custom assignor never answers.

Limit      Kafka gives a leader max.poll.interval.ms, five minutes, which is too long to wait in each of twenty runs. An
           assignor that has been stopped once is stopped sooner the next time
How        a timer ticks while the run goes on. If it has seen the same call into the custom module often enough, it
           interrupts the call there. That works in a main thread only, and not in one long operation in C
Start at   patience, time_limit
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.assignors.strategies import Strategy
from rebalance_lab.assignors.user_code import keep_error

TICK_S = 0.25
LIMIT_S, LIMIT_AGAIN_S = 20.0, 2.0

_stopped_before: set[str] = set()


class NoAnswer(KeyboardInterrupt):
    """Interrupt an assignor that does not answer. Code that catches an assignor's errors lets a KeyboardInterrupt
    pass.
    """


@contextmanager
def patience(strategies: Iterable[Strategy]) -> Iterator[None]:
    """Limit each call into the custom ones among these strategies while the context is open; NoAnswer ends a longer
    call.
    """
    names = frozenset(one.assignor for one in strategies if one.is_custom)
    if not names:
        yield
        return
    from rebalance_lab.assignors.testing.subject.subject import ticking

    modules = {name.partition(":")[0] for name in names}
    limit_s = LIMIT_AGAIN_S if names & _stopped_before else LIMIT_S
    seen: FrameType | None = None
    ticks = 0

    def tick(number: int, frame: FrameType | None) -> None:
        nonlocal seen, ticks
        call = outermost(frame, modules)
        ticks = ticks + 1 if call is not None and call is seen else 0
        seen = call
        if ticks * TICK_S >= limit_s:
            _stopped_before.update(names)
            raise NoAnswer(f"{', '.join(sorted(names))} gave no answer within {limit_s:g} s")

    with ticking(tick, TICK_S):
        yield


@contextmanager
def time_limit(strategies: Iterable[Strategy], path: str, what: str) -> Iterator[None]:
    """Limit how long custom code works while the context is open; ContractError ends longer work.

    `what`: what it does not do in time, such as "gave no answer". It may be imported, made or asked.
    """
    names = [one.assignor for one in strategies if one.is_custom]
    if not names:
        yield
        return
    from rebalance_lab.assignors.testing.subject.subject import ticking

    again = not _stopped_before.isdisjoint(names)
    limit_s = LIMIT_AGAIN_S if again else LIMIT_S
    ends_at = time.monotonic() + limit_s

    def tick(*_: object) -> None:
        if time.monotonic() >= ends_at:
            raise NoAnswer

    try:
        with ticking(tick, min(TICK_S, limit_s)):
            yield
    except NoAnswer as stopped:
        _stopped_before.update(names)
        keep_error(stopped)
        raise ContractError(path, f"{', '.join(names)} {what} within {limit_s:g} s") from None


def outermost(frame: FrameType | None, modules: set[str]) -> FrameType | None:
    """Return the call by which the simulator entered one of these modules, if one is at work."""
    found = None
    while frame is not None and not frame.f_globals.get("__name__", "").startswith("rebalance_lab.harness.simulator."):
        if frame.f_globals.get("__name__") in modules:
            found = frame
        frame = frame.f_back
    return found
