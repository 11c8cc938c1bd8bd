"""The broker's own assignors (KIP-848) in this process: the server-side counterpart of java_oracle.py.

A member's `owned` is its current target assignment. Topic ids go along, numbered as ours are where a topic has none.
"""

from __future__ import annotations

import base64
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

from rebalance_lab.assignors.broker.group_view import topic_ids
from rebalance_lab.assignors.model import Group, Member
from tests.conformance.java_oracle import Answer, Batch, start_jvm

KINDS = {"consumer/uniform": 0, "consumer/range": 1}
WORD = 0xFFFF_FFFF


def java_server_answers(cases: Iterable[tuple[str, Group, bool]]) -> list[Answer]:
    jpype = start_jvm()
    batch = ServerBatch()
    for strategy, group, _ in cases:
        batch.add_group(KINDS[strategy], group)
    oracle = jpype.JClass("ServerOracle")(*batch.arguments(jpype))
    numbers = array("i", bytes(memoryview(oracle.answers())))
    return batch.read(numbers, [str(name) for name in oracle.exceptions()])


class ServerBatch(Batch):
    def add_group(self, kind: int, group: Group) -> None:
        self.groups += 1
        ints, text = self.ints, self.text
        ints += (kind, len(group.topics))
        for name, (most, least) in zip(group.layout.names, topic_ids(group), strict=True):
            ints += (text(name), group.topics[name].partitions)
            ints += [signed(word) for half in (most, least) for word in (half >> 32 & WORD, half & WORD)]
        ints.append(len(group.members))
        for member_id, member in group.members.items():
            ints += (text(member_id), text(member.instance_id), len(member.topics))
            ints += map(text, member.topics)
            ints.append(len(member.owned))
            for name, partitions in member.owned.items():
                ints += (text(name), len(partitions))
                ints += partitions


def signed(word: int) -> int:
    return word - (1 << 32) if word >= 1 << 31 else word


def as_target_assignments(rng: Random, group: Group) -> Group:
    """A random group as a broker could hold it: sets without negative numbers, topics with real ids half of the time,
    and most of the time no partition with two owners."""
    topics = group.topics
    if rng.random() < 0.5:
        ids = [encoded_id(rng) for _ in topics]
        topics = {name: replace(topic, id=i) for (name, topic), i in zip(topics.items(), ids, strict=True)}
    taken: set[tuple[str, int]] | None = set() if rng.random() < 0.9 else None
    members = {member_id: without_repeats(member, taken) for member_id, member in group.members.items()}
    return Group(topics, members)


def without_repeats(member: Member, taken: set[tuple[str, int]] | None) -> Member:
    owned: Mapping[str, Sequence[int]] = {
        name: list(dict.fromkeys(p for p in partitions if 0 <= p < 1000 and not (taken and (name, p) in taken)))
        for name, partitions in member.owned.items()
    }
    owned = {name: partitions for name, partitions in owned.items() if partitions}
    if taken is not None:
        taken.update((name, p) for name, partitions in owned.items() for p in partitions)
    return replace(member, owned=owned)


def encoded_id(rng: Random) -> str:
    return base64.urlsafe_b64encode(rng.randbytes(16)).decode().rstrip("=")
