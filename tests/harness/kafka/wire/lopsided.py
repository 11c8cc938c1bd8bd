"""An assignor that no other client has: everybody gets one partition, and the last by member id gets all the rest."""

from __future__ import annotations

from typing import Any


class Lopsided:
    name = "range"  # what the other clients list, so that the group can choose it

    def assign(self, group: Any) -> dict[str, dict[str, list[int]]]:
        (topic,) = group.topics
        members = sorted(group.members)
        last = len(members) - 1
        shares = {member: {topic: [number]} for number, member in enumerate(members[:-1])}
        return {**shares, members[-1]: {topic: list(range(last, group.topics[topic].partitions))}}
