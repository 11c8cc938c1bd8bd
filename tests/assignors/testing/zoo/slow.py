"""Bugs that cost time; a short limit keeps the tests short."""

from __future__ import annotations

import time
from typing import Any

from tests.assignors.testing.good import Shares, blocks
from tests.assignors.testing.zoo.registry import bug


@bug("bounded-time", call_limit_s=1.5)
class NeverEnds:
    """Swaps until all hold the same number, which they never do when it does not divide."""

    def assign(self, group: Any) -> Shares:
        shares = blocks(group)
        while len({sum(map(len, share.values())) for share in shares.values()}) > 1:
            pass
        return shares


@bug("bounded-time", call_limit_s=1.5)
class SleepsOnIt:
    def assign(self, group: Any) -> Shares:
        if any(m.instance_id for m in group.members.values()):
            time.sleep(3600)
        return blocks(group)


@bug("bounded-time", call_limit_s=1.5)
class CannotBeInterrupted:
    """One long operation in C: no signal handler of Python's runs until it is over."""

    def assign(self, group: Any) -> Shares:
        if any(topic.racks for topic in group.topics.values()):
            _ = sum(range(10**12))
        return blocks(group)


@bug("bounded-time", small=False, call_limit_s=1.5)
class TriesEverySubset:
    def assign(self, group: Any) -> Shares:
        best = None
        for chosen in range(2 ** len(group.members)):
            best = chosen
        assert best is not None
        return blocks(group)


@bug("bounded-time", call_limit_s=1.5)
class CatchesEverything:
    def assign(self, group: Any) -> Shares:
        while len(group.members) == 2:
            try:
                time.sleep(0.01)
            except BaseException:  # noqa: BLE001 - that is the bug
                continue
        return blocks(group)
