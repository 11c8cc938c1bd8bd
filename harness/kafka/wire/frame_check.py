"""Check a frame against its schema before kio reads it: kio allocates an array before it looks for the elements.

Given      a frame, and the entity classes of kio that follow each other in it (a header and a body)
Returns    the frame without the tagged fields that the schemas do not know; kio raises KeyError for those
Errors     MalformedFrame in one line: a length beyond the frame, null where there is none, too many elements
Method     each entity class becomes one walker, made of its fields' types and kept. A walker moves a position and
           builds nothing, so that a frame costs no more memory than it has bytes
Left to kio  the values themselves: UTF-8, booleans, error codes (frame_reader.py)
Start at   check_frame
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeAlias, cast, get_args, get_origin, get_type_hints

FIXED_SIZES = {
    "bool": 1, "int8": 1, "int16": 2, "uint16": 2, "error_code": 2, "int32": 4, "uint32": 4, "timedelta_i32": 4,
    "int64": 8, "uint64": 8, "float64": 8, "timedelta_i64": 8, "datetime_i64": 8, "uuid": 16,
}  # fmt: skip
"""Bytes of each of kio's types that has a fixed size."""
LEGACY_PREFIXES = {"string": 2, "bytes": 4, "records": 4}
"""Bytes of the length that precedes a value, where the message is not flexible."""
ARRAY_PREFIX = 4
VARINT_BYTES = 5
SMALLEST_TAGGED_FIELD = 2
"""A tag and a size."""


class MalformedFrame(ValueError):
    """The frame does not hold what its schema says; the message is one line."""


class Walker(NamedTuple):
    """Move over a value; `least` is the fewest bytes that a value takes, and `size` what every value takes."""

    walk: Walk
    least: int
    size: int | None = None


@dataclass(slots=True)
class Frame:
    """Hold a frame, how many elements it may still have, and what is to be replaced in it."""

    data: bytes
    elements_left: int
    patches: list[tuple[int, int, bytes]] = field(default_factory=list)
    """From where to where, and what stands there instead."""

    def skip(self, at: int, size: int) -> int:
        if size > len(self.data) - at:
            raise MalformedFrame(f"{size} bytes are announced at byte {at}, {max(0, len(self.data) - at)} are left")
        return at + size

    def integer(self, at: int, size: int) -> int:
        end = self.skip(at, size)
        return int.from_bytes(self.data[at:end], signed=True)

    def varint(self, at: int) -> tuple[int, int]:
        """Return an unsigned number of at most 32 bits, and the position behind it."""
        data, value = self.data, 0
        for place in range(VARINT_BYTES):
            if at + place >= len(data):
                raise MalformedFrame(f"the frame ends within the number at byte {at}")
            byte = data[at + place]
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                if value >= 1 << 32:
                    break
                return value, at + place + 1
        raise MalformedFrame(f"the number at byte {at} has more than 32 bits")

    def count(self, at: int, elements: int, least: int) -> None:
        """Refuse more elements than the frame has room for; an element without bytes counts as one byte."""
        left = len(self.data) - at
        if elements * max(1, least) > left:
            raise MalformedFrame(f"{elements} elements are announced at byte {at}, {left} bytes are left")
        self.elements_left -= elements
        if self.elements_left < 0:
            raise MalformedFrame(f"the frame has too many elements at byte {at}")

    def patched(self) -> bytes:
        if not self.patches:
            return self.data
        pieces, at = [], 0
        for start, end, instead in sorted(self.patches):
            pieces += [self.data[at:start], instead]
            at = end
        return b"".join((*pieces, self.data[at:]))


Walk: TypeAlias = Callable[[Frame, int], int]


def check_frame(data: bytes, schemas: tuple[type[Any], ...], max_elements: int) -> bytes:
    """Walk over the frame by these schemas; bytes behind the last one are as they are."""
    frame, at = Frame(data, max_elements), 0
    for schema in schemas:
        at = walker_of(cast(Hashable, schema)).walk(frame, at)
    return frame.patched()


@cache
def walker_of(schema: Hashable) -> Walker:
    """Make the walker of an entity class."""
    kind = cast(type[Any], schema)
    hints = get_type_hints(kind)
    plain: list[Walker] = []
    tagged: dict[int, Walker] = {}
    for each in fields(kind):
        if "tag" in each.metadata:
            # A tagged field that is there is not null; kio reads it so.
            tagged[each.metadata["tag"]] = field_walker(kind, each, without_null(hints[each.name]))
        else:
            plain.append(field_walker(kind, each, hints[each.name]))
    if kind.__flexible__:
        plain.append(Walker(tagged_fields_walk(tagged), 1))
    return sequence_walker(plain)


