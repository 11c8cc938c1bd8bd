"""What a consumer process says of the records that it is given: no broker is needed for that."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, TopicPartition

from rebalance_lab.harness.kafka.live.consumer import Member

PLACE = ("lab-orders", 0)
SETUP = {
    "name": "a", "prefix": "lab-", "record_ms": 0, "epoch_s": 0.0, "poison": [],
    "client": {"group.id": "g", "enable.auto.commit": False},
}  # fmt: skip


def told_of(records: list[tuple[int, int]], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """`records`: offsets and the numbers that they hold, one after the other."""
    member = Member(SETUP)
    expected = records[0][0]
    for offset, number in records:
        member.compare(PLACE, offset, number, expected)
        expected = offset + 1
    member.consumer.close()
    return [json.loads(line)["fact"] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("records", "facts"),
    [
        ([(0, 0), (1, 1), (2, 2)], []),
        ([(0, 0), (2, 2)], ["broken"]),  # skipped by the reader
        ([(0, 0), (1, 2)], ["broken"]),  # lost by the log
        ([(0, 0), (1, 0), (2, 1)], ["written again"]),
        ([(0, 0), (1, 0), (2, 2)], ["written again", "broken"]),  # written again, and then one lost
        ([(7, 5), (8, 6)], ["written again"]),  # by who comes later
    ],
)
def test_what_a_reader_says_of_numbers_and_offsets(
    records: list[tuple[int, int]], facts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert told_of(records, capsys) == facts


@pytest.mark.parametrize("module", ["consumer", "producer"])
def test_a_process_whose_parent_is_gone_ends_and_says_nothing(tmp_path: Path, module: str) -> None:
    """Nobody reads what it tells any more, and a member that stays in its group keeps its partitions."""
    callbacks = dict.fromkeys(("revoked_ms", "revoked_ms_per_partition", "assigned_ms", "assigned_ms_per_partition"), 0)
    client = {**SETUP["client"], "bootstrap.servers": "127.0.0.1:1", "log_level": 0}  # type: ignore[dict-item]
    setup = {**SETUP, "client": client, "callbacks": callbacks, "topics": ["orders"], "pattern": None, "batch": 10}
    setup |= {"bootstrap": "127.0.0.1:1", "rates": {}}
    parent = (
        "import subprocess, sys, time\n"
        f"command = [sys.executable, '-m', 'rebalance_lab.harness.kafka.live.{module}']\n"
        "child = subprocess.Popen(command, stdin=-1, stdout=-1)\n"
        f"child.stdin.write({json.dumps(setup)!r}.encode() + b'\\n'); child.stdin.flush()\n"
        "time.sleep(2); print(child.pid, flush=True)\n"
    )
    with (tmp_path / "said").open("w+") as said:
        ran = subprocess.run([sys.executable, "-c", parent], stdout=subprocess.PIPE, stderr=said, text=True, timeout=60)
        deadline = time.monotonic() + 30
        while runs(int(ran.stdout)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not runs(int(ran.stdout))
        said.seek(0)
        assert said.read() == ""


def runs(process: int) -> bool:
    """One that has ended and is not yet waited for has no command line any more."""
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    except OSError:
        return False


class Message:
    """As librdkafka gives it out of poll() when a consumer cannot go on: its own `fatal()` says no."""

    def __init__(self, code: int) -> None:
        self.code = code

    def error(self) -> KafkaError:
        return KafkaError(self.code, "The instance ID is still used by another member in the consumer group")


@pytest.mark.parametrize(("code", "fails"), [(KafkaError._FATAL, True), (KafkaError._PARTITION_EOF, False)])
def test_a_consumer_that_cannot_go_on_has_failed(code: int, fails: bool) -> None:
    member = Member(SETUP)
    assert not member.is_record(Message(code))
    assert (member.failure is not None) is fails
    member.consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_librdkafka_takes_a_pattern(protocol: str) -> None:
    member = Member({**SETUP, "client": {**SETUP["client"], "group.protocol": protocol}})  # type: ignore[dict-item]
    member.subscribe([], "orders.*|payments")
    member.consumer.close()


def test_what_is_revoked_is_not_read_while_the_callback_takes_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    callbacks = {"revoked_ms": 100, "revoked_ms_per_partition": 50, "assigned_ms": 0, "assigned_ms_per_partition": 0}
    member = Member({**SETUP, "epoch_s": time.time(), "callbacks": callbacks})
    member.positions[PLACE] = 7
    began = time.monotonic()
    member.on_revoke(member.consumer, [TopicPartition(*PLACE)])
    assert time.monotonic() - began >= 0.15
    member.consumer.close()
    called, stopped = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (called["fact"], called["ms"]) == ("callback", 150)
    assert (stopped["fact"], stopped["at"]) == ("stops", {"orders": [7]})
    assert stopped["t"] - called["t"] < 100
