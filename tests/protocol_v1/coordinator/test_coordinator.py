"""What the sequence player cannot show: effects as values, loading, reasons in the trace, order, cost."""

from __future__ import annotations

from random import Random

import pytest

from rebalance_lab.assignors.java.hash_order import HashTable, string_hash
from rebalance_lab.protocol_v1.common.effects import Append, Reply, SetTimer, StateChanged
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import (
    REQUESTS,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    Protocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from rebalance_lab.protocol_v1.common.txn_messages import (
    TXN_REQUESTS,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from rebalance_lab.protocol_v1.coordinator.config import PROPERTIES, CoordinatorConfig
from rebalance_lab.protocol_v1.coordinator.coordinator import Coordinator, Status, at_once
from rebalance_lab.protocol_v1.coordinator.placement import coordinator_partition
from rebalance_lab.protocol_v1.coordinator.state.member_order import HashOrder
from rebalance_lab.protocol_v1.coordinator.state.records import GroupMetadata, replay
from rebalance_lab.protocol_v1.coordinator.state.states import State

CONFIG = CoordinatorConfig(group_initial_rebalance_delay_ms=0)
RANGE = (Protocol(name="range", metadata=b"m"),)


def join(member_id="", *, instance=None, protocols=RANGE, group_id="g", reason=None, version=9):
    return JoinGroupRequest(
        group_id=group_id,
        member_id=member_id,
        group_instance_id=instance,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=protocols,
        reason=reason,
        version=version,
    )


def sync(member_id, generation_id, assignments=()):
    return SyncGroupRequest(
        group_id="g",
        member_id=member_id,
        generation_id=generation_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=tuple(SyncGroupRequestAssignment(member_id=m, assignment=a) for m, a in assignments),
    )


def replies(effects):
    return [effect.response for effect in effects if isinstance(effect, Reply)]


def reasons(effects):
    return [
        (effect.state, effect.event, effect.client_reason) for effect in effects if isinstance(effect, StateChanged)
    ]


def full(coordinator, size):
    """A Stable group of static members, so that one JoinGroup each is enough."""
    for i in range(size):
        at_once(coordinator, coordinator.handle(join(instance=f"i{i}"), 0), 0)
    answers = []
    while not answers:  # newcomers make the join timer go round once more
        answers = replies(coordinator.on_timer(("join", "g"), 0))
    leader = answers[0].leader
    plan = [(member_id, member_id.encode()) for member_id in coordinator.groups["g"].members]
    for member_id in [m for m in coordinator.groups["g"].members if m != leader] + [leader]:
        at_once(coordinator, coordinator.handle(sync(member_id, 1, plan if member_id == leader else ()), 0), 0)
    assert coordinator.groups["g"].state is State.STABLE
    return leader


def test_a_join_says_what_is_to_be_done_and_does_nothing_itself():
    coordinator = Coordinator(CONFIG)
    effects = coordinator.handle(join(), now_ms=12_500)
    state, timer, reply, append = effects
    assert (state.state, state.event) == ("Empty", "group created")
    assert timer == SetTimer(key=("session", "g", "client-1"), delay_ms=10_000)
    assert reply.response == JoinGroupResponse(error_code=Error.MEMBER_ID_REQUIRED, member_id="client-1")
    assert isinstance(append, Append)
    assert append.records[0].current_state_timestamp == 12_500


def test_sync_is_answered_only_once_the_assignment_is_durable():
    coordinator = Coordinator(CONFIG)
    at_once(coordinator, coordinator.handle(join(instance="i"), 0), 0)
    coordinator.on_timer(("join", "g"), 0)
    effects = coordinator.handle(sync("i-1", 1, [("i-1", b"share")]), 5)
    assert replies(effects) == []
    append = next(effect for effect in effects if isinstance(effect, Append))
    assert replies(coordinator.on_append(append.append_id, 9))[0].assignment == b"share"


def test_a_group_that_moved_on_ignores_the_end_of_an_old_append():
    coordinator = Coordinator(CONFIG)
    at_once(coordinator, coordinator.handle(join(instance="i"), 0), 0)
    coordinator.on_timer(("join", "g"), 0)
    append = coordinator.handle(sync("i-1", 1), 5)[-1]
    coordinator.handle(join(instance="j"), 6)
    assert coordinator.on_append(append.append_id, 9) == []
    assert coordinator.groups["g"].state is State.PREPARING_REBALANCE


@pytest.mark.parametrize("error", [Error.NOT_ENOUGH_REPLICAS, Error.KAFKA_STORAGE_ERROR, Error.INVALID_REQUEST])
def test_a_takeover_that_was_overtaken_is_not_undone_by_its_failed_append(error):
    coordinator = Coordinator(CONFIG)
    leader = full(coordinator, 2)
    other = next(m for m in coordinator.groups["g"].members if m != leader)
    instance = coordinator.groups["g"].members[other].group_instance_id
    append = coordinator.handle(join(instance=instance), 5)[-1]
    coordinator.handle(join(leader, instance=coordinator.groups["g"].members[leader].group_instance_id), 6)
    assert coordinator.on_append(append.append_id, 9, error) == []
    assert other not in coordinator.groups["g"].members


def test_the_reasons_to_rebalance_are_named():
    coordinator = Coordinator(CONFIG)
    leader = full(coordinator, 3)
    members = list(coordinator.groups["g"].members)
    follower = next(m for m in members if m != leader)
    enforced = join(leader, reason="rebalance enforced by user")
    assert reasons(coordinator.handle(enforced, 1)) == [
        ("PreparingRebalance", "leader rejoined", "rebalance enforced by user")
    ]
    for make, expected in [
        (lambda c, m: c.handle(join(instance="new"), 1), "member joined"),
        (lambda c, m: c.on_timer(("session", "g", m), 1), "session timeout"),
        (lambda c, m: c.handle(join(m, protocols=(Protocol(name="range", metadata=b"x"),)), 1), "member rejoined with"),
    ]:
        fresh = Coordinator(CONFIG)
        full(fresh, 3)
        assert reasons(make(fresh, follower))[0][1].startswith(expected)
    leaving = MemberIdentity(member_id=follower, reason="the consumer is being closed")
    fresh = Coordinator(CONFIG)
    full(fresh, 3)
    left = reasons(fresh.handle(LeaveGroupRequest(group_id="g", members=(leaving,)), 1))
    assert left == [("PreparingRebalance", "member left", "the consumer is being closed")]


def every_request():
    offset = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = (OffsetCommitRequestTopic(name="t", partitions=(offset,)),)
    fetched = (OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),)
    pending = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    transactional = (TxnOffsetCommitRequestTopic(name="t", partitions=(pending,)),)
    return [
        join("x"),
        sync("x", 1),
        LeaveGroupRequest(group_id="g"),
        OffsetCommitRequest(group_id="g", topics=topics),
        OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=fetched),)),
        OffsetFetchRequest(version=7, group_id="g", topics=fetched),
        OffsetFetchRequest(version=1, group_id="g", topics=fetched),
        TxnOffsetCommitRequest(
            group_id="g", transactional_id="tx", producer_id=1, producer_epoch=0, topics=transactional
        ),
        DescribeGroupsRequest(groups=("g",)),
        ListGroupsRequest(),
        DeleteGroupsRequest(groups_names=("g",)),
        OffsetDeleteRequest(group_id="g", topics=()),
    ]


