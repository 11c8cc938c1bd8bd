"""Assign with even load for the members' capacity and few moves: load-aware is the lab's own cooperative assignor.

Given      a group whose topics may carry a load per partition (lag, or records a second) and members a capacity
Returns    an Assignment. Partitions that change hands are withheld this round and placed in the next one
Load       a partition counts as load / mean load + 1/100, in whole millionths: an idle partition still costs a poll, so
           idle ones spread by count. A topic without loads counts as the mean of the others.
Capacity   relative to the largest, read to one part in 32 or finer: it is an estimate anyway, and few sizes search fast
Bound      utilisation is a member's load over its capacity. A settled answer holds one of two things for any two
           subscribers of a topic. Their utilisations differ by at most `threshold` (default 0.1) x the group's mean
           utilisation. Or no single partition could go from the hotter to the colder one and lower the larger of the
           two by more than a twentieth of a mean partition's load. `load_bound_violation` checks it.
Moves      a claim is kept until the bound is broken; then the hottest member gives to the coldest that may take it
Two rounds a plan is accepted when the next round, given what this one hands out, would place the withheld partitions
           without releasing another. Where none of a few plans does, a third round follows: about 1 in 5,000 steps of
           random churn, 1 in 500 groups of random, contradictory claims
Order      whole numbers, and ties by count, then rack, then member id as Java orders strings. So neither the order of
           the input nor of a sum can change the answer
No loads   or all alike, and equal capacities: with equal subscriptions and no racks the answer is cooperative-sticky's.
           Otherwise it is this one with threshold 0: no single move could make the counts more even
Reference  KAFKA-5337; the withholding is the general rule of Kafka's CooperativeStickyAssignor
Start at   LoadAwareAssignor.assign, then _Plan
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from math import frexp, fsum, inf, ldexp

from rebalance_lab.assignors.interface import RebalanceProtocol
from rebalance_lab.assignors.java.string_order import in_java_order
from rebalance_lab.assignors.model import NOBODY, Assignment, Group, Member, Share
from rebalance_lab.assignors.quality import (
    claimed_numbers,
    known_loads,
    previous_owners,
    share_numbers,
    subscription_classes,
)

MEAN_LOAD = 1_000_000
IDLE_LOAD = 10_000
WORTH_MOVING = 50_000
"""Load that a move must take off the hotter of two members: a member stuck with one giant partition would otherwise
shed all its idle ones, many moves for next to nothing."""
SMALLEST_CAPACITY = 2.0**-20
SEVERAL = -2
ATTEMPTS = 8
"""Plans tried until one settles in two rounds. The few groups that need more go round in circles: more do not help."""


class LoadAwareAssignor:
    name = "load-aware"
    supported_protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
    promises = ("valid", "deterministic", "pure", "load-balanced", "sticky", "cooperative")

    def __init__(self, threshold: float = 0.1) -> None:
        if not 0 <= threshold < inf:
            raise ValueError(f"threshold must be 0 or more and finite, got {threshold}")
        self.threshold = threshold

    def assign(self, group: Group) -> Assignment:
        work = _Work(group)
        claims = _Claims(work)
        if work.uniform and len(work.reading_classes) <= 1 and not work.racks_matter:
            shares = _by_count(work, claims)
        else:
            shares = _Plan(work, claims, 0.0 if work.uniform else self.threshold).shares()
        return Assignment(group.layout, {member_id: shares[work.position[member_id]] for member_id in group.members})


def effective_loads(group: Group) -> list[int]:
    """Return per partition number what it counts when load is balanced, in millionths of the mean load."""
    known = known_loads(group)
    if known is None:
        return [MEAN_LOAD + IDLE_LOAD] * group.layout.total
    loads, mean = known
    if not mean:
        return [IDLE_LOAD] * group.layout.total
    return [round(load / mean * MEAN_LOAD) + IDLE_LOAD for load in loads]


def effective_capacities(members: Iterable[Member]) -> list[float]:
    """Return capacities relative to the largest, to six significant bits. Powers of two times small integers are exact
    floats.
    """
    capacities = [member.capacity for member in members]
    largest = max(capacities, default=1.0)
    rounded = []
    for capacity in capacities:
        mantissa, exponent = frexp(capacity / largest)
        rounded.append(max(SMALLEST_CAPACITY, ldexp(round(mantissa * 64), exponent - 6)))
    return rounded


class _Work:
    """Hold the group as numbers: members by position in Java's order, partitions by number, topics by their
    subscribers.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.ids = in_java_order(group.members)
        self.position = {member_id: index for index, member_id in enumerate(self.ids)}
        self.members = [group.members[member_id] for member_id in self.ids]
        self.capacity = effective_capacities(self.members)
        self.load = effective_loads(group)
        self.classes, readers = subscription_classes(group, self.ids)
        self.class_of = [0] * len(self.ids)
        for number, alike in enumerate(self.classes):
            for member in alike:
                self.class_of[member] = number
        layout = group.layout
        pools: dict[tuple[int, ...], int] = {}
        self.pool_of: list[int] = []
        for count, classes in zip(layout.counts, readers, strict=True):
            self.pool_of += [pools.setdefault(classes, len(pools)) if classes else NOBODY] * count
        self.pools = list(pools)
        """The classes that may read the partitions of each pool: topics with the same subscribers are one pool."""
        self.reading_classes = {number for classes in pools for number in classes}
        self.readable = [number for number, pool in enumerate(self.pool_of) if pool != NOBODY]
        self.racks_matter = any(member.rack for member in self.members) and any(
            topic.racks for topic in group.topics.values()
        )

    @property
    def uniform(self) -> bool:
        """Tell whether partitions and members are all alike, so that only counts are left to balance."""
        return len({self.load[number] for number in self.readable}) <= 1 and len(set(self.capacity)) <= 1

    @property
    def mean_utilisation(self) -> float:
        return sum(self.load[number] for number in self.readable) / (fsum(self.capacity) or 1.0)

    def near(self, number: int) -> Collection[str]:
        """Return the racks of a partition's replicas, as far as they are known and any member has one."""
        if not self.racks_matter:
            return ()
        name, partition = self.group.layout.partition_of(number)
        racks = self.group.topics[name].racks
        return racks[partition] if racks else ()


