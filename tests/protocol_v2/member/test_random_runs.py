"""2,000 random groups of real members in trouble; random_runs.py says what trouble is, watched.py what must hold."""

from __future__ import annotations

import pytest

from rebalance_lab.protocol_v1.common.errors import InvariantBroken
from tests.protocol_v2.member import random_runs
from tests.protocol_v2.member.random_runs import KINDS, Op, report, run_once, seeded
from tests.protocol_v2.member.watched import Watched
from tests.shrinking import shortened

CALM: list[Op] = [(40, i % 3, "start", 4 * i) for i in range(3)] + [(60, 0, "poll", 0)] * 8


@pytest.mark.parametrize("block", range(20))
def test_no_invariant_breaks_and_every_group_comes_to_rest(block):
    for seed in range(100 * block, 100 * block + 100):
        failure = report(seed)
        assert failure is None, failure


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("trouble", ["crash", "cut", "fail_over", "lose_in", "lose_out", "busy"])
def test_trouble_may_come_after_any_step(trouble, kind):
    for i in range(len(CALM) + 1):
        _, error = run_once([*CALM[:i], (1, 0, trouble, 0), *CALM[i:]], kind)
        assert error is None, f"{trouble} after step {i} of {KINDS[kind].what}: {error!r}"


def test_two_runs_of_one_seed_are_equal():
    first, second = (run_once(*seeded(3))[0].group for _ in range(2))
    assert [c.story for c in first.clients.values()] == [c.story for c in second.clients.values()]
    assert (first.states, first.now_ms) == (second.states, second.now_ms)


def test_a_failure_is_shortened_and_printed(monkeypatch):
    def every_heartbeat_is_a_bug(self, client, request):
        raise InvariantBroken("a request was sent")

    monkeypatch.setattr(Watched, "see_request", every_heartbeat_is_a_bug)
    ops, kind = seeded(5)
    assert run_once(ops, kind)[1] is not None
    assert [action for _, _, action, _ in shortened(ops, lambda fewer: run_once(fewer, kind)[1] is not None)] == [
        "start"
    ]
    monkeypatch.setattr(random_runs, "seeded", lambda seed: (ops, kind))
    failure = report(5)
    assert failure is not None
    assert "a request was sent" in failure
