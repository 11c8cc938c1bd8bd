"""One flat row says how good an assignment is; each figure is checked by hand on a group that fits on a line."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from time import process_time
from typing import Any

import pytest

from rebalance_lab.assignors.model import Assignment, Group, Member, Topic
from rebalance_lab.assignors.optimum import Optimum
from rebalance_lab.assignors.quality import excess, jain, previous_owners, quality

Answer = Mapping[str, Mapping[str, Sequence[int]]]

SIX = {"t": Topic(6)}
TWO_TOPICS = {"t": Topic(2), "u": Topic(2)}


def owners(**owned: list[int]) -> dict[str, Member]:
    return {
        member_id: Member(("t",), {"t": partitions} if partitions else {}, 1) for member_id, partitions in owned.items()
    }


@pytest.mark.parametrize(
    ("topics", "members", "answer", "expected"),
    [
        pytest.param(
            SIX,
            owners(A=[], B=[]),
            {"A": {"t": [0, 1, 2, 3]}, "B": {"t": [4, 5]}},
            {"members": 2, "partitions": 6, "assigned": 6, "unassigned": 0, "min": 2, "max": 4, "spread": 2, "new": 6}
            | {"jain": 0.9, "topic_spread_max": 2, "kept": 0, "moved": 0, "revoked": 0, "needlessly_moved": 0},
            id="counts alone",
        ),
        pytest.param(
            SIX,
            owners(A=[0, 1, 2, 3, 4, 5], B=[]),
            {"A": {"t": [0, 1, 2]}, "B": {}},
            {"assigned": 3, "unassigned": 3, "kept": 3, "revoked": 3, "moved": 0, "min": 0, "max": 3},
            id="a cooperative round withholds what changes hands",
        ),
        pytest.param(
            SIX,
            owners(A=[0, 1, 2], B=[3, 4, 5]),
            {"A": {"t": [0, 1, 5]}, "B": {"t": [3, 4, 2]}},
            {"kept": 4, "moved": 2, "needlessly_moved": 2},
            id="an exchange serves nothing",
        ),
        pytest.param(
            SIX,
            owners(A=[0, 1, 2, 3], B=[4, 5]),
            {"A": {"t": [0, 1, 2]}, "B": {"t": [3, 4, 5]}},
            {"kept": 5, "moved": 1, "needlessly_moved": 0},
            id="a move for balance is not needless",
        ),
        pytest.param(
            TWO_TOPICS,
            {"A": Member(("u",), {"t": [0, 1]}, 1), "B": Member(("t", "u"), {"u": [0, 1]}, 1)},
            {"A": {"u": [0, 1]}, "B": {"t": [0, 1]}},
            {"moved": 4, "needlessly_moved": 2},  # A had to let go of t; B did not have to let go of u
            id="what is no longer subscribed is not lost needlessly",
        ),
        pytest.param(
            SIX,
            {"A": Member(("t",), {"t": [0, 1, 2]}, 2), "B": Member(("t",), {"t": [2, 3, 9]}, 1), "C": Member(("t",))},
            {"A": {"t": [0, 1, 2]}, "B": {"t": [3]}, "C": {"t": [4, 5]}},
            {"kept": 4, "new": 2, "moved": 0},
            id="the highest generation was the owner, and a claim on no partition counts for nothing",
        ),
        pytest.param(
            SIX,
            owners(A=[0, 1], B=[1, 2]),
            {"A": {"t": [0, 3, 4]}, "B": {"t": [1, 2, 5]}},
            {"kept": 2, "new": 4},
            id="claimed twice in one generation is owned by nobody",
        ),
        pytest.param(
            TWO_TOPICS,
            {"A": Member(("t", "missing")), "B": Member(("t",))},
            {"A": {"t": [0]}, "B": {"t": [1]}},
            {"partitions": 2, "assigned": 2, "unassigned": 0},
            id="only subscribed topics count",
        ),
        pytest.param(
            SIX,
            owners(A=[], B=[]),
            {"A": {"t": [0, 77], "missing": [3]}, "stranger": {"t": [1]}},
            {"assigned": 1, "unassigned": 5, "max": 1, "min": 0},
            id="partitions and members that do not exist are passed over",
        ),
        pytest.param(
            {}, {}, {}, {"members": 0, "partitions": 0, "min": 0, "max": 0, "jain": None}, id="nothing at all"
        ),
    ],
)
def test_counts_and_moves(
    topics: dict[str, Topic], members: dict[str, Member], answer: Answer, expected: dict[str, Any]
) -> None:
    row = quality(Group(topics, members), answer).as_row()
    assert {key: row[key] for key in expected} == expected


RACKED = {"t": Topic(4, racks=(("a",), ("a", "b"), ("b",), ()))}


@pytest.mark.parametrize(
    ("racks", "expected"),
    [
        (("a", "b"), 1.0),
        (("b", "a"), 1 / 3),  # 1 alone; 3 has no known rack and does not count
        (("b", None), 1 / 2),  # B has no rack: only 0 and 1 count
        ((None, None), None),
    ],
)
def test_rack_locality_counts_where_both_racks_are_known(racks: tuple[str | None, ...], expected: float | None) -> None:
    members = {"A": Member(("t",), rack=racks[0]), "B": Member(("t",), rack=racks[1])}
    row = quality(Group(RACKED, members), {"A": {"t": [0, 1]}, "B": {"t": [2, 3]}})
    assert row.rack_local == expected


@pytest.mark.parametrize(
    ("load", "capacities", "skew", "spread"),
    [
        ((1, 1, 1, 1), (1, 1), 1.0, 0.0),
        ((3, 3, 1, 1), (1, 1), 1.5, 4.0),
        ((3, 3, 1, 1), (3, 1), 1.0, 0.0),  # thrice the capacity
        ((0, 0, 0, 0), (1, 1), 1.0, 0.0),  # idle is even
        (None, (1, 1), None, None),
        ((1e308, 1e308, 1e308, 1e308), (1, 1), None, None),  # no finite number says it
    ],
)
def test_load_is_measured_against_capacity(
    load: tuple[float, ...] | None, capacities: tuple[float, float], skew: float | None, spread: float | None
) -> None:
    members = {"A": Member(("t",), capacity=capacities[0]), "B": Member(("t",), capacity=capacities[1])}
    row = quality(Group({"t": Topic(4, load=load)}, members), {"A": {"t": [0, 1]}, "B": {"t": [2, 3]}})
    assert (row.load_skew, row.load_spread) == (skew, spread)


def test_topics_without_loads_count_as_the_mean_of_the_others() -> None:
    topics = {"t": Topic(2, load=(6, 2)), "u": Topic(2), "unread": Topic(1, load=(1000,))}
    members = {"A": Member(("t", "u")), "B": Member(("t", "u"))}
    row = quality(Group(topics, members), {"A": {"t": [0, 1]}, "B": {"u": [0, 1]}})
    assert (row.load_skew, row.load_spread) == (1.0, 0.0)


def test_topic_spread_looks_at_one_topic_and_its_subscribers_only() -> None:
    topics = {"t": Topic(3), "u": Topic(3)}
    members = {"A": Member(("t", "u")), "B": Member(("t", "u")), "C": Member(("u",))}
    answer = {"A": {"t": [0, 1]}, "B": {"t": [2], "u": [0]}, "C": {"u": [1, 2]}}
    assert quality(Group(topics, members), answer).topic_spread_max == 2  # u: A 0, C 2; t: 2 and 1, C not asked


def test_gaps_are_measured_only_when_an_optimum_is_given() -> None:
    group = Group(RACKED, {"A": Member(("t",), {"t": [0, 1, 2]}, 1, rack="a"), "B": Member(("t",), rack="b")})
    answer = {"A": {"t": [3]}, "B": {"t": [0, 1, 2]}}
    without = quality(group, answer)
    assert (without.gap_balance, without.gap_moves, without.gap_racks) == (None, None, None)
    row = quality(group, answer, Optimum((2, 2), moves=1, rack_matches=3, exact=True, assignment=None))
    assert (row.gap_balance, row.gap_moves, row.gap_racks) == (1, 2, 1)


@pytest.mark.parametrize(
    ("counts", "best", "expected"),
    [
        ([3, 3], [3, 3], 0),
        ([5, 1], [3, 3], 2),
        ([3, 4], [4, 3], 0),  # who is heavy does not matter
        ([2, 1], [3, 3], 0),  # withheld partitions make nobody too heavy
    ],
)
def test_excess_counts_partitions_on_too_heavy_members(counts: list[int], best: list[int], expected: int) -> None:
    assert excess(counts, best) == expected


@pytest.mark.parametrize(("counts", "expected"), [([], None), ([0, 0], 1.0), ([4, 0], 0.5), ([2, 2, 2], 1.0)])
def test_jain_is_one_for_equal_counts_and_one_over_n_for_one_member(counts: list[int], expected: float | None) -> None:
    assert jain(counts) == expected


def test_a_claim_generation_overrides_the_generation_of_the_subscription() -> None:
    members = [Member(("t",), {"t": [0]}, generation=5, claim_generation=1), Member(("t",), {"t": [0]}, generation=2)]
    assert previous_owners(Group({"t": Topic(1)}, {}).layout, members) == [1]
    assert previous_owners(Group({"t": Topic(1)}, {}).layout, [*members, Member((), {"t": [0]}, 2)]) == [-1]


def numbered_group(members: int, topics: int, partitions: int) -> tuple[Group, Assignment]:
    """A group that owns one assignment and is given another, with racks and loads."""
    rng = random.Random(3)
    described = {
        f"t{number}": Topic(
            partitions // topics,
            load=tuple(rng.random() for _ in range(partitions // topics)),
            racks=tuple(tuple(rng.sample("abc", 2)) for _ in range(partitions // topics)),
        )
        for number in range(topics)
    }
    subscribed = tuple(described)
    group = Group(described, {f"m{number}": Member(subscribed, rack="abc"[number % 3]) for number in range(members)})
    before = {m: list(range(i, partitions, members)) for i, m in enumerate(group.members)}
    after = {m: list(range((i + 7) % members, partitions, members)) for i, m in enumerate(group.members)}
    return group.after(Assignment(group.layout, before), 1), Assignment(group.layout, after)


def test_a_plain_mapping_and_the_compact_form_give_the_same_row() -> None:
    group, answer = numbered_group(20, 5, 200)
    plain = {
        member_id: {topic: tuple(partitions) for topic, partitions in s.items()} for member_id, s in answer.items()
    }
    elsewhere = Assignment(Group(group.topics, {}).layout, answer.numbers)  # an equal layout, but not the same one
    row = quality(group, answer).as_row()
    assert row == quality(group, plain).as_row() == quality(group, elsewhere).as_row()
    assert row["moved"] == 200
    assert json.loads(json.dumps(row)) == row


def test_ten_thousand_members_are_measured_in_well_under_a_second() -> None:
    group, answer = numbered_group(10_000, 1_000, 100_000)
    started = process_time()
    row = quality(group, answer)
    assert process_time() - started < 1.0  # about 0.1 s; the margin is for a busy machine
    assert (row.moved, row.spread) == (100_000, 0)