def field_walker(kind: type[Any], each: Field[Any], hint: Any) -> Walker:
    flexible, bare = bool(kind.__flexible__), without_null(hint)
    nullable = bare is not hint
    if kind.__name__ == "RequestHeader" and each.name == "client_id":
        flexible = False  # as Kafka's own schema has it, in every version of the header
    if get_origin(bare) is tuple:
        item = get_args(bare)[0]
        element = (
            walker_of(cast(Hashable, item))
            if is_dataclass(item)
            else value_walker(each.metadata["kafka_type"], flexible, False)
        )
        return array_walker(element, flexible, nullable)
    if is_dataclass(bare):
        entity = walker_of(cast(Hashable, bare))
        return nullable_walker(entity) if nullable else entity
    return value_walker(each.metadata["kafka_type"], flexible, nullable)


def without_null(hint: Any) -> Any:
    if get_origin(hint) is UnionType:
        return next(choice for choice in get_args(hint) if choice is not NoneType)
    return hint


def sequence_walker(parts: list[Walker]) -> Walker:
    """Walk over values one after the other; neighbours of fixed size are one step."""
    least = sum(part.least for part in parts)
    if all(part.size is not None for part in parts):
        return fixed_walker(least)
    steps: list[Walk] = []
    run = 0
    for part in parts:
        if part.size is not None:
            run += part.size
            continue
        if run:
            steps.append(fixed_walker(run).walk)
            run = 0
        steps.append(part.walk)
    if run:
        steps.append(fixed_walker(run).walk)

    def walk(frame: Frame, at: int) -> int:
        for step in steps:
            at = step(frame, at)
        return at

    return Walker(walk, least)


def fixed_walker(size: int) -> Walker:
    return Walker(lambda frame, at: frame.skip(at, size), size, size)


def value_walker(kafka_type: str, flexible: bool, nullable: bool) -> Walker:
    if kafka_type in FIXED_SIZES:
        return fixed_walker(FIXED_SIZES[kafka_type])
    prefix = LEGACY_PREFIXES[kafka_type]

    def walk(frame: Frame, at: int) -> int:
        size, at = length(frame, at, flexible, prefix, nullable)
        return at if size is None else frame.skip(at, size)

    return Walker(walk, 1 if flexible else prefix)


def array_walker(element: Walker, flexible: bool, nullable: bool) -> Walker:
    def walk(frame: Frame, at: int) -> int:
        elements, at = length(frame, at, flexible, ARRAY_PREFIX, nullable)
        if elements is None:
            return at
        frame.count(at, elements, element.least)
        if element.size is not None:
            return frame.skip(at, elements * element.size)
        for _ in range(elements):
            at = element.walk(frame, at)
        return at

    return Walker(walk, 1 if flexible else ARRAY_PREFIX)


def length(frame: Frame, at: int, flexible: bool, prefix: int, nullable: bool) -> tuple[int | None, int]:
    """Read a length that precedes a value; None stands for null."""
    if flexible:
        found, behind = frame.varint(at)
        found -= 1
    else:
        found, behind = frame.integer(at, prefix), at + prefix
    if found >= 0:
        return found, behind
    if found < -1 or not nullable:
        raise MalformedFrame(f"length {found} at byte {at}")
    return None, behind


def nullable_walker(entity: Walker) -> Walker:
    """KIP-893: a byte before an entity says whether it is there."""

    def walk(frame: Frame, at: int) -> int:
        marker = frame.integer(at, 1)
        if marker not in (-1, 1):
            raise MalformedFrame(f"marker {marker} of an entity that may be null, at byte {at}")
        return entity.walk(frame, at + 1) if marker == 1 else at + 1

    return Walker(walk, 1)


def tagged_fields_walk(known: dict[int, Walker]) -> Walk:
    def walk(frame: Frame, at: int) -> int:
        start, unknown = at, 0
        tags, at = frame.varint(at)
        if not tags:
            return at
        frame.count(at, tags, SMALLEST_TAGGED_FIELD)
        behind = at
        for _ in range(tags):
            first = at
            tag, at = frame.varint(at)
            size_at = at
            size, at = frame.varint(at)
            end = frame.skip(at, size)
            if tag in known:
                walk_tagged(frame, known[tag], size_at, at, end)
            else:
                unknown += 1
                frame.patches.append((first, end, b""))
            at = end
        if unknown:
            frame.patches.append((start, behind, varint_bytes(tags - unknown)))
        return at

    return walk


def walk_tagged(frame: Frame, value: Walker, size_at: int, at: int, end: int) -> None:
    """Walk over the value of a tagged field, whose size is announced, and shrinks with what is left out of it."""
    so_far = len(frame.patches)
    if value.walk(frame, at) != end:
        raise MalformedFrame(f"a tagged field at byte {at} has another size than the {end - at} bytes announced")
    saved = sum(stop - start - len(instead) for start, stop, instead in frame.patches[so_far:])
    if saved:
        frame.patches.append((size_at, at, varint_bytes(end - at - saved)))


def varint_bytes(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))
