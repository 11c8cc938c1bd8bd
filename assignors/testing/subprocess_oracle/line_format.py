"""Encode what goes to another process and back: a group as bytes, an answer as a digest, both in lines.

The module imports next to nothing, not even json.

Cost       a group as bytes is a tenth of what drawing it again over there would cost. A process that has to start for
           some hundred groups mostly costs what it imports
Start at   pack, digest
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

from rebalance_lab.assignors.model import EMPTY, NOBODY, Assignment, Group, Member, Topic


def pack(group: Group) -> bytes:
    """Encode a group as drawn: what only real members have (user data, a generation of its own in it) is left out."""
    topics = [(name, t.partitions, t.racks, t.load, t.id) for name, t in group.topics.items()]
    members = [
        (member_id, m.topics, dict(m.owned) if m.owned else None, m.generation, m.instance_id, m.rack, m.capacity)
        for member_id, m in group.members.items()
    ]
    return marshal.dumps((topics, members))


def unpack(packed: bytes) -> Group:
    topics, members = marshal.loads(packed)
    return Group(
        {name: Topic(partitions, racks, load, topic_id) for name, partitions, racks, load, topic_id in topics},
        {
            member_id: Member(subscribed, owned or EMPTY, generation, instance_id, rack, capacity)
            for member_id, subscribed, owned, generation, instance_id, rack, capacity in members
        },
    )


def to_line(value: Any) -> bytes:
    return marshal.dumps(value).hex().encode() + b"\n"


def from_line(line: bytes) -> Any:
    return marshal.loads(bytes.fromhex(line.decode()))


def materialised(answer: Any) -> Any:
    """Turn our own compact answers into plain mappings; that work is part of giving an answer, so it counts as such."""
    if isinstance(answer, Assignment):
        return {member_id: dict(share) for member_id, share in answer.items()}
    return answer


def owners_of(group: Group, answer: Mapping[str, Mapping[str, Sequence[int]]]) -> list[int]:
    """Return per partition the position of the member that got it, for answers that need no checks. What is no answer
    to this group raises, or differs from a valid one.
    """
    layout = group.layout
    owners = [NOBODY] * layout.total
    position_of = {member_id: position for position, member_id in enumerate(group.members)}
    start_of = dict(zip(layout.names, layout.starts, strict=True))
    for member_id, share in answer.items():
        for topic, partitions in share.items():
            for partition in partitions:
                owners[start_of[topic] + partition] = position_of[member_id]
    return owners


def digest(owners: list[int]) -> int:
    """Return one number for the owners of all partitions. Marshal's second version writes equal values alike, however
    often they are referred to.
    """
    return crc32(marshal.dumps(owners, 2))
