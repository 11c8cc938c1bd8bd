"""Frames that claim more than they hold, in a process of its own: kio would end it."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from rebalance_lab.harness.kafka.wire.broker_connection import encode_request, encoded
from rebalance_lab.harness.kafka.wire.entities import build
from rebalance_lab.harness.kafka.wire.frame_check import MalformedFrame, check_frame, varint_bytes
from rebalance_lab.harness.kafka.wire.frame_reader import (
    MAX_REQUEST_ELEMENTS,
    read_answer,
    read_entities,
    read_request,
)

METADATA_V9 = struct.pack("!hhih", 3, 9, 1, 3) + b"fuz\0"
"""A header of the second version: its tagged fields are none."""


def encode(schema: Any, values: dict[str, Any]) -> bytes:
    return encoded(build(schema, values))


def request_frame(key: int, version: int, values: dict[str, Any]) -> bytes:
    return encode_request(build(load_request_schema(key, version), values), 7, "client")


def test_a_frame_of_23_bytes_does_not_end_the_process():
    """kio allocates the array before it reads it; nothing in the process can catch what follows."""
    script = f"""
from kio.index import load_request_schema
from rebalance_lab.harness.kafka.wire.frame_reader import read_request
try:
    read_request({METADATA_V9 + bytes.fromhex("ffffffff0f")!r}, load_request_schema(3, 9))
except ValueError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == "4294967294 elements are announced at byte 19, 0 bytes are left\n"


@pytest.mark.parametrize(
    ("key", "version", "body", "message"),
    [
        (3, 9, b"\xff\xff\xff\xff\x7f", "has more than 32 bits"),
        (3, 9, b"\xff\xff", "the frame ends within the number"),
        (3, 1, struct.pack("!i", 2**31 - 1), "2147483647 elements are announced"),
        (3, 1, struct.pack("!i", -2), "length -2"),
        (3, 1, struct.pack("!ih", 1, 200) + b"x", "200 bytes are announced"),
        (3, 9, b"\x00\x00\x00\x00\x05\x00", "5 elements are announced"),
        (3, 9, b"\x00\x00\x00\x00\x01\x09\x7f", "127 bytes are announced"),
        (12, 0, struct.pack("!h", -1), "length -1"),
        (12, 0, struct.pack("!h", 1) + b"\xff" + struct.pack("!ih", 1, 0), "UTF-8"),
        (3, 9, b"\x00\x02\x00\x00\x00", "boolean"),
        (42, 0, struct.pack("!i", MAX_REQUEST_ELEMENTS + 1) + bytes(2 * MAX_REQUEST_ELEMENTS + 2), "too many elements"),
    ],
)
def test_lengths_are_compared_with_what_is_left(key, version, body, message):
    schema = load_request_schema(key, version)
    header = {"request_api_key": key, "request_api_version": version, "correlation_id": 1, "client_id": None}
    with pytest.raises(MalformedFrame, match=message):
        read_request(encode(schema.__header_schema__, header) + body, schema)


@pytest.mark.parametrize("size", range(len(METADATA_V9)))
def test_a_header_that_is_cut_off_is_malformed(size):
    with pytest.raises(MalformedFrame):
        read_request(METADATA_V9[:size], load_request_schema(3, 9))


def test_an_answer_s_header_is_checked():
    with pytest.raises(MalformedFrame):
        read_answer(b"\0\0\0\1\xff\xff\xff\xff\x0f", load_response_schema(3, 9))


def test_an_error_code_that_kio_does_not_know_is_malformed():
    with pytest.raises(MalformedFrame, match="HeartbeatResponse v0: 9999 is not a valid ErrorCode"):
        read_answer(struct.pack("!ih", 1, 9999), load_response_schema(12, 0))


def test_unknown_tagged_fields_are_skipped_wherever_they_are():
    """In the header, in an element of an array, at the end, and inside a known tagged field, whose size shrinks."""
    schema = load_response_schema(1, 12)
    leader = {"leader_id": 5, "leader_epoch": 6}
    partition = {"partition_index": 3, "current_leader": leader, "records": b"abc"}
    values = {"responses": [{"topic": "orders", "partitions": [partition]}]}
    entity = build(schema, values)
    plain = encode(schema.__header_schema__, {"correlation_id": 1}) + encode(schema, values)
    unknown = b"\x63\x02hi"  # tag 99 with two bytes
    inner = struct.pack("!ii", 5, 6)
    assert plain.count(inner + b"\0") == 1
    at = plain.index(inner)
    assert plain[at - 3 : at] == b"\x01\x01\x09"  # one tagged field of the partition, tag 1, of nine bytes
    tagged = plain[: at - 3] + b"\x02" + unknown + b"\x01" + bytes([9 + len(unknown)]) + inner + b"\x01" + unknown
    tagged += plain[at + 9 :]
    assert tagged.endswith(b"\0\0")  # the topic's, and the answer's
    tagged = tagged[:4] + b"\x01" + unknown + tagged[5:-2] + b"\x01" + unknown + b"\x02" + unknown + unknown
    assert check_frame(tagged, (schema.__header_schema__, schema), 100) == plain
    assert read_answer(tagged, schema) == entity


def test_what_is_well_formed_is_left_as_it_is():
    schema = load_request_schema(11, 9)
    frame = request_frame(11, 9, {"group_id": "g", "protocols": [{"name": "range", "metadata": b"x" * 300}]})
    assert check_frame(frame, (schema.__header_schema__, schema), 100) is frame


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**31, 2**32 - 1])
def test_numbers_are_written_as_kio_writes_them(value):
    from kio.serial.writers import write_unsigned_varint

    with io.BytesIO() as buffer:
        write_unsigned_varint(buffer, value)
        assert buffer.getvalue() == varint_bytes(value)


def test_every_message_of_kio_passes_as_it_is_written():
    """The walkers are made from the same fields as kio's readers; a zero of every message shows that they agree."""
    from kio.index import load_entity_schema
    from kio.schema.index import schema_name_map

    checked = 0
    for name, versions in schema_name_map.items():
        for version, kinds in versions.items():
            for kind in kinds:
                schema: Any = load_entity_schema(name, version, kind)
                buffer = io.BytesIO()
                try:
                    entity_writer(schema)(buffer, build(schema, {}))
                except (NotImplementedError, TypeError, AttributeError):
                    continue  # kio cannot write it
                data = buffer.getvalue()
                assert check_frame(data + b"rest", (schema,), 100) == data + b"rest"
                assert entity_reader(schema)(data, 0)[1] == len(data)
                if data:
                    with pytest.raises(MalformedFrame):
                        check_frame(data[:-1], (schema,), 100)
                checked += 1
    assert checked > 500


def test_the_bound_on_elements_counts_all_arrays_together():
    schema = load_request_schema(11, 9)
    frame = request_frame(11, 9, {"group_id": "g", "protocols": [{"name": "a"}, {"name": "b"}]})
    read_entities(frame, schema, 2)
    with pytest.raises(MalformedFrame, match="too many elements"):
        read_entities(frame, schema, 1)
