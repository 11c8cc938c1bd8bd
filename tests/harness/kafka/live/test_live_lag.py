"""The lag of live runs: counted as in simulated ones."""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.harness.kafka.live.live_lag import Progress, lag_facts
from rebalance_lab.harness.measure.trace import Fact


def reads(t: int, member: str, offset: int, topic: str = "orders") -> Fact:
    return {"t": t, "fact": "reads", "member": member, "partitions": {topic: [0]}, "from": {topic: [offset]}}


def stops(t: int, member: str, offset: int, topic: str = "orders") -> Fact:
    return {"t": t, "fact": "stops", "member": member, "partitions": {topic: [0]}, "at": {topic: [offset]}}


def processed(t: int, member: str, end: int, topic: str = "orders") -> Fact:
    return {"t": t, "fact": "processed", "member": member, "topic": topic, "partition": 0, "span": [0, end]}


def wanted(t: int, *topics: str) -> Fact:
    return {"t": t, "fact": "wanted", "topics": list(topics)}


def waiting(facts: Sequence[Fact], **written: int) -> int:
    progress = Progress()
    for fact in facts:
        progress.feed(fact)
    return progress.waiting({topic: [count] for topic, count in written.items()})


def test_what_is_read_again_waits_again() -> None:
    crashed = [wanted(0, "orders"), reads(1, "a", 0), processed(2, "a", 90), stops(3, "a", 90)]
    assert waiting(crashed, orders=100) == 10
    assert waiting([*crashed, reads(4, "b", 50)], orders=100) == 50
    assert waiting([*crashed, reads(4, "b", 50), processed(5, "b", 100)], orders=100) == 0


def test_where_two_read_records_wait_for_who_is_further() -> None:
    both = [wanted(0, "orders"), reads(1, "a", 0), processed(2, "a", 90), reads(3, "b", 50), processed(4, "b", 95)]
    assert waiting(both, orders=100) == 5


def test_who_was_killed_and_still_tells_of_a_batch_reads_no_more() -> None:
    killed = [wanted(0, "orders"), reads(1, "a", 0), stops(3, "a", 90), processed(4, "a", 95), reads(5, "b", 60)]
    assert waiting(killed, orders=100) == 40


def test_what_was_read_of_a_deleted_topic_is_no_progress_in_others() -> None:
    facts: list[Fact] = [
        wanted(0, "clicks", "orders"), reads(1, "a", 0, "clicks"), reads(1, "a", 0), processed(2, "a", 500, "clicks"),
        {"t": 3, "fact": "topic", "topic": "clicks", "partitions": 0}, wanted(3, "orders"),
    ]  # fmt: skip
    assert waiting(facts, orders=100) == 100


def test_a_topic_waits_for_nobody_until_somebody_subscribes() -> None:
    told = [(0, {"orders": [0]}), (500, {"orders": [50]}), (900, {"orders": [90]})]
    points = {fact["t"]: fact for fact in lag_facts([wanted(600, "orders")], told, 1_000)}
    assert (points[598]["records"], points[598]["rate"]) == (0, 0)
    assert points[600]["records"] == 50
    assert points[900]["records"] == 90
