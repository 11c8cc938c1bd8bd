"""The ruler itself, measured: against every assignment there is for tiny groups, and against its own parts."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys

import pytest

from rebalance_lab.assignors.model import NOBODY, Assignment, Group, Member, Topic
from rebalance_lab.assignors.optimal import best_loads, optimum
from rebalance_lab.assignors.optimum import Optimum
from rebalance_lab.assignors.quality import previous_owners, quality

Rank = tuple[int, int, int]


def tiny_group(rng: random.Random) -> Group:
    """Few enough partitions that all assignments can be listed."""
    with_racks = rng.random() < 0.6
    names = [f"t{number}" for number in range(rng.randint(1, 3))]
    members = {}
    for member_id in "ABCD"[: rng.randint(1, 4)]:
        members[member_id] = Member(
            topics=tuple(rng.sample(names, rng.randint(0 if rng.random() < 0.1 else 1, len(names)))),
            owned={name: [p for p in range(3) if rng.random() < 0.4] for name in names},
            generation=rng.choice([None, 1, 1, 2]),
            rack=rng.choice(["a", "b", None]) if with_racks else None,
        )
    topics = {}
    for name in names:
        count = rng.randint(0, 3)
        racks = tuple(tuple(rng.sample("abc", rng.randint(0, 2))) for _ in range(count))
        topics[name] = Topic(count, racks=racks if with_racks else None)
    return Group(topics, members)


def rank(group: Group, owners: tuple[int, ...], numbers: list[int], before: list[int]) -> Rank:
    """What is compared, best smallest: squares of the counts, moves, rack matches missed."""
    members = list(group.members.values())
    counts = [owners.count(member) for member in range(len(members))]
    moves = sum(before[number] not in (NOBODY, owner) for number, owner in zip(numbers, owners, strict=True))
    matches = 0
    for number, owner in zip(numbers, owners, strict=True):
        name, partition = group.layout.partition_of(number)
        racks = group.topics[name].racks
        matches += members[owner].rack is not None and racks is not None and members[owner].rack in racks[partition]
    return sum(count * count for count in counts), moves, -matches


def best_of_all(group: Group) -> Rank | None:
    ids = list(group.members)
    before = previous_owners(group.layout, group.members.values())
    numbers, choices = [], []
    for number in range(group.layout.total):
        name, _ = group.layout.partition_of(number)
        readers = [index for index, member_id in enumerate(ids) if name in group.members[member_id].topics]
        if readers:
            numbers.append(number)
            choices.append(readers)
    every = itertools.product(*choices)
    return min(rank(group, owners, numbers, before) for owners in every)


def measured(group: Group, best: Optimum) -> Rank:
    """The witness, looked at afresh."""
    assert best.assignment is not None
    assert set(best.assignment) == set(group.members)
    holder = {number: member_id for member_id, share in best.assignment.numbers.items() for number in share}
    ids = list(group.members)
    for number, member_id in holder.items():
        assert group.layout.partition_of(number)[0] in group.members[member_id].topics
    numbers = sorted(holder)
    owners = tuple(ids.index(holder[number]) for number in numbers)
    assert best.counts == tuple(owners.count(index) for index in range(len(ids)))
    return rank(group, owners, numbers, previous_owners(group.layout, group.members.values()))


@pytest.mark.parametrize("seed", range(20))
def test_no_assignment_of_a_tiny_group_is_better(seed: int) -> None:
    rng = random.Random(seed)
    compared = 0
    while compared < 15:
        group = tiny_group(rng)
        if group.layout.total > 7:
            continue
        compared += 1
        best = optimum(group)
        assert best.exact
        squares, moves, missed = measured(group, best)
        assert (squares, moves, missed) == best_of_all(group)
        assert best.moves == moves
        assert (best.rack_matches or 0) == -missed
        row = quality(group, best.assignment or {}, best)
        assert (row.unassigned, row.gap_balance, row.gap_moves) == (0, 0, 0)
        assert row.gap_racks in (0, None)


def random_group(rng: random.Random, members: int, topics: int, partitions: int, *, mixed: bool, racks: bool) -> Group:
    names = [f"t{number}" for number in range(topics)]
    described = {
        name: Topic(
            partitions // topics,
            racks=tuple(tuple(rng.sample("abc", 2)) for _ in range(partitions // topics)) if racks else None,
        )
        for name in names
    }
    group = Group(
        described,
        {
            f"m{number:03}": Member(
                tuple(rng.sample(names, rng.randint(1, topics)) if mixed else names),
                rack=rng.choice("abc") if racks else None,
            )
            for number in range(members)
        },
    )
    shares: dict[str, list[int]] = {member_id: [] for member_id in group.members}
    for number in range(group.layout.total):
        if rng.random() < 0.9:
            shares[rng.choice(list(shares))].append(number)
    return group.after(Assignment(group.layout, shares), 1)


@pytest.mark.parametrize("seed", range(20))
def test_equal_subscriptions_without_racks_need_no_flow_and_get_the_same_answer(seed: int) -> None:
    rng = random.Random(seed)
    group = random_group(rng, rng.randint(1, 9), 3, rng.randint(3, 60), mixed=False, racks=False)
    quick = optimum(group)
    # A rack that matches nothing but makes the members look at racks sends the same group through the flow.
    racked = Group(
        {name: Topic(topic.partitions, racks=(("x",),) * topic.partitions) for name, topic in group.topics.items()},
        {
            **group.members,
            "idle": Member((), rack="x"),
        },
    )
    flow = optimum(racked)
    assert sorted(flow.counts) == sorted((*quick.counts, 0))
    assert (flow.moves, flow.rack_matches) == (quick.moves, 0)


@pytest.mark.parametrize("seed", range(30))
def test_bounds_of_large_groups_are_never_worse_than_the_truth(seed: int) -> None:
    rng = random.Random(seed)
    group = random_group(rng, rng.randint(2, 12), 4, rng.randint(8, 80), mixed=seed % 3 > 0, racks=seed % 2 > 0)
    exact, bound = optimum(group), optimum(group, exact_up_to=0)
    assert bound.exact == (seed % 6 == 0)  # equal subscriptions without racks are exact at any size
    assert sorted(bound.counts) == sorted(exact.counts)
    assert bound.moves <= exact.moves
    assert (bound.rack_matches or 0) >= (exact.rack_matches or 0)


@pytest.mark.parametrize(
    ("sizes", "demands", "expected"),
    [
        ([3], [(7, (0,))], [7]),  # one class: nothing to decide
        ([1, 1, 1], [(10, (0, 1)), (20, (1, 2))], [10, 10, 10]),  # a path through the middle member
        ([1, 1], [(9, (0,)), (1, (0, 1))], [9, 1]),  # the heavy one cannot be relieved
        ([2, 1], [(4, (0,)), (5, (0, 1))], [6, 3]),  # a class of two carries twice as much
        ([1, 1, 1, 1], [(4, (0,)), (4, (0, 1)), (4, (1, 2)), (0, (2, 3))], [4, 4, 4, 0]),
        ([1], [], [0]),
    ],
)
def test_balance_alone(sizes: list[int], demands: list[tuple[int, tuple[int, ...]]], expected: list[int]) -> None:
    assert best_loads(sizes, demands) == expected


def test_the_search_for_balance_gives_up_when_its_budget_is_spent() -> None:
    assert best_loads([1, 1, 1], [(10, (0, 1)), (20, (1, 2))], budget=1) is None


def test_the_textbook_chain_is_balanced_across_subscriptions() -> None:
    # Moving single partitions between two members cannot find this: uniform may end 9/10/11 on such a chain.
    topics = {"a": Topic(15), "b": Topic(15)}
    group = Group(topics, {"A": Member(("a",)), "B": Member(("a", "b")), "C": Member(("b",))})
    assert optimum(group).counts == (10, 10, 10)


def test_a_rack_match_never_costs_a_move_and_a_move_never_costs_balance() -> None:
    topics = {"t": Topic(4, racks=(("b",), ("b",), ("a",), ("a",)))}
    owned = {"A": Member(("t",), {"t": [0, 1, 2]}, 1, rack="a"), "B": Member(("t",), {"t": [3]}, 1, rack="b")}
    best = optimum(Group(topics, owned))
    assert (best.counts, best.moves, best.rack_matches) == ((2, 2), 1, 2)


@pytest.mark.parametrize("members", [{}, {"A": Member(())}, {"A": Member(("missing",))}])
def test_nobody_to_give_anything_to_is_an_optimum_too(members: dict[str, Member]) -> None:
    best = optimum(Group({"t": Topic(3)}, members))
    assert (best.counts, best.moves, best.exact) == ((0,) * len(members), 0, True)


def test_a_hundred_members_and_two_thousand_partitions_are_exact() -> None:
    group = random_group(random.Random(5), 100, 20, 2_000, mixed=True, racks=True)
    best = optimum(group)
    assert best.exact
    row = quality(group, best.assignment or {}, best)
    assert (row.unassigned, row.gap_balance, row.gap_moves, row.gap_racks) == (0, 0, 0, 0)


def test_networkx_is_loaded_only_when_a_flow_is_computed() -> None:
    code = (
        "import sys, rebalance_lab.assignors.quality, rebalance_lab.assignors.classic.load_aware;"
        "from rebalance_lab.assignors import optimal;"
        "from rebalance_lab.assignors.model import *;"
        "optimal.optimum(Group({'t': Topic(5)}, {'A': Member(('t',))}));"
        "sys.exit('networkx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
