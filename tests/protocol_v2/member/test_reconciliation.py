"""From what a member has to what it is given: the steps in their order, and everything that may come in between."""

from __future__ import annotations

import pytest

from rebalance_lab.assignors.model import Topic
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import (
    Disconnected,
    MetadataChanged,
    Poll,
    PollReturned,
    RequestMetadata,
    Subscribe,
    Unsubscribe,
)
from rebalance_lab.protocol_v1.common.messages import OffsetCommitRequest, OffsetFetchRequest
from rebalance_lab.protocol_v2.common.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatAssignment,
    TopicPartitions,
)
from rebalance_lab.protocol_v2.member.states import MemberState
from tests.members.alone import called, of, raised, sent
from tests.protocol_v2.member.alone import Alone, moves, outcomes, owns, share

NO_INTERVAL = {"auto_commit_interval_ms": 600_000}
NO_COMMITS = {"enable_auto_commit": False}


def told_to_give_up_one(**settings) -> Alone:
    """It owns t-0 and t-1, and its heartbeat is answered with t-0 alone."""
    member = Alone(**{**NO_INTERVAL, **settings}).stable()
    member.due()
    member.beat(2, share(0))
    return member


def fetchable(member: Alone) -> list[int]:
    return sorted(index for _, index in member.member.fetchable)


def test_commit_revoke_assign_acknowledge():
    member = told_to_give_up_one()
    assert member.member.state is MemberState.RECONCILING
    assert fetchable(member) == [0]  # t-1 is not read any more, though still owned
    assert called(member.effects) == []
    commit = member.pending(OffsetCommitRequest)
    assert commit.generation_id_or_member_epoch == 2
    assert [one.committed_offset for one in commit.topics[0].partitions] == [5, 5]  # of everything
    effects = member.committed(Error.NONE, Error.NONE)
    assert called(effects) == [("REVOKED", [1])]
    assert len(member.member.owned) == 2
    effects = member.done()
    assert called(effects) == [("ASSIGNED", [])]  # even with nothing to add
    assert sorted(member.member.owned) == [("t", 0)]
    assert sent(effects) == []
    effects = member.done()
    assert moves(effects) == ["Acknowledging", "Stable"]
    assert owns(member.heartbeat) == [0]
    assert member.heartbeat.subscribed_topic_names is None  # nothing else has changed


def test_what_goes_is_revoked_before_what_comes_is_assigned():
    member = Alone(**NO_COMMITS).stable()
    member.due()
    assert called(member.beat(3, share(1, 2))) == [("REVOKED", [0])]
    assert called(member.done()) == [("ASSIGNED", [2])]
    member.done()
    assert owns(member.heartbeat) == [1, 2]


def test_without_auto_commit_the_callback_comes_first():
    member = told_to_give_up_one(**NO_COMMITS)
    assert called(member.effects) == [("REVOKED", [1])]
    assert sent(member.effects) == ["ConsumerGroupHeartbeat"]


def test_a_failed_commit_stops_nothing():
    member = told_to_give_up_one()
    effects = member.committed(Error.UNKNOWN_MEMBER_ID, Error.UNKNOWN_MEMBER_ID)
    assert outcomes(effects) == [("prepare", "COMMIT_FAILED")]
    assert called(effects) == [("REVOKED", [1])]


def test_the_commit_is_repeated_with_the_newest_epoch_and_positions():
    member = told_to_give_up_one()
    member.committed(Error.STALE_MEMBER_EPOCH)
    member.tell(Poll({("t", 0): 9}))
    member.run(100)
    again = member.pending(OffsetCommitRequest)
    assert [one.committed_offset for one in again.topics[0].partitions] == [5, 5]  # taken when it failed
    member.committed(Error.COORDINATOR_LOAD_IN_PROGRESS)
    member.run(200)
    again = member.pending(OffsetCommitRequest)
    assert [one.committed_offset for one in again.topics[0].partitions] == [9, 5]


