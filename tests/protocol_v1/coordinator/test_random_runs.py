"""2,000 random groups in trouble; random_runs.py says what trouble is, watched.py what must hold."""

from __future__ import annotations

import json

import pytest

from rebalance_lab.harness.conversation.sequence_player import play
from rebalance_lab.protocol_v1.common.errors import Error, InvariantBroken
from tests.protocol_v1.coordinator import random_runs
from tests.protocol_v1.coordinator.random_runs import INSTANCES, Op, report, run_once, seeded
from tests.protocol_v1.coordinator.watched import Watched
from tests.shrinking import shortened

CALM: list[Op] = [(20, i % len(INSTANCES), "act", 0) for i in range(40)]


@pytest.mark.parametrize("block", range(20))
def test_no_invariant_breaks_and_every_group_comes_to_rest(block):
    for seed in range(100 * block, 100 * block + 100):
        failure = report(seed)
        assert failure is None, failure


@pytest.mark.parametrize("death", ["crash", "move"])
def test_a_coordinator_may_go_after_any_step(death):
    for i in range(len(CALM)):
        _, error = run_once([*CALM[:i], (0, 0, death, 0), *CALM[i:]], 1_000)
        assert error is None, f"{death} after step {i}: {error!r}"


@pytest.mark.parametrize("trouble", ["hold", "refuse"])
def test_the_log_may_fail_at_any_step(trouble):
    for i in range(0, len(CALM), 2):
        _, error = run_once([*CALM[:i], (0, 0, trouble, 0), *CALM[i:]], 1_000)
        assert error is None, f"{trouble} from step {i} on: {error!r}"


def test_two_runs_of_one_seed_are_equal():
    ops, max_size = seeded(3)
    first, second = run_once(ops, max_size)[0], run_once(ops, max_size)[0]
    assert first.sequence() == second.sequence()
    assert first.player.transcript.to_json() == second.player.transcript.to_json()


def test_a_run_is_a_sequence_that_play_answers_alike():
    run, error = run_once(*seeded(11))
    assert error is None
    played = play(json.loads(json.dumps(run.sequence()))).to_json()
    run.player.transcript.until_ms = run.now
    assert played == run.player.transcript.to_json()


def test_a_failure_is_shortened_and_printed_as_a_sequence(monkeypatch):
    def every_leave_is_a_bug(self, reply):
        if getattr(reply.response, "members", ()) and reply.response.error_code is Error.NONE:
            raise InvariantBroken("a leader was given a list")

    monkeypatch.setattr(Watched, "see_reply", every_leave_is_a_bug)
    ops, max_size = seeded(5)
    assert run_once(ops, max_size)[1] is not None
    assert shortened(ops, lambda fewer: run_once(fewer, max_size)[1] is not None) == []  # settling alone shows it
    monkeypatch.setattr(random_runs, "seeded", lambda seed: (ops, max_size))
    failure = report(5)
    assert failure is not None
    assert "a leader was given a list" in failure
    assert play(json.loads(failure.splitlines()[-1])).to_json()["responses"]
