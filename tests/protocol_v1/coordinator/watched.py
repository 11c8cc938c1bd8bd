"""A sequence player that looks over the coordinator's shoulder: after every event, every invariant.

The numbers are those of the invariants in the protocol's specification, section 4; the member's own are not here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rebalance_lab.harness.conversation.sequence_file import SequenceFile
from rebalance_lab.harness.conversation.sequence_player import Player
from rebalance_lab.harness.hosts.served_protocols import PROTOCOLS
from rebalance_lab.protocol_v1.common.effects import Append, Effect, Reply, StateChanged
from rebalance_lab.protocol_v1.common.errors import Error, InvariantBroken
from rebalance_lab.protocol_v1.common.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup
from rebalance_lab.protocol_v1.coordinator.state.records import GroupMetadata, GroupTombstone, Image, replay
from rebalance_lab.protocol_v1.coordinator.state.states import TRANSITIONS, Event, State

REMOVED_FOR_SILENCE = Event.SESSION_EXPIRED.value


def must(holds: bool, number: int, what: str) -> None:
    if not holds:
        raise InvariantBroken(f"invariant {number}: {what}")


class Watched(Player):
    def __init__(self, config: dict[str, int], topics: dict[str, int], session_timeout_ms: int) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.states: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self.stored_generations: dict[str, int] = {}
        self.stored = 0
        self.changed = False
        self.gone: set[str] = set()
        self.known: set[str] = set()
        self.last_sign: dict[str, int] = {}
        self.gap = False
        """The log has refused something, so it may know less than the coordinator, or other things."""
        self.depth = 0
        self.releasing = False
        """Answers go out that were decided earlier, about a group that may have changed since."""
        super().__init__(
            SequenceFile(served=PROTOCOLS["classic"], config=config, topics=topics, steps=[], until_ms=0, member_ids=[])
        )

    def start(self) -> Any:
        self.states.clear()
        self.generations.clear()
        self.gone.clear()
        self.known.clear()
        self.gap = False
        machine = super().start()
        for group in machine.groups.values():
            for member_id in group.members:
                self.last_sign[member_id] = self.now_ms
        return machine

    def perform(self, effects: Sequence[Effect]) -> None:
        self.depth += 1
        self.see_effects(effects)
        super().perform(effects)
        self.depth -= 1
        if self.depth == 0:
            self.check_identities()
            for group in self.machine.groups.values():
                self.check_group(group)
            self.check_log()

    def release(self) -> None:
        self.releasing = True
        super().release()
        self.releasing = False

    def append_timed_out(self, append_id: int) -> None:
        self.gap = True
        super().append_timed_out(append_id)

    # After every event

    def check_group(self, group: ClassicGroup) -> None:
        members = group.members.values()
        must(bool(group.members) == (group.leader is not None), 3, "a leader exactly while there are members")
        must(group.leader is None or group.leader in group.members, 3, f"leader {group.leader} is not a member")
        must(group.state is not State.EMPTY or not group.members, 3, "Empty with members")
        statics = {m.group_instance_id: m.member_id for m in members if m.group_instance_id is not None}
        must(group.static == statics, 4, f"static {group.static} for {statics}")
        must(not group.pending_join & group.members.keys(), 4, "a member that is still pending")
        must(group.pending_sync.keys() <= group.members.keys() | self.gone, 4, "pending_sync of strangers")
        must(set(group.order) == group.members.keys(), 4, "the order and the members differ")
        parked = [m.member_id for m in members if m.parked_join is not None]
        must(group.awaiting_join == len(parked), 5, f"awaiting_join {group.awaiting_join}, parked {parked}")
        takeover = group.state is State.STABLE and bool(self.log.held)
        must(not parked or group.state is State.PREPARING_REBALANCE or takeover, 5, f"parked join in {group.state}")
        syncing = any(m.parked_sync is not None for m in members)
        must(not syncing or group.state is State.COMPLETING_REBALANCE, 5, f"parked sync in {group.state}")
        supported = Counter(p.name for m in members for p in m.protocols)
        must(+group.supported == supported, 7, f"supported {group.supported} for {supported}")
        if group.state in (State.COMPLETING_REBALANCE, State.STABLE):
            names = [{p.name for p in m.protocols} for m in members]
            must(all(group.protocol_name in each for each in names), 7, f"{group.protocol_name} is not in every list")

    def check_identities(self) -> None:
        """12: what left, expired or was replaced does not come back within this coordinator's life."""
        now = set()
        for group in self.machine.groups.values():
            now |= group.members.keys() | group.pending_join
        if not self.gap:
            must(not now & self.gone, 12, f"{now & self.gone} came back")
        self.gone |= self.known - now
        self.known = now

    def check_log(self) -> None:
        """25: what a successor would be given is the last stored state, and in Stable that is the present one."""
        if not self.changed and self.stored == len(self.log.durable):
            return
        self.changed = False
        self.see_stored()
        self.stored = len(self.log.durable)
        if self.log.held or self.gap:
            return
        image = replay(self.log.durable)
        must(comparable(image) == comparable(replay(compacted(self.log.durable))), 25, "compaction changes the replay")
        offsets = self.machine.shard.image.offsets
        must({g: o for g, o in offsets.items() if o} == image.offsets, 25, "offsets differ from the log's")
        for group in self.machine.groups.values():
            if group.state is State.STABLE:
                must(group.group_id in image.groups, 25, "a Stable group that the log does not know")
                must(stored_view(group) == stored_view(image.groups[group.group_id]), 25, "Stable, but not as stored")

    # During an event

    def see_effects(self, effects: Sequence[Effect]) -> None:
        completed = False
        for effect in effects:
            if isinstance(effect, StateChanged):
                self.see_state(effect)
                completed = completed or effect.event == Event.JOIN_COMPLETED.value
            elif isinstance(effect, Append):
                self.see_append(effect)
            elif isinstance(effect, Reply):
                self.see_reply(effect)
        if completed:
            self.see_completion([e for e in effects if isinstance(e, Reply)])

    def see_state(self, change: StateChanged) -> None:
        before = self.states.get(change.group_id)
        event = Event(change.event)
        reborn = before == State.DEAD.value and event is Event.CREATED
        source = None if before is None or reborn else State(before)
        must(TRANSITIONS.get((source, event)) is State(change.state), 1, f"{before} -> {change}")
        self.states[change.group_id] = change.state
        self.changed = True
        if change.state == State.DEAD.value:
            self.generations.pop(change.group_id, None)  # its next life begins at 0
        if change.event == REMOVED_FOR_SILENCE and change.member_id in self.last_sign:
            silent = self.now_ms - self.last_sign[change.member_id]
            must(silent >= self.session_timeout_ms, 14, f"{change.member_id} expired after {silent} ms")

    def see_append(self, append: Append) -> None:
        if self.log.mode not in ("ok", "hold"):
            self.gap = True

    def see_stored(self) -> None:
        for record in self.log.durable[self.stored :]:
            if isinstance(record, GroupTombstone):
                self.stored_generations.pop(record.group, None)
            elif isinstance(record, GroupMetadata):
                stored = self.stored_generations.get(record.group, 0)
                must(record.generation >= stored, 2, f"stored generation {record.generation} after {stored}")
                self.stored_generations[record.group] = record.generation

    def see_reply(self, reply: Reply) -> None:
        request, response = reply.request, reply.response
        error = getattr(response, "error_code", Error.NONE)
        sent_ms = self.transcript.unanswered[request.correlation_id].at_ms
        if isinstance(response, JoinGroupResponse) and error is Error.NONE:
            # JoinGroups restart the session where a join phase ends; a takeover does when it comes, before its answer.
            self.last_sign.setdefault(response.member_id, sent_ms)
        if isinstance(request, HeartbeatRequest) and error in (Error.NONE, Error.REBALANCE_IN_PROGRESS):
            self.last_sign[request.member_id] = sent_ms
        if self.releasing:
            return
        if error is Error.NONE and isinstance(request, SyncGroupRequest | HeartbeatRequest | JoinGroupRequest):
            must(request.member_id not in self.gone or self.gap, 12, f"{request} accepted after it was gone")
        if isinstance(request, OffsetCommitRequest) and request.generation_id_or_member_epoch >= 0:
            self.see_commit(request, response)
        if isinstance(response, SyncGroupResponse) and error is Error.NONE:
            assert isinstance(request, SyncGroupRequest)
            self.see_assignment(request, response)

    def see_commit(self, request: OffsetCommitRequest, response: Any) -> None:
        codes = {p.error_code for topic in response.topics for p in topic.partitions}
        if Error.NONE in codes and self.log.mode == "ok":
            group = self.machine.groups[request.group_id]
            must(request.member_id in group.members, 11, "a commit of a stranger")
            must(request.generation_id_or_member_epoch == group.generation_id, 11, "a commit of another generation")
            must(group.state in (State.STABLE, State.PREPARING_REBALANCE), 11, f"a commit in {group.state}")
            self.last_sign[request.member_id] = self.now_ms

    def see_assignment(self, request: SyncGroupRequest, response: SyncGroupResponse) -> None:
        group = self.machine.groups[request.group_id]
        must(request.member_id in group.members, 10, "SyncGroup 0 for a stranger")
        must(request.generation_id == group.generation_id, 10, "SyncGroup 0 of another generation")
        if self.gap:
            return
        stored = next(
            r for r in reversed(self.log.durable) if isinstance(r, GroupMetadata) and r.group == request.group_id
        )
        must(stored.generation == request.generation_id, 9, "SyncGroup 0 before the assignment was durable")
        shares = {member.member_id: member.assignment for member in stored.members}
        must(shares.get(request.member_id) == response.assignment, 9, "another assignment than the stored one")

    def see_completion(self, replies: list[Reply]) -> None:
        for group in self.machine.groups.values():
            joins = [
                r.response
                for r in replies
                if isinstance(r.request, JoinGroupRequest)
                and r.request.group_id == group.group_id
                and isinstance(r.response, JoinGroupResponse)
                and r.response.error_code is Error.NONE
            ]
            if not joins or group.state is not State.COMPLETING_REBALANCE:
                continue
            before = self.generations.get(group.group_id)
            must(before is None or group.generation_id > before, 2, "a generation that does not go up")
            self.generations[group.group_id] = group.generation_id
            self.last_sign |= dict.fromkeys(group.members, self.now_ms)
            listing = [join for join in joins if join.members]
            must([join.member_id for join in listing] == [group.leader], 8, "exactly the leader is given the members")
            must({m.member_id for m in listing[0].members} == group.members.keys(), 8, "a list that is not the group")
            size = int(self.sequence.config.get("group.max.size", 10**9))
            must(len(joins) <= size, 26, f"{len(joins)} joined a group of {size}")


def compacted(records: list[Any]) -> list[Any]:
    """The last record of every key, as the log's cleaner leaves them."""
    last: dict[Any, Any] = {}
    for record in records:
        key = (record.group, getattr(record, "topic", None), getattr(record, "partition", None))
        last.pop(key, None)
        last[key] = record
    return list(last.values())


def comparable(image: Image) -> Any:
    return {name: stored_view(group) for name, group in image.groups.items()}, image.offsets


def stored_view(group: ClassicGroup) -> Any:
    members = {
        m.member_id: (m.group_instance_id, m.metadata(group.protocol_name), m.assignment) for m in group.in_order()
    }
    return group.state, group.generation_id, group.protocol_type, group.protocol_name, group.leader, members
