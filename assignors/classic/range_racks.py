"""Run range's rack pass (KIP-881): place partitions on members of their racks, then give ranges of the others.

Given      topics that look alike (same subscribers, same partition count), their racks, the members' racks
Returns    each member's share; a partition number goes to the same member in all topics that look alike
Surprise   a member without a rack matches every partition. Topics that look alike take part in the rack pass even when
           none of them needs it, as soon as any topic of the group does
Cost       Java looks at every member for every partition. Here each rack has a queue of its members, or of its
           partitions, that is walked only once: what was taken or filled never comes back
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebalance_lab.assignors.classic.racks import RackSet, RackSets, racks_matter
from rebalance_lab.assignors.model import Layout, Topic


def needs_racks(topics: Sequence[Topic], subscribers: Sequence[Sequence[int]], racks: Sequence[str | None]) -> bool:
    """Tell whether racks matter to at least one topic, given the racks of its own subscribers."""
    if not any(racks) or all(topic.racks is None for topic in topics):
        return False
    sets = RackSets()
    # Topics with the same subscribers share one list of them.
    distinct = {id(positions): positions for positions in subscribers}
    member_racks = {key: {rack for i in positions if (rack := racks[i])} for key, positions in distinct.items()}
    return any(
        racks_matter(member_racks[id(positions)], set(sets.of(topic)))
        for topic, positions in zip(topics, subscribers, strict=True)
        if topic.racks is not None and topic.partitions
    )


def assign_with_racks(
    layout: Layout,
    topics: Sequence[Topic],
    alike: Sequence[Sequence[int]],
    subscribers: Sequence[Sequence[int]],
    racks: Sequence[str | None],
) -> list[list[int]]:
    sets = RackSets()
    shares: list[list[int]] = [[] for _ in racks]
    for same in alike:
        positions = subscribers[same[0]]
        member_racks = [racks[position] for position in positions]
        blocks = Blocks(layout.counts[same[0]], len(positions))
        if any(member_racks):
            partition_racks = [sets.of(topics[topic]) for topic in same]
            if len(same) > 1:
                common = [of_one.intersection(*of_others) for of_one, *of_others in zip(*partition_racks, strict=True)]
                blocks.fill_by_partition(common, member_racks)
            elif racks_matter({rack for rack in member_racks if rack}, set(partition_racks[0])):
                blocks.fill_by_member(partition_racks[0], member_racks)
        blocks.fill_the_rest()
        starts = [layout.starts[topic] for topic in same]
        for position, partitions in zip(positions, blocks.given, strict=True):
            for partition in partitions:
                shares[position] += [start + partition for start in starts]
    return shares


class Blocks:
    """Give out the partition numbers of topics that look alike to their subscribers."""

    def __init__(self, count: int, members: int) -> None:
        self.size, self.larger = divmod(count, members)
        self.given: list[list[int]] = [[] for _ in range(members)]
        self.taken = bytearray(count)

    def room(self, member: int) -> int:
        return self.size + (self.larger > 0) - len(self.given[member])

    def give(self, member: int, partitions: Sequence[int]) -> None:
        self.given[member] += partitions
        for partition in partitions:
            self.taken[partition] = 1
        # Who first exceeds the common size takes one of the larger blocks, whatever its place in the order.
        if len(self.given[member]) > self.size:
            self.larger -= 1

    def fill_by_member(self, partition_racks: Sequence[RackSet], member_racks: Sequence[str | None]) -> None:
        """Fill one topic alone: every member takes the first free partitions on its rack."""
        on_rack: dict[str, list[int]] = {}
        for partition, racks in enumerate(partition_racks):
            for one in racks:
                on_rack.setdefault(one, []).append(partition)
        queues: dict[str | None, Iterator[int]] = {rack: iter(partitions) for rack, partitions in on_rack.items()}
        queues[None] = iter(range(len(partition_racks)))
        for member, rack in enumerate(member_racks):
            room = self.room(member)
            mine: list[int] = []
            if room > 0 and (rack or None) in queues:
                for partition in queues[rack or None]:
                    if not self.taken[partition]:
                        mine.append(partition)
                        if len(mine) == room:
                            break
            if mine:
                self.give(member, mine)

    def fill_by_partition(self, partition_racks: Sequence[RackSet], member_racks: Sequence[str | None]) -> None:
        """Fill several topics: every partition number goes to the first member with room that matches in all of
        them.
        """
        queues: dict[str | None, list[int]] = {None: []}
        for member in reversed(range(len(member_racks))):
            queues.setdefault(member_racks[member] or None, []).append(member)
        rackless = queues.pop(None)
        for partition, racks in enumerate(partition_racks):
            best = self.first_with_room(rackless)
            for rack in racks:
                first = self.first_with_room(queues.get(rack))
                if first is not None and (best is None or first < best):
                    best = first
            if best is not None:
                self.give(best, (partition,))

    def first_with_room(self, queue: list[int] | None) -> int | None:
        while queue:
            if self.room(queue[-1]) > 0:
                return queue[-1]
            queue.pop()
        return None

    def fill_the_rest(self) -> None:
        free = [partition for partition, taken in enumerate(self.taken) if not taken]
        begin = 0
        for member in range(len(self.given)):
            if begin == len(free):
                break
            mine = free[begin : begin + max(0, self.room(member))]
            if mine:
                self.give(member, mine)
                begin += len(mine)
