"""`rebalance-lab live` and `fidelity`: which clusters they may touch. Nothing here connects."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebalance_lab.api.commands.live_command import check_target
from tests.api.conftest import Run
from tests.harness.small_scenarios import write

ELSEWHERE = "kafka.example.invalid:9092"


@pytest.mark.parametrize("provider", ["auto", "external"])
@pytest.mark.parametrize("command", ["live", "fidelity"])
def test_a_cluster_elsewhere_is_refused_in_a_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, provider: str
) -> None:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    monkeypatch.delenv("REBALANCE_LAB_BOOTSTRAP", raising=False)
    strategy = ["--strategies" if command == "fidelity" else "--strategy", "classic/range"]
    ended = run(command, write(tmp_path), *strategy, "--provider", provider, "--bootstrap", f"127.0.0.1:1,{ELSEWHERE}")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        f"rebalance-lab: --bootstrap: {ELSEWHERE} is not this machine, nor the test cluster that "
        "REBALANCE_LAB_BOOTSTRAP names\n"
    )


def test_the_test_cluster_and_this_machine_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBALANCE_LAB_BOOTSTRAP", ELSEWHERE)
    for allowed in (ELSEWHERE, "127.0.0.1:9092", "localhost:9092", "[::1]:9092", None):
        check_target(allowed)
