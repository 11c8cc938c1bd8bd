"""Provide Hypothesis strategies for a user's own tests: topics, members, groups and churn, with knobs.

Every group prints as JSON that `rebalance-lab assign` accepts: print(json.dumps(group_to_json(group))).

    @given(groups(max_members=5, racks=False))
    def test_everything_is_given(group): ...

The groups are those that `rebalance-lab check` draws (random_groups.py), and shrink to few members and plain names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from hypothesis import strategies as st

from rebalance_lab.assignors.model import Group, Member, Topic
from rebalance_lab.assignors.testing.sampling.group_events import Event, draw_events
from rebalance_lab.assignors.testing.sampling.random_groups import (
    Knobs,
    draw_group,
    draw_names,
    draw_racks,
    draw_subscriptions,
)
from rebalance_lab.assignors.testing.sampling.random_groups import draw_counts as _draw_counts
from rebalance_lab.assignors.testing.sampling.random_groups import draw_loads as _draw_loads
from rebalance_lab.assignors.testing.sampling.random_source import HypothesisSource


def knobs_of(given: Mapping[str, Any]) -> Knobs:
    known = {field.name for field in fields(Knobs)}
    unknown = given.keys() - known
    if unknown:
        raise TypeError(f"unknown knob {sorted(unknown)[0]!r}; known: {', '.join(sorted(known))}")
    return Knobs(**given)


def groups(*, min_members: int = 0, **knobs: Any) -> st.SearchStrategy[Group]:
    """Draw whole groups. Knobs: max_members, max_topics, max_partitions, claims, bad_claims, racks, loads,
    odd_names.
    """
    settings = knobs_of(knobs)

    @st.composite
    def drawn(draw: Callable[[Any], Any]) -> Group:
        return draw_group(HypothesisSource(draw), settings)

    strategy: st.SearchStrategy[Group] = drawn()
    return strategy.filter(lambda group: len(group.members) >= min_members) if min_members else strategy


def topics(**knobs: Any) -> st.SearchStrategy[dict[str, Topic]]:
    """Draw topics by name; racks and loads for some of them, unless turned off."""
    settings = knobs_of(knobs)

    @st.composite
    def drawn(draw: Callable[[Any], Any]) -> dict[str, Topic]:
        draws = HypothesisSource(draw)
        found = {name: Topic(count) for name, count in _draw_counts(draws, settings, crowded=False).items()}
        if settings.racks and draws.chance(0.3):
            found, _ = draw_racks(draws, found, 0)
        return _draw_loads(draws, found) if settings.loads and draws.chance(0.3) else found

    return drawn()


def members(known: Mapping[str, Topic], **knobs: Any) -> st.SearchStrategy[dict[str, Member]]:
    """Draw members by id that subscribe to the given topics and own nothing yet."""
    settings = knobs_of(knobs)

    @st.composite
    def drawn(draw: Callable[[Any], Any]) -> dict[str, Member]:
        draws = HypothesisSource(draw)
        ids = draw_names(draws, draws.integer(0, settings.max_members), "c", settings)
        subscriptions = draw_subscriptions(draws, list(known), len(ids), settings)
        return {member_id: Member(topics) for member_id, topics in zip(ids, subscriptions, strict=True)}

    return drawn()


def churn(group: Group, *, min_events: int = 1, max_events: int = 8) -> st.SearchStrategy[tuple[Event, ...]]:
    """Draw events of a group: join, leave, crash, resubscribe, growth, deletion, rack change, duplicate claim."""

    @st.composite
    def drawn(draw: Callable[[Any], Any]) -> tuple[Event, ...]:
        draws = HypothesisSource(draw)
        return draw_events(draws, group, draws.integer(min_events, max_events))

    return drawn()


def groups_with_churn(*, max_events: int = 8, **knobs: Any) -> st.SearchStrategy[tuple[Group, tuple[Event, ...]]]:
    return groups(**knobs).flatmap(lambda group: st.tuples(st.just(group), churn(group, max_events=max_events)))
