"""Define what a machine wants done, as values. The machine's driver performs these effects in the order of the list.

Reply         answer that request; a request without a reply is parked, and may stay parked for good
SetTimer      call on_timer(key) after delay_ms; a timer that is set again is replaced
CancelTimer   forget the timer; cancelling a timer that is not set does nothing
Append        make the records durable, then call on_append(append_id), with an error if that failed
StateChanged  a fact for the trace: a group's new state, the event, and the reason that the client gave.

member_effects.py has the further events and effects of members. Both protocols share them, as they share drivers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from rebalance_lab.protocol_v1.common.fast_dataclass import fast_dataclass
from rebalance_lab.protocol_v1.common.messages import Request, Response

TimerKey: TypeAlias = tuple[str, ...]
"""What the timer is for, then its group or member: ("session", group id, member id), ("join", group id)."""


@fast_dataclass()
class Reply:
    request: Request
    response: Response


@fast_dataclass()
class SetTimer:
    key: TimerKey
    delay_ms: int


@fast_dataclass()
class CancelTimer:
    key: TimerKey


@fast_dataclass()
class Append:
    append_id: int
    records: tuple[Any, ...]
    """Each machine has records of its own; what was appended durably is all that `load` is given after a fail-over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChanged:
    group_id: str
    state: str
    """Kafka's display name, such as PreparingRebalance; Dead once a group is gone."""
    event: str
    """Why, in the words of the machine's transition table."""
    member_id: str | None = None
    """The member that caused it, where one did."""
    client_reason: str | None = None
    """What that member wrote into its JoinGroup or LeaveGroup (KIP-800)."""


Effect: TypeAlias = Reply | SetTimer | CancelTimer | Append | StateChanged
