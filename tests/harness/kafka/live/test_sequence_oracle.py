"""The sequence oracle sees what a user would lose sleep over, and nothing else."""

from __future__ import annotations

from typing import Any

from rebalance_lab.harness.kafka.live.sequence_oracle import judge
from rebalance_lab.harness.measure.trace import Fact


def processed(member: str, first: int, end: int, t: int = 0) -> Fact:
    return {"t": t, "fact": "processed", "member": member, "topic": "orders", "partition": 0, "span": [first, end]}


def reads(member: str, start: int, t: int = 0) -> Fact:
    fact: dict[str, Any] = {"t": t, "fact": "reads", "member": member, "partitions": {"orders": [0]}}
    return {**fact, "from": {"orders": [start]}}


def durable(member: str, offset: int, t: int = 0) -> Fact:
    return {"t": t, "fact": "durable", "member": member, "offsets": [["orders", 0, offset]]}


def test_what_is_processed_once_and_committed_afterwards_is_good() -> None:
    verdict = judge([reads("a", 0), processed("a", 0, 10), durable("a", 10), reads("b", 10), processed("b", 10, 20)])
    assert verdict.good
    assert (verdict.records, verdict.twice) == (20, 0)


def test_what_was_not_committed_may_be_processed_twice() -> None:
    verdict = judge([processed("a", 0, 10), durable("a", 6), reads("b", 6), processed("b", 6, 20)])
    assert verdict.good
    assert verdict.twice == 4


def test_a_record_that_nobody_processed_is_a_gap() -> None:
    verdict = judge([processed("a", 0, 10), processed("b", 12, 20, t=5_000)])
    assert verdict.gaps == ("orders-0: 2 records from 10 on, by b at 5.0 s",)


def test_a_commit_ahead_of_the_work_is_found() -> None:
    assert judge([processed("a", 0, 10), durable("a", 11)]).ahead


def test_reading_from_before_the_last_commit_is_found() -> None:
    verdict = judge([processed("a", 0, 10), durable("a", 10), reads("b", 7)])
    assert verdict.old == ("orders-0: from 7 by b at 0.0 s, though 10 was committed by a at 0.0 s",)


def test_who_was_stopped_between_asking_and_hearing_is_not_blamed() -> None:
    """What it was told was true when it asked; meanwhile another one went on, and committed."""
    asked = {**reads("a", 6, t=9_000), "asked": 1_000}
    story = [processed("b", 0, 10), durable("a", 6), durable("b", 10, t=5_000)]
    assert judge([*story, asked]).good
    assert judge([*story, {**asked, "asked": 5_000}]).old


def test_a_record_in_the_wrong_place_is_found() -> None:
    fact = {"t": 0, "fact": "broken", "member": "a", "why": "orders-0 offset 3 holds 4 after 3"}
    assert not judge([fact]).good


def test_what_the_producer_wrote_twice_is_counted_and_nobody_is_blamed() -> None:
    """Each reader tells how many records it has found to be repeats: the same ones."""
    again = {"t": 0, "fact": "written again", "topic": "orders", "partition": 0}
    verdict = judge([{**again, "member": "a", "records": 1}, {**again, "member": "b", "records": 2}])
    assert verdict.good
    assert verdict.written_again == 2
