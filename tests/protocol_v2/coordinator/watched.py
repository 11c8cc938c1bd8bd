"""A coordinator under watch: after every event the invariants of the specification are worked out from scratch.

The numbers are the specification's (S1-S17); what S18 says about clients is checked by random_runs.py, which has them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from rebalance_lab.protocol_v1.common.effects import Append, Effect, Reply, StateChanged
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v2.common.messages import ConsumerGroupHeartbeatRequest
from rebalance_lab.protocol_v2.common.topic_image import topic_name
from rebalance_lab.protocol_v2.coordinator.coordinator import Coordinator
from rebalance_lab.protocol_v2.coordinator.state.group import ConsumerGroup
from rebalance_lab.protocol_v2.coordinator.state.records import (
    GROUP_RECORDS,
    ConsumerGroupMetadata,
    GroupRecord,
    TargetMetadata,
    replay,
)
from rebalance_lab.protocol_v2.coordinator.state.states import MOVES, Event, GroupState, MemberState
from rebalance_lab.protocol_v2.coordinator.state.values import CurrentAssignment

CLASSIC_ONLY = ("PreparingRebalance", "CompletingRebalance")
EVENTS = {event.value: event for event in Event}


def snapshot(group: ConsumerGroup) -> dict[str, Any]:
    """All that the log must bring back (S15)."""
    return {
        "group": (group.group_epoch, group.metadata_hash),
        "target epoch": (group.assignment_epoch, group.assignment_timestamp),
        "members": {member.member_id: (member.metadata, member.current) for member in group.members.values()},
        "targets": dict(group.targets),
        "resolved": dict(group.resolved),
        "partition epochs": dict(group.partition_epochs),
        "static": dict(group.static),
        "counters": [
            dict(counter)
            for counter in (
                group.names,
                group.regexes,
                group.regex_topics,
                group.assignors,
                group.stable_at,
                group.classic_protocols,
            )
        ],
        "classic": group.classic_members,
        "state": group.state,
    }


def compacted(records: list[Any]) -> list[Any]:
    """The last record of each key, where it stood."""
    last: dict[Any, int] = {}
    for i, record in enumerate(records):
        last[key_of(record)] = i
    return [records[i] for i in sorted(last.values())]


def key_of(record: Any) -> Any:
    names = ("group_id", "group", "member_id", "regex", "topic", "partition")
    kind = type(record).__name__.replace("Tombstone", "").replace("Commit", "")
    return (kind, *(getattr(record, name, None) for name in names))


class Watched:
    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator
        self.before: dict[str, dict[str, Any]] = {}
        self.states: dict[str, GroupState | None] = {}
        self.homogeneous: dict[str, bool] = {}
        self.owners: dict[tuple[str, Any, int], str] = {}
        self.remember()

    @property
    def groups(self) -> Any:
        return self.coordinator.groups

    def handle(self, request: Any, now_ms: int) -> list[Effect]:
        return self.after(self.coordinator.handle(request, now_ms), request)

    def on_timer(self, key: Any, now_ms: int) -> list[Effect]:
        return self.after(self.coordinator.on_timer(key, now_ms))

    def on_append(self, append_id: int, now_ms: int, error: Error = Error.NONE) -> list[Effect]:
        rolled_back = error not in (Error.NONE, Error.REQUEST_TIMED_OUT)
        return self.after(self.coordinator.on_append(append_id, now_ms, error), rolled_back=rolled_back)

    def on_metadata(self, topics: Any, now_ms: int) -> list[Effect]:
        return self.after(self.coordinator.on_metadata(topics, now_ms))

    def load(self, records: list[Any], now_ms: int) -> list[Effect]:
        return self.after(self.coordinator.load(records, now_ms))

    def remember(self) -> None:
        self.before = {group_id: snapshot(group) for group_id, group in self.groups.items()}
        self.states = {group_id: group.state for group_id, group in self.groups.items()}
        self.homogeneous = {group_id: group.homogeneous for group_id, group in self.groups.items()}

    def after(self, effects: list[Effect], request: Any = None, *, rolled_back: bool = False) -> list[Effect]:
        for group in self.groups.values():
            self.check_group(group)
        if rolled_back or set(self.before) - set(self.groups):
            self.owners.clear()  # epochs may come again
        if not rolled_back:
            for group_id, group in self.groups.items():
                if group_id in self.before:
                    self.check_progress(self.before[group_id], group)
            for effect in effects:
                if isinstance(effect, StateChanged):
                    self.check_move(effect)
        self.check_refusal(effects, request)
        for effect in effects:
            if isinstance(effect, Append):
                self.check_targets(effect.records)
        self.remember()
        return effects

    def check_group(self, group: ConsumerGroup) -> None:
        epochs: dict[Any, int] = {}
        for member in group.members.values():
            current = member.current
            for partition in (*current.assigned, *current.revoking):
                assert partition not in epochs, f"S1/S3: {partition} is held twice"
                epochs[partition] = current.member_epoch
            if current.member_epoch >= 0:
                assert current.member_epoch <= group.assignment_epoch, "S4: a member is ahead of the assignment epoch"
                assert all(epoch <= group.assignment_epoch for epoch in current.assigned.values()), "S4"
                assert current.previous_member_epoch <= current.member_epoch, "S6: the previous epoch is ahead"
            self.check_member(group, member.member_id)
        assert epochs == group.partition_epochs, "S2: partition epochs"
        assert group.assignment_epoch <= group.group_epoch, "S4: A > G"
        static = {m.metadata.instance_id: m.member_id for m in group.members.values() if m.metadata.instance_id}
        assert static == group.static, "S13"
        assert set(group.order) == set(group.members), "the order lost a member"
        assert set(group.targets) <= set(group.members), "S8: a target of nobody"
        assert group.state is expected_state(group), "S17"
        assert +group.names == count(group, lambda m: m.subscribed_topic_names), "names"
        assert +group.regexes == count(group, lambda m: (m.subscribed_topic_regex,) if m.subscribed_topic_regex else ())

    def check_member(self, group: ConsumerGroup, member_id: str) -> None:
        member = group.members[member_id]
        current = member.current
        target = group.target_of(member_id).partitions
        if current.is_reconciled_to(group.assignment_epoch):
            assert set(current.assigned) <= target, "S7: a stable member holds more than its target"
            assert not current.revoking, "S7: a stable member revokes"
        if current.state is MemberState.UNRELEASED_PARTITIONS:
            assert not current.revoking, "S7: an unreleased member revokes"
        if current.state is MemberState.UNREVOKED_PARTITIONS and not current.stepped_out:
            assert current.revoking, "S7: nothing to revoke"

    def check_progress(self, before: dict[str, Any], group: ConsumerGroup) -> None:
        """S5, S9, S11: from one step to the next."""
        epoch, target_epoch = before["group"][0], before["target epoch"][0]
        forgotten = group.group_epoch == 2 and group.assignment_epoch == 2 and not before["members"]
        if forgotten:
            self.owners.clear()  # an empty group that was erased from memory starts again at epoch 2 (C35)
        else:
            assert epoch <= group.group_epoch <= epoch + 1, "S5: the group epoch"
            assert target_epoch <= group.assignment_epoch, "S5: the assignment epoch"
        for member in group.members.values():
            current = member.current
            if member.member_id not in before["members"]:
                continue
            metadata, old = before["members"][member.member_id]
            returns = member.metadata.instance_id is not None and (old.stepped_out or current.stepped_out)
            crosses = (metadata.classic is None) != (member.metadata.classic is None)
            if not returns and not crosses:
                assert current.member_epoch >= old.member_epoch, "S5: a member's epoch went back"
            self.check_owners(group.group_id, member.metadata.instance_id or member.member_id, current)
            for partition in current.assigned:
                if partition not in old.assigned and not returns:
                    free = partition not in before["partition epochs"] or partition in old.revoking
                    assert free, f"S9: {partition} was given while somebody held it"

    def check_owners(self, group_id: str, who: str, current: CurrentAssignment) -> None:
        """S11: what was given at one epoch was given to one member, so a late commit can be told from a foreign one.

        A static member and its replacement are one."""
        for partition, epoch in current.assigned.items():
            owner = self.owners.setdefault((group_id, partition, epoch), who) if epoch > 0 else who
            assert owner == who, f"S11: {partition} was given at {epoch} to {owner} and {who}"

    def check_move(self, told: StateChanged) -> None:
        event = EVENTS.get(told.event)
        is_ours = told.group_id in self.before or told.group_id in self.groups
        if event is None or not is_ours or told.state in CLASSIC_ONLY:
            return  # the classic side's
        before = self.states.get(told.group_id)
        after = GroupState(told.state)
        assert after in MOVES[before, event], f"S17: {before} -> {after} on {event}"
        self.states[told.group_id] = None if after is GroupState.DEAD else after

    def check_refusal(self, effects: list[Effect], request: Any) -> None:
        """S12: a refused heartbeat changes nothing."""
        if not isinstance(request, ConsumerGroupHeartbeatRequest) or request.group_id not in self.before:
            return  # a failed upgrade sends away who waits in the classic group
        reply = next((effect for effect in effects if isinstance(effect, Reply)), None)
        if reply is not None and reply.response.error_code is not Error.NONE:  # type: ignore[attr-defined]
            assert effects == [reply], "S12: a refused heartbeat did something"
            now = {group_id: snapshot(group) for group_id, group in self.groups.items()}
            assert now == self.before, "S12: a refused heartbeat changed the group"

    def check_targets(self, records: tuple[Any, ...]) -> None:
        """S8, when a target is computed: disjoint, and unless Kafka miscounts, complete and to subscribers."""
        for record in records:
            if not isinstance(getattr(record, "value", None), TargetMetadata):
                continue
            group = self.groups.get(record.group_id)
            if group is None or record.value.assignment_timestamp is None:
                continue
            image = self.coordinator.shard.image
            given = Counter(partition for target in group.targets.values() for partition in target.partitions)
            assert not given or max(given.values()) == 1, "S8: a partition in two targets"
            if self.is_miscounted(group, records):
                continue
            wanted = {
                (image.topics[name].topic_id, partition)
                for name in group.subscriptions.topics()
                if name in image.topics
                for partition in range(image.topics[name].topic.partitions)
            }
            assert set(given) == wanted, f"S8: targets cover {sorted(given)}, not {sorted(wanted)}"
            for member_id, target in group.targets.items():
                metadata = group.members[member_id].metadata
                topics = {topic_name(topic) for topic, _ in target.partitions}
                assert all(group.is_subscribed(metadata, topic) for topic in topics), "S8: to a non-subscriber"

    def is_miscounted(self, group: ConsumerGroup, records: tuple[Any, ...]) -> bool:
        """Kafka does not count who joins without moving the group epoch: such a member passes for one like the others,
        who all subscribe alike (recordings/a_newcomer_that_is_not_counted.json in tests/harness/kafka/wire)."""
        bumps = any(isinstance(record, ConsumerGroupMetadata) for record in records)
        metadata = [member.metadata for member in group.members.values()]
        wanted = {frozenset((*each.subscribed_topic_names, *group.matched_topics(each))) for each in metadata}
        return not bumps and self.homogeneous.get(group.group_id, True) and len(wanted) > 1

    def check_replay(self, durable: list[Any]) -> None:
        """S15, from the log as it is and as it is once compacted."""
        records: list[GroupRecord] = [record for record in durable if isinstance(record, GROUP_RECORDS)]
        live = {group_id: snapshot(group) for group_id, group in self.groups.items()}
        for log in (records, compacted(records)):
            again = {group_id: snapshot(group) for group_id, group in replay(log).items()}
            assert again == live, "S15: replay gives another group"


def count(group: ConsumerGroup, of: Any) -> Counter[str]:
    return Counter(item for member in group.members.values() for item in of(member.metadata))


def expected_state(group: ConsumerGroup) -> GroupState:
    if not group.members:
        return GroupState.EMPTY
    if group.group_epoch > group.assignment_epoch:
        return GroupState.ASSIGNING
    arrived = all(
        member.current.state is MemberState.STABLE and member.current.member_epoch == group.assignment_epoch
        for member in group.members.values()
    )
    return GroupState.STABLE if arrived else GroupState.RECONCILING
