"""Make hostile frames of a seed: random bytes, valid messages, and valid messages that were changed.

Given      a seed, and which side sends: "request" for clients, "answer" for brokers
Returns    frames of every API and version that the served coordinator offers, and that our clients ask for
Speed      a few valid messages of each version are kept and changed again and again; now and then a new one comes
Start at   FrameSource.next_frame
"""

from __future__ import annotations

import struct
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode

from rebalance_lab.harness.kafka.wire.broker_connection import encode_request, encoded
from rebalance_lab.harness.kafka.wire.served.server import served_versions
from rebalance_lab.protocol_v1.common.consumer_protocol import (
    Assignment,
    Subscription,
    encode_assignment,
    encode_subscription,
)

REQUEST, ANSWER = "request", "answer"
SAMPLES_KEPT = 6
NEW_SAMPLE = 0.1
MAX_FRAME = 60_000
GROUPS = ("g", "h", "classic", "consumer", "größer", "", "x" * 200)
TOPICS = ("orders", "clicks", "nowhere", "", "__consumer_offsets", "y" * 249)
ASSIGNORS = ("consumer", "range", "uniform", "cooperative-sticky")
TEXTS = (*ASSIGNORS, "pod-a", "", "127.0.0.1", "orders|clicks", "(a{9}){9}", "[")
SECONDS = (0.0, 0.001, 0.1, 1.0, 6.0, 30.0, -0.001, 2_147_483.647)
EPOCHS = (0, 0, 0, 1, 1, 2, 3, -1)
TIMEOUTS = (timedelta(seconds=0.3), timedelta(seconds=1))
LIKELY: dict[str, tuple[Any, ...]] = {
    "group_instance_id": (None, None, None, "pod-a"),
    "protocol_type": ("consumer",),
    "protocol_name": ("range", None),
    "session_timeout": TIMEOUTS,
    "rebalance_timeout": TIMEOUTS,
    "generation_id": EPOCHS,
    "generation_id_or_member_epoch": EPOCHS,
    "member_epoch": EPOCHS,
    "server_assignor": (None, "uniform", "range"),
    "subscribed_topic_names": (("orders",), ("orders", "clicks"), ("orders",), None),
    "subscribed_topic_regex": (None, None, "orders|clicks", "o.*", "(a{9}){9}"),
    "topic_partitions": ((), (), None),
}
"""What members really send: otherwise hardly any request would be granted. None stands where a field may be null."""
USUAL = 0.9
SIZES = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}
MOST = b"\xff\xff\xff\xff\x0f"
"""The largest number that a varint of 32 bits holds."""
VARINTS = (b"\x00", b"\x01", b"\x7f", b"\xff\x01", b"\xff\xff\xff\xff\x07", MOST, b"\xff" * 5, b"\xff" * 12)
UNKNOWN_TAGS = (b"\x01\x63\x02hi", b"\x01" + MOST + b"\x00", b"\x02\x00\x00\x01\x00", b"\x01\x05" + MOST)


@dataclass(frozen=True, slots=True)
class HostileFrame:
    side: str
    key: int
    version: int
    data: bytes

    def line(self) -> str:
        return f"{self.side} {self.key} {self.version} {self.data.hex()}"

    @classmethod
    def from_line(cls, line: str) -> HostileFrame:
        side, key, version, *data = line.split()
        return cls(side, int(key), int(version), bytes.fromhex("".join(data)))


@dataclass(slots=True)
class Known:
    """What a client has learned: with it frames reach more than the checks at the door."""

    member_ids: deque[str] = field(default_factory=lambda: deque(["m-1", "m-2", ""], maxlen=30))
    topic_ids: list[uuid.UUID] = field(default_factory=lambda: [uuid.UUID(int=7)])


