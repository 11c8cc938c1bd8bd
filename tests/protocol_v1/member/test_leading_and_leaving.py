"""The leader's work with built-in and custom assignors, the upgrade to cooperative, and the ways out of a group."""

from __future__ import annotations

import pytest

from rebalance_lab.assignors.interface import RebalanceProtocol
from rebalance_lab.assignors.model import Topic
from rebalance_lab.harness.conversation.conversations import classic_group
from rebalance_lab.protocol_v1.common.consumer_protocol import decode_assignment, decode_subscription
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    Cause,
    Close,
    Closed,
    Disconnected,
    EnforceRebalance,
    MetadataChanged,
    Poll,
    Raise,
    RequestMetadata,
    Subscribe,
    Unsubscribe,
)
from rebalance_lab.protocol_v1.common.messages import (
    JoinGroupRequest,
    JoinGroupResponseMember,
    SyncGroupRequest,
)
from rebalance_lab.protocol_v1.coordinator.config import CoordinatorConfig
from rebalance_lab.protocol_v1.member.member import Member
from rebalance_lab.protocol_v1.member.memory import MemberTurn
from tests.members.alone import called, of, sent
from tests.protocol_v1.member.alone import Alone, assignor, causes, share, subscription

COOPERATIVE = "cooperative-sticky"


# Leading


def test_the_leader_assigns_and_watches_everybodys_topics():
    alone = Alone("range")
    alone.joining()
    effects = alone.led([("me", subscription("t")), ("you", subscription("t", "u"))])
    assert of(RequestMetadata, effects) == [RequestMetadata()]  # u is not ours: its metadata comes first
    assert sent(effects) == []
    effects = alone.tell(MetadataChanged({"t": Topic(2), "u": Topic(1)}))
    assert sent(effects) == ["SyncGroup"]
    shares = {e.member_id: decode_assignment(e.assignment) for e in alone.pending(SyncGroupRequest).assignments}
    assert shares["me"].assigned_partitions == {"t": (0,)}
    assert shares["you"].assigned_partitions == {"t": (1,), "u": (0,)}
    alone.synced(share(0))
    alone.done()
    moved = alone.tell(MetadataChanged({"t": Topic(2), "u": Topic(2)}))
    assert (Cause.NEW_PARTITIONS, "cached metadata has changed") in causes(moved)


def test_a_leader_that_is_reset_while_it_waits_for_metadata_starts_over():
    alone = Alone().joining()
    alone.led([("me", subscription("t", "u"))])
    alone.run(3_000)
    alone.heartbeat(Error.UNKNOWN_MEMBER_ID)
    effects = alone.tell(MetadataChanged({"t": Topic(2), "u": Topic(1)}))
    assert sent(effects) == ["JoinGroup"]
    assert alone.pending(JoinGroupRequest).member_id == ""


def test_a_leader_that_lost_its_coordinator_while_it_waited_joins_again():
    alone = Alone().joining()
    alone.led([("me", subscription("t", "u"))])
    alone.tell(Disconnected())
    alone.tell(MetadataChanged({"t": Topic(2), "u": Topic(1)}))
    alone.find()
    assert "JoinGroup" in sent(alone.run(100))


def test_skip_assignment_watches_but_assigns_nothing():
    alone = Alone().joining()
    alone.led([("me", subscription("t"))], skip_assignment=True)
    assert alone.pending(SyncGroupRequest).assignments == ()
    assert alone.memory.is_leader


class Custom:
    """A custom assignor that does as it is told."""

    name = "mine"
    supported_protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def __init__(self, answer=None, fault=None):
        self.answer, self.fault, self.told, self.seen = answer, fault, [], None

    def assign(self, group):
        self.seen = group
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def on_assignment(self, assignment, generation):
        self.told.append((dict(assignment), generation))
        if self.fault:
            raise self.fault

    def subscription_user_data(self, topics):
        return b"mine:" + ",".join(sorted(topics)).encode()


def test_a_custom_assignor_is_given_claims_and_its_hooks_are_called():
    mine = Custom({"me": {"t": [0, 1]}, "you": {"t": []}})
    alone = Alone(mine).joining()
    first = decode_subscription(alone.pending(JoinGroupRequest).protocols[0].metadata)
    assert first.user_data == b"mine:t"
    alone.led([("me", subscription("t")), ("you", subscription("t", owned=[2], generation=4, rack_id="r"))])
    seen = mine.seen.members["you"]
    assert (dict(seen.owned), seen.generation, seen.rack) == ({"t": (2,)}, 4, "r")
    shares = {e.member_id: e.assignment for e in alone.pending(SyncGroupRequest).assignments}
    assert shares == {"me": share(0, 1), "you": share()}
    alone.synced(share(0, 1))
    assert mine.told == [({"t": (0, 1)}, 1)]


