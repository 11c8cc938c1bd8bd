"""List the examples of a search by number: a drawn group, then the same group after one event and after two.

Why        drawing a group costs as much as asking a fast assignor twice; applying an event to it costs a tenth. Real
           assignors fail more often at the step from one group to the next than at a single group
Alone      what members own is lists, the same in a whole family. An assignor that changes them changes no other
           example: the group is then drawn anew before anything happens to it
Start at   Draws.example: the same seed and number, the same example, in every process
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_lab.assignors.model import Group
from rebalance_lab.assignors.testing.sampling.fingerprints import claims
from rebalance_lab.assignors.testing.sampling.group_events import Event, draw_events, happen
from rebalance_lab.assignors.testing.sampling.random_groups import draw_group
from rebalance_lab.assignors.testing.sampling.random_source import SeededSource

FAMILY = 3
"""No divisor of the contract's intervals: what is looked at now and then sees every generation of a family."""
CHURN_EVERY = 8
"""A churn asks some ten times, and checks each answer; one example in eight has one."""

Example = tuple[Group, tuple[Event, ...]]


class Draws:
    """Draw examples on from the last one. A family asked for in its order is drawn once, and no further than asked for.
    Each example is given away once: a class that changes its input changes no other example.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._draws = SeededSource()
        self._next = 0
        self._family: Iterator[Example] = iter(())

    def example(self, number: int) -> Example:
        if number != self._next or number % FAMILY == 0:
            self._family = draw_family(self._draws, self.seed, number // FAMILY)
            for _ in range(number % FAMILY):
                next(self._family)
        self._next = number + 1
        return next(self._family)


def draw_family(draws: SeededSource, seed: int, family: int) -> Iterator[Example]:
    draws.start(seed, family)
    group = draw_group(draws)
    owning = any(member.owned for member in group.members.values())  # where nobody does, no event changes that
    as_drawn: object = None
    first, last = family * FAMILY, family * FAMILY + FAMILY - 1
    for number in range(first, last + 1):
        if number > first and group.members:
            if owning and claims(group) != as_drawn:
                group = Draws(seed).example(number - 1)[0]
            group = happen(group, draw_events(draws, group, 1)[0])
        events: tuple[Event, ...] = ()
        if number % CHURN_EVERY == 0 and group.members:
            events = draw_events(draws, group, draws.integer(1, 5))
        if owning and number < last:
            as_drawn = claims(group)
        yield group, events