class FrameSource:
    def __init__(self, side: str, seed: int, known: Known | None = None) -> None:
        self.side, self.known = side, known or Known()
        self.random = Random(f"{side} {seed}")
        self.versions = [(key, v) for key, (low, high) in served_versions().items() for v in range(low, high + 1)]
        self.samples: dict[tuple[int, int], list[bytes]] = {each: [] for each in self.versions}
        self.changes: list[Callable[[bytearray], bytearray]] = [
            self.flip, self.flip, self.truncate, self.extend, self.set_length, self.set_length, self.set_varint,
            self.set_varint, self.add_tags, self.splice, self.remove, self.other_version,
        ]  # fmt: skip

    def next_frame(self) -> HostileFrame:
        return self.frame_of(*self.random.choice(self.versions))

    def frame_of(self, key: int, version: int) -> HostileFrame:
        """Return a frame for this version, or what is left of one."""
        random = self.random
        kind = random.random()
        if kind < 0.1:
            data = self.header(key, version) + random.randbytes(random.randrange(60))
        elif kind < 0.12:
            data = random.randbytes(random.randrange(60))
        else:
            data = self.sample(key, version)
            if kind > 0.35:
                data = self.changed(data)
        return HostileFrame(self.side, key, version, data[:MAX_FRAME])

    def header(self, key: int, version: int) -> bytes:
        if self.side == ANSWER:
            return struct.pack("!i", self.random.randrange(1, 5))
        return struct.pack("!hhih", key, version, self.random.randrange(1, 1_000), 2) + b"me" + b"\0" * (version > 2)

    def sample(self, key: int, version: int) -> bytes:
        samples = self.samples[key, version]
        if not samples or self.random.random() < NEW_SAMPLE:
            samples.append(self.valid(key, version))
            del samples[:-SAMPLES_KEPT]
        return self.random.choice(samples)

    def valid(self, key: int, version: int) -> bytes:
        if self.side == REQUEST:
            request = self.entity(load_request_schema(key, version))
            return encode_request(request, self.random.randrange(1, 1_000), self.random.choice(("me", "", "größer")))
        answer: Any = self.entity(load_response_schema(key, version))
        header: Any = type(answer).__header_schema__
        return encoded(header(correlation_id=self.random.randrange(1, 5))) + encoded(answer)

    # Valid messages

    def entity(self, kind: type[Any]) -> Any:
        return kind(**{each.name: self.value(hint, each.name, each.metadata) for each, hint in described(kind)})

    def value(self, hint: Any, name: str, metadata: Any) -> Any:
        random = self.random
        if name in LIKELY and random.random() < USUAL:
            choices = [each for each in LIKELY[name] if each is not None or get_origin(hint) is UnionType]
            return random.choice(choices)
        return self.any_value(hint, name, metadata)

    def any_value(self, hint: Any, name: str, metadata: Any) -> Any:
        random = self.random
        if get_origin(hint) is UnionType:
            if random.random() < 0.25 and "tag" not in metadata:
                return None
            hint = next(choice for choice in get_args(hint) if choice is not NoneType)
        if get_origin(hint) is tuple:
            size = 800 if random.random() < 0.001 else random.randrange(4)
            return tuple([self.any_value(get_args(hint)[0], name, metadata) for _ in range(size)])
        if is_dataclass(hint):
            return self.entity(hint)  # type: ignore[arg-type]
        if hint is uuid.UUID:
            return random.choice(self.known.topic_ids)
        if hint is ErrorCode:
            return random.choice(list(ErrorCode)) if random.random() < 0.3 else ErrorCode.none
        if issubclass(hint, timedelta):
            return timedelta(seconds=random.choice(SECONDS))
        if issubclass(hint, datetime):
            return datetime.fromtimestamp(1_000_000_000, UTC)
        if issubclass(hint, bool):
            return random.random() < 0.5
        if issubclass(hint, str):
            return self.text(name)
        if issubclass(hint, bytes):
            return self.some_bytes(name)
        return self.number(metadata["kafka_type"])

    def text(self, name: str) -> str:
        if "group" in name and "instance" not in name:
            return (
                self.random.choice(GROUPS[: self.random.randrange(1, len(GROUPS) + 1)])
                if self.random.random() < 0.95
                else f"g-{self.random.randrange(10**6)}"
            )
        if "member_id" in name:
            return self.random.choice(self.known.member_ids)
        if name == "name" and self.random.random() < 0.5:
            return "range"  # of a protocol; topics have the same field
        if "topic" in name or name == "name":
            return self.random.choice(TOPICS + TEXTS[:3])
        return self.random.choice(TEXTS)

    def some_bytes(self, name: str) -> bytes:
        random = self.random
        if "records" in name:
            return b"".join(self.batch() for _ in range(random.randrange(3)))
        kind = random.random()
        if kind < 0.4:
            return encode_subscription(Subscription(topics=tuple(random.choices(TOPICS, k=random.randrange(3)))))
        if kind < 0.6:
            return encode_assignment(Assignment(assigned_partitions={"orders": (0, 1)}), 1)
        return random.randbytes(random.randrange(40))

    def batch(self) -> bytes:
        body = self.random.randbytes(self.random.randrange(34, 100))
        delta = self.random.choice((0, 0, 1, 5, 2**31 - 1))
        return struct.pack("!qiibIhi", self.number("int64"), 15 + len(body), 0, 2, 0, 0, delta) + body

    def number(self, kafka_type: str) -> Any:
        if kafka_type == "float64":
            return 0.5
        if self.random.random() < 0.8:
            return self.random.randrange(5) - (not kafka_type.startswith("u") and self.random.random() < 0.2)
        bits = SIZES[kafka_type]
        if kafka_type.startswith("u"):
            return self.random.choice((2**bits - 1, 2 ** (bits - 1)))
        return self.random.choice((2 ** (bits - 1) - 1, -(2 ** (bits - 1)), -2, 100))

    # What a hostile peer makes of them

    def changed(self, data: bytes) -> bytes:
        found = bytearray(data)
        for _ in range(self.random.choice((1, 1, 1, 2, 4))):
            found = self.random.choice(self.changes)(found)
        return bytes(found)

    def place(self, data: bytearray) -> int:
        """Seldom a place in the header: behind it is more to be broken."""
        first = 8 if len(data) > 8 and self.random.random() < 0.9 else 0
        return self.random.randrange(first, len(data)) if data else 0

    def flip(self, data: bytearray) -> bytearray:
        for _ in range(self.random.randrange(1, 4) if data else 0):
            data[self.place(data)] ^= 1 << self.random.randrange(8)
        return data

    def truncate(self, data: bytearray) -> bytearray:
        return data[: self.place(data)]

    def extend(self, data: bytearray) -> bytearray:
        return data + self.random.randbytes(self.random.randrange(1, 50))

    def set_length(self, data: bytearray) -> bytearray:
        at, form = self.place(data), self.random.choice(("!h", "!i"))
        most = 2 ** (8 * struct.calcsize(form) - 1) - 1
        length = self.random.choice((most, -most - 1, -1, -2, 0, 1, 100, len(data), len(data) - at))
        new = struct.pack(form, min(most, length))
        data[at : at + len(new)] = new
        return data

    def set_varint(self, data: bytearray) -> bytearray:
        at = self.place(data)
        data[at : at + self.random.randrange(2)] = self.random.choice(VARINTS)
        return data

    def add_tags(self, data: bytearray) -> bytearray:
        """In the place of an empty byte, which often is where tagged fields begin."""
        places = [at for at in range(4, len(data)) if data[at] == 0][-40:]
        if places:
            at = self.random.choice(places)
            data[at : at + 1] = self.random.choice(UNKNOWN_TAGS)
        return data

    def splice(self, data: bytearray) -> bytearray:
        other = self.sample(*self.random.choice(self.versions))
        return data[: self.place(data)] + other[self.random.randrange(len(other) + 1) :]

    def remove(self, data: bytearray) -> bytearray:
        at = self.place(data)
        del data[at : at + self.random.randrange(1, 9)]
        return data

    def other_version(self, data: bytearray) -> bytearray:
        if self.side == REQUEST:
            data[2:4] = struct.pack("!h", self.random.choice((0, 1, 2, 3, 9, 12, 99, -1)))
        return data


@cache
def described(kind: type[Any]) -> list[tuple[Any, Any]]:
    hints = get_type_hints(kind)
    return [(each, hints[each.name]) for each in fields(kind)]