class _Claims:
    """Hold what members say they own: `owner` is the last owner of a partition, `by` all that claim it, live or
    stale.
    """

    def __init__(self, work: _Work) -> None:
        layout = work.group.layout
        self.numbers = [claimed_numbers(layout, member) if member.owned else () for member in work.members]
        self.owner = previous_owners(layout, work.members)
        self.by = [NOBODY] * layout.total
        for index, numbers in enumerate(self.numbers):
            for number in numbers:
                self.by[number] = index if self.by[number] in (NOBODY, index) else SEVERAL

    def allow(self, number: int, member: int) -> bool:
        """Tell whether this member may read the partition now. The owner of the highest generation may go on. Any other
        member waits until no member claims it, whatever the claim's generation: a stale claimant may still be reading.
        """
        return self.owner[number] == member or self.by[number] in (NOBODY, member)


def _by_count(work: _Work, claims: _Claims) -> list[Sequence[int]]:
    """Return cooperative-sticky's answer, on a group without the oddities that make Java's answers depend on input
    order. Its members are told as far as that assignor looks at them: racks do not matter here.
    """
    from rebalance_lab.assignors.classic.cooperative_sticky import CooperativeStickyAssignor

    group = work.group
    shares: list[Sequence[int]] = [()] * len(work.ids)
    readers = [index for number in work.reading_classes for index in work.classes[number]]
    if not readers:
        return shares
    subscribed = set(work.members[readers[0]].topics)
    topics = tuple(name for name in group.layout.names if name in subscribed)
    members = {}
    for index in readers:
        owned, member = Share(group.layout, claims.numbers[index]), work.members[index]
        members[work.ids[index]] = Member(topics, owned, member.generation, claim_generation=member.claim_generation)
    answer = CooperativeStickyAssignor().assign(group.with_members(members))
    for index in readers:
        numbers = share_numbers(group.layout, answer, work.ids[index])
        shares[index] = [number for number in numbers if claims.allow(number, index)]
    return shares