def test_the_commit_gives_up_after_the_rebalance_timeout():
    member = told_to_give_up_one(max_poll_interval_ms=6_000)
    for _ in range(40):
        if called(member.effects):
            break
        member.committed(Error.COORDINATOR_LOAD_IN_PROGRESS)
        member.run(1_000)
        if member.asked(ConsumerGroupHeartbeatRequest):
            member.beat(2)
    assert member.now_ms <= 5_000 + 6_000 + 1_000
    assert outcomes(member.effects) == [("prepare", "TIMED_OUT")]
    assert called(member.effects) == [("REVOKED", [1])]


def test_an_answer_after_the_rebalance_timeout_is_the_last():
    member = told_to_give_up_one(max_poll_interval_ms=6_000)
    member.run(7_000)
    effects = member.committed(Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert outcomes(effects) == [("prepare", "TIMED_OUT")]
    assert called(effects) == [("REVOKED", [1])]


def test_new_partitions_are_read_only_after_onPartitionsAssigned_and_their_offsets_are_fetched():
    member = Alone(**NO_INTERVAL).stable(0)
    member.due()
    member.beat(3, share(0, 1))
    effects = member.committed(Error.NONE)
    assert called(effects) == [("ASSIGNED", [1])]
    assert len(member.member.owned) == 2
    assert fetchable(member) == [0]
    member.done()
    assert fetchable(member) == [0, 1]
    fetch = member.pending(OffsetFetchRequest).groups[0]
    assert (fetch.member_id, fetch.member_epoch) == ("me", 3)
    assert [topic.partition_indexes for topic in fetch.topics or ()] == [(1,)]
    assert owns(member.heartbeat) == [0, 1]


def test_nothing_is_reconciled_between_polls_if_there_is_something_to_commit_or_revoke():
    member = Alone(**NO_INTERVAL).stable(0)
    member.tell(PollReturned())
    member.due()
    assert sent(member.beat(3, share(0, 1))) == []
    assert sent(member.tell(Poll())) == ["OffsetCommit"]
    member = Alone(**NO_COMMITS).stable()
    member.tell(PollReturned())
    member.due()
    member.beat(2, share(0))
    assert member.memory.reconciling is None
    assert called(member.tell(Poll())) == [("REVOKED", [1])]


def test_between_polls_new_partitions_are_prepared_but_called_only_in_poll():
    member = Alone(**NO_COMMITS).stable(0)
    member.tell(PollReturned())
    member.due()
    effects = member.beat(3, share(0, 1))
    assert member.memory.reconciling is not None
    assert called(effects) == []
    assert called(member.tell(Poll())) == [("ASSIGNED", [1])]


def test_a_newer_target_waits_until_this_one_is_acknowledged():
    member = told_to_give_up_one(**NO_COMMITS)  # onPartitionsRevoked(t-1) runs
    member.due()
    member.beat(2, share(0, 2))
    assert called(member.done()) == [("ASSIGNED", [])]
    effects = member.done()
    assert moves(effects) == ["Acknowledging", "Reconciling"]
    assert owns(member.heartbeat) == [0]
    assert called(effects) == [("ASSIGNED", [2])]


def test_there_and_back_again_is_acknowledged():
    """A, B, A in quick succession: the coordinator must hear that what B added is not owned."""
    member = Alone(**NO_COMMITS).stable(0)
    member.tell(PollReturned())
    member.due()
    member.tell(Poll())
    member.tell(PollReturned())
    member.beat(3, share())
    member.due()
    member.beat(3, share(0))
    effects = member.run(1)
    assert moves(member.effects)[-2:] == ["Acknowledging", "Stable"]
    assert called(effects) == []
    assert owns(member.heartbeat) == [0]


@pytest.mark.parametrize("given", [share(0, 1), None])
def test_an_assignment_that_it_has_already_changes_nothing(given):
    member = Alone(**NO_INTERVAL).stable()
    member.due()
    effects = member.beat(3, given)
    assert moves(effects) == []
    assert member.member.member_epoch == 3


def test_a_first_assignment_of_nothing_is_reconciled_and_acknowledged_too():
    member = Alone().joining()
    assert called(member.beat(2, share())) == [("ASSIGNED", [])]
    member.done()
    assert owns(member.heartbeat) == []
    member.beat(2)
    assert member.member.state is MemberState.STABLE


# Topics that metadata does not show yet


def two_topics(*names: str) -> HeartbeatAssignment:
    return HeartbeatAssignment(
        topic_partitions=tuple(TopicPartitions(topic_name=name, partitions=(0,)) for name in names)
    )


def test_unknown_topics_wait_for_metadata_and_the_rest_goes_ahead():
    member = Alone(**NO_COMMITS, quirks_of_java=False).joining()
    effects = member.beat(2, two_topics("t", "u"))
    assert len(of(RequestMetadata, effects)) == 1
    assert called(effects) == [("ASSIGNED", [0])]
    member.done()
    assert [one.topic_name for one in member.heartbeat.topic_partitions or ()] == ["t", "u"]  # both are spoken for
    member.beat(2)
    assert member.member.state is MemberState.RECONCILING
    member.tell(MetadataChanged({"t": Topic(4)}))
    assert len(of(RequestMetadata, member.effects)) == 1  # asked again, but not before a back-off
    member.run(100)
    assert len(of(RequestMetadata, member.effects)) == 2
    effects = member.tell(MetadataChanged({"t": Topic(4), "u": Topic(1)}))
    assert called(effects) == [("ASSIGNED", [0])]
    member.done()
    assert sorted(member.member.owned) == [("t", 0), ("u", 0)]
    assert member.member.state is MemberState.STABLE


def test_java_acknowledges_the_known_part_without_the_rest_and_again_after_every_answer():
    member = Alone(**NO_COMMITS).joining()
    member.beat(2, two_topics("t", "u"))
    member.done()
    assert [one.topic_name for one in member.heartbeat.topic_partitions or ()] == ["t"]
    for _ in range(3):
        effects = member.beat(2)
        assert sent(effects) == ["ConsumerGroupHeartbeat"]
        assert owns(member.heartbeat) is None


def test_a_topic_that_was_assigned_is_known_even_if_metadata_has_lost_it():
    member = Alone(**NO_COMMITS).stable()
    member.tell(MetadataChanged({}))
    member.due()
    effects = member.beat(3, share(0))
    assert called(effects) == [("REVOKED", [1])]
    assert of(RequestMetadata, effects) == []


# Callbacks that fail


def test_a_failed_revocation_is_raised_and_repeated_without_an_acknowledgement():
    member = told_to_give_up_one(**NO_COMMITS)
    effects = member.done("broken")
    assert raised(effects) == [None]
    assert member.member.state is MemberState.RECONCILING
    assert not member.asked(ConsumerGroupHeartbeatRequest)
    assert fetchable(member) == [0]
    assert called(member.tell(Poll())) == [("REVOKED", [1])]


def test_after_a_failed_assignment_the_new_partitions_are_owned_but_not_read():
    member = Alone(**NO_COMMITS).stable(0)
    member.due()
    member.beat(3, share(0, 1))
    assert raised(member.done("broken")) == [None]
    assert len(member.member.owned) == 2
    assert fetchable(member) == [0]
    assert called(member.tell(Poll())) == [("ASSIGNED", [])]  # nothing is new any more
    member.done()
    assert fetchable(member) == [0, 1]


def test_what_is_given_back_after_a_failed_revocation_is_read_again():
    member = told_to_give_up_one(**NO_COMMITS)
    member.done("broken")
    member.due()
    member.beat(3, share(0, 1))
    member.tell(Poll())
    assert fetchable(member) == [0, 1]
    assert owns(member.pending(ConsumerGroupHeartbeatRequest)) == [0, 1]


def test_what_is_given_back_after_a_failed_assignment_is_assigned_again():
    member = told_to_give_up_one()
    member.committed(Error.NONE, Error.NONE)
    member.done()
    member.done("broken")  # t-1 is gone, but that was never acknowledged
    member.due()
    member.beat(3, share(0, 1))
    member.tell(Poll())
    assert called(member.committed(Error.NONE)) == [("ASSIGNED", [1])]
    member.done()
    assert fetchable(member) == [0, 1]


# Aborts


def test_fenced_while_the_commit_is_on_its_way_nothing_is_revoked():
    member = told_to_give_up_one()
    member.due()
    effects = member.refuse(Error.FENCED_MEMBER_EPOCH)
    assert called(effects) == [("LOST", [0, 1])]
    member.done()
    assert called(member.committed(Error.UNKNOWN_MEMBER_ID)) == []
    assert member.memory.reconciling is None
    member.beat(4, share(0))
    assert called(member.effects)[-1] == ("ASSIGNED", [0])


def test_fenced_inside_onPartitionsRevoked_the_same_partitions_are_called_lost_too():
    member = told_to_give_up_one(**NO_COMMITS)
    member.due()
    member.refuse(Error.UNKNOWN_MEMBER_ID)
    effects = member.done()
    assert called(effects) == [("LOST", [0, 1])]
    assert member.memory.reconciling is None
    member.done()
    assert member.heartbeat.member_epoch == 0


def test_fenced_inside_onPartitionsAssigned_nothing_is_acknowledged():
    member = Alone(**NO_COMMITS).stable(0)
    member.due()
    member.beat(3, share(0, 1))
    member.due()
    member.refuse(Error.UNKNOWN_MEMBER_ID)
    effects = member.done()
    assert called(effects) == [("LOST", [0, 1])]
    assert moves(effects) == []
    assert fetchable(member) == []


def test_an_assignment_that_waited_while_the_member_was_fenced_is_not_called():
    member = Alone(**NO_COMMITS).stable(0)
    member.tell(PollReturned())
    member.due()
    member.beat(3, share(0, 1))
    member.due()
    member.refuse(Error.UNKNOWN_MEMBER_ID)
    assert called(member.tell(Poll())) == [("LOST", [0])]


def test_a_second_reconciliation_waits_for_the_first_ones_commit():
    member = told_to_give_up_one()
    member.due()
    member.refuse(Error.FENCED_MEMBER_EPOCH)
    member.done()
    member.beat(4, share(2))  # joined again, while the old commit is still on its way
    assert called(member.effects)[-1] == ("LOST", [0, 1])
    member.committed(Error.UNKNOWN_MEMBER_ID)
    assert called(member.effects)[-1] == ("ASSIGNED", [2])


# What heartbeats say meanwhile


@pytest.mark.parametrize(("java", "says"), [(True, [0]), (False, [0, 1])])
def test_after_a_failure_only_java_leaves_out_what_it_is_about_to_take(java, says):
    member = Alone(**NO_COMMITS, quirks_of_java=java).stable(0)
    member.due()
    member.beat(3, share(0, 1))  # onPartitionsAssigned(t-1) runs
    member.due()
    member.open.clear()
    member.tell(Disconnected())
    member.find()
    member.run(100)
    full = member.heartbeat
    assert owns(full) == says
    assert full.rebalance_timeout_ms > 0


def test_the_subscription_is_told_with_the_next_heartbeat_and_not_read_any_more_at_once():
    member = Alone(**NO_COMMITS).stable()
    member.tell(Subscribe(frozenset({"u"})))
    assert fetchable(member) == []
    assert not member.asked(ConsumerGroupHeartbeatRequest)
    member.due()
    assert member.heartbeat.subscribed_topic_names == ("u",)
    assert owns(member.heartbeat) is None


def test_unsubscribing_drops_an_assignment_that_waits():
    member = Alone(**NO_COMMITS).stable(0)
    member.tell(PollReturned())
    member.due()
    member.beat(3, share(0, 1))
    effects = member.tell(Unsubscribe())
    assert called(effects) == [("REVOKED", [0])]
