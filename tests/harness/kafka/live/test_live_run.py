"""A scenario done for real: its trace, its costs, its oracle; and what cannot be done live, said before it is tried."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.kafka.brokers import Cluster
from rebalance_lab.harness.kafka.live.live_run import LiveRun, live
from rebalance_lab.harness.measure.costs import costs
from rebalance_lab.harness.measure.trace import lines, read_lines
from rebalance_lab.harness.scenario.reader import parse_scenario

pytestmark = pytest.mark.xdist_group("live")

CRASH: dict[str, Any] = {
    "name": "crash",
    "duration": "22s",
    "topics": {"orders": {"partitions": 4, "rate": "80/s"}},
    "members": {"consumer": {"count": 2, "topics": "orders", "record": "1ms"}},
    "client": {"session.timeout.ms": "3s", "heartbeat.interval.ms": "500ms"},
    "broker": {"group.min.session.timeout.ms": "1s"},
    "timeline": [{"at": "9s", "crash": {"members": "consumer-1"}}],
}


@pytest.fixture(scope="module")
def crashed(node: Cluster) -> LiveRun:
    return live(parse_scenario(CRASH), "classic/range", node)


def test_a_killed_members_partitions_stand_still_for_a_session(crashed: LiveRun) -> None:
    costs = crashed.costs
    assert (costs.rebalances, costs.moved, costs.failed_processes) == (1, 2, 0)
    assert 2.0 < costs.unowned_longest_s < 8.0


def test_every_record_was_processed(crashed: LiveRun) -> None:
    assert crashed.verdict.good, crashed.verdict
    assert not crashed.troubles
    assert crashed.verdict.records > 80 * 10


def test_the_trace_tells_it_in_the_simulators_words(crashed: LiveRun) -> None:
    facts = read_lines(lines(crashed.facts))
    assert [fact["t"] for fact in facts] == sorted(fact["t"] for fact in facts)
    killed = next(fact for fact in facts if fact["fact"] == "process" and fact["is"] == "killed")
    taken = next(fact for fact in facts if fact["fact"] == "reads" and fact["t"] > killed["t"])
    assert (killed["member"], taken["member"]) == ("consumer-1", "consumer-2")
    epochs = [fact["epoch"] for fact in facts if fact["fact"] == "group" and fact["state"] == "Stable"]
    assert epochs == sorted(epochs)
    assert len(epochs) >= 2


def test_a_consumer_that_is_stopped_inside_a_slow_batch_commits_the_whole_batch(node: Cluster) -> None:
    """The simulation says the same, and no record is processed twice."""
    slow = {
        **CRASH,
        "name": "stopped in a batch",
        "duration": "24s",
        "topics": {"slow": {"partitions": 2, "rate": "120/s"}},
        "members": {"c": {"count": 2, "topics": "slow", "record": "40ms"}},
        "client": {
            "max.poll.records": 100,
            "max.poll.interval.ms": "8s",
            "enable.auto.commit": False,
            "session.timeout.ms": "6s",
        },
        "broker": {},
        "timeline": [{"at": "10s", "stop": "c-1"}],
    }
    scenario = parse_scenario(slow)
    assert [costs(simulate(scenario, "classic/range", seed).facts).read_twice for seed in range(6)] == [0] * 6
    assert live(scenario, "classic/range", node).costs.read_twice == 0


def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("rebalance-lab")), *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("changes", "arguments", "line"),
    [
        ({}, ("-s", "classic/sticky"), "strategy: classic/sticky: librdkafka's consumers have range, roundrobin"),
        ({}, ("-s", "classic/range,cooperative-sticky"), "strategy: classic/range,cooperative-sticky: librdkafka does"),
        ({"timeline": [{"at": "1s", "isolate": {"members": "consumer-1", "for": "1s"}}]}, (), "timeline[0].isolate: a"),
        ({}, ("--provider", "external", "--bootstrap", "127.0.0.1:1"), "no broker answers at 127.0.0.1:1"),
        (
            {},
            ("--provider", "mock"),
            "--provider: mock is no cluster to run live on; there are auto, testcontainers, jvm",
        ),
        ({}, ("--assignor", "a:B"), "--assignor joins a group with members of the lab; it takes no SCENARIO"),
    ],
)
def test_what_cannot_be_done_live_is_one_line(changes: dict[str, Any], arguments: tuple[str, ...], line: str) -> None:
    answer = run("live", "-", *arguments, text=json.dumps({**CRASH, **changes}))
    assert answer.returncode == 2
    assert answer.stderr.startswith(f"rebalance-lab: {line}"), answer.stderr
    assert answer.stderr.count("\n") == 1
