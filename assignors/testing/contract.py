"""The contract: every property by name, and the promise under which it is held.

Held       by everybody (valid, bounded-time, pure, deterministic, order-independent, churn), or by those who promise it
Measured   otherwise: counted, its worst case shown, never a failure
Start at   PROPERTIES
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from assignors.testing import properties, properties_moves
from assignors.testing.subject import Subject
from assignors.testing.trial import Trial

EVERYBODY = "everybody"


@dataclass(frozen=True, slots=True)
class Property:
    name: str
    promise: str
    check: Callable[[Trial], None]
    every: int = 1
    """Measured, it is looked at in one example of so many; held, in all of them."""

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

    def waived_on(self, trial: Trial) -> bool:
        waivers = trial.subject.waivers
        return any(w.property in (self.name, "*") and w.shapes and w.shapes <= trial.shapes for w in waivers)


PROPERTIES: tuple[Property, ...] = (
    Property("valid", EVERYBODY, properties.valid),
    Property("bounded-time", EVERYBODY, properties.bounded_time),
    Property("pure", EVERYBODY, properties.pure),
    Property("deterministic", EVERYBODY, properties.deterministic),
    Property("order-independent", EVERYBODY, properties.order_independent),
    Property("balanced", "balanced", properties.balanced, every=2),
    Property("per-topic-balanced", "per-topic-balanced", properties.per_topic_balanced, every=2),
    Property("load-balanced", "load-balanced", properties.load_balanced, every=10),
    Property("sticky", "sticky", properties_moves.sticky, every=2),
    Property("sticky-leave", "sticky", properties_moves.sticky_leave, every=4),
    Property("sticky-join", "sticky", properties_moves.sticky_join, every=4),
    Property("settles", "sticky", properties_moves.settles, every=2),
    Property("minimal-moves", "minimal-moves", properties_moves.minimal_moves, every=20),
    Property("cooperative", "cooperative", properties_moves.cooperative, every=4),
    Property("cooperative-rounds", "cooperative", properties_moves.cooperative_rounds, every=8),
    Property("rack-aware", "rack-aware", properties_moves.rack_aware),
    Property("churn", EVERYBODY, properties_moves.churn),
)
BY_NAME = {each.name: each for each in PROPERTIES}
PROMISES = tuple(dict.fromkeys(each.promise for each in PROPERTIES if each.promise != EVERYBODY))
ALWAYS_PROMISED = ("valid", "deterministic", "pure", "order-independent", "bounded-time", "churn")
"""Allowed among a class's promises, and held anyway."""


def unknown_promises(promises: Collection[str]) -> list[str]:
    return [promise for promise in promises if promise not in PROMISES and promise not in ALWAYS_PROMISED]
