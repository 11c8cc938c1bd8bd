"""When Kafka takes a group for homogeneous (rows of ConsumerGroup.subscriptionType), and what range does then."""

from __future__ import annotations

from collections import Counter

import pytest

from rebalance_lab.assignors.broker.range import ServerRangeAssignor
from rebalance_lab.assignors.model import Group, Member, Topic
from rebalance_lab.protocol_v2.coordinator.assignment.subscription_type import Subscriptions, assigned

ROWS = [
    # members, by name, by expression, expressions by topic, homogeneous
    pytest.param(0, {}, {}, {}, True, id="nobody"),
    pytest.param(2, {"t": 2, "u": 2}, {}, {}, True, id="the same names"),
    pytest.param(2, {"t": 2, "u": 1}, {}, {}, False, id="one more name"),
    pytest.param(2, {"t": 1}, {}, {}, False, id="a member that names nothing"),
    pytest.param(2, {"t": 2}, {}, {"t": 1}, True, id="names that an expression without members matched as well"),
    pytest.param(2, {"t": 2}, {}, {"u": 1}, False, id="a topic that only an expression without members matched"),
    pytest.param(2, {}, {"t.*": 2}, {"t": 1, "t2": 1}, True, id="one expression"),
    pytest.param(2, {}, {"t.*": 2}, {}, True, id="one expression that is not resolved"),
    pytest.param(2, {}, {"t.*": 1}, {"t": 1}, False, id="an expression of one member"),
    pytest.param(2, {}, {"t.*": 1, "t": 1}, {"t": 2}, False, id="two expressions that match alike"),
    pytest.param(2, {}, {"t.*": 2}, {"t": 2}, False, id="a second expression that nobody has any more"),
    pytest.param(2, {"t": 2}, {"t.*": 2}, {"t": 1}, False, id="names beside the expression"),
]


@pytest.mark.parametrize(("members", "names", "regexes", "regex_topics", "homogeneous"), ROWS)
def test_a_group_is_homogeneous_by_its_counts(members, names, regexes, regex_topics, homogeneous):
    counted = Subscriptions(Counter(names), Counter(regexes), Counter(regex_topics))
    assert counted.is_homogeneous(members) is homogeneous


@pytest.mark.parametrize(
    ("homogeneous", "expected"),
    [(False, {"a": {"t": [0, 1, 2, 3]}, "b": {}}), (True, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}})],
    ids=["counted", "miscounted"],
)
def test_a_member_that_is_not_counted_gets_what_the_first_one_asks_for(homogeneous, expected):
    group = Group({"t": Topic(4)}, {"a": Member(("t",)), "b": Member(())})
    answer = assigned(ServerRangeAssignor(), group, homogeneous=homogeneous)
    assert {
        member: {topic: list(found) for topic, found in share.items()} for member, share in answer.items()
    } == expected
