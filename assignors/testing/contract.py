"""The contract: every property by name, and the promise under which it is held.

Held       by everybody (valid, bounded-time, pure, deterministic, order-independent, the churns), or by those who
           promise it
Measured   otherwise: counted, its worst case shown, never a failure
Start at   PROPERTIES
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rebalance_lab.assignors.testing import properties, properties_churn, properties_moves
from rebalance_lab.assignors.testing.families import CHURN_EVERY
from rebalance_lab.assignors.testing.shapes import Waiver
from rebalance_lab.assignors.testing.subject import Subject
from rebalance_lab.assignors.testing.trial import Trial

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
        """Those that excuse it, and not everything else too, on groups of some shape."""
        return tuple(waiver for waiver in subject.waivers if waiver.shapes and waiver.property == self.name)


PROPERTIES: tuple[Property, ...] = (
    Property("valid", EVERYBODY, properties.valid),
    Property("bounded-time", EVERYBODY, properties.bounded_time),
    Property("pure", EVERYBODY, properties.pure),
    Property("deterministic", EVERYBODY, properties.deterministic),
    Property("order-independent", EVERYBODY, properties.order_independent),
    Property("balanced", "balanced", properties.balanced, every=16),
    Property("per-topic-balanced", "per-topic-balanced", properties.per_topic_balanced, every=16),
    Property("load-balanced", "load-balanced", properties.load_balanced, every=16),
    Property("sticky", "sticky", properties_moves.sticky, every=16),
    Property("sticky-leave", "sticky", properties_moves.sticky_leave, every=16),
    Property("sticky-join", "sticky", properties_moves.sticky_join, every=16),
    Property("settles", "sticky", properties_moves.settles, every=16),
    Property("minimal-moves", "minimal-moves", properties_moves.minimal_moves, every=80),
    Property("cooperative", "cooperative", properties_moves.cooperative, every=16),
    Property("cooperative-rounds", "cooperative", properties_moves.cooperative_rounds, every=16),
    Property("rack-aware", "rack-aware", properties_moves.rack_aware, every=4),
    Property("churn", EVERYBODY, properties_churn.churn, rarely=CHURN_EVERY),
    Property("survives-churn", EVERYBODY, properties_churn.survives_churn, rarely=40, last=True),
)
BY_NAME = {each.name: each for each in PROPERTIES}
