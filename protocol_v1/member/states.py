"""List the states of a classic member and every transition between them, as one table.

Given      a state and what happened (MemberEvent)
Returns    the next state; a pair that the table lacks is a bug of ours and raises InvariantBroken
Not here   what leaves the state as it is: a heartbeat that is told of a rebalance only notes that a rejoin is needed
Resets     full: generation and member id are forgotten; soft: the member id is kept. A reset can meet a member in any
           state, because the answer that causes it may be to a request sent long ago
Reference  AbstractCoordinator.MemberState in Apache Kafka 4.3.1
Start at   MEMBER_TRANSITIONS; tools/state_diagrams.py prints STATES.md from it
"""

from __future__ import annotations

from enum import Enum

from rebalance_lab.protocol_v1.common.errors import InvariantBroken


class MemberState(Enum):
    UNJOINED = "Unjoined"
    """Not in the group: just started, left, or forgotten by the coordinator."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """JoinGroup is sent. No heartbeats: the parked request itself keeps the member in the group."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """JoinGroup is answered and SyncGroup is sent."""
    STABLE = "Stable"


class MemberEvent(Enum):
    JOIN_SENT = "JoinGroup sent"
    JOIN_ANSWERED = "JoinGroup answered"
    SYNC_ANSWERED = "SyncGroup answered"
    FULL_RESET = "member id and generation reset"
    SOFT_RESET = "generation reset"
    LEFT = "left the group"


UNJOINED, PREPARING, COMPLETING, STABLE = MemberState

HEARTBEATING = (COMPLETING, STABLE)
REBALANCING = (PREPARING, COMPLETING)

MEMBER_TRANSITIONS: dict[tuple[MemberState, MemberEvent], MemberState] = {
    # Sent again in PreparingRebalance: after MEMBER_ID_REQUIRED, or because an answer was lost.
    **{(state, MemberEvent.JOIN_SENT): PREPARING for state in MemberState},
    (PREPARING, MemberEvent.JOIN_ANSWERED): COMPLETING,
    (COMPLETING, MemberEvent.SYNC_ANSWERED): STABLE,
    **{(state, MemberEvent.FULL_RESET): UNJOINED for state in MemberState},
    **{(state, MemberEvent.SOFT_RESET): UNJOINED for state in MemberState},
    **{(state, MemberEvent.LEFT): UNJOINED for state in MemberState},
}


def next_member_state(state: MemberState, event: MemberEvent) -> MemberState:
    try:
        return MEMBER_TRANSITIONS[state, event]
    except KeyError:
        raise InvariantBroken(f"a member in {state.value} cannot move on '{event.value}'") from None
