"""Rules about KIP-848 groups, broken on purpose by a handful of facts; and the same facts put right."""

from __future__ import annotations

import pytest

from rebalance_lab.protocol_v1.common.errors import Error
from tests.harness.rules.rule_facts import Group, breaks


@pytest.mark.parametrize("steps_out", [False, True])
def test_nobody_takes_the_place_of_a_static_member_that_is_in_it(steps_out: bool) -> None:
    group = Group()
    group.beat("a", 0, 2, given=(0,), owns=(), instance_id="i")
    if steps_out:
        group.beat("a", -2, -2, instance_id="i")
    with breaks(not steps_out, "members only"):
        group.beat("b", 0, 2, given=(0,), owns=(), instance_id="i")


@pytest.mark.parametrize("partition", [0, 1])
def test_in_older_epochs_only_what_it_has_is_committed(partition: int) -> None:
    group = Group()
    group.beat("a", 0, 2, given=(0,), owns=())
    group.beat("a", 2, 3)
    with breaks(partition == 1, "members only"):
        group.commit("a", 2, partition=partition)


@pytest.mark.parametrize(("epoch", "owns"), [(3, None), (2, (0,)), (2, None)])
def test_who_is_in_its_last_epoch_or_has_not_heard_of_it_is_heard(epoch: int, owns: tuple[int, ...] | None) -> None:
    group = Group()
    group.beat("a", 0, 2, given=(0,), owns=())
    group.beat("a", 2, 3)
    with breaks(epoch == 3 or owns is not None, "members heard"):
        group.beat("a", epoch, 0, owns=owns, error=Error.FENCED_MEMBER_EPOCH)


@pytest.mark.parametrize("epoch", [2, 3])
def test_epochs_that_nobody_was_told_of_are_not_accepted(epoch: int) -> None:
    group = Group()
    group.beat("a", 0, 2, given=(0,), owns=())
    with breaks(epoch == 3, "members only"):
        group.commit("a", epoch)
    with breaks(epoch == 3, "members only"):
        group.beat("a", epoch, epoch)


def test_who_has_left_a_consumer_group_is_not_heard() -> None:
    for wrong in (
        lambda group: group.beat("a", 2, 2),
        lambda group: group.commit("a", 2),
        lambda group: group.feed("timer", of="consumer-session", member="a"),
    ):
        group = Group()
        group.beat("a", 0, 2, given=(0,), owns=())
        group.beat("a", -1, -1)
        with breaks(True, "members only"):
            wrong(group)


@pytest.mark.parametrize("told", [2, 3])
def test_a_members_epoch_does_not_go_back(told: int) -> None:
    group = Group()
    group.beat("a", 0, 3, given=(0,), owns=())
    with breaks(told == 2, "epochs go up"):
        group.beat("a", 3, told)


@pytest.mark.parametrize("says", [True, False])
def test_an_epoch_goes_up_after_the_acknowledgement(says: bool) -> None:
    group = Group()
    group.beat("a", 0, 2, given=(0, 1), owns=())
    group.beat("a", 2, 2, given=(0,))
    with breaks(not says, "epochs go up"):
        group.beat("a", 2, 3, owns=(0,) if says else None)


@pytest.mark.parametrize("released", ["said", "left", "expired", None])
def test_a_partition_is_given_when_it_is_released(released: str | None) -> None:
    group = Group()
    group.beat("a", 0, 2, given=(0, 1), owns=())
    group.beat("a", 2, 2, given=(0,))
    match released:
        case "said":
            group.beat("a", 2, 3, owns=(0,))
        case "left":
            group.beat("a", -1, -1)
        case "expired":
            group.t += 60_000
            group.feed("timer", of="consumer-rebalance", member="a")
    with breaks(released is None, "released first"):
        group.beat("b", 0, 3, given=(1,), owns=())


@pytest.mark.parametrize("kind", ["consumer-session", "consumer-rebalance"])
def test_nobody_expires_too_early(kind: str) -> None:
    group = Group()
    group.beat("a", 0, 2, given=(0, 1), owns=())
    group.beat("a", 2, 2, given=(0,))
    group.t += 1_000
    with breaks(True, "sessions"):
        group.feed("timer", of=kind, member="a")


@pytest.mark.parametrize("epoch", [-1, -2])
def test_a_static_member_leaves_for_a_while_only(epoch: int) -> None:
    group = Group()
    group.beat("a", 0, 2, given=(0,), owns=(), instance_id="i")
    with breaks(epoch == -1, "sessions"):
        group.beat("a", epoch, epoch, instance_id="i")
