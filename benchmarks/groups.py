"""The groups of Kafka's own assignor benchmarks, as ours: java/AssignorBench.java builds the same ones."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.assignors.model import Group, Member, Topic
from rebalance_lab.assignors.strategies import load_assignor, parse_strategy

SHAPES = ("equal", "buckets", "overlapping")
CHANGES = ("full", "join", "leave")


@dataclass(frozen=True, slots=True)
class Cell:
    """One place in the grid."""

    strategy: str
    members: int
    topics: int
    per_member: int
    shape: str = "equal"
    """equal: all subscribe to all; buckets: five disjoint fifths; overlapping: each to its fifth and the next."""
    racks: bool = False
    """Three racks, every partition on two of them: with all three the rack-aware paths would never be taken."""
    change: str = "full"
    """full: nobody owns anything; join, leave: the rebalance after one member came or went."""

    @property
    def partitions(self) -> int:
        return self.members * self.per_member // self.topics

    @property
    def total(self) -> int:
        return self.partitions * self.topics


def subscription(cell: Cell, names: list[str], member: int, members: int) -> tuple[str, ...]:
    if cell.shape == "equal":
        return tuple(names)
    bucket = member * 5 // members
    mine = names[bucket * cell.topics // 5 : (bucket + 1) * cell.topics // 5]
    if cell.shape == "overlapping":
        after = (bucket + 1) % 5
        mine = mine + names[after * cell.topics // 5 : (after + 1) * cell.topics // 5]
    return tuple(mine)


def fresh_group(cell: Cell, members: int) -> Group:
    names = [f"topic{i}" for i in range(cell.topics)]
    racks = tuple((f"rack{p % 3}", f"rack{(p + 1) % 3}") for p in range(cell.partitions)) if cell.racks else None
    topics = {name: Topic(cell.partitions, racks=racks) for name in names}
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    return Group(
        topics,
        {
            f"member{i}": Member(
                topics=shared.setdefault(one := subscription(cell, names, i, members), one),
                rack=f"rack{i % 3}" if cell.racks else None,
            )
            for i in range(members)
        },
    )


def group_for(cell: Cell) -> Group:
    """The group to be assigned; for join and leave everybody holds what the same strategy gave before."""
    group = fresh_group(cell, cell.members)
    if cell.change == "full":
        return group
    before = fresh_group(cell, cell.members + (1 if cell.change == "leave" else -1))
    before = group.with_members(before.members)  # one layout for both, as in a group that lives on
    held = load_assignor(parse_strategy(cell.strategy)).assign(before)
    after = before.after(held, generation=1).members
    return group.with_members(
        {
            member_id: Member(
                topics=member.topics,
                rack=member.rack,
                owned=after[member_id].owned if member_id in after else Member().owned,
                generation=1 if member_id in after else None,
            )
            for member_id, member in group.members.items()
        }
    )
