"""Decode records of __consumer_offsets from bytes, driven by record_schemas.py.

Given      a key and a value; a value of None is a tombstone
Returns    a GroupRecord, None for kinds that are not about consumer groups; MalformedBytes where bytes make no sense
Start at   decode_record
"""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass
from typing import Any

from rebalance_lab.harness.kafka.offsets_topic.record_schemas import KINDS, Field, ListOf, Struct, Type
from rebalance_lab.protocol_v1.common.errors import MalformedBytes

NUMBERS = {"int8": struct.Struct(">b"), "int32": struct.Struct(">i"), "int64": struct.Struct(">q")}
INT16 = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class GroupRecord:
    kind: str
    """Kafka's name of it, such as GroupMetadata."""
    key: dict[str, Any]
    value: dict[str, Any] | None
    """None: a tombstone."""

    @property
    def group(self) -> str:
        return str(self.key["group"])


def decode_record(key: bytes, value: bytes | None) -> GroupRecord | None:
    reader = Reader(key)
    number = reader.int16()
    kind = KINDS.get(number)
    if kind is None:
        return None
    decoded = reader.fields(kind.key, 0, flexible=False)
    if value is None:
        return GroupRecord(kind.name, decoded, None)
    reader = Reader(value)
    version = reader.int16()
    if not 0 <= version <= kind.newest:
        raise MalformedBytes(f"{kind.name} in version {version}: 0 to {kind.newest} are known")
    return GroupRecord(kind.name, decoded, reader.fields(kind.value, version, version >= kind.flexible_since))


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, length: int) -> bytes:
        if length < 0 or self.at + length > len(self.data):
            raise MalformedBytes(f"{length} bytes expected at byte {self.at} of {len(self.data)}")
        self.at += length
        return self.data[self.at - length : self.at]

    def int16(self) -> int:
        return int(INT16.unpack(self.take(2))[0])

    def number(self, type_: str) -> int:
        form = NUMBERS[type_]
        return int(form.unpack(self.take(form.size))[0])

    def varint(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise MalformedBytes(f"a length of more than five bytes at byte {self.at}")

    def length(self, flexible: bool, short: bool) -> int:
        """Read a length; -1 is null."""
        if flexible:
            return self.varint() - 1
        return self.int16() if short else self.number("int32")

    def fields(self, fields: tuple[Field, ...], version: int, flexible: bool) -> dict[str, Any]:
        present = [field for field in fields if field.since <= version <= field.until]
        found = {field.name: self.value(field.type, version, flexible) for field in present if field.tag is None}
        tagged = {field.tag: field for field in present if field.tag is not None}
        for _ in range(self.varint() if flexible else 0):
            tag, size = self.varint(), self.varint()
            inner, field = Reader(self.take(size)), tagged.get(tag)
            if field is not None:
                found[field.name] = inner.tagged_value(field, version)
        return found

    def tagged_value(self, field: Field, version: int) -> Any:
        if isinstance(field.type, Struct) and self.take(1) != b"\x01":  # nullable structs begin with whether they are
            return None
        return self.value(field.type, version, True)

    def value(self, type_: Type, version: int, flexible: bool) -> Any:
        match type_:
            case ListOf():
                count = self.length(flexible, short=False)
                if count > len(self.data):
                    raise MalformedBytes(f"a list of {count} items in {len(self.data)} bytes")
                return [self.value(type_.type, version, flexible) for _ in range(count)]
            case Struct():
                return self.fields(type_.fields, version, flexible)
            case "uuid":
                return base64.urlsafe_b64encode(self.take(16)).decode().rstrip("=")
            case "text":
                return self.text(self.length(flexible, short=True))
            case "bytes":
                length = self.length(flexible, short=False)
                return None if length < 0 else self.take(length)
            case _:
                return self.number(type_)

    def text(self, length: int) -> str | None:
        if length < 0:
            return None
        try:
            return self.take(length).decode()
        except UnicodeDecodeError:
            raise MalformedBytes(f"a string that is not UTF-8 before byte {self.at}") from None
