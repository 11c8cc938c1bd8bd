"""Assign with mixed subscriptions beside a kept claim on a partition that does not exist, with Java's own steps.

Two members may then hold one partition (unknown_claims.py says why). A member may look full because it holds a
partition that does not exist. The shortcuts of mixed_builder.py do not hold then, so this module takes every step that
Java takes, at Java's cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.classic.sticky.mixed_builder import MixedBuilder, TopicNumbers, out_of_the_balance
from rebalance_lab.assignors.java.hash_order import string_order, string_order_of_second_map


class MixedBesideNonexistent(MixedBuilder):
    def _free(self) -> list[int]:
        layout = self.layout
        rank = {topic: i for i, topic in enumerate(self.topic_order)}
        places = map(self.claims.place_of, (n for share in self.kept for n in share if n >= layout.total))
        stop_rank, stop_partition = min((rank[topic], partition) for topic, partition in places)
        before_stop = self.topic_order[: stop_rank + (stop_partition > 0)]
        spans = [range(layout.starts[topic], layout.starts[topic] + layout.counts[topic]) for topic in before_stop]
        seen = {n for share in self.kept for n in share if any(n in span for span in spans)}
        return [number for number in self.claims.everything if number not in seen]

    def _fill_up(self, free: TopicNumbers) -> None:
        super()._fill_up(free)
        self.held = [list(share) for share in self.kept]
        for _, numbers in free:
            for number in numbers:
                self.held[self.owner[number]].append(number)
        number_of = {member_id: number for number, member_id in enumerate(self.ids)}
        self.subscription_order = [number_of[member_id] for member_id in string_order(self.claims.members)]
        self.assignment_order = [number_of[member_id] for member_id in string_order_of_second_map(self.claims.members)]

    def _balance(self, free: TopicNumbers, initializing: bool) -> None:
        self.held_before = [list(held) for held in self.held]
        super()._balance(free, initializing)

    def _restore(self) -> None:
        self.held = self.held_before

    def _fix_members(self) -> None:
        super()._fix_members()
        self.fixed = [
            len(held) >= self.capacity[self.class_of[number]]
            and all(self.subscribers[self.claims.place_of(n)[0]] < 2 for n in held)
            for number, held in enumerate(self.held)
        ]

    def _relieve(self, topic: int, numbers: Sequence[int]) -> bool:
        for number in numbers:
            if self._is_balanced():
                return False
            holder = self.owner[number]
            former = self.former_owner.get(number)
            if former is not None and self._size(holder) > self._size(former) + 1:
                self._move(topic, number, holder, former)
            elif any(self._size(holder) > self._size(other) + 1 for other in self._candidates(topic, number)):
                self._move(topic, number, holder, self._lightest(topic))
        return True

    def _size(self, member: int) -> int:
        if self.fixed[member]:
            raise out_of_the_balance(self.ids[member])
        return self.size[member]

    def _candidates(self, topic: int, number: int) -> Iterator[int]:
        """Return subscribers on the partition's racks first, if its holder is on one. Only the order in which Java asks
        them matters, since it stumbles over members that it took out.
        """
        subscribers = [m for m in self.subscription_order if topic in self.class_topic_set[self.class_of[m]]]
        if self.racks is not None:
            on_racks, rack_of = self.racks.of_partition[number], self.racks.of_member
            if rack_of.get(self.ids[self.owner[number]]) in on_racks:
                yield from (m for m in subscribers if rack_of.get(self.ids[m]) in on_racks)
        yield from subscribers

    def _lightest(self, topic: int) -> int:
        live = (m for m in range(self.count) if not self.fixed[m])
        return min((self.size[m], m) for m in live if topic in self.class_topic_set[self.class_of[m]])[1]

    def _hand_over(self, number: int, giver: int, receiver: int) -> None:
        super()._hand_over(number, giver, receiver)
        self.held[giver].remove(number)
        self.held[receiver].append(number)

    def _test_balance(self) -> bool:
        live = [m for m in self.assignment_order if not self.fixed[m]]
        sizes = [self.size[m] for m in live]
        if max(sizes) - min(sizes) <= 1:
            return True
        # Where two hold a partition, the later one in hash order counts.
        holder_of = {number: m for m in live for number in self.held[m]}
        for member in sorted(live, key=lambda m: (self.size[m], m)):
            c = self.class_of[member]
            if self.size[member] != self.capacity[c] and self._could_take_more(member, c, holder_of):
                return False
        return True

    def _could_take_more(self, member: int, c: int, holder_of: dict[int, int]) -> bool:
        starts, counts = self.layout.starts, self.layout.counts
        mine = set(self.held[member])
        for topic in self.class_topics[c]:
            for number in range(starts[topic], starts[topic] + counts[topic]):
                if number not in mine:
                    if number not in holder_of:
                        raise AssignorError("a partition without a holder", java_exception="NullPointerException")
                    if self.size[member] + 1 < self.size[holder_of[number]]:
                        return True
        return False

    def _shares(self, free: TopicNumbers) -> dict[str, Sequence[int]]:
        return dict(zip(self.ids, self.held, strict=True))