def test_a_custom_cooperative_assignor_must_not_give_away_what_is_still_owned():
    mine = Custom({"me": {"t": [0]}, "you": {"t": []}, "stranger": {"t": [3]}})
    alone = Alone(mine).joining()
    effects = alone.led([("me", subscription("t")), ("you", subscription("t", owned=[0], generation=1))])
    assert "violates its requirements" in of(Raise, effects)[0].message
    assert not alone.asked(SyncGroupRequest)


@pytest.mark.parametrize("answer", [ValueError("no"), None, {"me": [1]}])
def test_an_assignor_that_fails_is_raised_and_no_sync_is_sent(answer):
    alone = Alone(Custom(answer)).joining()
    effects = alone.led([("me", subscription("t"))])
    assert len(of(Raise, effects)) == 1
    assert not alone.asked(SyncGroupRequest)
    assert sent(alone.tell(Poll())) == ["JoinGroup"]


def test_a_hook_that_fails_is_raised_after_assigned():
    alone = Alone(Custom({"me": {"t": [0]}}, fault=ValueError("hook"))).joining()
    alone.led([("me", subscription("t"))])
    alone.synced(share(0))
    assert "on_assignment: hook" in of(Raise, alone.done())[0].message


def test_whom_a_custom_assignor_leaves_out_is_told_that_it_gets_nothing():
    alone = Alone(Custom({"me": {"t": [0]}})).joining()
    alone.led([("me", subscription("t")), ("you", subscription("t"))])
    shares = {e.member_id: e.assignment for e in alone.pending(SyncGroupRequest).assignments}
    assert shares == {"me": share(0), "you": share()}


class Sharing:
    """Everybody says what it weighs; the leader tells everybody the sum."""

    name = "sharing"

    def __init__(self, weight):
        self.weight, self.seen, self.told = weight, {}, []

    def subscription_user_data(self, topics):
        return self.weight

    def assign(self, group):
        self.seen = {member_id: member.user_data for member_id, member in group.members.items()}
        first, *rest = sorted(group.members)
        return {first: {"t": list(range(group.topics["t"].partitions))}, **{other: {} for other in rest}}

    def assignment_user_data(self, member_id, share):
        return b"+".join(sorted(self.seen.values())) + f" {len(share.get('t', ()))}".encode()

    def on_assignment(self, assignment, generation):
        self.told.append((dict(assignment), assignment.user_data, generation))


def test_user_data_goes_to_the_leader_and_comes_back_with_the_share():
    mine, yours = Sharing(b"m"), Sharing(b"y")
    group = classic_group({"t": 2}, coordinator=CoordinatorConfig(group_initial_rebalance_delay_ms=0))
    group.join("A", assignors=[mine]).settle()
    group.join("B", assignors=[yours]).settle()
    assert (mine.seen, yours.seen) == ({"A-1": b"m", "B-2": b"y"}, {})
    assert mine.told == [({"t": (0, 1)}, b"m 2", 1), ({"t": (0, 1)}, b"m+y 2", 2)]
    assert yours.told == [({}, b"m+y 0", 2)]
    group.close("A").settle()
    assert yours.seen == {"B-2": b"y"}  # who leads now sees what the others send now
    assert yours.told[-1] == ({"t": (0, 1)}, b"y 2", 3)


@pytest.mark.parametrize("bytes_or_not", [ValueError("no"), "text"])
def test_bytes_that_cannot_be_had_are_raised_and_nothing_is_sent(bytes_or_not):
    def hook(*_):
        if isinstance(bytes_or_not, Exception):
            raise bytes_or_not
        return bytes_or_not

    mine = Custom({"me": {"t": [0]}})
    mine.assignment_user_data = hook
    alone = Alone(mine).joining()
    effects = alone.led([("me", subscription("t"))])
    assert "assignment_user_data" in of(Raise, effects)[0].message
    assert not alone.asked(SyncGroupRequest)
    mine.subscription_user_data = hook
    effects = alone.tell(Poll())
    assert "subscription_user_data" in of(Raise, effects)[0].message
    assert sent(effects) == []
    del mine.subscription_user_data
    assert sent(alone.tell(Poll())) == ["JoinGroup"]


def test_malformed_subscriptions_and_assignments_are_raised():
    alone = Alone().joining()
    broken = (JoinGroupResponseMember(member_id="me", metadata=b"\x00"),)
    assert len(of(Raise, alone.joined(leader="me", members=broken))) == 1
    for data in (b"", b"\x00\x03\x00"):
        other = Alone().syncing()
        assert len(of(Raise, other.synced(data))) == 1
        assert len(of(Raise, other.tell(Poll()))) == 1  # the exchange is kept, so it is raised again


@pytest.mark.parametrize("leads", [True, False])
def test_an_assignor_that_nobody_configured_is_raised(leads):
    alone = Alone().joining()
    if leads:
        effects = alone.led([("me", subscription("t"))], protocol_name="unheard-of")
    else:
        alone.joined(protocol_name="unheard-of")
        effects = alone.synced()
    assert "invalid assignment protocol: unheard-of" in of(Raise, effects)[0].message


