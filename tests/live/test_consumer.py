"""What a consumer process says of the records that it is given: no broker is needed for that."""

from __future__ import annotations

import json

import pytest

from harness.live.consumer import Member

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
