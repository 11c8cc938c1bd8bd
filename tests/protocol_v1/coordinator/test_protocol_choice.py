"""Which protocol a group chooses where a member lists one name twice, which counts twice in Kafka too."""

from __future__ import annotations

import pytest

from rebalance_lab.protocol_v1.common.messages import Protocol
from rebalance_lab.protocol_v1.coordinator.state.group import ClassicGroup, ClassicMember
from rebalance_lab.protocol_v1.coordinator.state.states import State


def member(member_id: str, names: tuple[str, ...]) -> ClassicMember:
    return ClassicMember(
        member_id=member_id,
        group_instance_id=None,
        client_id="client",
        client_host="/127.0.0.1",
        session_timeout_ms=1_000,
        rebalance_timeout_ms=1_000,
        protocols=tuple(Protocol(name=name, metadata=name.encode()) for name in names),
    )


@pytest.mark.parametrize("often", "abcdefgh")
def test_a_protocol_that_a_member_lacks_is_not_chosen(often):
    """Java's hash order decides a tie, so several names are tried."""
    group = ClassicGroup(group_id="g", state=State.EMPTY, state_since_ms=0)
    for each in (member("m1", (often, often, "range")), member("m2", ("range",))):
        group.add(each, "consumer")
    assert group.select_protocol() in (None, "range")


def test_a_group_without_a_choice_keeps_no_subscriptions():
    group = ClassicGroup(group_id="g", state=State.EMPTY, state_since_ms=0)
    group.add(member("m1", ("range", "range")), "consumer")
    group.protocol_name = group.select_protocol()
    group.remember_subscriptions()
    assert (group.protocol_name, group.subscriptions) == (None, (b"",))
    assert group.subscribes_to("orders")  # as far as can be told
