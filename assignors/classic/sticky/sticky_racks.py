"""Match racks in the sticky assignors (KIP-881), and fill up members rack by rack.

Given      the claims of a group
Returns    GroupRacks, or None where racks do not matter to this group; unlike range, which asks topic by topic, one
           answer holds for the whole group
Reference  RackInfo and assignRackAwareRoundRobin in AbstractStickyAssignor of Apache Kafka 4.3.1
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Sequence

from rebalance_lab.assignors.classic.racks import NO_RACKS, RackSet, RackSets, racks_matter
from rebalance_lab.assignors.classic.sticky.claims import Claims


class GroupRacks:
    def __init__(self, of_member: dict[str, str], of_partition: Sequence[RackSet]) -> None:
        self.of_member = of_member
        """Only members that have one."""
        self.of_partition = of_partition
        self._members_on = Counter(of_member.values())

    def in_place(self, member_id: str, numbers: Sequence[int]) -> list[int]:
        """Return what a member may keep. A member without a rack keeps all; nothing is known of a nonexistent
        partition.
        """
        rack = self.of_member.get(member_id)
        if rack is None:
            return list(numbers)
        of_partition, total = self.of_partition, len(self.of_partition)
        return [number for number in numbers if number < total and rack in of_partition[number]]

    def fewest_members_first(self, numbers: Sequence[int]) -> list[int]:
        of_partition, members_on = self.of_partition, self._members_on
        counts = {racks: sum(members_on[rack] for rack in racks) for racks in set(of_partition)}
        return sorted(numbers, key=lambda number: counts[of_partition[number]])


def racks_of(claims: Claims) -> GroupRacks | None:
    of_member = {member_id: member.rack for member_id, member in claims.members.items() if member.rack}
    topics = claims.group.topics
    if not of_member or not any(topic.racks for topic in topics.values()):
        return None
    sets = RackSets()
    of_partition: list[RackSet] = []
    seen: set[RackSet] = set()
    for name in claims.layout.names:
        topic = topics[name]
        if name in claims.subscribed:
            racks = sets.of(topic)
            seen.update(racks)
            of_partition += racks
        else:
            of_partition += [NO_RACKS] * topic.partitions
    return GroupRacks(of_member, of_partition) if racks_matter(set(of_member.values()), seen) else None


class RackFill:
    """Give partitions to members on their rack. Those below the minimum come first, in a circle, then those that may
    still rise from the minimum to the maximum, in a queue. Members without a rack never match here.

    Java walks both lists for every partition. Here each rack has its own part of the circle and of the queue.
    """

    def __init__(
        self,
        racks: GroupRacks,
        below: dict[str, int],
        at_minimum: Sequence[str],
        rises_left: int,
        given: dict[str, list[int]],
    ) -> None:
        self.racks = racks
        self.given = given
        self.below = below
        """Member to what it lacks, in the order of the circle."""
        self.rises_left = rises_left
        self.circle = list(below)
        self.cursor = 0
        self.circle_of: dict[str, list[int]] = {}
        for place, member_id in enumerate(self.circle):
            if (rack := racks.of_member.get(member_id)) is not None:
                self.circle_of.setdefault(rack, []).append(place)
        self.queue = dict(enumerate(at_minimum))
        self.queue_of: dict[str, deque[int]] = {}
        self.next_place = len(self.queue)
        for place, member_id in self.queue.items():
            self._queue_up(place, member_id)

    def _queue_up(self, place: int, member_id: str) -> None:
        if (rack := self.racks.of_member.get(member_id)) is not None:
            self.queue_of.setdefault(rack, deque()).append(place)

    def fill(self, numbers: Sequence[int]) -> list[int]:
        """Return partitions that found no member on their racks."""
        left = []
        of_partition = self.racks.of_partition
        for number in numbers:
            on_racks = of_partition[number]
            member_id = self._take_from_circle(on_racks)
            if member_id is None and self.queue:
                member_id = self._take_from_queue(on_racks)
            if member_id is None:
                left.append(number)
            else:
                self.given.setdefault(member_id, []).append(number)
        return left

    def _take_from_circle(self, on_racks: RackSet) -> str | None:
        best: int | None = None
        best_turn = best_index = 0
        best_rack = ""
        for rack in on_racks:
            places = self.circle_of.get(rack)
            if places:
                index = bisect_left(places, self.cursor)
                # After the last place the circle goes on at the first: such places count one turn later.
                turn = index == len(places)
                index = 0 if turn else index
                if best is None or (turn, places[index]) < (best_turn, best):
                    best, best_turn, best_index, best_rack = places[index], turn, index, rack
        if best is None:
            return None
        member_id = self.circle[best]
        self.cursor = best + 1
        self.below[member_id] -= 1
        if self.below[member_id] == 0:
            del self.below[member_id]
            del self.circle_of[best_rack][best_index]
            if self.rises_left:
                self.queue[self.next_place] = member_id
                self._queue_up(self.next_place, member_id)
                self.next_place += 1
        return member_id

    def _take_from_queue(self, on_racks: RackSet) -> str | None:
        fronts = [(queue[0], rack) for rack in on_racks if (queue := self.queue_of.get(rack))]
        if not fronts:
            return None
        place, rack = min(fronts)
        self.queue_of[rack].popleft()
        member_id = self.queue.pop(place)
        self.rises_left -= 1
        if self.rises_left == 0:
            self.queue.clear()
            self.queue_of.clear()
        return member_id
