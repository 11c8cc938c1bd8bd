"""Assign as Kafka's cooperative-sticky does: the sticky assignment without what another member still holds.

Given      a group whose members keep consuming while they rebalance, so that `owned` is what they hold right now
Returns    an assignment in which a partition that changes hands is in no member's share. Its holder sees that it is
           gone, revokes it and rejoins; the next assignment gives it to its new member
Reference  CooperativeStickyAssignor of Apache Kafka 4.3.1
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from rebalance_lab.assignors.classic.sticky.claims import NO_GENERATION, Claims, Generations, read_claims
from rebalance_lab.assignors.classic.sticky.sticky import Balanced, balance_equal, highest_generation
from rebalance_lab.assignors.classic.sticky.user_data import encode_cooperative
from rebalance_lab.assignors.interface import RebalanceProtocol
from rebalance_lab.assignors.model import Assignment, Group, Member


class CooperativeStickyAssignor:
    """Assign by cooperative-sticky. As with StickyAssignor, `max_generation` changes only by `remember_generations`."""

    name = "cooperative-sticky"
    supported_protocols: Sequence[RebalanceProtocol] = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
    promises: Collection[str] = ("balanced", "sticky", "cooperative", "rack-aware")

    def __init__(self, max_generation: int = NO_GENERATION) -> None:
        self.max_generation = max_generation
        self._given_in = NO_GENERATION

    def assign(self, group: Group) -> Assignment:
        claims = read_claims(group, subscription_generations)
        if claims.equal:
            balanced = balance_equal(claims)
            withhold_transfers(claims, balanced)
            return balanced.assignment(claims)
        from rebalance_lab.assignors.classic.sticky.mixed_subscriptions import balance_mixed

        numbers = balance_mixed(claims, self.max_generation)
        withheld = withhold_held_by_others(claims, numbers)
        return claims.assignment(numbers, withheld=withheld)

    def remember_generations(self, group: Group) -> None:
        self.max_generation = highest_generation(group, subscription_generations, self.max_generation)

    def on_assignment(self, assignment: Mapping[str, Sequence[int]], generation: int) -> None:
        self._given_in = generation

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        return encode_cooperative(self._given_in)


def subscription_generations(member: Member) -> Generations:
    """Return the subscription's own generation; user data is asked only where there is none."""
    if member.generation is not None and member.generation >= 0:
        return Generations(member.generation, member.generation)
    return Generations(NO_GENERATION if member.claim_generation is None else member.claim_generation, NO_GENERATION)


def withhold_transfers(claims: Claims, balanced: Balanced) -> None:
    revoked, contested = balanced.revoked, claims.contested
    if not revoked and not contested:
        return
    for member_id, new in balanced.given.items():
        free = [n for n in new if n not in contested and revoked.get(n, member_id) == member_id]
        if len(free) < len(new):
            balanced.given[member_id] = free
            balanced.withheld = True


def withhold_held_by_others(claims: Claims, numbers: dict[str, Sequence[int]]) -> bool:
    """Withhold a partition that is new to its member and that some other member loses. Where subscriptions differ, Java
    compares raw claims, whatever their generation.
    """
    lost: set[int] = set()
    gained: dict[str, set[int]] = {}
    for member_id, share in numbers.items():
        claimed = claims.raw[member_id]
        if share is not claimed:
            lost.update(set(claimed).difference(share))
            gained[member_id] = set(share).difference(claimed)
    withheld = lost.intersection(chain.from_iterable(gained.values()))
    for member_id, new in gained.items():
        if not withheld.isdisjoint(new):
            numbers[member_id] = [n for n in numbers[member_id] if n not in withheld or n not in new]
    return bool(withheld)
