"""List the states of a KIP-848 member and every transition between them, as one table.

Given      a state and what happened (MemberEvent)
Returns    the next state; a pair that the table lacks is a bug of ours and raises InvariantBroken
Not here   what leaves the state as it is: an answer without an assignment, a callback that fails while reconciling. Nor
           Java's way from Joining and Reconciling straight to Stable: targets are numbered, and no case is left for it
Reference  MemberState and AbstractMembershipManager in Apache Kafka 4.3.1
Start at   MEMBER_TRANSITIONS; tools/state_diagrams.py prints STATES.md from it
"""

from __future__ import annotations

from enum import Enum

from rebalance_lab.protocol_v1.common.errors import InvariantBroken


class MemberState(Enum):
    UNSUBSCRIBED = "Unsubscribed"
    """Not in the group, and not on the way in."""
    JOINING = "Joining"
    """Sends epoch 0, at once."""
    RECONCILING = "Reconciling"
    """Works towards its target: commit, revoke, assign. Heartbeats go on."""
    ACKNOWLEDGING = "Acknowledging"
    """Reconciled; the next heartbeat goes out at once and says what is owned."""
    STABLE = "Stable"
    FENCED = "Fenced"
    """The coordinator has forgotten it: no heartbeats until onPartitionsLost is done."""
    PREPARE_LEAVING = "PrepareLeaving"
    """Callbacks run before it leaves; heartbeats go on at the old epoch."""
    LEAVING = "Leaving"
    """The heartbeat that says so goes out at once, even while another one is in flight."""
    FATAL = "Fatal"
    """The end, until the process is started again."""
    STALE = "Stale"
    """It left because the application did not poll, and comes back when it does."""

    __hash__ = object.__hash__  # an enum's own is written in Python, and states are looked up at every event


class MemberEvent(Enum):
    SUBSCRIBED = "polled with a new subscription"
    TARGET_CHANGED = "given another assignment than it has"
    RECONCILED = "reconciled"
    ACKNOWLEDGED = "acknowledgement sent"
    ACKNOWLEDGED_OLD = "acknowledgement sent, the target has changed since"
    FENCED = "fenced"
    RELEASED = "onPartitionsLost done"
    LEAVE_WANTED = "unsubscribe or close"
    POLL_EXPIRED = "max.poll.interval exceeded"
    READY_TO_LEAVE = "partitions released"
    LEAVE_SENT = "leave sent"
    STALE_LEAVE_SENT = "leave sent for want of a poll"
    LEAVE_SKIPPED = "no coordinator to tell"
    POLLED_AGAIN = "polled again"
    FAILED = "fatal error"

    __hash__ = object.__hash__


(
    UNSUBSCRIBED,
    JOINING,
    RECONCILING,
    ACKNOWLEDGING,
    STABLE,
    FENCED,
    PREPARE_LEAVING,
    LEAVING,
    FATAL,
    STALE,
) = MemberState

LIVE = (JOINING, RECONCILING, ACKNOWLEDGING, STABLE)
IN_GROUP = frozenset(LIVE)
NOT_IN_GROUP = frozenset((UNSUBSCRIBED, FENCED, FATAL, STALE))
"""These send nothing."""
AT_ONCE = (JOINING, ACKNOWLEDGING)
"""These do not wait for the heartbeat interval."""
HURRIED = frozenset((*AT_ONCE, LEAVING))

MEMBER_TRANSITIONS: dict[tuple[MemberState, MemberEvent], MemberState] = {
    (UNSUBSCRIBED, MemberEvent.SUBSCRIBED): JOINING,
    **{(state, MemberEvent.TARGET_CHANGED): RECONCILING for state in LIVE},
    (RECONCILING, MemberEvent.RECONCILED): ACKNOWLEDGING,
    (ACKNOWLEDGING, MemberEvent.ACKNOWLEDGED): STABLE,
    (ACKNOWLEDGING, MemberEvent.ACKNOWLEDGED_OLD): RECONCILING,
    **{(state, MemberEvent.FENCED): FENCED for state in LIVE},
    (PREPARE_LEAVING, MemberEvent.FENCED): UNSUBSCRIBED,  # it wanted to leave anyway
    (FENCED, MemberEvent.RELEASED): JOINING,
    **{(state, MemberEvent.LEAVE_WANTED): PREPARE_LEAVING for state in LIVE},
    (FENCED, MemberEvent.LEAVE_WANTED): UNSUBSCRIBED,
    **{(state, MemberEvent.POLL_EXPIRED): PREPARE_LEAVING for state in LIVE},
    (PREPARE_LEAVING, MemberEvent.READY_TO_LEAVE): LEAVING,
    (LEAVING, MemberEvent.LEAVE_SENT): UNSUBSCRIBED,
    (LEAVING, MemberEvent.STALE_LEAVE_SENT): STALE,
    (LEAVING, MemberEvent.LEAVE_SKIPPED): UNSUBSCRIBED,
    (STALE, MemberEvent.POLLED_AGAIN): JOINING,
    **{(state, MemberEvent.FAILED): FATAL for state in (*LIVE, PREPARE_LEAVING, UNSUBSCRIBED)},
}


def next_member_state(state: MemberState, event: MemberEvent) -> MemberState:
    try:
        return MEMBER_TRANSITIONS[state, event]
    except KeyError:
        raise InvariantBroken(f"a member in {state.value} cannot move on '{event.value}'") from None
