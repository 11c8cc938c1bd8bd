"""Compute the exact optimum: the best balance that the subscriptions allow, then the fewest moves, then rack matches.

Given      a group
Returns    Optimum: the best counts, then the fewest moves, then the most rack matches, and an assignment that has them.
           Beyond `exact_up_to` partitions it has only bounds, and `exact` says so
Balance    the smallest sum of squared counts. Every such balance has the same counts in sorted order and is the best
           by any other fair measure too (smallest maximum, then smallest second, ...).
Method     1. Balance alone: start from water-filling, then send units along alternating paths from a heavier member
              to one lighter by two or more. Stop when no such path is left (optimal semi-matching, Harvey et al. 2003).
           2. A min-cost flow among the best balances, where a move costs more than all rack misses together. It needs
              only a window of one around the counts of step 1. The best balances are the bases of a matroid, shifted
              (Frank and Murota 2021), so no member's count differs by more than one between two of them
Cost       members and topics that are alike are one node, so the flow grows with claims and classes, not their product
Reference  networkx.network_simplex; imported when first needed, because no assignor should wait for it
Start at   optimum
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from rebalance_lab.assignors.java.string_order import in_java_order
from rebalance_lab.assignors.model import NOBODY, Assignment, Group
from rebalance_lab.assignors.optimum import Optimum
from rebalance_lab.assignors.quality import previous_owners, subscription_classes

EXACT_UP_TO = 5_000
ARCS_PER_PARTITION = 6
"""Of the exact size: a flow of more arcs takes a minute rather than seconds, however few the partitions."""
SEARCH_BUDGET = 2_000_000
"""Beyond the exact size, edges that the search for balance may look at before an even split stands in as the bound."""


def optimum(group: Group, *, exact_up_to: int = EXACT_UP_TO) -> Optimum:
    problem = _Problem(group)
    if not problem.racks and len(problem.reading_classes) <= 1:
        return problem.answer(_even_split(problem))
    if problem.partitions <= exact_up_to and problem.arcs() <= exact_up_to * ARCS_PER_PARTITION:
        loads = best_loads([len(members) for members in problem.classes], problem.demands)
        assert loads is not None
        return problem.answer(_cheapest_flow(problem, _per_member(problem, loads)))
    return _bounds(problem)


@dataclass(slots=True)
class _Pool:
    """Hold partitions that the same members may have and the same racks hold; they differ in their owners only."""

    classes: tuple[int, ...]
    racks: frozenset[str]
    numbers: list[int] = field(default_factory=list)


class _Problem:
    """Hold the group with members and topics that are alike put together. Members go by position in Java's order of
    ids.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.ids = in_java_order(group.members)
        members = [group.members[member_id] for member_id in self.ids]
        self.classes, readers = subscription_classes(group, self.ids)
        self.class_of = [0] * len(members)
        for number, alike in enumerate(self.classes):
            for member in alike:
                self.class_of[member] = number
        self.rack_of = [member.rack for member in members]
        layout = group.layout
        racks = {rack for rack in self.rack_of if rack}
        pools: dict[tuple[tuple[int, ...], frozenset[str]], _Pool] = {}
        for name, start, count, classes in zip(layout.names, layout.starts, layout.counts, readers, strict=True):
            replicas = group.topics[name].racks if racks else None
            for partition in range(count) if classes else ():
                near = racks.intersection(replicas[partition]) if replicas else frozenset[str]()
                key = classes, frozenset(near)
                pools.setdefault(key, _Pool(*key)).numbers.append(start + partition)
        self.pools = list(pools.values())
        self.racks = any(pool.racks for pool in self.pools)
        self.has_racks = bool(racks) and any(group.topics[name].racks for name in layout.names)
        self.partitions = sum(len(pool.numbers) for pool in self.pools)
        demands: Counter[tuple[int, ...]] = Counter()
        for pool in self.pools:
            demands[pool.classes] += len(pool.numbers)
        self.demands = [(count, classes) for classes, count in demands.items()]
        self.reading_classes = {number for _, classes in self.demands for number in classes}
        self.before = previous_owners(layout, members)

    def keepable(self, pool: _Pool) -> dict[int, list[int]]:
        """Return the pool's partitions by previous owner, where that one still subscribes to them."""
        owned: dict[int, list[int]] = {}
        classes = set(pool.classes)
        for number in pool.numbers:
            owner = self.before[number]
            if owner != NOBODY and self.class_of[owner] in classes:
                owned.setdefault(owner, []).append(number)
        return owned

    def arcs(self) -> int:
        """Estimate how many arcs the flow has: pools to groups of alike members, and claims."""
        alike = Counter(number for number, _ in set(zip(self.class_of, self.rack_of, strict=True)))
        return self.partitions + sum(alike[number] for pool in self.pools for number in pool.classes)

    def answer(self, shares: list[list[int]]) -> Optimum:
        numbers = {member_id: sorted(shares[position]) for position, member_id in enumerate(self.ids)}
        owner = {number: position for position, share in enumerate(shares) for number in share}
        moves = sum(self.before[number] not in (NOBODY, position) for number, position in owner.items())
        matches = sum(self.rack_of[owner[number]] in pool.racks for pool in self.pools for number in pool.numbers)
        return Optimum(
            counts=tuple(len(numbers[member_id]) for member_id in self.group.members),
            moves=moves,
            rack_matches=matches if self.has_racks else None,
            exact=True,
            assignment=Assignment(self.group.layout, {member: numbers[member] for member in self.group.members}),
        )


