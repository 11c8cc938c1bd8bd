"""The bytes that sticky members send to their leader."""

from __future__ import annotations

import pytest

from rebalance_lab.assignors.classic.cooperative_sticky import CooperativeStickyAssignor
from rebalance_lab.assignors.classic.sticky.sticky import StickyAssignor
from rebalance_lab.assignors.classic.sticky.user_data import (
    StickyUserData,
    decode_cooperative,
    decode_sticky,
    encode_sticky,
)

ONE_TOPIC = bytes.fromhex("00000001 0001 74 00000002 00000000 00000003")


def test_sticky_sends_nothing_before_its_first_assignment_and_version_1_after_it() -> None:
    sticky = StickyAssignor()
    assert sticky.subscription_user_data(["t"]) is None
    sticky.on_assignment({"t": [0, 3]}, 7)
    assert sticky.subscription_user_data(["t"]) == ONE_TOPIC + bytes.fromhex("00000007")


def test_cooperative_sticky_always_sends_its_generation() -> None:
    cooperative = CooperativeStickyAssignor()
    assert cooperative.subscription_user_data([]) == b"\xff\xff\xff\xff"
    cooperative.on_assignment({}, 5)
    assert cooperative.subscription_user_data([]) == b"\x00\x00\x00\x05"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, StickyUserData({}, None)),
        (b"", StickyUserData({}, None)),
        (ONE_TOPIC + b"\x00\x00\x00\x07", StickyUserData({"t": [0, 3]}, 7)),
        (ONE_TOPIC + b"\x00\x00\x00\x07 and more", StickyUserData({"t": [0, 3]}, 7)),
        (ONE_TOPIC, StickyUserData({"t": [0, 3]}, None)),  # version 0
        (ONE_TOPIC[:-1], StickyUserData({}, -1)),  # cut off: not decodable
        (b"\x7f\xff\xff\xff", StickyUserData({}, -1)),  # more topics than bytes
        (b"\xff\xff\xff\xff\x00\x00\x00\x01", StickyUserData({}, -1)),  # a negative count
    ],
)
def test_a_leader_reads_version_1_then_version_0_then_gives_up(data: bytes | None, expected: StickyUserData) -> None:
    assert decode_sticky(data) == expected


def test_what_was_encoded_is_decoded_whatever_the_topics_are_called() -> None:
    owned = {f"topic-{i}": [i, i + 1] for i in range(40)} | {"é": [0]}
    decoded = decode_sticky(encode_sticky(owned, 3))
    assert (decoded.owned, decoded.generation) == (owned, 3)


@pytest.mark.parametrize(("data", "expected"), [(None, None), (b"\x00", -1), (b"\x00\x00\x00\x09\x01", 9)])
def test_cooperative_user_data_that_is_too_short_counts_as_no_generation(data: bytes | None, expected: int) -> None:
    assert decode_cooperative(data) == expected
