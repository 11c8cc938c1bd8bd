"""Every answer of ours beside Java's: 5,000 random groups per assignor, 36 large ones in all, not one may differ.

`make test-deep` runs the same for as long as it is told to (deep.py).
"""

from __future__ import annotations

import pytest

from rebalance_lab.assignors.model import Group, Member, Topic
from tests.conformance.differential import ORACLES, Mismatch, compare_large, compare_random, shrink
from tests.conformance.java_oracle import java_answers, why_not

REASON = why_not()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))

LARGE = 6
"""For each of six assignors: two groups, each through two more rebalances."""
PARTS = 5
"""In parts, so that both of pytest's workers have something to do."""


def smallest(mismatches: list[Mismatch]) -> str:
    return (
        "" if not mismatches else f"{len(mismatches)} groups differ; one of them, made small:\n{shrink(mismatches[0])}"
    )


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("strategy", ORACLES)
def test_a_random_group_gets_the_same_assignment_from_us_as_from_java(strategy: str, part: int) -> None:
    compared, mismatches = compare_random(strategy, part, 5_000 // PARTS)
    assert not mismatches, smallest(mismatches)
    assert compared >= 5_000 // PARTS


@pytest.mark.parametrize("strategy", ORACLES)
def test_a_large_group_that_lives_on_gets_the_same_assignments_from_us_as_from_java(strategy: str) -> None:
    compared, mismatches = compare_large(strategy, seed=1, count=LARGE)
    assert not mismatches, smallest(mismatches)
    assert compared == LARGE


# Why a simulated group can have two readers of one partition (tests/harness/random_scenarios.py, gives_twice).


def test_javas_sticky_gives_partitions_twice_when_its_leader_does_not_know_what_others_claim() -> None:
    everything = ("t0", "t1", "t2")
    members = {
        "m-4-5": Member(everything, {"t0": [5], "t1": [2, 4], "t2": [2]}, 3, claim_generation=3),
        "m-3-3": Member(everything, {"t0": [4], "t1": [1, 3, 6], "t2": [1]}, 3, claim_generation=3),
        "m-1-6": Member(("t0",), {"t0": [0, 1, 2, 6]}, 3, claim_generation=3),
    }
    known_to_the_leader = {"t0": Topic(8), "t1": Topic(3), "t2": Topic(3)}
    twice = given_twice("classic/sticky", Group(known_to_the_leader, members))
    assert twice == [("t0", 4), ("t0", 5), ("t0", 6), ("t2", 1), ("t2", 2)]


def test_javas_cooperative_sticky_does_so_too() -> None:
    members = {
        "m-1": Member(("t0", "t1"), {"t1": [0, 2, 4]}, 3),
        "m-2": Member(("t0", "t1"), {"t0": [4], "t1": [1, 3]}, 3),
        "m-3": Member(("t0",), {"t0": [0, 1, 6]}, 3),
    }
    group = Group({"t0": Topic(7), "t1": Topic(3)}, members)  # t1 has grown, but the leader has not heard of it
    assert given_twice("classic/cooperative-sticky", group) == [("t0", 0), ("t0", 1), ("t0", 6)]


# And why where a topic was created again with fewer partitions (claims_what_is_gone in measure/known_violations.py).


def after_a_topic_has_shrunk(owned: dict[str, dict[str, list[int]]], **sizes: int) -> Group:
    """Who owns nothing subscribes to the last topic alone, the others to all."""
    everything, last = tuple(sizes), tuple(sizes)[-1:]
    members = {name: Member(everything if mine else last, mine, 3, claim_generation=3) for name, mine in owned.items()}
    return Group({name: Topic(partitions) for name, partitions in sizes.items()}, members)


@pytest.mark.parametrize("strategy", ["classic/sticky", "classic/cooperative-sticky"])
def test_javas_sticky_assignors_throw_when_they_are_asked_to_keep_what_a_topic_no_longer_has(strategy: str) -> None:
    group = after_a_topic_has_shrunk({"m-1": {"t0": [5]}, "m-2": {"t0": [0]}, "m-3": {"t0": [1]}}, t0=3)
    assert java_answers([(strategy, group, True)]) == ["IllegalStateException"]


@pytest.mark.parametrize("strategy", ["classic/sticky", "classic/cooperative-sticky"])
def test_or_give_something_else_twice_where_subscriptions_differ(strategy: str) -> None:
    owned = {"m-0": {"t0": [0, 2], "t1": [0]}, "m-1": {}, "m-2": {"t0": [1]}}
    assert given_twice(strategy, after_a_topic_has_shrunk(owned, t0=1, t1=1)) == [("t1", 0)]


def given_twice(strategy: str, group: Group) -> list[tuple[str, int]]:
    (answer,) = java_answers([(strategy, group, True)])
    assert isinstance(answer, dict)
    given = [place for share in answer.values() for place in set(share)]
    return sorted({place for place in given if given.count(place) > 1})
