"""Targets of many topics: a member that must give up some keeps what a broker's HashMap walks first.

What a broker did with two topics whose ids share a bucket is in
tests/harness/kafka/wire/recordings/topic_ids_in_one_bucket*.json.
"""

from __future__ import annotations

import pytest

from rebalance_lab.assignors.java.hash_order import DEFAULT_CAPACITY
from rebalance_lab.assignors.model import Assignment, Group, Member, Topic
from rebalance_lab.protocol_v2.coordinator.assignment.topic_order import TopicOrders, capacity_after, share_a_bucket

# Without ids, topics are numbered, and a number is its own hash: 1 and 17 share a bucket of 16, and so do 2 and 18.
TOPICS = {f"t{number:02}": Topic(1) for number in range(1, 33)}


def orders_of(owned: dict[str, list[int]], now: list[str], *, by_range: bool = False) -> tuple[str, ...] | None:
    group = Group(TOPICS, {"m": Member(tuple(TOPICS), owned)})
    orders = TopicOrders(group, by_range=by_range)
    numbers = group.layout.numbers_of({name: [0] for name in now})
    assert numbers is not None
    orders.answer = Assignment(group.layout, {"m": numbers})
    return orders.of("m")


@pytest.mark.parametrize(
    ("held", "now", "order"),
    [
        pytest.param([], ["t01", "t02"], None, id="no two in one bucket"),
        pytest.param([], ["t17"], None, id="one topic"),
        pytest.param([], ["t01", "t17"], ("t17", "t01"), id="the later one goes to the head"),
        pytest.param(["t17"], ["t01", "t17"], ("t01", "t17"), id="what is new goes to the head"),
        pytest.param(["t01", "t17", "t02"], ["t01", "t17"], ("t01", "t17"), id="what stays keeps its order"),
        pytest.param(["t17", "t01", "t02"], ["t01", "t17"], ("t17", "t01"), id="whatever that was"),
    ],
)
def test_topics_in_one_bucket_are_walked_in_the_order_in_which_they_came(held, now, order):
    assert orders_of({name: [0] for name in held}, now) == order


def test_range_forgets_what_was_before():
    assert orders_of({"t17": [0]}, ["t01", "t17"], by_range=True) == ("t01", "t17")


def test_a_member_with_few_topics_of_a_large_group_has_a_small_table():
    """1 and 17 are apart in the group's table of 64, but not in the member's."""
    hashes = list(range(1, 33))
    assert not share_a_bucket(hashes, capacity_after(len(hashes)))
    assert share_a_bucket(hashes, DEFAULT_CAPACITY)
    assert [capacity_after(puts) for puts in (0, 12, 13, 24, 25)] == [16, 16, 32, 32, 64]
