"""`rebalance-lab record`: a recording that play takes, and every fault of the environment as one line."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time

import pytest

from tests.harness.kafka.wire.test_differential import LONE_MEMBER

pytestmark = pytest.mark.xdist_group("wire")


def rebalance_lab(*arguments: str, given: object = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rebalance_lab.api.cli", *arguments],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_sequence_is_recorded_and_can_be_played(broker, tmp_path):
    file = tmp_path / "recorded.json"
    told = rebalance_lab("record", "-", "--bootstrap", broker.bootstrap, "--output", str(file), given=LONE_MEMBER)
    assert (told.returncode, told.stderr) == (0, "")
    assert "our coordinator answers alike" in told.stdout
    recorded = json.loads(file.read_text())
    by_broker = {each["as"]: each["body"] for each in recorded["answered"]}
    played = json.loads(rebalance_lab("play", str(file), "--json").stdout)
    assert {each["as"]: each["body"] for each in played["responses"]} == by_broker
    assert recorded["config"]["group.initial.rebalance.delay.ms"] == 200  # the broker's, not Kafka's default


@pytest.mark.parametrize(
    ("bootstrap", "message"),
    [
        ("127.0.0.1:1", "cannot connect to 127.0.0.1:1"),
        ("nonsense", "is not host:port"),
        ("192.0.2.1:9092", "is not this machine, nor the test cluster"),  # an address for documentation
    ],
)
def test_no_broker_is_one_line_and_exit_code_2(bootstrap, message):
    told = rebalance_lab("record", "-", "--bootstrap", bootstrap, given=LONE_MEMBER)
    assert told.returncode == 2
    assert message in told.stderr
    assert told.stderr.count("\n") == 1


def test_a_broker_that_never_answers_is_given_up_in_time():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        told = rebalance_lab("record", "-", "--bootstrap", address, "--timeout", "1", given=LONE_MEMBER)
    assert told.returncode == 2
    assert "did not answer ApiVersionsRequest within 1 s" in told.stderr
    assert time.monotonic() - began < 20  # mostly starting Python


def test_what_cannot_be_sent_to_a_broker_is_refused(broker):
    crash = {**LONE_MEMBER, "steps": [{"at_ms": 0, "coordinator": "crash"}], "until_ms": 10}
    told = rebalance_lab("record", "-", "--bootstrap", broker.bootstrap, given=crash)
    assert told.returncode == 2
    assert "steps[0]: only requests can be sent to a broker" in told.stderr