@pytest.mark.parametrize("request_", every_request(), ids=lambda request: type(request).__name__)
def test_a_loading_coordinator_says_so_and_one_that_moved_says_not_here(request_):
    loading = Coordinator(CONFIG, status=Status.LOADING)
    assert "COORDINATOR_LOAD_IN_PROGRESS" in repr(replies(loading.handle(request_, 0)))
    loading.unload(0)
    assert "NOT_COORDINATOR" in repr(replies(loading.handle(request_, 0)))


def test_a_loading_coordinator_believes_every_heartbeat():
    coordinator = Coordinator(CONFIG, status=Status.LOADING)
    beat = HeartbeatRequest(group_id="g", member_id="x", generation_id=7)
    assert replies(coordinator.handle(beat, 0))[0].error_code is Error.NONE
    coordinator.load([], 0)
    assert replies(coordinator.handle(beat, 0))[0].error_code is Error.UNKNOWN_MEMBER_ID


def test_every_request_of_the_protocol_is_served():
    covered = {type(request) for request in every_request()} | {HeartbeatRequest}
    assert covered == {*REQUESTS.values(), *TXN_REQUESTS.values()}


def test_a_group_loaded_above_the_maximum_rebalances_and_keeps_the_first_to_rejoin():
    before = Coordinator(CONFIG)
    full(before, 3)
    records = [metadata_of(before)]
    after = Coordinator(CoordinatorConfig(group_max_size=2))
    assert ("PreparingRebalance", "loaded above group.max.size", None) in reasons(after.load(records, 0))
    first, second, third = after.groups["g"].members
    after.handle(join(first), 1)
    after.handle(join(second), 1)
    assert replies(after.handle(join(third), 1))[0].error_code is Error.GROUP_MAX_SIZE_REACHED


