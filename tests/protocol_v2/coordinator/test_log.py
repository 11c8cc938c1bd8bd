"""What happens around the log: answers wait for it, refusals are taken back, a new coordinator reads it."""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.effects import Append, Reply, SetTimer, StateChanged
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v2.common.messages import ConsumerGroupHeartbeatRequest
from rebalance_lab.protocol_v2.coordinator.config import CoordinatorConfig
from rebalance_lab.protocol_v2.coordinator.coordinator import Coordinator, Status, at_once
from tests.protocol_v2.coordinator.watched import snapshot

PLAIN_TESTS = (
    "test_an_answer_leaves_only_when_its_records_are_durable",
    "test_a_refused_append_is_taken_back_with_all_that_came_after_it",
    "test_a_time_out_takes_nothing_back",
    "test_a_removal_that_the_log_refused_is_tried_again",
    "test_a_failed_leave_does_not_leave_a_member_without_a_session",
)


def coordinator() -> Coordinator:
    return Coordinator(CoordinatorConfig(group_consumer_assignment_interval_ms=0), topics={"orders": 4})


def heartbeat(member_id: str, epoch: int, **fields) -> ConsumerGroupHeartbeatRequest:
    if epoch == 0:
        joins = {"rebalance_timeout_ms": 9_000, "subscribed_topic_names": ("orders",), "topic_partitions": ()}
        fields = joins | fields
    return ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch, **fields)


def appends(effects):
    return [effect.append_id for effect in effects if isinstance(effect, Append)]


def errors(effects):
    return [effect.response.error_code for effect in effects if isinstance(effect, Reply)]


def timers(effects):
    return [effect.key[0] for effect in effects if isinstance(effect, SetTimer)]


def test_an_answer_leaves_only_when_its_records_are_durable():
    machine = coordinator()
    effects = machine.handle(heartbeat("A", 0), 0)
    assert errors(effects) == []
    waits = machine.handle(heartbeat("A", 2), 1)  # nothing to write, but it has seen what is not durable yet
    assert (errors(waits), appends(waits)) == ([], [])
    assert errors(machine.on_append(appends(effects)[0], 2)) == [Error.NONE, Error.NONE]


def test_a_refused_append_is_taken_back_with_all_that_came_after_it():
    machine = coordinator()
    at_once(machine, machine.handle(heartbeat("A", 0), 0), 0)
    before = snapshot(machine.groups["g"])
    second = machine.handle(heartbeat("B", 0), 1)
    third = machine.handle(heartbeat("A", 2, topic_partitions=()), 2)
    told = machine.on_append(appends(second)[0], 3, Error.NOT_ENOUGH_REPLICAS)
    assert errors(told) == [Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_NOT_AVAILABLE]
    assert snapshot(machine.groups["g"]) == before
    assert machine.on_append(appends(third)[0], 4, Error.NOT_ENOUGH_REPLICAS) == []
    answered = at_once(machine, machine.handle(heartbeat("B", 0), 5), 5)
    assert errors(answered) == [Error.NONE]


def test_a_group_whose_birth_was_refused_never_was():
    machine = coordinator()
    effects = machine.handle(heartbeat("A", 0), 0)
    told = machine.on_append(appends(effects)[0], 1, Error.NOT_LEADER_OR_FOLLOWER)
    assert errors(told) == [Error.NOT_COORDINATOR]
    assert "g" not in machine.groups
    assert [effect.state for effect in told if isinstance(effect, StateChanged)] == ["Dead"]


def test_a_time_out_takes_nothing_back():
    machine = coordinator()
    effects = machine.handle(heartbeat("A", 0), 0)
    told = machine.on_append(appends(effects)[0], 5_000, Error.REQUEST_TIMED_OUT)
    assert errors(told) == [Error.COORDINATOR_NOT_AVAILABLE]
    assert machine.groups["g"].members["A"].current.member_epoch == 2


def test_a_removal_that_the_log_refused_is_tried_again():
    machine = coordinator()
    at_once(machine, machine.handle(heartbeat("A", 0), 0), 0)
    effects = machine.on_timer(("consumer-session", "g", "A"), 45_000)
    told = machine.on_append(appends(effects)[0], 45_001, Error.NOT_ENOUGH_REPLICAS)
    assert "A" in machine.groups["g"].members
    assert [effect.delay_ms for effect in told if isinstance(effect, SetTimer)][-1] == 500
    at_once(machine, machine.on_timer(("consumer-session", "g", "A"), 45_501), 45_501)
    assert not machine.groups["g"].members


def test_a_failed_leave_does_not_leave_a_member_without_a_session():
    machine = coordinator()
    at_once(machine, machine.handle(heartbeat("A", 0), 0), 0)
    effects = machine.handle(heartbeat("A", -1), 1)
    told = machine.on_append(appends(effects)[0], 2, Error.NOT_ENOUGH_REPLICAS)
    assert errors(told) == [Error.COORDINATOR_NOT_AVAILABLE]
    assert timers(told) == ["consumer-session"]


def test_a_loading_coordinator_answers_so_and_serves_once_it_has_loaded():
    machine = Coordinator(topics={"orders": 4}, status=Status.LOADING)
    assert errors(machine.handle(heartbeat("A", 0), 0)) == [Error.COORDINATOR_LOAD_IN_PROGRESS]
    machine.load([], 1)
    assert errors(at_once(machine, machine.handle(heartbeat("A", 0), 2), 2)) == [Error.NONE]


def test_a_moved_coordinator_says_so():
    machine = coordinator()
    at_once(machine, machine.handle(heartbeat("A", 0), 0), 0)
    machine.unload(1)
    assert errors(machine.handle(heartbeat("A", 2), 2)) == [Error.NOT_COORDINATOR]
    assert not machine.groups
