"""The tables of states.py: complete, and the same as the page that shows them."""

from __future__ import annotations

from itertools import product

import pytest

from rebalance_lab.protocol_v2.coordinator.state.states import (
    ACTIONS,
    MOVES,
    NEXT,
    Event,
    Finding,
    GroupState,
    MemberState,
    group_state,
)


def test_every_finding_leads_somewhere():
    assert set(NEXT) == {Finding(*facts) for facts in product((False, True), repeat=3)}


@pytest.mark.parametrize("finding", NEXT)
def test_the_epoch_advances_unless_something_is_still_to_be_revoked(finding):
    outcome = NEXT[finding]
    assert outcome.advances == (not finding.still_owns_revoked)
    assert (outcome.state is MemberState.UNREVOKED_PARTITIONS) == finding.still_owns_revoked
    if outcome.advances:
        assert (outcome.state is MemberState.UNRELEASED_PARTITIONS) == finding.unreleased


def test_every_member_state_has_actions():
    assert {state for state, _ in ACTIONS} == set(MemberState)


@pytest.mark.parametrize(
    ("members", "reconciled", "group_epoch", "assignment_epoch", "state"),
    [
        (0, 0, 5, 4, GroupState.EMPTY),  # the last one left: the target stays behind
        (0, 0, 1, 1, GroupState.EMPTY),
        (2, 2, 4, 3, GroupState.ASSIGNING),  # even though everybody has arrived at the old one
        (2, 1, 3, 3, GroupState.RECONCILING),
        (2, 2, 3, 3, GroupState.STABLE),
    ],
)
def test_a_groups_state_follows_from_its_counts(members, reconciled, group_epoch, assignment_epoch, state):
    counts = {"members": members, "reconciled": reconciled}
    assert group_state(**counts, group_epoch=group_epoch, assignment_epoch=assignment_epoch) is state


def test_every_event_can_move_some_group():
    assert {event for _, event in MOVES} == set(Event)


def test_nothing_but_a_failed_deletion_brings_a_dead_group_back():
    assert {event for state, event in MOVES if state is GroupState.DEAD} == {Event.NOT_STORED}