def _even_quotas(problem: _Problem, kept: Sequence[int]) -> list[int]:
    """Give equal subscriptions equal quotas; the remainder goes where it saves a move."""
    quotas = [0] * len(problem.ids)
    for number in problem.reading_classes:
        members = problem.classes[number]
        base, extra = divmod(problem.partitions, len(members))
        ranked = sorted(members, key=lambda member: (kept[member] <= base, member))
        for place, member in enumerate(ranked):
            quotas[member] = base + (place < extra)
    return quotas


def _even_split(problem: _Problem) -> list[list[int]]:
    shares: list[list[int]] = [[] for _ in problem.ids]
    for pool in problem.pools:  # at most one: one class of readers, no racks
        owned = problem.keepable(pool)
        quotas = _even_quotas(problem, [len(owned.get(member, ())) for member in range(len(shares))])
        for member, numbers in owned.items():
            shares[member] = numbers[: quotas[member]]
        _deal(pool.numbers, shares, [quota - len(share) for quota, share in zip(quotas, shares, strict=True)])
    return shares


def _deal(numbers: Sequence[int], shares: list[list[int]], wanted: Sequence[int]) -> None:
    """Give the numbers that no member has yet, in order, to members that still want some."""
    given = {number for share in shares for number in share}
    loose = (number for number in numbers if number not in given)
    for member, count in enumerate(wanted):
        shares[member] += [next(loose) for _ in range(count)]


def best_loads(
    sizes: Sequence[int], demands: Sequence[tuple[int, tuple[int, ...]]], budget: float = inf
) -> list[int] | None:
    """Return per class of alike members how many partitions they hold together in a best balance.

    `demands` are counts of partitions with the classes that may have them. Inside a class counts are as even as can
    be, so a class is known by its size and its load. None when the budget of edges to look at runs out.
    """
    search = _Balance(sizes, demands, budget)
    for number in sorted(range(len(demands)), key=lambda number: len(demands[number][1])):
        search.fill(number)
    improved = True
    while improved and search.budget > 0:
        improved = False
        for source in sorted(range(len(sizes)), key=search.highest, reverse=True):
            while search.relieve(source):
                improved = True
    return search.loads if search.budget > 0 else None