class _Kind:
    """Order the subscribers of a pool that share rack and capacity, lightest on top: the best of its kind."""

    __slots__ = ("capacity", "entered", "heap", "rack")

    def __init__(self, rack: str | None, capacity: float) -> None:
        self.rack = rack
        self.capacity = capacity
        self.heap: list[tuple[int, int, int]] = []
        self.entered: dict[int, int] = {}
        """Per member the load of its latest entry. A member that gives something away is entered again, so an
        entry that is not true any more is too light, never too heavy, and is put right when it comes to the top."""

    def enter(self, load: int, count: int, member: int) -> None:
        self.entered[member] = load
        heappush(self.heap, (load, count, member))

    def refresh(self, load: int, count: int) -> None:
        entered, _, member = self.heap[0]
        if entered == self.entered[member]:
            self.entered[member] = load
            heapreplace(self.heap, (load, count, member))
        else:
            heappop(self.heap)  # a later entry of this member is further down


class _Plan:
    """Plan a target for every partition, improved until the bound holds; then find what can be handed out now."""

    def __init__(self, work: _Work, claims: _Claims, threshold: float) -> None:
        self.work = work
        self.claims = claims
        self.slack = threshold * work.mean_utilisation
        self.home = [
            owner if owner != NOBODY and pool != NOBODY and work.class_of[owner] in work.pools[pool] else NOBODY
            for owner, pool in zip(claims.owner, work.pool_of, strict=True)
        ]
        """The member that may keep a partition."""
        self.owner = list(self.home)
        self.load = [0] * len(work.ids)
        self.share: list[set[int]] = [set() for _ in work.ids]
        for number, member in enumerate(self.home):
            if member != NOBODY:
                self.share[member].add(number)
                self.load[member] += work.load[number]
        self._shelves: dict[int, dict[int, list[tuple[int, int]]]] = {}
        self._kinds: dict[int, list[_Kind]] = {}
        self._kinds_of: list[list[_Kind]] = [[] for _ in work.ids]
        self.taken: set[int] = set()

    def shares(self) -> list[Sequence[int]]:
        withheld = self._settle()
        return [sorted(share - withheld) for share in self.share]

    def _settle(self) -> set[int]:
        """Find a target, and return the partitions to withhold on the way to it.

        The next round will see what this one hands out as owned, and place the rest from there. So that is what is
        done here before the plan is accepted: place the withheld ones last, and see that the bound then holds.
        """
        home, by = self.home, self.claims.by
        homeless = [number for number in self.work.readable if home[number] == NOBODY]
        disputed = {number for number in homeless if by[number] != NOBODY}
        self._place(homeless)
        self._improve()
        withheld: set[int] = set()
        for _ in range(ATTEMPTS):
            withheld = disputed | self._away_from_home()
            if not withheld:
                break
            for number in withheld:
                self._take(number)
            self._place(withheld)
            settled = withheld == disputed | self._away_from_home()
            if not self._improve() and settled:
                break
            withheld = disputed | self._away_from_home()
        return withheld

    def _away_from_home(self) -> set[int]:
        return {number for number in self.taken if self.home[number] not in (NOBODY, self.owner[number])}

    def _place(self, numbers: Collection[int]) -> None:
        """Place the largest first, of equal ones those that fewest may take, each where utilisation ends lowest. What
        it depends on is loads and counts alone, so that the next round comes to the same end from the same shares.
        """
        work = self.work
        takers = [sum(len(work.classes[number]) for number in classes) for classes in work.pools]
        for number in sorted(numbers, key=lambda number: (-work.load[number], takers[work.pool_of[number]], number)):
            cold = self._coldest(number)
            assert cold is not None  # a pool exists because some member subscribes to it
            self._put(number, cold[1])
        self._improve(set(numbers))

    def _put(self, number: int, member: int) -> None:
        load = self.work.load[number]
        self.owner[number] = member
        self.load[member] += load
        self.share[member].add(number)
        if member in self._shelves:
            insort(self._shelves[member].setdefault(self.work.pool_of[number], []), (load, number))

    def _take(self, number: int) -> None:
        load, member = self.work.load[number], self.owner[number]
        self.taken.add(number)
        self.owner[number] = NOBODY
        self.load[member] -= load
        self.share[member].remove(number)
        if member in self._shelves:
            shelf = self._shelves[member][self.work.pool_of[number]]
            del shelf[bisect_left(shelf, (load, number))]
        for kind in self._kinds_of[member]:
            kind.enter(self.load[member], len(self.share[member]), member)

    def _coldest(self, number: int, below: float = inf) -> tuple[float, int] | None:
        """Return the subscriber that this partition would leave least utilised, and how much; ties by count, rack and
        id. Only subscribers utilised less than `below` are asked.
        """
        load, near = self.work.load[number], self.work.near(number)
        best: tuple[float, int, bool, int] | None = None
        for kind in self._kinds_in(self.work.pool_of[number]):
            lightest, count, member = kind.heap[0]
            while lightest != self.load[member]:
                kind.refresh(self.load[member], len(self.share[member]))
                lightest, count, member = kind.heap[0]
            candidate = (lightest + load) / kind.capacity, count, kind.rack not in near, member
            if lightest / kind.capacity < below and (best is None or candidate < best):
                best = candidate
        return None if best is None else (best[0], best[3])

    def _kinds_in(self, pool: int) -> list[_Kind]:
        if pool not in self._kinds:
            kinds: dict[tuple[str | None, float], _Kind] = {}
            for number in self.work.pools[pool]:
                for member in self.work.classes[number]:
                    rack = self.work.members[member].rack if self.work.racks_matter else None
                    key = rack, self.work.capacity[member]
                    kind = kinds.setdefault(key, _Kind(*key))
                    kind.enter(self.load[member], len(self.share[member]), member)
                    self._kinds_of[member].append(kind)
            self._kinds[pool] = list(kinds.values())
        return self._kinds[pool]

    def _utilisation(self, member: int) -> float:
        return self.load[member] / self.work.capacity[member]

    def _improve(self, movable: set[int] | None = None) -> bool:
        """Move single partitions (of these, or any) from the hottest members until none breaks the bound.

        It ends, because the larger utilisation of each pair falls: sorted from the top, the utilisations only fall.
        A member found in order can be broken again by another that has given something away, hence the passes.
        """
        improved = False
        moved = True
        while moved:
            moved = False
            queue = [(-self._utilisation(member), member) for member in range(len(self.load))]
            lowest = -max(queue, default=(0.0, 0))[0]
            heapify(queue)
            while queue:
                negated, member = heappop(queue)
                if -negated != self._utilisation(member):
                    continue
                if not lowest < -negated - self.slack:
                    break
                move = self._best_move(member, movable)
                if move is not None:
                    number, receiver = move
                    self._take(number)
                    self._put(number, receiver)
                    lowest = min(lowest, self._utilisation(member))
                    heappush(queue, (-self._utilisation(member), member))
                    heappush(queue, (-self._utilisation(receiver), receiver))
                    improved = moved = True
        return improved

    def _best_move(self, member: int, movable: set[int] | None) -> tuple[int, int] | None:
        """Return the partition that best closes the gap to the coldest member that may take it, if the bound is broken.

        Of the partitions worth moving the smallest decides: if no member can take that, none can take any.
        """
        capacity, hot = self.work.capacity[member], self._utilisation(member)
        best: tuple[float, int, int] | None = None
        for shelf in self._shelf(member, movable).values():
            first = bisect_right(shelf, (WORTH_MOVING, inf))
            cold = self._coldest(shelf[first][1], below=hot - self.slack) if first < len(shelf) else None
            if cold is None or not cold[0] < hot - WORTH_MOVING / capacity:
                continue
            receiver = cold[1]
            other = self.work.capacity[receiver]
            ideal = (hot - self._utilisation(receiver)) / (1 / capacity + 1 / other)
            place = bisect_right(shelf, (ideal, inf))
            for load, number in shelf[max(first, place - 1) : place + 1] or shelf[first : first + 1]:
                larger = max((self.load[member] - load) / capacity, (self.load[receiver] + load) / other)
                if best is None or (larger, number) < best[:2]:
                    best = larger, number, receiver
        return None if best is None else (best[1], best[2])

    def _shelf(self, member: int, movable: set[int] | None) -> Mapping[int, list[tuple[int, int]]]:
        """Return a member's partitions by pool, each pool sorted by load; kept up to date once it has been asked
        for.
        """
        if movable is None and member in self._shelves:
            return self._shelves[member]
        shelves: dict[int, list[tuple[int, int]]] = {}
        for number in self.share[member] if movable is None else self.share[member] & movable:
            shelves.setdefault(self.work.pool_of[number], []).append((self.work.load[number], number))
        for shelf in shelves.values():
            shelf.sort()
        if movable is None:
            self._shelves[member] = shelves
        return shelves


