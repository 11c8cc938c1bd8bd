"""Client assignors on groups small enough to follow by hand; the answers are those of Kafka 4.3.1's classes.

A group is written as `topics` ("t3" is topic t with 3 partitions) and members in order of arrival; shares as "t0 t1".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.classic.cooperative_sticky import CooperativeStickyAssignor
from rebalance_lab.assignors.classic.range import RangeAssignor
from rebalance_lab.assignors.classic.round_robin import RoundRobinAssignor
from rebalance_lab.assignors.classic.sticky.sticky import StickyAssignor
from rebalance_lab.assignors.interface import RebalanceProtocol
from rebalance_lab.assignors.model import Group, Member, Topic


def topics(**counts: int) -> dict[str, Topic]:
    return {name: Topic(count) for name, count in counts.items()}


def on_racks(*racks: str) -> Topic:
    return Topic(len(racks), tuple(tuple(one) for one in racks))


def member(names: str = "", owned: str = "", generation: int | None = None, **more: Any) -> Member:
    claimed: dict[str, list[int]] = {}
    for text in owned.split():
        name, partition = text.split(":")
        claimed.setdefault(name, []).append(int(partition))
    return Member(tuple(names.split()), claimed, generation, **more)


def shares(answer: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {
        member_id: " ".join(f"{name}:{p}" for name, partitions in share.items() for p in partitions)
        for member_id, share in answer.items()
    }


BOOK = Group(topics(T1=3, T2=3), {"C1": member("T1 T2"), "C2": member("T1 T2")})
STATIC = Group(
    topics(t=3, u=2),
    {"z": member("t u", instance_id="i1"), "a": member("t u"), "b": member("t", instance_id="i0")},
)


def test_range_gives_the_first_consumer_the_larger_block_of_every_topic() -> None:
    assert shares(RangeAssignor().assign(BOOK)) == {"C1": "T1:0 T1:1 T2:0 T2:1", "C2": "T1:2 T2:2"}


def test_round_robin_goes_on_where_it_stopped_when_a_topic_ends() -> None:
    assert shares(RoundRobinAssignor().assign(BOOK)) == {"C1": "T1:0 T1:2 T2:1", "C2": "T1:1 T2:0 T2:2"}


@pytest.mark.parametrize("assignor", [RangeAssignor(), RoundRobinAssignor()])
def test_static_members_are_served_first_in_the_order_of_their_instance_ids(assignor: Any) -> None:
    assert shares(assignor.assign(STATIC)) == {"b": "t:0", "z": "t:1 u:0", "a": "t:2 u:1"}


def test_range_moves_co_partitioned_topics_together_as_soon_as_one_topic_needs_racks() -> None:
    both = on_racks("ab", "ab")
    members = {"A": member("t u v", rack="z"), "B": member("t u v", rack="a")}
    answer = RangeAssignor().assign(Group({"t": on_racks("a", "b", "a", "b"), "u": both, "v": both}, members))
    assert shares(answer) == {"A": "t:1 t:3 u:1 v:1", "B": "t:0 t:2 u:0 v:0"}
    assert shares(RangeAssignor().assign(Group({"u": both, "v": both}, members))) == {"A": "u:0 v:0", "B": "u:1 v:1"}


def test_range_lets_a_member_without_a_rack_match_every_partition() -> None:
    alternating = on_racks("a", "b", "a", "b")
    group = Group({"t": alternating, "u": alternating}, {"A": member("t u", rack="b"), "B": member("t u")})
    assert shares(RangeAssignor().assign(group)) == {"A": "t:1 t:3 u:1 u:3", "B": "t:0 t:2 u:0 u:2"}


TWO_HOLD_THREE_WANT = Group(
    topics(t=4),
    {
        "consumer-a": member("t", "t:0 t:1", claim_generation=1),
        "consumer-b": member("t", "t:2 t:3", claim_generation=1),
        "consumer-c": member("t"),
    },
)


def test_sticky_lets_the_first_in_hash_order_keep_the_larger_share() -> None:
    answer = shares(StickyAssignor().assign(TWO_HOLD_THREE_WANT))
    assert answer == {"consumer-a": "t:0", "consumer-b": "t:2 t:3", "consumer-c": "t:1"}


def test_cooperative_sticky_withholds_what_another_member_still_holds() -> None:
    answer = shares(CooperativeStickyAssignor().assign(TWO_HOLD_THREE_WANT))
    assert answer == {"consumer-a": "t:0", "consumer-b": "t:2 t:3", "consumer-c": ""}


STALE_AND_MIXED = Group(
    topics(t0=2, t1=4),
    {
        "c0": member("t1 t0", "t0:0 t0:1 t1:1 t1:2 t1:3", 3),
        "c1": member("t0", generation=1),
        "c2": member("t0", generation=2),
        "c3": member("t1", "t1:0 t1:1 t1:2", 2),
    },
)


def test_a_partition_that_moves_back_is_the_first_in_hash_order() -> None:
    answer = shares(StickyAssignor().assign(STALE_AND_MIXED))
    assert answer == {"c0": "t1:2 t1:3", "c1": "t0:0", "c2": "t0:1", "c3": "t1:0 t1:1"}


def test_cooperative_sticky_does_not_withhold_what_a_stale_claimant_gets_back() -> None:
    answer = shares(CooperativeStickyAssignor().assign(STALE_AND_MIXED))
    assert answer == {"c0": "t1:2 t1:3", "c1": "", "c2": "", "c3": "t1:0 t1:1"}


@pytest.mark.parametrize(
    ("generation_of_a", "expected"),
    [
        (3, {"A": "t:0", "B": "t:2 t:3"}),  # both claim t1 in one generation: neither keeps it, and it is withheld
        (2, {"A": "t:0 t:3", "B": "t:1 t:2"}),  # the higher generation has the better claim
    ],
)
def test_overlapping_claims_are_settled_by_generation(generation_of_a: int, expected: dict[str, str]) -> None:
    group = Group(topics(t=4), {"A": member("t", "t:0 t:1", generation_of_a), "B": member("t", "t:1 t:2", 3)})
    assert shares(CooperativeStickyAssignor().assign(group)) == expected


def test_of_clients_whose_subscription_has_no_generation_the_later_claimer_wins() -> None:
    group = Group(
        topics(t=4),
        {"A": member("t", "t:0 t:1", claim_generation=3), "B": member("t", "t:1 t:2", claim_generation=3)},
    )
    assert shares(StickyAssignor().assign(group)) == {"A": "t:0 t:3", "B": "t:1 t:2"}


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"m0": "", "m1": "a b"}, {"m0": "a:0 b:0", "m1": "a:1"}),  # an empty list met first is overlooked
        ({"m1": "a b", "m2": ""}, {"m1": "a:0 a:1 b:0", "m2": ""}),
        ({"m1": "a b", "m2": "a a"}, {"m1": "a:0 b:0", "m2": "a:1"}),  # two entries, so equal to two topics
    ],
)
def test_odd_topic_lists_pass_for_equal_where_java_lets_them(members: dict[str, str], expected: dict[str, str]) -> None:
    group = Group(topics(a=2, b=1), {member_id: member(names) for member_id, names in members.items()})
    assert shares(StickyAssignor().assign(group)) == expected


def test_a_stale_former_owner_gets_a_topic_back_that_it_left() -> None:
    group = Group(
        topics(t0=2, t1=1),
        {"c0": member("t1 t0", "t1:0", 2), "c1": member("t0", generation=1), "c2": member("t1", "t0:1", 1)},
    )
    assert shares(CooperativeStickyAssignor().assign(group)) == {"c0": "t1:0", "c1": "t0:0", "c2": "t0:1"}


def test_a_former_owner_that_is_out_of_the_balance_is_javas_null_pointer_exception() -> None:
    group = Group(
        topics(t0=1, t1=1, t2=1),
        {
            "c0": member("t1 t0", "t1:0", 2),
            "c1": member("t2", "t0:0 t1:0", 1),
            "c2": member("t1", "t2:0", 2),
        },
    )
    with pytest.raises(AssignorError) as caught:
        CooperativeStickyAssignor().assign(group)
    assert caught.value.java_exception == "NullPointerException"


def test_sticky_balances_as_far_as_mixed_subscriptions_allow() -> None:
    group = Group(topics(t0=1, t1=2, t2=3), {"C0": member("t0"), "C1": member("t0 t1"), "C2": member("t0 t1 t2")})
    assert shares(StickyAssignor().assign(group)) == {"C0": "t0:0", "C1": "t1:0 t1:1", "C2": "t2:0 t2:1 t2:2"}


def test_sticky_gives_partitions_to_members_on_their_racks() -> None:
    group = Group(
        {"a": on_racks("x", "y"), "b": on_racks("y", "x")},
        {"m1": member("a b", rack="y"), "m2": member("a b", rack="x")},
    )
    assert shares(StickyAssignor().assign(group)) == {"m1": "a:1 b:0", "m2": "a:0 b:1"}


def test_cooperative_sticky_with_racks_may_never_settle() -> None:
    racks = {"x": Topic(2, (("r3", "r1"), ("r3",))), "y": Topic(2, (("r1", "r0"), ("r0",)))}
    group = Group(
        racks,
        {
            "m1": member("x", "x:0", 1, rack="r0"),
            "m2": member("x y", "y:0", 1, rack="r1"),
            "m3": member("x y", "y:1", 1, rack="r3"),
            "m4": member("x", generation=1, rack="rz"),
        },
    )
    rounds = []
    for generation in range(2, 5):
        answer = CooperativeStickyAssignor().assign(group)
        rounds.append(shares(answer)["m3"])
        group = group.after(answer, generation)
    assert rounds == ["x:1", "y:1", "x:1"]


@pytest.mark.parametrize(
    ("assignor", "java_exception"),
    [
        (RoundRobinAssignor(), "IllegalArgumentException"),
        (StickyAssignor(), "ArithmeticException"),
        (CooperativeStickyAssignor(), "ArithmeticException"),
    ],
)
def test_a_group_without_members_has_no_answer(assignor: Any, java_exception: str) -> None:
    with pytest.raises(AssignorError) as caught:
        assignor.assign(Group(topics(t=1), {}))
    assert caught.value.java_exception == java_exception
    assert shares(RangeAssignor().assign(Group(topics(t=1), {}))) == {}


def test_a_claim_on_a_partition_that_does_not_exist_is_kept_and_stops_the_search_for_free_ones() -> None:
    group = Group(topics(t=2), {"A": member("t", "t:7", 1), "B": member("t", "t:1", 1)})
    with pytest.raises(AssignorError) as caught:
        StickyAssignor().assign(group)
    assert caught.value.java_exception == "IllegalStateException"


def test_memory_of_generations_changes_only_when_told_to_remember() -> None:
    sticky = StickyAssignor()
    sticky.assign(STALE_AND_MIXED)
    assert sticky.max_generation == -1
    sticky.remember_generations(STALE_AND_MIXED)
    assert sticky.max_generation == 3


def test_a_share_that_does_not_change_keeps_its_object() -> None:
    group = Group(topics(t=6), {name: member("t") for name in "abc"})
    first = StickyAssignor().assign(group)
    again = StickyAssignor().assign(group.after(first, 1))
    assert all(again.numbers[name] is first.numbers[name] for name in "abc")


def test_cooperative_sticky_speaks_both_protocols_and_the_others_only_eager() -> None:
    cooperative = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
    assert CooperativeStickyAssignor.supported_protocols == cooperative
    for eager in (RangeAssignor, RoundRobinAssignor, StickyAssignor):
        assert tuple(eager.supported_protocols) == (RebalanceProtocol.EAGER,)
