"""The broker's assignors: vectors recorded from Kafka 4.3.1's classes, and what its users rely on."""

from __future__ import annotations

from typing import Any

import pytest

from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.broker.range import ServerRangeAssignor
from rebalance_lab.assignors.broker.uniform import UniformAssignor
from rebalance_lab.assignors.json_contract import assignment_to_json, group_from_json
from rebalance_lab.assignors.model import Group, Member, Topic

Shares = dict[str, dict[str, list[int]]]


def assigned(assignor: Any, topics: dict[str, int], members: dict[str, Any]) -> Shares:
    described = {"topics": {name: {"partitions": count} for name, count in topics.items()}, "members": members}
    group = group_from_json(described)
    return assignment_to_json(assignor.assign(group), group)


def everybody(ids: str, *topics: str) -> dict[str, Any]:
    return {member_id: {"topics": list(topics)} for member_id in ids}


def test_a_balanced_group_stays_as_it_is_whoever_holds_the_extra_partition() -> None:
    members = {
        "A": {"topics": ["T"], "owned": {"T": [0, 1]}},
        "B": {"topics": ["T"], "owned": {"T": [2, 3, 4]}},
    }
    expected = {"A": {"T": [0, 1]}, "B": {"T": [2, 3, 4]}}
    assert assigned(UniformAssignor(), {"T": 5}, members) == expected
    assert assigned(UniformAssignor(), {"T": 5}, dict(reversed(members.items()))) == expected


def test_a_fresh_group_gets_chunks_and_the_last_members_the_extras() -> None:
    assert assigned(UniformAssignor(), {"1": 3, "2": 3}, everybody("ABCD", "1", "2")) == {
        "A": {"1": [0]},
        "B": {"1": [1]},
        "C": {"1": [2], "2": [0]},
        "D": {"2": [1, 2]},
    }


def test_different_subscriptions_fill_the_lightest_first() -> None:
    members = everybody("A", "1", "2") | everybody("B", "1") | everybody("C", "2")
    assert assigned(UniformAssignor(), {"1": 3, "2": 3}, members) == {
        "A": {"1": [0, 2]},
        "B": {"1": [1]},
        "C": {"2": [0, 1, 2]},
    }


def test_the_topic_id_decides_which_topic_is_dealt_first() -> None:
    """The answer depends on ids, as in a broker: these two hash to the opposite order of the names."""
    ids = {"a": "AAAAAAAAAAAAAAAAAAAAAg", "b": "AAAAAAAAAAAAAAAAAAAAAQ"}
    group = Group(
        {name: Topic(2, id=topic_id) for name, topic_id in ids.items()},
        {member_id: Member(topics=("a", "b")) for member_id in "AB"},
    )
    assert assignment_to_json(UniformAssignor().assign(group), group) == {"A": {"b": [0, 1]}, "B": {"a": [0, 1]}}


def test_a_share_of_a_topic_no_longer_subscribed_is_dropped_and_not_dealt_out() -> None:
    """Found against Java: after a resubscription the dropped share was taken for one that a leaver left behind."""
    before = Group({"t0": Topic(5), "t3": Topic(5)}, {"j1": Member(topics=("t0", "t3"))})
    held = UniformAssignor().assign(before)
    after = before.after(held, generation=1)
    members = {"j1": Member(topics=("t0",), owned=after.members["j1"].owned), "j2": Member(topics=("t0",))}
    group = after.with_members(members)
    answer = UniformAssignor().assign(group)
    assert sorted(p for share in answer.values() for p in share["t0"]) == [0, 1, 2, 3, 4]
    assert all(set(share) == {"t0"} for share in answer.values())


@pytest.mark.parametrize("second", ["t", "t u"], ids=["equal", "mixed"])
def test_a_share_that_does_not_change_is_handed_on_as_the_object_it_was(second: str) -> None:
    """What makes a rebalance of a large group cheap: nothing is copied for members whom it does not touch."""
    members = {"A": Member(topics=("t",)), "B": Member(topics=tuple(second.split())), "C": Member(topics=("t",))}
    group = Group({"t": Topic(9)}, members)
    held = UniformAssignor().assign(group)
    again = UniformAssignor().assign(group.after(held, generation=1))
    assert all(again.numbers[member_id] is held.numbers[member_id] for member_id in "ABC")


def test_mixed_subscriptions_and_a_partition_that_does_not_exist_fail_as_in_the_broker() -> None:
    members = {"A": {"topics": ["t", "u"], "owned": {"t": [7]}}, "B": {"topics": ["t"]}}
    with pytest.raises(AssignorError) as caught:
        assigned(UniformAssignor(), {"t": 2, "u": 2}, members)
    assert caught.value.java_exception == "ArrayIndexOutOfBoundsException"
    assert caught.value.path == "group.members.A.owned"


def test_the_servers_range_gives_blocks_and_forgets_what_was_owned() -> None:
    members = everybody("AB", "t", "u") | {"C": {"topics": ["t"], "owned": {"t": [0]}, "instance_id": "i"}}
    assert assigned(ServerRangeAssignor(), {"t": 4, "u": 2}, members) == {
        "A": {"t": [2], "u": [0]},
        "B": {"t": [3], "u": [1]},
        "C": {"t": [0, 1]},  # static members come first
    }


@pytest.mark.parametrize("assignor", [UniformAssignor(), ServerRangeAssignor()], ids=["uniform", "range"])
def test_topics_that_do_not_exist_are_passed_over(assignor: Any) -> None:
    assert assigned(assignor, {}, everybody("AB", "nowhere")) == {"A": {}, "B": {}}
    assert assigned(assignor, {"t": 0}, everybody("A", "t")) == {"A": {}}
    assert assigned(assignor, {"t": 2}, {}) == {}