def load_bound_violation(
    group: Group, assignment: Mapping[str, Mapping[str, Sequence[int]]], threshold: float = 0.1
) -> str | None:
    """Describe one move that the declared bound says should have been made; None when the bound holds.

    The bound is about settled answers: while a partition is withheld because a member still claims it, the answer is on
    its way and is judged in the round that places it. A partition that no member holds or claims is a violation.
    """
    work = _Work(group)
    slack = threshold * work.mean_utilisation
    shares = [share_numbers(group.layout, assignment, member_id) for member_id in work.ids]
    loose = set(work.readable).difference(*shares)
    if loose:
        claims = _Claims(work)
        forgotten = sorted(number for number in loose if claims.by[number] == NOBODY)
        return f"{_named(work, forgotten[0])} is given to nobody and claimed by nobody" if forgotten else None
    load = [sum(work.load[number] for number in share) for share in shares]
    lightest = [_lightest_by_capacity(work, classes, load) for classes in work.pools]
    for member, share in enumerate(shares):
        hot = load[member] / work.capacity[member]
        enough = hot - WORTH_MOVING / work.capacity[member]
        for number in share:
            moving = work.load[number]
            if work.pool_of[number] == NOBODY or moving <= WORTH_MOVING:
                continue
            for capacity, (least, receiver) in lightest[work.pool_of[number]].items():
                after = (least + moving) / capacity
                if least / capacity < hot - slack and after < enough:
                    larger = max(after, (load[member] - moving) / work.capacity[member])
                    gap, gain = ((hot - x) / work.mean_utilisation for x in (least / capacity, larger))
                    return (
                        f"{work.ids[member]} is utilised {gap:.1%} of the mean more than {work.ids[receiver]} (bound: "
                        f"{threshold:.1%}), and moving {_named(work, number)} would lower the larger by {gain:.1%}"
                    )
    return None


def _lightest_by_capacity(work: _Work, classes: Sequence[int], load: Sequence[int]) -> dict[float, tuple[int, int]]:
    lightest: dict[float, tuple[int, int]] = {}
    for number in classes:
        for member in work.classes[number]:
            candidate = load[member], member
            capacity = work.capacity[member]
            lightest[capacity] = min(lightest.get(capacity, candidate), candidate)
    return lightest


def _named(work: _Work, number: int) -> str:
    topic, partition = work.group.layout.partition_of(number)
    return f"{topic}-{partition}"
