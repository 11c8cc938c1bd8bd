"""Subscriptions and assignments as bytes: the worked examples, round trips, and bytes that are refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.protocol_v1.common.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    subscribed_topics,
)
from rebalance_lab.protocol_v1.common.errors import MalformedBytes

OWNED = Subscription(topics=("t1",), owned_partitions={"t1": (0, 2)}, generation_id=7, rack_id="r1")
STICKY = Subscription(
    topics=("t1",), user_data=bytes.fromhex("00000007"), owned_partitions={"t1": (0, 2)}, generation_id=7
)
SUBSCRIPTION_BYTES = [
    (OWNED, 0, "0000 00000001 00027431 ffffffff"),
    (OWNED, 1, "0001 00000001 00027431 ffffffff 00000001 00027431 00000002 00000000 00000002"),
    (OWNED, 2, "0002 00000001 00027431 ffffffff 00000001 00027431 00000002 00000000 00000002 00000007"),
    (OWNED, 3, "0003 00000001 00027431 ffffffff 00000001 00027431 00000002 00000000 00000002 00000007 00027231"),
    (STICKY, 3, "0003 00000001 00027431 00000004 00000007 00000001 00027431 00000002 00000000 00000002 00000007 ffff"),
]
ASSIGNMENT_BYTES = [
    (Assignment(assigned_partitions={"t1": (1, 3)}), "0003 00000001 00027431 00000002 00000001 00000003 ffffffff"),
    (Assignment(), "0003 00000000 ffffffff"),
]

names = st.text(min_size=1, max_size=20).filter(lambda name: name.isprintable())
partitions = st.dictionaries(
    names, st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4, unique=True).map(lambda p: tuple(sorted(p)))
)
subscriptions = st.builds(
    Subscription,
    topics=st.lists(names, max_size=4, unique=True).map(lambda topics: tuple(sorted(topics))),
    user_data=st.none() | st.binary(max_size=20),
    owned_partitions=partitions,
    generation_id=st.integers(-1, 2**31 - 1),
    rack_id=st.none() | names,
)


@pytest.mark.parametrize(("subscription", "version", "data"), SUBSCRIPTION_BYTES)
def test_a_subscription_is_written_byte_for_byte_as_kafka_writes_it(subscription, version, data):
    assert encode_subscription(subscription, version) == bytes.fromhex(data)


@pytest.mark.parametrize(("assignment", "data"), ASSIGNMENT_BYTES)
def test_an_assignment_is_written_byte_for_byte_as_kafka_writes_it(assignment, data):
    assert encode_assignment(assignment) == bytes.fromhex(data)
    assert decode_assignment(bytes.fromhex(data)) == assignment


@given(subscriptions, st.integers(0, 3))
def test_a_subscription_comes_back_as_far_as_its_version_goes(subscription, version):
    expected = Subscription(
        topics=subscription.topics,
        user_data=subscription.user_data,
        owned_partitions=subscription.owned_partitions if version >= 1 else {},
        generation_id=subscription.generation_id if version >= 2 else -1,
        rack_id=subscription.rack_id if version >= 3 else None,
    )
    data = encode_subscription(subscription, version)
    assert decode_subscription(data) == expected
    assert subscribed_topics(data) == subscription.topics


@given(partitions, st.none() | st.binary(max_size=20), st.integers(0, 3))
def test_an_assignment_comes_back(assigned, user_data, version):
    assignment = Assignment(assigned_partitions=assigned, user_data=user_data)
    assert decode_assignment(encode_assignment(assignment, version)) == assignment


@given(subscriptions, st.data())
def test_bytes_that_end_too_early_are_refused(subscription, data):
    whole = encode_subscription(subscription)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(MalformedBytes, match="at byte"):
        decode_subscription(whole[:cut])


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_and_nothing_else(data):
    for decode in (decode_subscription, decode_assignment, subscribed_topics):
        with suppress(MalformedBytes):
            decode(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("ffff 00000000 ffffffff", "version -1"),
        ("0000 ffffffff", "a list of -1 items"),
        ("0000 7fffffff", "a list of 2147483647 items in 0 bytes"),  # nothing is allocated on its word
        ("0000 00000001 ffff ffffffff", "null where a string must be"),
        ("0000 00000001 fffe ffffffff", "a string of -2 bytes"),
        ("0000 00000001 0001ff ffffffff", "not UTF-8"),
        ("0000 00000000 fffffffe", "-2 bytes of user data"),
        ("0003 00000000 ffffffff 00000000 00000007", "2 bytes expected, 0 left"),
    ],
)
def test_malformed_bytes_are_refused_with_the_reason(data, why):
    with pytest.raises(MalformedBytes, match=why):
        decode_subscription(bytes.fromhex(data))


def test_a_later_version_is_read_as_version_3_and_the_rest_left_unread():
    data = bytes.fromhex("0009") + encode_subscription(OWNED)[2:] + b"what version 9 adds"
    assert decode_subscription(data) == OWNED


def test_an_empty_rack_is_no_rack():
    data = encode_subscription(Subscription(topics=(), rack_id=""))
    assert decode_subscription(data).rack_id is None


def test_a_version_that_does_not_exist_is_not_written():
    for write in (encode_subscription, encode_assignment):
        with pytest.raises(ValueError, match="versions 0-3"):
            write(Subscription(topics=()) if write is encode_subscription else Assignment(), 4)


def test_a_string_too_long_for_the_format_is_not_written():
    with pytest.raises(ValueError, match="longer than the 32767"):
        encode_subscription(Subscription(topics=("t" * 40_000,)))
