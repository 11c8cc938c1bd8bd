"""List the states of a classic group and every transition between them, as one table.

Given      a state and what happened (Event)
Returns    the next state; a pair that the table lacks is a bug of ours and raises InvariantBroken
Not here   what leaves the state as it is: a member that joins a rebalance under way, a follower that asks again
Reference  ClassicGroupState in Apache Kafka
Start at   TRANSITIONS; tools/state_diagrams.py prints ../STATES.md from it
"""

from __future__ import annotations

from enum import Enum

from rebalance_lab.protocol_v1.common.errors import InvariantBroken


class State(Enum):
    """Name a group's state; the value is Kafka's display name."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Event(Enum):
    """Name what moves a group; the value is what a trace says."""

    CREATED = "group created"
    LOADED_WITHOUT_MEMBERS = "loaded without members"
    LOADED_WITH_MEMBERS = "loaded with members"
    MEMBER_JOINED = "member joined"
    LEADER_REJOINED = "leader rejoined"
    SUBSCRIPTION_CHANGED = "member rejoined with another protocol list"
    STATIC_MEMBER_REPLACED = "static member replaced"
    MEMBER_LEFT = "member left"
    SESSION_EXPIRED = "session timeout"
    SYNC_EXPIRED = "no SyncGroup within the rebalance timeout"
    ASSIGNMENT_NOT_STORED = "assignment could not be stored"
    OVER_CAPACITY = "loaded above group.max.size"
    JOIN_COMPLETED = "join phase completed"
    LAST_MEMBER_GONE = "no members left"
    ASSIGNMENT_STORED = "leader's assignment stored"
    DELETED = "group deleted"
    DELETION_NOT_STORED = "deletion could not be stored"
    BIRTH_NOT_STORED = "group could not be stored"
    UNLOADED = "coordinator moved"


EMPTY, PREPARING, COMPLETING, STABLE, DEAD = State

REBALANCE_FROM_STABLE = (
    Event.MEMBER_JOINED,
    Event.LEADER_REJOINED,
    Event.SUBSCRIPTION_CHANGED,
    Event.STATIC_MEMBER_REPLACED,
    Event.MEMBER_LEFT,
    Event.SESSION_EXPIRED,
    Event.SYNC_EXPIRED,
    Event.OVER_CAPACITY,
)
# In CompletingRebalance a leader that asks again with the same list is given the member list again: no rebalance.
REBALANCE_FROM_COMPLETING = (
    Event.MEMBER_JOINED,
    Event.SUBSCRIPTION_CHANGED,
    Event.STATIC_MEMBER_REPLACED,
    Event.MEMBER_LEFT,
    Event.SESSION_EXPIRED,
    Event.SYNC_EXPIRED,
    Event.ASSIGNMENT_NOT_STORED,
)

TRANSITIONS: dict[tuple[State | None, Event], State] = {
    (None, Event.CREATED): EMPTY,
    (None, Event.LOADED_WITHOUT_MEMBERS): EMPTY,
    (None, Event.LOADED_WITH_MEMBERS): STABLE,
    (EMPTY, Event.MEMBER_JOINED): PREPARING,
    (PREPARING, Event.JOIN_COMPLETED): COMPLETING,
    (PREPARING, Event.LAST_MEMBER_GONE): EMPTY,
    (COMPLETING, Event.ASSIGNMENT_STORED): STABLE,
    **{(COMPLETING, event): PREPARING for event in REBALANCE_FROM_COMPLETING},
    **{(STABLE, event): PREPARING for event in REBALANCE_FROM_STABLE},
    (EMPTY, Event.DELETED): DEAD,
    (DEAD, Event.DELETION_NOT_STORED): EMPTY,
    **{(state, Event.BIRTH_NOT_STORED): DEAD for state in (EMPTY, PREPARING, COMPLETING, STABLE)},
    **{(state, Event.UNLOADED): DEAD for state in (EMPTY, PREPARING, COMPLETING, STABLE)},
}


def next_state(state: State | None, event: Event) -> State:
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise InvariantBroken(f"a group in {state and state.value} cannot move on '{event.value}'") from None
