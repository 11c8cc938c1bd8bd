"""A member's states, settings, reasons to rejoin, and its callbacks: their order, their errors, their commits."""

from __future__ import annotations

import pytest

from rebalance_lab.assignors.interface import RebalanceProtocol
from rebalance_lab.assignors.model import Topic
from rebalance_lab.harness.conversation.conversations import classic_group
from rebalance_lab.protocol_v1.common.consumer_protocol import decode_subscription
from rebalance_lab.protocol_v1.common.errors import Error, InvariantBroken
from rebalance_lab.protocol_v1.common.member_effects import (
    CallbackDone,
    Cause,
    Close,
    Commit,
    CommitOutcome,
    Committed,
    EnforceRebalance,
    Left,
    MetadataChanged,
    Poll,
    PollReturned,
    Raise,
    RequestMetadata,
    Subscribe,
)
from rebalance_lab.protocol_v1.common.messages import (
    JoinGroupRequest,
    OffsetCommitRequest,
)
from rebalance_lab.protocol_v1.member.config import MemberConfig
from rebalance_lab.protocol_v1.member.member import Member, rebalance_protocol
from rebalance_lab.protocol_v1.member.states import MEMBER_TRANSITIONS, MemberEvent, MemberState, next_member_state
from tests.members.alone import called, of, sent
from tests.protocol_v1.member.alone import Alone, assignor, causes, share, subscription

COOPERATIVE = "cooperative-sticky"


# States


def test_a_member_moves_only_along_the_table():
    for state in MemberState:
        for event in MemberEvent:
            if (state, event) in MEMBER_TRANSITIONS:
                assert next_member_state(state, event) in MemberState
            else:
                with pytest.raises(InvariantBroken, match="cannot move on"):
                    next_member_state(state, event)


# Configuration


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["range"], RebalanceProtocol.EAGER),
        ([COOPERATIVE], RebalanceProtocol.COOPERATIVE),
        (["range", COOPERATIVE], RebalanceProtocol.EAGER),  # the default list
        ([COOPERATIVE, "sticky"], RebalanceProtocol.EAGER),  # the first of two rolling bounces
    ],
)
def test_the_rebalance_protocol_is_the_best_that_all_assignors_support(names, expected):
    assert rebalance_protocol([assignor(name) for name in names]) is expected


def test_assignors_without_a_common_protocol_or_with_one_name_are_refused():
    class OnlyCooperative:
        name = "mine"
        supported_protocols = (RebalanceProtocol.COOPERATIVE,)

        def assign(self, group):
            return {}

    with pytest.raises(ValueError, match="no rebalance protocol in common"):
        Member(assignors=[OnlyCooperative(), assignor("range")])
    with pytest.raises(ValueError, match="no rebalance protocol in common"):
        Member(assignors=[])
    with pytest.raises(ValueError, match="same name"):
        Member(assignors=[assignor("range"), assignor("range")])
    with pytest.raises(ValueError, match=r"heartbeat\.interval\.ms"):
        MemberConfig(heartbeat_interval_ms=45_000)


def test_join_group_carries_every_assignor_in_the_configured_order():
    alone = Alone(COOPERATIVE, "range", group_instance_id="pod", client_rack="r1")
    alone.tell(Poll())
    alone.find()
    request = alone.pending(JoinGroupRequest)
    assert [protocol.name for protocol in request.protocols] == [COOPERATIVE, "range"]
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (45_000, 300_000)
    assert (request.member_id, request.group_instance_id, request.reason) == ("", "pod", "")
    told = decode_subscription(request.protocols[0].metadata)
    assert (told.topics, told.generation_id, told.rack_id) == (("t",), -1, "r1")
    assert told.user_data == b"\xff\xff\xff\xff"


# Reasons to rejoin


def test_enforce_rebalance_acts_at_the_next_poll_and_says_why():
    alone = Alone(enable_auto_commit=False).stable()
    alone.tell(PollReturned())
    assert causes(alone.tell(EnforceRebalance())) == [(Cause.ENFORCED, "rebalance enforced by user")]
    assert causes(alone.tell(EnforceRebalance("x" * 300))) == [(Cause.ENFORCED, "x" * 255)]
    assert called(alone.tell(Poll())) == [("REVOKED", [0, 1])]
    alone.done()
    assert alone.pending(JoinGroupRequest).reason == "x" * 255


def test_a_follower_that_enforces_a_rebalance_gets_one():
    group = classic_group({"t": 4}).join("A").join("B").settle()
    follower = next(client for client in group.live if not client.member.memory.is_leader)
    group.tell(follower, EnforceRebalance("deploy"))
    group.run(10).settle()
    assert group.group is not None
    assert group.group.generation_id == 2


