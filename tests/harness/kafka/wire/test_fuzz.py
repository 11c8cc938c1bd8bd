"""Hostile frames of a fixed seed, for about twenty seconds; `make test-deep` sends millions."""

from __future__ import annotations

import pytest

from tests.harness.kafka.wire.fuzz import show
from tests.harness.kafka.wire.fuzzing.hostile_frames import ANSWER, REQUEST, FrameSource, HostileFrame
from tests.harness.kafka.wire.fuzzing.over_sockets import SocketChild, fuzz_clients, fuzz_server
from tests.harness.kafka.wire.fuzzing.watched_child import Ended, run_child

SEED = 1
FRAMES = {REQUEST: 12_000, ANSWER: 30_000}
OVER_SOCKETS = 2_000


@pytest.mark.parametrize("side", [REQUEST, ANSWER])
def test_no_frame_ends_a_process(side, tmp_path, record_property):
    figures = run_child(side, tmp_path, frames=FRAMES[side], seed=SEED)
    assert figures["frames"] == FRAMES[side]
    assert 0.2 < figures["readable"] / figures["frames"] < 0.8  # both ways are walked
    record_property(f"table: hostile {side}s", show({"in process": figures}))


@pytest.mark.parametrize("attack", [fuzz_server, fuzz_clients])
def test_an_honest_client_is_answered_beside_hostile_ones(attack, tmp_path, record_property):
    figures = attack(OVER_SOCKETS, SEED, tmp_path)
    assert figures["readable"] > OVER_SOCKETS / 10
    record_property(f"table: {attack.__name__}", show({"over sockets": figures}))


@pytest.mark.parametrize("side", [REQUEST, ANSWER])
def test_the_frames_of_a_seed_are_the_same_every_time(side):
    first, second = ([FrameSource(side, SEED).next_frame() for _ in range(3)] for _ in range(2))
    assert first == second
    assert [HostileFrame.from_line(each.line()) for each in first] == first


def test_the_end_of_a_server_is_seen(tmp_path, monkeypatch):
    check = SocketChild.check

    def end_it(child: SocketChild) -> None:
        child.process.kill()
        child.process.wait()
        check(child)

    monkeypatch.setattr(SocketChild, "check", end_it)
    with pytest.raises(Ended, match="the process ended with -9"):
        fuzz_server(100, SEED, tmp_path)


def test_the_end_of_a_process_is_seen_and_its_last_frame_can_be_replayed(tmp_path, monkeypatch):
    """Here the child ends at once: an answer of an API that nobody asks for is an error of the program."""
    monkeypatch.chdir(tmp_path)
    bad = HostileFrame(ANSWER, 9_999, 0, b"\0\0\0\1")
    (tmp_path / "frames").write_text(bad.line() + "\n")
    with pytest.raises(Ended) as ended:
        run_child(ANSWER, tmp_path / "child", replay=tmp_path / "frames")
    assert "UnknownAPIKey" in str(ended.value)
    assert f"at frame 1: {bad.line()}" in str(ended.value)
    assert (tmp_path / "child" / "replay").read_text() == bad.line() + "\n"
