"""The order in which a broker walks its members: Kafka's TimelineHashMap."""

from __future__ import annotations

from rebalance_lab.protocol_v2.coordinator.state.member_order import GOLDEN, MASK64, TimelineOrder

PLAIN_TESTS = (
    "test_slots_ascend_and_inside_a_slot_the_last_goes_first",
    "test_a_put_of_a_key_that_is_there_keeps_its_place_but_may_double_the_table",
    "test_a_removed_key_comes_back_as_the_last_of_its_slot",
)


JAVA = [13, 18, 3, 10, 15, 5, 12, 17, 7, 14, 4, 19, 11, 9, 1, 16]


def java_hash(text: str) -> int:
    h = 0
    for letter in text:
        h = (31 * h + ord(letter)) & 0xFFFF_FFFF
    return h - (1 << 32) if h >> 31 else h


def slot(text: str, bits: int) -> int:
    return (java_hash(text) * GOLDEN & MASK64) >> (64 - bits)


def put_all(keys):
    order = TimelineOrder()
    for key in keys:
        order.put(key)
    return order


def test_slots_ascend_and_inside_a_slot_the_last_goes_first():
    keys = [f"member-{i}" for i in range(50)]
    order = put_all(keys)
    bits = order.bits
    assert bits == 6  # doubled to 4, 8, 16, 32 and, with the 43rd key, to 64 slots
    arrivals = {key: i for i, key in enumerate(keys)}
    assert list(order) == sorted(keys, key=lambda key: (slot(key, bits), -arrivals[key]))
    assert len({slot(key, bits) for key in keys}) < len(keys), "no two keys share a slot: the test shows nothing"


def test_a_put_of_a_key_that_is_there_keeps_its_place_but_may_double_the_table():
    order = put_all(["A", "B"])
    assert len(order.slots) == 2
    order.put("A")  # (2 + 1) * 0.75 is more than 2
    assert len(order.slots) == 4
    assert sorted(order) == ["A", "B"]
    assert len(order) == 2


def test_a_removed_key_comes_back_as_the_last_of_its_slot():
    order = put_all([f"k{i}" for i in range(200)])
    held = next(held for held in order.slots if len(held) > 1)
    first, second = held[0], held[1]
    order.remove(first)
    assert first not in order
    order.put(first)
    there = list(order)
    assert there.index(first) < there.index(second)


def test_the_order_is_that_of_kafkas_own_class():
    """Seen with org.apache.kafka.timeline.TimelineHashMap 4.3.1: put member-0 to member-19, remove the even ones below
    ten, put member-4 again."""
    order = put_all([f"member-{i}" for i in range(20)])
    for i in range(0, 10, 2):
        order.remove(f"member-{i}")
    order.put("member-4")
    assert [int(key.removeprefix("member-")) for key in order] == JAVA
