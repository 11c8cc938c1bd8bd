"""A share of range, kept as blocks, is the list of numbers that it stands for."""

from __future__ import annotations

import pickle

import pytest

from rebalance_lab.assignors.classic.block_share import BlockShare
from rebalance_lab.assignors.classic.range import RangeAssignor
from rebalance_lab.assignors.model import Group, Member, Topic

THREE_TOPICS = ([0, 10, 20], 2, 5)
NUMBERS = [2, 3, 4, 12, 13, 14, 22, 23, 24]


@pytest.mark.parametrize("index", [0, 2, 3, 8, -1, -9, slice(1, 5), slice(None, None, -2)])
def test_it_is_indexed_as_the_list_is(index: int | slice) -> None:
    assert BlockShare(*THREE_TOPICS)[index] == NUMBERS[index]


@pytest.mark.parametrize("index", [9, -10])
def test_it_ends_where_the_list_ends(index: int) -> None:
    with pytest.raises(IndexError):
        BlockShare(*THREE_TOPICS)[index]


def test_it_counts_and_walks_as_the_list_does_also_in_another_process() -> None:
    share = pickle.loads(pickle.dumps(BlockShare(*THREE_TOPICS)))
    assert (len(share), list(share), 13 in share, 15 in share) == (9, NUMBERS, True, False)


def test_members_of_several_kinds_of_topics_have_a_block_in_each() -> None:
    topics = {"even": Topic(4), "odd": Topic(3), "own": Topic(2)}
    members = {"A": Member(topics=("even", "odd", "own")), "B": Member(topics=("even", "odd"))}
    assigned = RangeAssignor().assign(Group(topics, members))
    assert {member: dict(share) for member, share in assigned.items()} == {
        "A": {"even": [0, 1], "odd": [0, 1], "own": [0, 1]},
        "B": {"even": [2, 3], "odd": [2]},
    }
