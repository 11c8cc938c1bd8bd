"""Assign as Kafka's sticky assignor does, and build the assignment where all subscriptions are equal.

Given      a group; what members own comes with the generation in which they got it
Returns    an assignment in which no two members differ by more than one partition
Equal      1. Each member keeps what it owns up to its quota, low partition numbers first.
           2. Partitions go to members on their racks, where racks matter.
           3. What is left is dealt to members below the minimum in a circle, then to those at the minimum.
           Every round of a circle is a slice, a share that does not change keeps its object, and a fresh assignment
           comes out as `everything[i::members]`
Mixed      subscriptions that differ have their own builder: mixed_subscriptions.py
Reference  StickyAssignor and ConstrainedAssignmentBuilder in AbstractStickyAssignor of Apache Kafka 4.3.1
Start at   StickyAssignor.assign, then balance_equal
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.classic.sticky.claims import NO_GENERATION, Claims, Generations, read_claims
from rebalance_lab.assignors.classic.sticky.sticky_racks import GroupRacks, RackFill, racks_of
from rebalance_lab.assignors.classic.sticky.unknown_claims import free_beside_nonexistent
from rebalance_lab.assignors.classic.sticky.user_data import encode_sticky
from rebalance_lab.assignors.interface import RebalanceProtocol
from rebalance_lab.assignors.java.hash_order import string_order_of_second_map
from rebalance_lab.assignors.java.string_order import in_java_order
from rebalance_lab.assignors.model import Assignment, Group, Member


class StickyAssignor:
    """Assign by sticky: `assign` depends on the group and on `max_generation` alone. Java's instance also remembers the
    highest generation that it ever saw: a leader that assigns again and again calls `remember_generations` after each
    time.
    """

    name = "sticky"
    supported_protocols: Sequence[RebalanceProtocol] = (RebalanceProtocol.EAGER,)
    promises: Collection[str] = ("balanced", "sticky", "rack-aware")

    def __init__(self, max_generation: int = NO_GENERATION) -> None:
        self.max_generation = max_generation
        self._given: Mapping[str, Sequence[int]] | None = None
        self._given_in = NO_GENERATION

    def assign(self, group: Group) -> Assignment:
        claims = read_claims(group, user_data_generations)
        if claims.equal:
            return balance_equal(claims).assignment(claims)
        from rebalance_lab.assignors.classic.sticky.mixed_subscriptions import balance_mixed

        return claims.assignment(balance_mixed(claims, self.max_generation))

    def remember_generations(self, group: Group) -> None:
        self.max_generation = highest_generation(group, user_data_generations, self.max_generation)

    def on_assignment(self, assignment: Mapping[str, Sequence[int]], generation: int) -> None:
        self._given, self._given_in = assignment, generation

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        """Return what this member was given, for the leader to read; nothing before the first assignment."""
        return None if self._given is None else encode_sticky(self._given, self._given_in)


def user_data_generations(member: Member) -> Generations:
    """Return the claims of sticky's user data, which carries a generation of its own."""
    generation = NO_GENERATION if member.generation is None else max(member.generation, NO_GENERATION)
    return Generations(generation if member.claim_generation is None else member.claim_generation, generation)


def highest_generation(group: Group, generations_of: Callable[[Member], Generations], seen: int) -> int:
    return max([seen, *(generations_of(member).claim for member in group.members.values())])


@dataclass(slots=True)
class Balanced:
    """Hold the partitions that members keep and those they are given; cooperative-sticky withholds some of the
    latter.
    """

    kept: dict[str, Sequence[int]]
    given: dict[str, list[int]]
    revoked: dict[int, str]
    """Partitions that their owner could not keep."""
    withheld: bool = False

    def assignment(self, claims: Claims) -> Assignment:
        numbers = self.kept
        for member_id, new in self.given.items():
            if new:
                kept = numbers[member_id]
                numbers[member_id] = [*kept, *new] if kept else new
        return claims.assignment(numbers, withheld=self.withheld)


def balance_equal(claims: Claims) -> Balanced:
    if not claims.members:
        raise AssignorError("no members: / by zero", path="group.members", java_exception="ArithmeticException")
    racks = racks_of(claims)
    if racks is None and not claims.contested and not any(claims.owned.values()):
        ids = in_java_order(claims.members)
        return Balanced({member_id: claims.everything[i :: len(ids)] for i, member_id in enumerate(ids)}, {}, {})
    quotas = keep_up_to_quota(claims, racks)
    free = free_partitions(claims, quotas)
    below = {member_id: quotas.below[member_id] for member_id in in_java_order(quotas.below)}
    at_minimum: Sequence[str] = in_java_order(quotas.at_minimum)
    given: dict[str, list[int]] = {}
    if racks is not None:
        fill = RackFill(racks, below, at_minimum, quotas.rises_left, given)
        free = fill.fill(racks.fewest_members_first(free))
        at_minimum, quotas.rises_left = list(fill.queue.values()), fill.rises_left
    deal(free, below, at_minimum, given, quotas.rises_left)
    return Balanced(quotas.kept, given, quotas.revoked)


