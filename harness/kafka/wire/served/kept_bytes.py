"""Bound what clients make the coordinator keep: members, assignments, offsets and settings, by the bytes of requests.

Given      requests with their size, their answers, and the states of groups
Returns    whether a request fits. One that does not is refused with COORDINATOR_NOT_AVAILABLE, and may come again
Counted    a member's latest request of each kind, once it is granted or while it is parked; OVERHEAD with each
Forgotten  what members sent, when their group is empty; everything of a group, when the coordinator has it no more
Start at   KeptBytes.fits, settle
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import count
from typing import Any, TypeAlias

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import (
    JoinGroupRequest,
    OffsetCommitRequest,
    Request,
    Response,
    SyncGroupRequest,
)
from rebalance_lab.protocol_v1.common.txn_messages import TxnOffsetCommitRequest
from rebalance_lab.protocol_v1.coordinator import gate as v1_gate
from rebalance_lab.protocol_v2.common.messages import ConsumerGroupHeartbeatRequest, IncrementalAlterConfigsRequest
from rebalance_lab.protocol_v2.coordinator import gate as v2_gate

MAX_KEPT = 16 * 1024 * 1024
OVERHEAD = 1024
OF_MEMBERS = (JoinGroupRequest, SyncGroupRequest, ConsumerGroupHeartbeatRequest)
OF_OFFSETS = (OffsetCommitRequest, TxnOffsetCommitRequest)
GRANTED = (Error.NONE, Error.MEMBER_ID_REQUIRED)
"""With the latter a new member is expected to come back."""
SETTINGS = ""
"""Stands for the group of what no group owns."""

Kind: TypeAlias = type[Request]


class KeptBytes:
    def __init__(self, is_known: Callable[[str], bool], limit: int = MAX_KEPT) -> None:
        """`is_known`: whether the coordinator still has the group."""
        self.is_known, self.limit = is_known, limit
        self.by_group: dict[str, dict[tuple[Kind, Hashable], int]] = {}
        self.parked: dict[int, int] = {}
        self.total = 0
        self.numbers = count(1)

    def fits(self, request: Request, size: int) -> bool:
        """Count a request until it is settled, if there is room for it."""
        if not isinstance(request, (*OF_MEMBERS, *OF_OFFSETS, IncrementalAlterConfigsRequest)):
            return True
        needed = size + OVERHEAD
        if self.total + needed > self.limit:
            self.forget_unknown()
        if self.total + needed > self.limit:
            return False
        self.parked[id(request)] = needed
        self.total += needed
        return True

    def settle(self, request: Request, response: Response) -> None:
        """Go on counting a request that was granted, in the place of the member's last one of its kind."""
        size = self.parked.pop(id(request), None)
        if size is None:
            return
        self.total -= size
        if getattr(response, "error_code", Error.NONE) not in GRANTED:
            return
        group, owner = owner_of(request)
        kept = self.by_group.setdefault(group, {})
        # Without an id each request is another member's, or another setting's.
        key = (type(request), owner or next(self.numbers))
        self.total += max(0, size - kept.get(key, 0))
        kept[key] = max(size, kept.get(key, 0))

    def on_state(self, group: str, state: str) -> None:
        if state == "Dead":
            self.forget(group)
        elif state == "Empty":
            for key in [key for key in self.by_group.get(group, {}) if key[0] in OF_MEMBERS]:
                self.total -= self.by_group[group].pop(key)

    def forget(self, group: str) -> None:
        self.total -= sum(self.by_group.pop(group, {}).values())

    def forget_unknown(self) -> None:
        for group in [name for name in self.by_group if name != SETTINGS and not self.is_known(name)]:
            self.forget(group)


def owner_of(request: Any) -> tuple[str, str]:
    """Return the group and the member. Commits without a member replace each other: partitions are bounded."""
    if isinstance(request, IncrementalAlterConfigsRequest):
        return SETTINGS, ""
    if isinstance(request, OF_OFFSETS):
        return request.group_id, request.member_id or "no member"
    return request.group_id, request.member_id


def refusal(request: Request) -> Response:
    """Answer as a broker whose coordinator is not there at present."""
    error = Error.COORDINATOR_NOT_AVAILABLE
    if isinstance(request, (ConsumerGroupHeartbeatRequest, IncrementalAlterConfigsRequest)):
        return v2_gate.refusal(request, error)
    return v1_gate.refusal(request, error)
