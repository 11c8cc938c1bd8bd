"""How far each assignor stays from the exact optimum, and that none of ours ever assigns invalidly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import pytest

from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.model import Group, Member, Topic
from rebalance_lab.assignors.optimal import optimum
from rebalance_lab.assignors.quality import quality
from rebalance_lab.assignors.strategies import BUILT_IN, load_assignor, parse_strategy

GROUPS = 5_000
Shares = Mapping[str, Mapping[str, Sequence[int]]]


@dataclass(slots=True)
class Gaps:
    """What one assignor left on the table."""

    balance: list[int] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)


def sane_group(rng: Random) -> Group:
    """As a healthy cluster has them: existing topics, no duplicates, everything owned once in one generation."""
    topics = {f"t{i}": Topic(rng.randint(1, 12)) for i in range(rng.randint(1, 5))}
    ids = [f"c{i}" for i in range(rng.randint(1, 8))]
    alike = rng.random() < 0.5
    subscriptions = {
        member_id: tuple(topics) if alike else tuple(rng.sample(list(topics), rng.randint(1, len(topics))))
        for member_id in ids
    }
    owned: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in ids}
    if rng.random() < 0.8:  # somebody else had some of them and has left
        for name, topic in topics.items():
            takers: list[str | None] = [i for i in ids if name in subscriptions[i]]
            takers = takers[: rng.randint(1, 8)] + [None] * (rng.random() < 0.3)
            for partition in range(topic.partitions):
                taker = rng.choice(takers) if takers else None
                if taker is not None:
                    owned[taker].setdefault(name, []).append(partition)
    return Group(topics, {i: Member(topics=subscriptions[i], owned=owned[i], generation=3) for i in ids})


def settled(group: Group, assign: Callable[[Group], Shares]) -> Shares:
    """The end of a cooperative hand-over: rounds until nothing is withheld."""
    answer = assign(group)
    for generation in range(4, 9):
        if quality(group, answer).unassigned == 0:
            break
        group = group.after(answer, generation)
        answer = assign(group)
    return answer


def test_no_assignor_is_invalid_and_the_gap_to_the_optimum_is_known(
    record_property: Callable[[str, object], None],
) -> None:
    gaps = {name: Gaps() for name in BUILT_IN}
    for seed in range(GROUPS):
        group = sane_group(Random(f"optimality {seed}"))
        best = optimum(group)
        for name in BUILT_IN:
            answer = settled(group, load_assignor(parse_strategy(name)).assign)
            check_valid(name, seed, group, answer)
            row = quality(group, answer, best)
            assert row.gap_balance is not None
            assert row.gap_moves is not None
            assert row.gap_balance >= 0, f"{name} beats the optimum's balance on seed {seed}: the ruler is wrong"
            if row.gap_balance == 0:
                assert row.gap_moves >= 0, f"{name} moves less than the optimum on seed {seed}: the ruler is wrong"
                gaps[name].moves.append(row.gap_moves)
            gaps[name].balance.append(row.gap_balance)
    record_property(f"table: gap to the exact optimum, {GROUPS:,} random groups", as_table(gaps))


def check_valid(name: str, seed: int, group: Group, answer: Shares) -> None:
    seen: set[tuple[str, int]] = set()
    for member_id, share in answer.items():
        for topic, partitions in share.items():
            assert topic in group.members[member_id].topics, f"{name}, seed {seed}: {member_id} did not ask for {topic}"
            for partition in partitions:
                assert (topic, partition) not in seen, f"{name}, seed {seed}: {topic}-{partition} twice"
                seen.add((topic, partition))
    subscribed = {topic for member in group.members.values() for topic in member.topics}
    everything = {(t, p) for t in subscribed for p in range(group.topics[t].partitions)}
    assert seen == everything, f"{name}, seed {seed}: {sorted(everything ^ seen)} forgotten or invented"


def as_table(gaps: Mapping[str, Gaps]) -> str:
    lines = [f"{'strategy':28}{'best balance':>14}{'worst gap':>11}{'fewest moves*':>15}{'worst gap':>11}"]
    for name, gap in gaps.items():
        best = gap.balance.count(0) / len(gap.balance)
        fewest = gap.moves.count(0) / len(gap.moves)
        lines.append(f"{name:28}{best:13.1%} {max(gap.balance):10}{fewest:14.1%} {max(gap.moves):10}")
    lines.append(
        "* of the groups in which the balance is best. Gaps: partitions too many on heavy members; moves too many"
    )
    return "\n".join(lines)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_group_without_members_gets_javas_answer(name: str) -> None:
    assignor = load_assignor(parse_strategy(name))
    empty = Group({"t": Topic(3)}, {})
    if name in ("classic/roundrobin", "classic/sticky", "classic/cooperative-sticky"):  # so do Java's
        with pytest.raises(AssignorError, match="no members"):
            assignor.assign(empty)
    else:
        assert dict(assignor.assign(empty)) == {}