@dataclass(slots=True)
class Quotas:
    kept: dict[str, Sequence[int]]
    revoked: dict[int, str]
    below: dict[str, int]
    """Members below the minimum, and how many they lack."""
    at_minimum: list[str]
    """Members that may still get one more."""
    rises_left: int
    """How many may still go from the minimum to the maximum."""


def keep_up_to_quota(claims: Claims, racks: GroupRacks | None) -> Quotas:
    minimum, larger = divmod(len(claims.everything), len(claims.members))
    maximum = minimum + (larger > 0)
    kept, revoked = keepable(claims, racks)
    at_maximum: Collection[str] = ()
    if larger:
        at_maximum = {member_id for member_id, share in kept.items() if len(share) >= maximum}
        if len(at_maximum) > larger:
            # The one choice that hash order makes: who may keep the maximum when more hold it than may.
            at_maximum = set(
                [member_id for member_id in string_order_of_second_map(kept) if member_id in at_maximum][:larger]
            )
    rises_left = larger - len(at_maximum)
    below: dict[str, int] = {}
    at_minimum: list[str] = []
    for member_id, share in kept.items():
        size = len(share)
        if size < minimum:
            below[member_id] = minimum - size
            continue
        if size == minimum and rises_left:
            at_minimum.append(member_id)
        quota = maximum if member_id in at_maximum else minimum
        if size > quota:
            in_order = by_partition_then_topic(claims, share)
            kept[member_id] = in_order[:quota]
            revoked.update(dict.fromkeys(in_order[quota:], member_id))
    return Quotas(kept, revoked, below, at_minimum, rises_left)


def keepable(claims: Claims, racks: GroupRacks | None) -> tuple[dict[str, Sequence[int]], dict[int, str]]:
    """Return what members own without partitions on none of their racks, which count as revoked, and without contested
    ones.
    """
    kept, revoked = dict(claims.owned), dict[int, str]()
    if racks is not None:
        for member_id, owned in claims.owned.items():
            in_place = racks.in_place(member_id, owned)
            if len(in_place) < len(owned):
                kept[member_id] = in_place
                revoked.update(dict.fromkeys(set(owned).difference(in_place), member_id))
    if claims.contested:
        for member_id, share in kept.items():
            kept[member_id] = [number for number in share if number not in claims.contested]
    return kept, revoked


def by_partition_then_topic(claims: Claims, share: Sequence[int]) -> list[int]:
    """Sort by partition, stably: numbers ascend by topic first, so that is enough."""
    if claims.beyond:
        return sorted(share, key=lambda number: claims.place_of(number)[::-1])
    return sorted(sorted(share), key=claims.layout.partition_key())


def free_partitions(claims: Claims, quotas: Quotas) -> Sequence[int]:
    total = claims.layout.total
    if claims.beyond:
        nonexistent = [number for share in quotas.kept.values() for number in share if number >= total]
        if nonexistent:
            return free_beside_nonexistent(claims, quotas.kept, nonexistent)
    if not quotas.revoked and not claims.contested:
        return claims.unclaimed
    free = sorted({*claims.unclaimed, *quotas.revoked, *claims.contested})
    return free[: bisect_left(free, total)]


def deal(
    free: Sequence[int], below: dict[str, int], at_minimum: Sequence[str], given: dict[str, list[int]], rises_left: int
) -> None:
    """Deal rounds to those below the minimum, then one each to those at it, in the order in which they reached it."""
    circle = list(below)
    queue = list(at_minimum)
    begin = rounds_done = 0
    for lacking in sorted(set(below.values())):
        width = len(circle)
        end = begin + width * (lacking - rounds_done)
        for turn, member_id in enumerate(circle):
            given.setdefault(member_id, []).extend(free[begin + turn : end : width])
        if end > len(free):
            raise unfilled(circle[0], rises_left)
        begin, rounds_done = end, lacking
        queue += [member_id for member_id in circle if below[member_id] == lacking]
        circle = [member_id for member_id in circle if below[member_id] > lacking]
    if len(free) - begin > len(queue):
        raise AssignorError("No more unfilled consumers to be assigned.", java_exception="IllegalStateException")
    for number, member_id in zip(free[begin:], queue, strict=False):
        given.setdefault(member_id, []).append(number)


def unfilled(member_id: str, rises_left: int) -> AssignorError:
    message = f"Consumer: [{member_id}] doesn't reach minQuota partitions, and no more partitions to be assigned"
    if rises_left:
        message = (
            "We haven't reached the expected number of members with more than the minQuota partitions, "
            "but no more partitions to be assigned"
        )
    return AssignorError(message, java_exception="IllegalStateException")
