"""The transition table: every state with every event, and the printed diagram."""

from __future__ import annotations

from itertools import product

import pytest

from rebalance_lab.protocol_v1.common.errors import InvariantBroken
from rebalance_lab.protocol_v1.coordinator.state.states import TRANSITIONS, Event, State, next_state

PREDECESSORS = {
    State.EMPTY: {None, State.PREPARING_REBALANCE, State.DEAD},
    State.PREPARING_REBALANCE: {State.EMPTY, State.STABLE, State.COMPLETING_REBALANCE},
    State.COMPLETING_REBALANCE: {State.PREPARING_REBALANCE},
    State.STABLE: {None, State.COMPLETING_REBALANCE},
    State.DEAD: {State.EMPTY, State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE, State.STABLE},
}
"""Kafka's own rule (ClassicGroupState.validPreviousStates), and where a group comes from or goes back to a log."""


@pytest.mark.parametrize(("state", "event"), list(product([None, *State], Event)))
def test_a_group_moves_only_along_the_table(state, event):
    if (state, event) in TRANSITIONS:
        assert state in PREDECESSORS[next_state(state, event)]
    else:
        with pytest.raises(InvariantBroken, match="cannot move on"):
            next_state(state, event)


def test_every_state_can_be_reached_and_left_again():
    assert set(TRANSITIONS.values()) == set(State)
    assert {source for source, _ in TRANSITIONS} == {None, *State}


def test_every_event_moves_something():
    assert {event for _, event in TRANSITIONS} == set(Event)
