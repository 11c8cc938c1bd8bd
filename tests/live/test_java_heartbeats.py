"""Java's heartbeats come when they are due: members that began together notice a rebalance together."""

from __future__ import annotations

from statistics import median

import pytest

from harness.sim.world import Constants
from tests.conformance import java_oracle
from tests.live.java_heartbeats import late_ms

LOOK_MS = 100
"""retry.backoff.ms, after which a heartbeat thread looks at the clock again: looks without regard to the last heartbeat
would be late by half of that."""


@pytest.mark.parametrize("works", [False, True], ids=["waits", "works"])
def test_a_classic_consumers_heartbeats_are_late_by_milliseconds(works: bool) -> None:
    if reason := java_oracle.why_not():
        pytest.skip(reason)
    assert Constants().heartbeat_look_ms < LOOK_MS / 2
    assert median(late_ms("RangeAssignor", 9, 500, works=works)) < LOOK_MS / 2