def test_sticky_members_tell_what_they_had_in_user_data():
    group = classic_group({"t": 6}, "sticky").join("A").join("B").settle()
    before = {client.name: client.owned for client in group.live}
    group.join("C").settle()
    for name, owned in before.items():
        assert group.clients[name].owned < owned


# Upgrade


def test_two_rolling_bounces_lead_from_eager_to_cooperative():
    group = classic_group({"t": 6})
    group.assignors = ["range"]
    for name in "ABC":
        group.join(name)
    group.settle()
    for assignors, chosen in (([COOPERATIVE, "range"], COOPERATIVE), ([COOPERATIVE], COOPERATIVE)):
        for name in "ABC":
            group.close(name).settle().join(name, assignors=assignors).settle()
            assert sorted(len(client.owned) for client in group.live) == [2, 2, 2]
        assert {client.member.generation.protocol_name for client in group.live} == {chosen}
    assert {client.member.memory.protocol for client in group.live} == {RebalanceProtocol.COOPERATIVE}


def test_the_old_assignor_stays_while_one_member_knows_no_other():
    group = classic_group({"t": 6}).join("A").join("B").settle()
    group.close("A").settle().join("A", assignors=[COOPERATIVE, "range"]).settle()
    assert {client.member.generation.protocol_name for client in group.live} == {"range"}


def test_skipping_the_first_bounce_is_refused():
    group = classic_group({"t": 6}).join("A").settle().join("B", assignors=[COOPERATIVE]).run(100)
    assert group.clients["B"].raised is not None
    assert group.clients["B"].raised.error is Error.INCONSISTENT_GROUP_PROTOCOL


# Leaving


@pytest.mark.parametrize("instance", [None, "pod"])
def test_unsubscribe_revokes_and_leaves_but_does_not_commit(instance):
    alone = Alone(group_instance_id=instance).stable()
    assert called(alone.tell(Unsubscribe())) == [("REVOKED", [0, 1])]
    effects = alone.done()
    assert sent(effects) == (["LeaveGroup"] if instance is None else [])
    assert alone.member.generation[:2] == (-1, "")
    assert sent(alone.tell(Poll())) == []
    assert "JoinGroup" in sent(alone.tell(Subscribe(frozenset({"t"}))))


def test_an_error_in_the_unsubscribe_callback_is_raised_and_nobody_leaves():
    alone = Alone().stable()
    alone.tell(Unsubscribe())
    effects = alone.done("boom")
    assert (len(of(Raise, effects)), sent(effects)) == (1, [])


def test_close_during_a_rebalance_loses_what_is_owned():
    alone = Alone(COOPERATIVE, enable_auto_commit=False).stable()
    alone.tell(EnforceRebalance())
    assert called(alone.tell(Close())) == [("LOST", [0, 1])]
    assert sent(alone.done()) == ["LeaveGroup"]


def test_close_without_a_coordinator_ends_at_its_timeout():
    alone = Alone().stable()
    alone.tell(Disconnected())
    alone.tell(Close(timeout_ms=5_000))
    effects = alone.run(5_000)
    assert called(effects) == [("REVOKED", [0, 1])]
    assert of(Closed, alone.done()) == [Closed()]
    assert alone.timers == {}
    assert alone.tell(Poll()) == []


def test_close_waits_for_the_answer_to_leave_group_only_so_long():
    alone = Alone(enable_auto_commit=False).stable()
    alone.tell(Close(timeout_ms=5_000))
    assert of(Closed, alone.done()) == []
    assert of(Closed, alone.run(5_000)) == [Closed()]


def test_close_does_not_wait_for_a_question_who_the_coordinator_is():
    """The heartbeats forget one that may be stuck, and ask again: nobody answers the first any more."""
    alone = Alone(enable_auto_commit=False, group_instance_id="i").stable()
    MemberTurn(alone.memory, 0).look_up()
    alone.tell(Close())
    assert of(Closed, alone.done()) == [Closed()]


def test_an_error_in_the_close_callback_is_raised_and_nobody_leaves():
    alone = Alone(enable_auto_commit=False).stable()
    alone.tell(Close())
    effects = alone.done("boom")
    assert (len(of(Raise, effects)), sent(effects)) == (1, [])
    assert of(Closed, effects) == [Closed()]


def test_close_before_the_first_join_is_quiet():
    alone = Alone()
    assert of(Closed, alone.tell(Close())) == [Closed()]


def test_poll_without_a_subscription_does_nothing():
    member = Member(assignors=[assignor("range")])
    assert member.handle(Poll(), 0) == []


def test_a_connection_that_breaks_under_leave_group_ends_the_close():
    alone = Alone(enable_auto_commit=False).stable()
    alone.tell(Close())
    alone.done()
    assert of(Closed, alone.tell(Disconnected())) == [Closed()]