def test_only_the_leader_notices_new_partitions():
    group = classic_group({"t": 4}).join("A").join("B").settle()
    group.grow({"t": 6}).run(10).settle()
    noticed = {
        client.name: [fact.cause for fact in client.facts if fact.cause is Cause.NEW_PARTITIONS]
        for client in group.live
    }
    assert sorted(map(len, noticed.values())) == [0, 1]
    assert str(group) == "generation 2  A: t-0 t-1 t-2  B: t-3 t-4 t-5"


def test_metadata_without_a_difference_is_no_reason():
    group = classic_group({"t": 4}).join("A").settle()
    group.grow({"other": 3}).run(5_000)
    assert str(group).startswith("generation 1")


def test_racks_matter_to_a_leader_that_has_one():
    for rack, rebalances in ((None, 0), ("r1", 1)):
        alone = Alone(client_rack=rack, enable_auto_commit=False)
        alone.tell(MetadataChanged({"t": Topic(2, racks=(("r1",), ("r2",)))}))
        alone.joining().led([("me", subscription("t"))])
        alone.synced()
        alone.done()
        moved = alone.tell(MetadataChanged({"t": Topic(2, racks=(("r2",), ("r1",)))}))
        assert len(causes(moved)) == rebalances


def test_a_change_of_subscription_is_a_reason_for_anybody():
    alone = Alone(COOPERATIVE, enable_auto_commit=False).stable()
    alone.tell(MetadataChanged({"t": Topic(4), "u": Topic(1)}))
    effects = alone.tell(Subscribe(frozenset({"u"})))
    assert causes(effects) == [(Cause.SUBSCRIPTION, "subscription has changed")]
    assert alone.member.fetchable == frozenset()  # no longer delivered from the call on
    assert called(effects) == [("REVOKED", [0, 1])]  # cooperative: what left the subscription goes before JoinGroup
    alone.done()
    told = decode_subscription(alone.pending(JoinGroupRequest).protocols[0].metadata)
    assert (told.topics, told.owned_partitions) == (("u",), {})


def test_an_assignment_outside_the_subscription_is_a_rejoin_without_callbacks():
    alone = Alone(enable_auto_commit=False).syncing()
    effects = alone.synced(share(0, topic="foreign"))
    assert (Cause.FOREIGN_ASSIGNMENT, "received assignment does not match the current subscription") in causes(effects)
    assert called(effects) == [("REVOKED", [])]  # of the next prepare: eager calls it even with nothing to revoke
    assert alone.member.owned == frozenset()


def test_a_pattern_waits_for_fresh_names_and_leaves_out_internal_topics():
    alone = Alone(pattern="(t|__consumer_offsets|x).*")
    alone.memory.subscribed.fresh = False  # what it knows is old
    alone.tell(Poll())
    assert of(RequestMetadata, alone.find()) == [RequestMetadata()]
    assert of(RequestMetadata, alone.tell(Poll())) == []  # asked once
    names = ("t", "t2", "other", "__consumer_offsets")
    alone.tell(MetadataChanged({name: Topic(1) for name in names}))
    assert decode_subscription(alone.pending(JoinGroupRequest).protocols[0].metadata).topics == ("t", "t2")
    alone.joined()
    alone.synced(share(0, topic="x1"))  # the leader saw x1 first
    assert called(alone.effects) == [("ASSIGNED", [0])]
    alone.done()
    assert not alone.memory.rejoin_needed
    assert alone.member.fetchable == {("x1", 0)}


def test_new_topics_that_match_a_pattern_rebalance_the_group():
    group = classic_group({"logs-a": 2}).join("A", pattern="logs-.*").join("B", pattern="logs-.*").settle()
    group.grow({"logs-b": 2, "other": 2}).run(10).settle()
    assert str(group) == "generation 2  A: logs-a-0 logs-b-0  B: logs-a-1 logs-b-1"
    assert any(fact.cause is Cause.SUBSCRIPTION for client in group.live for fact in client.facts)


# Callbacks


def test_eager_order_is_commit_then_revoke_then_join():
    alone = Alone().stable()
    effects = alone.tell(EnforceRebalance())
    assert (sent(effects), called(effects)) == (["OffsetCommit"], [])
    assert alone.member.fetchable == frozenset()  # delivery has stopped
    effects = alone.committed(Error.NONE, Error.NONE)
    assert (sent(effects), called(effects)) == ([], [("REVOKED", [0, 1])])
    assert alone.member.owned == {("t", 0), ("t", 1)}
    assert sent(alone.done()) == ["JoinGroup"]
    assert alone.member.owned == frozenset()


