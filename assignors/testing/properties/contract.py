"""List every property by name, and the promise under which it is held.

Held       by every assignor (valid, bounded-time, pure, deterministic, order-independent, the churns), or by those
           that promise it
Measured   otherwise: counted, its worst case shown, never a failure
Start at   PROPERTIES
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rebalance_lab.assignors.testing.properties import churn, moves, validity
from rebalance_lab.assignors.testing.properties.trial import Trial
from rebalance_lab.assignors.testing.sampling.example_families import CHURN_EVERY
from rebalance_lab.assignors.testing.sampling.group_shapes import Waiver
from rebalance_lab.assignors.testing.subject.subject import Subject

EVERYBODY = "everybody"


@dataclass(frozen=True, slots=True)
class Property:
    name: str
    promise: str
    check: Callable[[Trial], None]
    every: int = 1
    """Measured, it is looked at in one example of so many; held, in all of them."""
    rarely: int = 1
    """Even held, it is looked at in one example of so many: a whole history costs what a hundred groups do."""
    last: bool = False
    """Only where everything else holds: it would tell the same again, in many more words."""

    @property
    def why(self) -> str:
        return self.check.__doc__ or ""

    @property
    def title(self) -> str:
        return self.why.partition("\n")[0]

    def held_by(self, subject: Subject) -> bool:
        if any(waiver.property == self.name and not waiver.shapes for waiver in subject.waivers):
            return False
        return self.promise == EVERYBODY or self.promise in subject.promises

    def waivers_of(self, subject: Subject) -> tuple[Waiver, ...]:
        """Return the waivers that excuse this property, and not everything else too, on groups of some shape."""
        return tuple(waiver for waiver in subject.waivers if waiver.shapes and waiver.property == self.name)


PROPERTIES: tuple[Property, ...] = (
    Property("valid", EVERYBODY, validity.valid),
    Property("bounded-time", EVERYBODY, validity.bounded_time),
    Property("pure", EVERYBODY, validity.pure),
    Property("deterministic", EVERYBODY, validity.deterministic),
    Property("order-independent", EVERYBODY, validity.order_independent),
    Property("balanced", "balanced", validity.balanced, every=16),
    Property("per-topic-balanced", "per-topic-balanced", validity.per_topic_balanced, every=16),
    Property("load-balanced", "load-balanced", validity.load_balanced, every=16),
    Property("sticky", "sticky", moves.sticky, every=16),
    Property("sticky-leave", "sticky", moves.sticky_leave, every=16),
    Property("sticky-join", "sticky", moves.sticky_join, every=16),
    Property("settles", "sticky", moves.settles, every=16),
    Property("minimal-moves", "minimal-moves", moves.minimal_moves, every=80),
    Property("cooperative", "cooperative", moves.cooperative, every=16),
    Property("cooperative-rounds", "cooperative", moves.cooperative_rounds, every=16),
    Property("rack-aware", "rack-aware", moves.rack_aware, every=4),
    Property("churn", EVERYBODY, churn.churn, rarely=CHURN_EVERY),
    Property("survives-churn", EVERYBODY, churn.survives_churn, rarely=40, last=True),
)
BY_NAME = {each.name: each for each in PROPERTIES}
