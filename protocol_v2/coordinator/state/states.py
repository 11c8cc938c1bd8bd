"""List the states of a consumer group and of its members, each as a table.

Group     its state is not stored: it follows from members, epochs and how many members have arrived (group_state).
          MOVES lists what each event can make of each state, and the random runs of the tests hold every move to it
Member    ACTIONS says which step a heartbeat takes (../assignment/reconciliation.py has the steps), NEXT what that step
          leads to
Reference ConsumerGroup.maybeUpdateGroupState, CurrentAssignmentBuilder in Apache Kafka
Start at  group_state, ACTIONS and NEXT; tools/state_diagrams.py prints ../STATES.md from them
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import NamedTuple


class GroupState(Enum):
    """Name a group's state; the value is Kafka's display name."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, ASSIGNING, RECONCILING, STABLE, DEAD = GroupState


def group_state(*, members: int, reconciled: int, group_epoch: int, assignment_epoch: int) -> GroupState:
    """Return the group's state; `reconciled` counts members that are stable at the assignment epoch. A static member
    that stepped out is not.
    """
    if not members:
        return EMPTY
    if group_epoch > assignment_epoch:
        return ASSIGNING
    return STABLE if reconciled == members else RECONCILING


class Event(Enum):
    """Name what moves a group; the value is what a trace says."""

    HEARTBEAT = "heartbeat"
    MEMBER_LEFT = "member left"
    MEMBER_STEPPED_OUT = "static member stepped out"
    SESSION_EXPIRED = "session timeout"
    REBALANCE_EXPIRED = "partitions not revoked within the rebalance timeout"
    JOIN_EXPIRED = "no JoinGroup within the rebalance timeout"
    SYNC_EXPIRED = "no SyncGroup within the rebalance timeout"
    CLASSIC_MEMBER_JOINED = "JoinGroup of a classic member"
    REGEX_RESOLVED = "regular expressions resolved"
    LOADED = "loaded"
    UPGRADED = "classic group upgraded"
    DOWNGRADED = "downgraded to a classic group"
    DELETED = "group deleted"
    NOT_STORED = "records could not be stored"
    UNLOADED = "coordinator moved"


ALIVE = (EMPTY, ASSIGNING, RECONCILING, STABLE)
REMOVALS = (
    Event.MEMBER_LEFT,
    Event.SESSION_EXPIRED,
    Event.REBALANCE_EXPIRED,
    Event.JOIN_EXPIRED,
    Event.SYNC_EXPIRED,
)
WITH_MEMBERS = (ASSIGNING, RECONCILING, STABLE)

MOVES: dict[tuple[GroupState | None, Event], tuple[GroupState, ...]] = {
    (None, Event.HEARTBEAT): WITH_MEMBERS,
    (None, Event.UPGRADED): (ASSIGNING, RECONCILING, STABLE),
    (None, Event.LOADED): ALIVE,
    **{(state, Event.HEARTBEAT): WITH_MEMBERS for state in ALIVE},
    **{(state, event): (EMPTY, ASSIGNING) for state in WITH_MEMBERS for event in REMOVALS},
    **{(state, Event.CLASSIC_MEMBER_JOINED): WITH_MEMBERS for state in WITH_MEMBERS},
    **{(state, Event.DOWNGRADED): (DEAD,) for state in ALIVE},
    (STABLE, Event.MEMBER_STEPPED_OUT): (RECONCILING,),
    (RECONCILING, Event.REGEX_RESOLVED): (ASSIGNING,),
    (STABLE, Event.REGEX_RESOLVED): (ASSIGNING,),
    (EMPTY, Event.DELETED): (DEAD,),
    **{(state, Event.NOT_STORED): (*ALIVE, DEAD) for state in ALIVE},
    (DEAD, Event.NOT_STORED): ALIVE,
    **{(state, Event.UNLOADED): (DEAD,) for state in ALIVE},
}
"""From a state (None: there was no group) on an event to any of these; a group may also stay where it is."""


class MemberState(IntEnum):
    """Name a member's state; the value is what Kafka's records hold."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


class Situation(Enum):
    """Name what a heartbeat finds, as far as its member's state asks for it."""

    BEHIND = "behind the assignment epoch"
    SUBSCRIPTION_CHANGED = "subscription changed"
    ARRIVED = "at the assignment epoch"
    STILL_OWNS = "still owns, or does not say"
    STILL_OWNS_AND_CHANGED = "still owns, subscription changed"
    RELEASED = "no longer owns what it was to revoke"
    ANY = "always"
    OWNS_NOTHING = "owns nothing"
    OWNS_SOMETHING = "owns something, or does not say"


class Action(Enum):
    NEXT = "next step towards the target"
    STRIP = "drop topics that are no longer subscribed"
    STAY = "nothing"
    FENCE = "FENCED_MEMBER_EPOCH"


ACTIONS: dict[tuple[MemberState, Situation], Action] = {
    (MemberState.STABLE, Situation.BEHIND): Action.NEXT,
    (MemberState.STABLE, Situation.SUBSCRIPTION_CHANGED): Action.STRIP,
    (MemberState.STABLE, Situation.ARRIVED): Action.STAY,
    (MemberState.UNREVOKED_PARTITIONS, Situation.STILL_OWNS): Action.STAY,
    (MemberState.UNREVOKED_PARTITIONS, Situation.STILL_OWNS_AND_CHANGED): Action.STRIP,
    (MemberState.UNREVOKED_PARTITIONS, Situation.RELEASED): Action.NEXT,
    (MemberState.UNRELEASED_PARTITIONS, Situation.ANY): Action.NEXT,
    (MemberState.UNKNOWN, Situation.OWNS_NOTHING): Action.NEXT,
    (MemberState.UNKNOWN, Situation.OWNS_SOMETHING): Action.FENCE,
}


class Finding(NamedTuple):
    """Hold what the step towards the target finds."""

    still_owns_revoked: bool
    free: bool
    unreleased: bool


class Outcome(NamedTuple):
    state: MemberState
    advances: bool
    """Whether the member's epoch becomes the assignment epoch; until it has revoked, it stays."""


REVOKE_FIRST = Outcome(MemberState.UNREVOKED_PARTITIONS, False)
WAIT = Outcome(MemberState.UNRELEASED_PARTITIONS, True)
DONE = Outcome(MemberState.STABLE, True)

NEXT: dict[Finding, Outcome] = {
    **{Finding(True, free, unreleased): REVOKE_FIRST for free in (False, True) for unreleased in (False, True)},
    Finding(False, True, True): WAIT,
    Finding(False, True, False): DONE,
    Finding(False, False, True): WAIT,
    Finding(False, False, False): DONE,
}
