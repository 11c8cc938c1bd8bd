"""Records of __consumer_offsets: bytes that make no sense are refused in words; real ones are in the broker tests."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.harness.kafka.offsets_topic.decoding import decode_record
from rebalance_lab.harness.kafka.offsets_topic.record_schemas import KINDS
from rebalance_lab.protocol_v1.common.errors import MalformedBytes


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


KEYS = {
    number: struct.pack(">h", number)
    + b"".join(text("g") if field.type == "text" else struct.pack(">i", 3) for field in kind.key)
    for number, kind in KINDS.items()
}


def test_a_classic_group_in_the_oldest_and_the_newest_version() -> None:
    """Version 4 has compact lengths and tags; version 0 neither timestamps nor instance ids."""
    old = struct.pack(">h", 0) + text("consumer") + struct.pack(">i", 7) + text("range") + text("m-1") + b"\0\0\0\0"
    new = b"\0\x04\x09consumer\0\0\0\x07\x06range\x04m-1" + struct.pack(">q", 99) + b"\x01\0"
    for value in (old, new):
        record = decode_record(KEYS[2], value)
        assert record is not None
        assert record.value is not None
        assert (record.kind, record.group) == ("GroupMetadata", "g")
        assert (record.value["generation"], record.value["leader"], record.value["members"]) == (7, "m-1", [])


def test_a_tombstone_has_no_value() -> None:
    record = decode_record(KEYS[5], None)
    assert record is not None
    assert (record.key, record.value) == ({"group": "g", "member_id": "g"}, None)


def test_other_kinds_of_groups_are_passed_over() -> None:
    assert decode_record(struct.pack(">h", 17) + text("streams"), b"\0\0") is None


def test_a_tag_of_the_future_is_passed_over() -> None:
    """KIP-915: only tagged fields may be added."""
    value = b"\0\0" + struct.pack(">i", 5) + b"\x02" + b"\x00\x08" + struct.pack(">q", 11) + b"\x09\x03abc"
    record = decode_record(KEYS[3], value)
    assert record is not None
    assert record.value == {"epoch": 5, "metadata_hash": 11}


@pytest.mark.parametrize("number", sorted(KEYS))
@given(data=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(number: int, data: bytes) -> None:
    for version in (0, 4):
        try:
            decode_record(KEYS[number], struct.pack(">h", version) + data)
        except MalformedBytes as error:
            assert str(error)  # noqa: PT017 - either outcome is fine


@given(key=st.binary(max_size=30))
def test_any_key_is_read_or_refused(key: bytes) -> None:
    try:
        decode_record(key, None)
    except MalformedBytes as error:
        assert str(error)  # noqa: PT017 - either outcome is fine
