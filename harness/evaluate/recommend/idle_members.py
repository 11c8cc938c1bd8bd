"""Count the members that get no partition, whatever the strategy: there are more of them than partitions.

Method     match each member to a partition of a topic that it subscribes to, along augmenting paths
Start at   idle_members
"""

from __future__ import annotations

from collections import deque

from rebalance_lab.assignors.model import Group


def idle_members(group: Group) -> int:
    """Return how many members no assignment can give a partition."""
    holders: dict[str, list[str]] = {topic: [] for topic in group.topics}
    return sum(not find_partition(group, name, holders) for name in group.members)


def find_partition(group: Group, name: str, holders: dict[str, list[str]]) -> bool:
    """Find a partition for one more member; other members may have to go over to another of their topics."""
    came_from: dict[str, tuple[str | None, str]] = {}
    """By topic: from which topic a member comes, and which member."""
    queue: deque[str] = deque()

    def reach(mover: str, left: str | None) -> None:
        for topic in group.members[mover].topics:
            if topic in holders and topic not in came_from:
                came_from[topic] = (left, mover)
                queue.append(topic)

    reach(name, None)
    while queue:
        topic: str | None = queue.popleft()
        assert topic is not None
        if len(holders[topic]) < group.topics[topic].partitions:
            while topic is not None:
                left, mover = came_from[topic]
                holders[topic].append(mover)
                if left is not None:
                    holders[left].remove(mover)
                topic = left
            return True
        for holder in holders[topic]:
            reach(holder, topic)
    return False