def test_cooperative_keeps_consuming_and_revokes_after_the_sync():
    alone = Alone(COOPERATIVE).stable(0, 1, 2)
    alone.tell(EnforceRebalance())
    assert len(alone.member.fetchable) == 3
    effects = alone.committed(Error.NONE)
    assert (sent(effects), called(effects)) == (["JoinGroup"], [])
    alone.joined(generation=2)
    effects = alone.synced(share(0, 3))
    assert called(effects) == [("REVOKED", [1, 2])]
    assert len(alone.member.owned) == 3  # a commit inside the callback still works
    alone.tell(Commit({("t", 1): 8}))
    assert alone.pending(OffsetCommitRequest).generation_id_or_member_epoch == 2
    assert of(Committed, alone.committed(Error.NONE))[0].outcome is CommitOutcome.DONE
    effects = alone.done()
    assert called(effects) == [("ASSIGNED", [3])]
    assert causes(effects) == [(Cause.REVOKED, "need to revoke partitions and re-join")]
    effects = alone.done()
    assert sent(effects) == ["OffsetCommit"]  # the follow-up starts in the same poll
    assert sent(alone.committed(Error.NONE)) == ["JoinGroup"]
    claim = decode_subscription(alone.pending(JoinGroupRequest).protocols[0].metadata)
    assert (claim.owned_partitions, claim.generation_id) == ({"t": (0, 3)}, 2)


def test_an_error_in_a_prepare_callback_is_raised_and_the_callback_is_not_repeated():
    alone = Alone(enable_auto_commit=False).stable()
    alone.tell(EnforceRebalance())
    effects = alone.done("boom")
    assert [effect.message for effect in of(Raise, effects)] == ["User rebalance callback throws an error: boom"]
    assert sent(effects) == []
    effects = alone.tell(Poll())
    assert (sent(effects), called(effects)) == (["JoinGroup"], [])


def test_an_error_in_assigned_is_raised_and_the_next_poll_assigns_nothing_once_more():
    alone = Alone().syncing()
    alone.synced()
    assert len(of(Raise, alone.done("boom"))) == 1
    assert alone.member.owned == {("t", 0), ("t", 1)}
    assert called(alone.tell(Poll())) == [("ASSIGNED", [])]
    alone.done()
    assert alone.memory.join is None


def test_an_error_in_the_cooperative_revoke_does_not_keep_assigned_from_being_called():
    alone = Alone(COOPERATIVE, enable_auto_commit=False).stable()
    alone.tell(EnforceRebalance())
    alone.joined(generation=2)
    alone.synced(share(0))
    assert called(alone.done("boom")) == [("ASSIGNED", [])]
    assert [effect.message for effect in of(Raise, alone.done())] == ["User rebalance callback throws an error: boom"]


def test_a_callback_longer_than_max_poll_interval_makes_the_member_leave():
    alone = Alone(enable_auto_commit=False, session_timeout_ms=400_000, request_timeout_ms=400_000).syncing()
    alone.synced()
    effects = alone.run(300_000)
    assert of(Left, effects) == [
        Left(cause=Cause.POLL_INTERVAL, reason="consumer poll timeout has expired.", sent=True)
    ]
    effects = alone.done()
    assert called(effects) == [("LOST", [0, 1])]  # the assignment was lost while the callback ran


def test_a_callback_that_nobody_called_is_a_bug():
    alone = Alone().stable()
    with pytest.raises(InvariantBroken, match="no callback"):
        alone.tell(CallbackDone())
    alone.tell(EnforceRebalance())
    alone.committed(Error.NONE)
    with pytest.raises(InvariantBroken, match="inside a callback"):
        alone.tell(Poll())
    with pytest.raises(InvariantBroken, match="inside a callback"):
        alone.tell(Close())


# Prepare and its commit


def test_prepare_tries_a_retriable_commit_again_and_gives_up_at_the_rebalance_timeout():
    alone = Alone(max_poll_interval_ms=1_000).stable()
    alone.tell(EnforceRebalance())
    for _ in range(5):
        assert called(alone.committed(Error.COORDINATOR_LOAD_IN_PROGRESS)) == []
        assert "OffsetCommit" in sent(alone.run(100))
    assert called(alone.run(500)) == [("REVOKED", [0, 1])]


def test_prepare_goes_on_after_a_commit_that_cannot_succeed():
    alone = Alone().stable()
    alone.tell(EnforceRebalance())
    assert called(alone.committed(Error.TOPIC_AUTHORIZATION_FAILED)) == [("REVOKED", [0, 1])]


def test_prepare_chooses_by_the_generation_after_the_commit():
    alone = Alone().stable()
    alone.tell(EnforceRebalance())
    assert called(alone.committed(Error.UNKNOWN_MEMBER_ID)) == [("LOST", [0, 1])]