class _Balance:
    def __init__(self, sizes: Sequence[int], demands: Sequence[tuple[int, tuple[int, ...]]], budget: float) -> None:
        self.sizes = sizes
        self.loads = [0] * len(sizes)
        self.demands = demands
        self.flow = [dict.fromkeys(classes, 0) for _, classes in demands]
        self.demands_of: list[list[int]] = [[] for _ in sizes]
        for number, (_, classes) in enumerate(demands):
            for one in classes:
                self.demands_of[one].append(number)
        self.budget = budget

    def highest(self, one: int) -> int:
        return -(-self.loads[one] // self.sizes[one])

    def lowest(self, one: int) -> int:
        return self.loads[one] // self.sizes[one]

    def fill(self, number: int) -> None:
        """Fill the classes with one demand like water: a good start leaves few paths to find."""
        count, classes = self.demands[number]

        def volume(level: int) -> int:
            return sum(max(0, level * self.sizes[one] - self.loads[one]) for one in classes)

        low, high = 0, count + max(self.highest(one) for one in classes)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if volume(middle) <= count else (low, middle - 1)
        rest = count - volume(low)
        for one in classes:
            poured = max(0, low * self.sizes[one] - self.loads[one])
            drops = min(rest, max(0, (low + 1) * self.sizes[one] - self.loads[one] - poured))
            rest -= drops
            self.flow[number][one] += poured + drops
            self.loads[one] += poured + drops

    def relieve(self, source: int) -> bool:
        """Send units from this class to the lightest one it can reach, if that one is lighter by two."""
        came = self._reachable(source)
        if not came:
            return False
        target = min(came, key=lambda one: (self.lowest(one), one))
        if self.budget <= 0 or self.highest(source) - self.lowest(target) < 2:
            return False
        path = []
        one = target
        while one != source:
            before, number = came[one]
            path.append((before, number, one))
            one = before
        units = self._worth_moving(source, target, min(self.flow[number][before] for before, number, _ in path))
        for before, number, after in path:
            self.flow[number][before] -= units
            self.flow[number][after] += units
        self.loads[source] -= units
        self.loads[target] += units
        return True

    def _reachable(self, source: int) -> dict[int, tuple[int, int]]:
        """Return classes that units of the source can be shifted to, each with the class and demand it is reached
        by.
        """
        came: dict[int, tuple[int, int]] = {}
        seen: set[int] = set()
        queue = deque([source])
        while queue and self.budget > 0:
            one = queue.popleft()
            for number in self.demands_of[one]:
                if number not in seen and self.flow[number][one]:
                    seen.add(number)
                    self.budget -= len(self.flow[number])
                    for other in self.flow[number]:
                        if other != source and other not in came:
                            came[other] = one, number
                            queue.append(other)
        return came

    def _worth_moving(self, source: int, target: int, most: int) -> int:
        """Return the most units of which each still goes from a member to one lighter by two."""
        low = 1
        while low < most:
            middle = (low + most + 1) // 2
            high_then = -(-(self.loads[source] - middle + 1) // self.sizes[source])
            low_then = (self.loads[target] + middle - 1) // self.sizes[target]
            low, most = (middle, most) if high_then - low_then >= 2 else (low, middle - 1)
        return low


def _per_member(problem: _Problem, loads: Sequence[int]) -> list[int]:
    counts = [0] * len(problem.ids)
    for members, load in zip(problem.classes, loads, strict=True):
        base, extra = divmod(load, len(members))
        for place, member in enumerate(members):
            counts[member] = base + (place < extra)
    return counts


def _cheapest_flow(problem: _Problem, counts: Sequence[int]) -> list[list[int]]:
    """Return, among the best balances, the one with the fewest moves and then the most rack matches, as shares."""
    import networkx

    keepable = [problem.keepable(pool) for pool in problem.pools]
    graph = _network(problem, counts, keepable)
    _, flow = networkx.network_simplex(graph)
    shares: list[list[int]] = [[] for _ in counts]
    arriving: dict[Any, list[int]] = {}
    for number, (pool, owned) in enumerate(zip(problem.pools, keepable, strict=True)):
        kept: set[int] = set()
        for owner, numbers in owned.items():
            stay = numbers[: flow["pool", number]["member", owner][0]]
            shares[owner] += stay
            kept.update(stay)
        loose = [partition for partition in pool.numbers if partition not in kept]
        for node, by_key in flow["pool", number].items():
            if node[0] == "alike":
                arriving.setdefault(node, []).extend(loose[: by_key[0]])
                del loose[: by_key[0]]
    # Members that are alike may have any of these. A previous owner never meets its own here: keeping would be cheaper.
    for node, partitions in arriving.items():
        for (_, member), by_key in flow[node].items():
            shares[member] += partitions[: by_key[0]]
            del partitions[: by_key[0]]
    return shares


def _network(problem: _Problem, counts: Sequence[int], keepable: Sequence[dict[int, list[int]]]) -> Any:
    """Build the flow: pool -> previous owner costs no move; pool -> members alike in subscription and rack -> member
    costs one.
    """
    import networkx

    move = problem.partitions + 1  # more than all rack misses together
    big = move * (problem.partitions + 2)  # more than all moves and misses together
    graph = networkx.MultiDiGraph()
    alike: dict[int, dict[str | None, list[int]]] = {}
    for member, number in enumerate(problem.class_of):
        alike.setdefault(number, {}).setdefault(problem.rack_of[member], []).append(member)
    for number in problem.reading_classes:
        for rack, members in alike[number].items():
            for member in members:
                graph.add_edge(("alike", number, rack), ("member", member), weight=0)
    for index, (pool, owned) in enumerate(zip(problem.pools, keepable, strict=True)):
        graph.add_node(("pool", index), demand=-len(pool.numbers))
        for owner, numbers in owned.items():
            miss = int(problem.rack_of[owner] not in pool.racks)
            graph.add_edge(("pool", index), ("member", owner), capacity=len(numbers), weight=miss)
        for number in pool.classes:
            for rack in alike[number]:
                graph.add_edge(("pool", index), ("alike", number, rack), weight=move + (rack not in pool.racks))
    # All but the last unit of a member's count are certain; the window above them has the marginal cost of squares.
    certain = [max(0, count - 1) for count in counts]
    lowest = min(certain, default=0)
    for number in problem.reading_classes:
        for member in problem.classes[number]:
            graph.add_node(("member", member), demand=certain[member])
            for count in range(certain[member] + 1, counts[member] + 2):
                graph.add_edge(("member", member), "sink", capacity=1, weight=big * 2 * (count - 1 - lowest))
    graph.add_node("sink", demand=problem.partitions - sum(certain))
    return graph


def _bounds(problem: _Problem) -> Optimum:
    """Return bounds that no answer beats, without a witness, where the group is too large for the flow."""
    kept = [0] * len(problem.ids)
    unowned = near = 0
    for pool in problem.pools:
        for owner, numbers in problem.keepable(pool).items():
            kept[owner] += len(numbers)
        unowned += sum(problem.before[number] == NOBODY for number in pool.numbers)
        readers = {problem.rack_of[member] for number in pool.classes for member in problem.classes[number]}
        near += 0 if pool.racks.isdisjoint(readers) else len(pool.numbers)
    forced = problem.partitions - unowned - sum(kept)
    counts, moves = _bounded_balance(problem, kept, unowned + forced)
    by_id = dict(zip(problem.ids, counts, strict=True))
    return Optimum(
        counts=tuple(by_id[member_id] for member_id in problem.group.members),
        moves=forced + moves,
        rack_matches=near if problem.has_racks else None,
        exact=False,
        assignment=None,
    )


def _bounded_balance(problem: _Problem, kept: Sequence[int], free: int) -> tuple[list[int], int]:
    """Return counts that no answer beats, and the moves beyond the forced ones that any best balance needs. `free`
    partitions have to find a new owner anyway.
    """
    if len(problem.reading_classes) == 1:
        counts = _even_quotas(problem, kept)
        return counts, sum(max(0, have - count) for have, count in zip(kept, counts, strict=True))
    loads = best_loads([len(members) for members in problem.classes], problem.demands, SEARCH_BUDGET)
    if loads is None:
        readers = sorted(member for number in problem.reading_classes for member in problem.classes[number])
        base, extra = divmod(problem.partitions, len(readers))
        counts = [0] * len(problem.ids)
        for place, member in enumerate(readers):
            counts[member] = base + (place < extra)
        return counts, 0
    counts = _per_member(problem, loads)
    # In any best balance a member's count is within one of this one's.
    surplus = sum(max(0, have - count - 1) for have, count in zip(kept, counts, strict=True))
    lacking = sum(max(0, count - 1 - have) for have, count in zip(kept, counts, strict=True))
    return counts, max(surplus, lacking - free)