def metadata_of(coordinator):
    from rebalance_lab.protocol_v1.coordinator.state.records import group_metadata

    group = coordinator.groups["g"]
    return group_metadata(group, {m.member_id: m.assignment for m in group.in_order()})


def test_what_is_loaded_is_what_was_stored_with_fresh_sessions_and_one_protocol_each():
    before = Coordinator(CONFIG)
    leader = full(before, 3)
    after = Coordinator(CONFIG)
    effects = after.load([metadata_of(before)], 77)
    group = after.groups["g"]
    assert (group.state, group.leader, group.generation_id) == (State.STABLE, leader, 1)
    assert {m.assignment for m in group.in_order()} == {m.encode() for m in group.members}
    assert [m.protocols for m in group.in_order()] == [RANGE] * 3
    timers = {effect.key: effect.delay_ms for effect in effects if isinstance(effect, SetTimer)}
    assert timers == {("expiry",): 600_000, **{("session", "g", m): 10_000 for m in group.members}}


def test_replay_needs_only_the_last_record_of_a_key():
    before = Coordinator(CONFIG)
    full(before, 2)
    last = metadata_of(before)
    empty = GroupMetadata(
        group="g", protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=0, members=()
    )
    assert replay([empty, last]).groups["g"].members.keys() == replay([last]).groups["g"].members.keys()


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [
        ("a", 47),
        ("my-group", 12),
        ("test-group", 12),
        ("orders-consumer", 40),
        ("polygenelubricants", 0),
        ("grüße", 23),
    ],
)
def test_a_group_is_coordinated_by_the_partition_of_its_hash(group_id, partition):
    assert coordinator_partition(group_id) == partition


def test_members_are_walked_in_the_order_of_a_java_hash_map():
    random = Random(7)
    for _ in range(60):
        ours, java = HashOrder(), HashTable(string_hash)
        present = []
        for _ in range(random.randrange(1, 120)):
            if present and random.random() < 0.35:
                key = present.pop(random.randrange(len(present)))
                ours.remove(key)
                java.remove(key)
            else:
                key = f"consumer-{random.getrandbits(64):016x}"
                present.append(key)
                ours.put(key)
                java.put(key)
            assert list(ours) == list(java)
            assert ours.first() == next(iter(java), None)


def test_settings_carry_kafkas_names():
    config = CoordinatorConfig.from_properties({"group.max.size": 5})
    assert config == CoordinatorConfig(group_max_size=5)
    assert "group.initial.rebalance.delay.ms" in PROPERTIES
    assert "new.member.join.timeout.ms" not in PROPERTIES


class Counting(dict):
    """Counts how often a group's members are looked at, one by one or all together."""

    looks = 0

    def __getitem__(self, key):
        Counting.looks += 1
        return super().__getitem__(key)

    def values(self):
        Counting.looks += len(self)
        return super().values()

    def items(self):
        Counting.looks += len(self)
        return super().items()

    def __iter__(self):
        Counting.looks += len(self)
        return super().__iter__()


def looks_of_a_full_rebalance(size):
    """Everybody leaves, so to speak: one round of heartbeats, joins and syncs; and the most that one message took."""
    coordinator = Coordinator(CONFIG)
    leader = full(coordinator, size)
    group = coordinator.groups["g"]
    group.members = Counting(group.members)
    others = [member_id for member_id in group.order if member_id != leader]
    costs = []

    def counted(request, now_ms):
        Counting.looks = 0
        at_once(coordinator, coordinator.handle(request, now_ms), now_ms)
        costs.append(Counting.looks)

    counted(join(leader), 1)
    for member_id in others:
        counted(HeartbeatRequest(group_id="g", member_id=member_id, generation_id=1), 2)
    for member_id in others:
        counted(join(member_id), 3)
    for member_id in [*others, leader]:
        counted(sync(member_id, 2), 4)
    assert group.state is State.STABLE
    return sum(costs), sorted(costs)


def test_only_the_end_of_a_phase_looks_at_every_member():
    small, small_costs = looks_of_a_full_rebalance(50)
    large, large_costs = looks_of_a_full_rebalance(800)
    assert large / small < 1.2 * 800 / 50  # in all: no faster than the group
    # All but three messages (the first join, the last join, the leader's sync) cost the same in both groups.
    assert large_costs[-4] == small_costs[-4]
