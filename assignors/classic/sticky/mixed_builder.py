"""Assign stickily where subscriptions differ: keep what can be kept, fill up the lightest, move until balanced.

Given      the claims of a group. Members get numbers in the order of their ids, so that `size * members + number` sorts
           them as Java's live order does: by partitions held, then by id
Returns    member id to partition numbers
Speed      Java tests the balance of the whole group before it looks at a partition. The test is not needed: in a
           balanced group nothing can move anyway. The one exception are former owners that no longer subscribe, to whom
           Java moves partitions all the same; only then is the test made (`is_balanced`). Members with equal topics
           (and racks) form a class with one heap, so a topic's lightest subscriber is the lightest of a few heaps
Reference  GeneralAssignmentBuilder in AbstractStickyAssignor of Apache Kafka 4.3.1
Start at   MixedBuilder.build
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain, repeat
from operator import itemgetter

from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.classic.sticky.claims import Claims
from rebalance_lab.assignors.classic.sticky.partition_moves import Moves
from rebalance_lab.assignors.classic.sticky.sticky_racks import GroupRacks, racks_of
from rebalance_lab.assignors.java.hash_order import string_order
from rebalance_lab.assignors.java.string_order import in_java_order

TopicNumbers = list[tuple[int, Sequence[int]]]
"""Topics with some of their partitions, in the order in which Java goes through them."""


class MixedBuilder:
    def __init__(self, claims: Claims, max_generation: int) -> None:
        self.claims = claims
        self.layout = claims.layout
        self.max_generation = max_generation
        self.racks: GroupRacks | None = racks_of(claims)
        self.ids = in_java_order(claims.members)
        self.count = len(self.ids)
        self._sort_into_classes()
        self._order_topics()
        self.topic_at = list(chain.from_iterable(map(repeat, range(len(self.layout.counts)), self.layout.counts)))
        self._keep()

    def keeps_nonexistent(self) -> bool:
        total = self.layout.total
        return bool(self.claims.beyond) and any(number >= total for share in self.kept for number in share)

    def _sort_into_classes(self) -> None:
        """Sort members into classes, each with one list of topics and one rack."""
        index, counts = self.layout.index, self.layout.counts
        members = self.claims.members
        of_rack = self.racks.of_member if self.racks is not None else {}
        classes: dict[tuple[int, str | None], int] = {}
        by_topics: dict[tuple[str, ...], int] = {}
        by_identity: dict[int, int] = {}
        self.class_of: list[int] = []
        self.class_members: list[list[int]] = []
        self.class_topics: list[list[int]] = []
        """As listed, duplicates included; only topics that have partitions."""
        self.class_rack: list[str | None] = []
        listed: list[list[int]] = []
        for number, member_id in enumerate(self.ids):
            topics = members[member_id].topics
            kind = by_identity.get(id(topics))
            if kind is None:
                kind = by_topics.get(topics)
                if kind is None:
                    kind = by_topics[topics] = len(listed)
                    found = [index[name] for name in topics if name in index]
                    listed.append([topic for topic in found if counts[topic]])
                by_identity[id(topics)] = kind
            rack = of_rack.get(member_id)
            number_of_class = classes.setdefault((kind, rack), len(classes))
            if number_of_class == len(self.class_members):
                self.class_members.append([])
                self.class_topics.append(listed[kind])
                self.class_rack.append(rack)
            self.class_members[number_of_class].append(number)
            self.class_of.append(number_of_class)

    def _order_topics(self) -> None:
        """Put topics with the fewest subscribers first; a subscriber that lists a topic twice counts twice."""
        topics = len(self.layout.counts)
        self.subscribers = [0] * topics
        self.classes_of: list[list[int]] = [[] for _ in range(topics)]
        self.class_topic_set = [set(listed) for listed in self.class_topics]
        for number, listed in enumerate(self.class_topics):
            size = len(self.class_members[number])
            for topic in listed:
                self.subscribers[topic] += size
            for topic in self.class_topic_set[number]:
                self.classes_of[topic].append(number)
        subscribed = [topic for topic in range(topics) if self.subscribers[topic]]
        self.topic_order = sorted(subscribed, key=self.subscribers.__getitem__)

    def build(self) -> dict[str, Sequence[int]]:
        self.former_owner = self._former_owners()
        free = self._in_topic_order(self._free())
        initializing = not any(self.kept)
        self._fill_up(free)
        self._balance(free, initializing)
        return self._shares(free)

    def _keep(self) -> None:
        """Keep what members own of topics that they still subscribe to, and on their racks where racks matter."""
        owned, topic_at, total = self.claims.owned, self.topic_at, self.layout.total
        subscribed = sum(map(bool, self.subscribers))
        self.kept: list[Sequence[int]] = []
        self.dropped: list[int] = []
        for number, member_id in enumerate(self.ids):
            share = owned[member_id]
            topics = self.class_topic_set[self.class_of[number]]
            keeps: Sequence[int] = share
            if share and len(topics) < subscribed:
                keeps = [n for n in share if (topic_at[n] if n < total else self.claims.place_of(n)[0]) in topics]
            if share and self.racks is not None:
                keeps = self.racks.in_place(member_id, keeps)
            if len(keeps) < len(share):
                self.dropped += set(share).difference(keeps)
            else:
                keeps = share
            self.kept.append(keeps)

    def _free(self) -> list[int]:
        claims = self.claims
        if claims.contested:
            return sorted(set(claims.everything).difference(*self.kept))
        return sorted([*claims.unclaimed, *(n for n in self.dropped if n < self.layout.total)])

    def _in_topic_order(self, numbers: Sequence[int]) -> TopicNumbers:
        starts, counts = self.layout.starts, self.layout.counts
        found = []
        for topic in self.topic_order:
            begin = bisect_left(numbers, starts[topic])
            end = bisect_left(numbers, starts[topic] + counts[topic], begin)
            if begin < end:
                found.append((topic, numbers[begin:end]))
        return found

    def _former_owners(self) -> dict[int, int]:
        """Return the owner of a partition in an older generation than the newest; of several, the latest of them."""
        claims = self.claims
        members, generations_of = claims.members, claims.generations_of
        generations = {member_id: generations_of(members[member_id]).claim for member_id in self.ids}
        newest = max(self.max_generation, *generations.values())
        stale = {m for m, generation in generations.items() if generation < newest and claims.raw[m]}
        # Of two in the same generation the first in hash order counts.
        in_order = [m for m in string_order(members) if m in stale] if len(stale) > 1 else list(stale)
        number_of = {member_id: number for number, member_id in enumerate(self.ids)}
        former: dict[int, int] = {}
        for member_id in sorted(in_order, key=generations.__getitem__, reverse=True):
            for number in claims.raw[member_id]:
                former.setdefault(number, number_of[member_id])
        return former

    def _fill_up(self, free: TopicNumbers) -> None:
        """Give each free partition to the lightest member that subscribes to its topic. If racks matter, a member on
        one of its racks, or without a rack, comes first.
        """
        count = self.count
        self.size = [len(share) for share in self.kept]
        self.heaps = [[self.size[n] * count + n for n in members] for members in self.class_members]
        for heap in self.heaps:
            heapify(heap)
        self.owner = [-1] * (self.layout.total + len(self.claims.beyond))
        for number, share in enumerate(self.kept):
            for partition in share:
                self.owner[partition] = number
        if self.racks is not None:
            free = self._fill_up_on_racks(free, self.racks)
        for topic, numbers in free:
            self._give_to_lightest(numbers, self.classes_of[topic])
        for heap in self.heaps:
            for key in heap:
                self.size[key % count] = key // count

    def _give_to_lightest(self, numbers: Sequence[int], classes: Sequence[int]) -> None:
        heaps, owner, count = self.heaps, self.owner, self.count
        if len(classes) == 1:
            heap = heaps[classes[0]]
            for number in numbers:
                owner[number] = heap[0] % count
                heapreplace(heap, heap[0] + count)
            return
        lightest = [(heaps[c][0], c) for c in classes]
        heapify(lightest)
        for number in numbers:
            key, c = lightest[0]
            owner[number] = key % count
            heapreplace(heaps[c], key + count)
            heapreplace(lightest, (heaps[c][0], c))

    def _fill_up_on_racks(self, free: TopicNumbers, racks: GroupRacks) -> TopicNumbers:
        """Return partitions that found no member. A topic's classes have one heap per rack, and one for those
        without.
        """
        heaps, owner, count = self.heaps, self.owner, self.count
        left: TopicNumbers = []
        for topic, numbers in free:
            by_rack: dict[str | None, list[tuple[int, int]]] = {}
            for c in self.classes_of[topic]:
                by_rack.setdefault(self.class_rack[c], []).append((heaps[c][0], c))
            for lightest in by_rack.values():
                heapify(lightest)
            without = by_rack.get(None)
            nobody = []
            for number in numbers:
                candidates = [by_rack[rack] for rack in racks.of_partition[number] if rack in by_rack]
                if without is not None:
                    candidates.append(without)
                if not candidates:
                    nobody.append(number)
                    continue
                lightest = min(candidates, key=itemgetter(0)) if len(candidates) > 1 else candidates[0]
                key, c = lightest[0]
                owner[number] = key % count
                heapreplace(heaps[c], key + count)
                heapreplace(lightest, (heaps[c][0], c))
            if nobody:
                left.append((topic, nobody))
        return left

    def _balance(self, free: TopicNumbers, initializing: bool) -> None:
        self._fix_members()
        self.key = [size * self.count + number for number, size in enumerate(self.size)]
        self.largest = max(self.size)
        self.moves = Moves(self.layout)
        self.moved_away: dict[int, int] = {}
        """Partitions that moved, and where they were before the first move."""
        self.foreign = self._foreign_former_owners()
        self.holds_foreign = False
        self.tested_at = -1
        before = list(self.size)
        shared = [topic for topic in self.topic_order if self.subscribers[topic] >= 2]
        if not self.dropped:
            self._perform([(topic, numbers) for topic, numbers in free if self.subscribers[topic] >= 2])
        starts, counts = self.layout.starts, self.layout.counts
        moved = self._perform([(topic, range(starts[topic], starts[topic] + counts[topic])) for topic in shared])
        if moved and not initializing and self._score(self.size) >= self._score(before):
            self._restore()

    def _restore(self) -> None:
        for number, holder in self.moved_away.items():
            self.owner[number] = holder

    def _fix_members(self) -> None:
        """Take members out of the balance as Java does: those that hold all they can, and nothing that others could
        have.
        """
        counts, listed_topics = self.layout.counts, sum(map(bool, self.subscribers))
        self.capacity: list[int] = []
        for topics in self.class_topics:
            full = len(topics) == listed_topics
            self.capacity.append(len(self.claims.everything) if full else sum(counts[topic] for topic in topics))
        self.fixed = [
            self.size[number] >= self.capacity[c] and all(self.subscribers[topic] < 2 for topic in self.class_topics[c])
            for number, c in enumerate(self.class_of)
        ]

    def _foreign_former_owners(self) -> set[int]:
        """Return partitions whose former owner does not subscribe to them any more."""
        topic_at, total = self.topic_at, self.layout.total
        return {
            number
            for number, member in self.former_owner.items()
            if number < total and topic_at[number] not in self.class_topic_set[self.class_of[member]]
        }

    def _score(self, sizes: Sequence[int]) -> int:
        """Return the sum of all differences between two members, in Java's 32 bits."""
        live = sorted(size for size, fixed in zip(sizes, self.fixed, strict=True) if not fixed)
        score = sum((2 * i - len(live) + 1) * size for i, size in enumerate(live))
        return (score + (1 << 31)) % (1 << 32) - (1 << 31)

    def _perform(self, topics: TopicNumbers) -> bool:
        """Pass over the partitions until one pass moves nothing."""
        moves_before_all = self.moves.count
        while True:
            moves_before = self.moves.count
            for topic, numbers in topics:
                if not self._relieve(topic, numbers):
                    return self.moves.count > moves_before_all
            if self.moves.count == moves_before:
                return self.moves.count > moves_before_all

    def _relieve(self, topic: int, numbers: Sequence[int]) -> bool:
        """Run through one topic: partitions leave members that hold two more than the receiver. Return False when Java,
        which tests the balance before each partition, would have stopped.
        """
        size, owner, former, foreign = self.size, self.owner, self.former_owner, self.foreign
        lightest = [self._lightest_of(c) for c in self.classes_of[topic]]
        heapify(lightest)
        limit = lightest[0] // self.count + 1
        if self.largest <= limit and not foreign:
            return True
        for number in numbers:
            holder = owner[number]
            receiver = former.get(number) if former else None
            if receiver is not None and (self.fixed[receiver] or size[holder] > size[receiver] + 1):
                to_foreign = number in foreign
            elif size[holder] > limit:
                receiver, to_foreign = lightest[0] % self.count, False
            else:
                continue
            if (to_foreign or self.holds_foreign) and self._is_balanced():
                return False
            if self.fixed[receiver]:
                raise out_of_the_balance(self.ids[receiver])
            self.holds_foreign |= to_foreign
            for member in self._move(topic, number, holder, receiver):
                if topic in self.class_topic_set[self.class_of[member]]:
                    heappush(lightest, self._lightest_of(self.class_of[member]))
            while self.key[lightest[0] % self.count] != lightest[0]:
                heappop(lightest)
            limit = lightest[0] // self.count + 1
        return True

    def _lightest_of(self, c: int) -> int:
        heap = self.heaps[c]
        while self.key[heap[0] % self.count] != heap[0]:
            heappop(heap)
        return heap[0]

    def _move(self, topic: int, number: int, holder: int, receiver: int) -> tuple[int, int]:
        number = self.moves.better_choice(topic, number, holder, receiver)
        giver = self.owner[number]
        self.moves.record(topic, number, giver, receiver)
        self.moved_away.setdefault(number, giver)
        self._hand_over(number, giver, receiver)
        self.size[giver] -= 1
        self.size[receiver] += 1
        for member in (giver, receiver):
            self.key[member] = self.size[member] * self.count + member
            heappush(self.heaps[self.class_of[member]], self.key[member])
        return giver, receiver

    def _hand_over(self, number: int, giver: int, receiver: int) -> None:
        self.owner[number] = receiver

    def _is_balanced(self) -> bool:
        """Run Java's test: no member could take a partition from a member that holds two more. Members whose count
        equals their capacity are passed over, even when what they hold is not what they subscribe to.
        """
        if self.tested_at != self.moves.count:
            self.tested_at = self.moves.count
            self.was_balanced = self._test_balance()
        return self.was_balanced

    def _test_balance(self) -> bool:
        live = [number for number in range(self.count) if not self.fixed[number]]
        sizes = [self.size[number] for number in live]
        if max(sizes) - min(sizes) > 1:
            heaviest = [0] * len(self.subscribers)
            for number in self.claims.everything:
                topic = self.topic_at[number]
                heaviest[topic] = max(heaviest[topic], self.size[self.owner[number]])
            for number in live:
                c, size = self.class_of[number], self.size[number]
                if size != self.capacity[c] and any(heaviest[topic] > size + 1 for topic in self.class_topics[c]):
                    return False
        return True

    def _shares(self, free: TopicNumbers) -> dict[str, Sequence[int]]:
        """Return the shares. A member that neither got nor lost anything keeps its share as it came."""
        owner = self.owner
        gained: dict[int, list[int]] = {}
        for number in chain.from_iterable(numbers for _, numbers in free):
            gained.setdefault(owner[number], []).append(number)
            self.moved_away.pop(number, None)
        lost = set()
        for number, keeper in self.moved_away.items():
            if owner[number] != keeper:
                lost.add(keeper)
                gained.setdefault(owner[number], []).append(number)
        shares = dict(zip(self.ids, self.kept, strict=True))
        for number in lost:
            shares[self.ids[number]] = [n for n in self.kept[number] if owner[n] == number]
        for number, new in gained.items():
            kept = shares[self.ids[number]]
            shares[self.ids[number]] = [*kept, *new] if kept else new
        return shares


def out_of_the_balance(member_id: str) -> AssignorError:
    return AssignorError(
        f"Java asks how much {member_id!r} holds after taking it out of the balance",
        path="group.members",
        java_exception="NullPointerException",
    )
