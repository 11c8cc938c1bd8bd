"""List the known differences between Kafka 4.3.1 and our coordinator, with the reason; no other field may differ.

An entry is a name, the fields it is about, and when it applies. It must say why we do not follow Kafka there.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rebalance_lab.protocol_v1.common.consumer_protocol import Assignment, decode_assignment
from rebalance_lab.protocol_v1.common.errors import MalformedBytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    name: str
    kafka: str
    """The version it was seen with."""
    field: str
    """A regular expression for the path."""
    applies: Callable[[Any, Any], bool] = lambda broker, ours: True
    """Given what the broker says and what we say."""


def both_are_texts(broker: Any, ours: Any) -> bool:
    return isinstance(broker, str) and isinstance(ours, str)


def gone_or_empty(broker: Any, ours: Any) -> bool:
    both = isinstance(broker, dict) and isinstance(ours, dict)
    return both and broker["error_code"] == "GROUP_ID_NOT_FOUND" and ours.get("group_state") == "Empty"


def shown_or_dead(broker: Any, ours: Any) -> bool:
    both = isinstance(broker, dict) and isinstance(ours, dict)
    return both and ours.get("group_state") == "Dead" and broker.get("group_state") not in (None, "Dead")


def same_partitions(broker: Any, ours: Any) -> bool:
    """Tell whether two texts are bytes of the same assignment, with its topics in another order."""
    if not isinstance(broker, str) or not isinstance(ours, str):
        return False
    try:
        first, second = (decode_assignment(base64.b64decode(text)) for text in (broker, ours))
    except (MalformedBytes, ValueError):
        return False
    return sorted_partitions(first) == sorted_partitions(second) and first.user_data == second.user_data


def sorted_partitions(assignment: Assignment) -> dict[str, list[int]]:
    return {topic: sorted(numbers) for topic, numbers in assignment.assigned_partitions.items()}


EXPLAINED: tuple[Explained, ...] = (
    # For people: clients act on the code, which is compared. Ours say the same in our own words.
    Explained(name="wording", kafka="4.3.1", field=r"\.error_message$", applies=both_are_texts),
    # A JoinGroup with a foreign member id makes Kafka drop an empty consumer group from memory without a record. Views
    # read the last committed state, so they show the group until anybody's next write to the same partition of
    # __consumer_offsets: that depends on groups that a sequence knows nothing of. Ours goes on showing it.
    Explained(name="a forgotten group", kafka="4.3.1", field=r"body\.groups\[\d+\]$", applies=gone_or_empty),
    # A commit that is refused for its metadata alone makes a group without a record. Views show it from the next write
    # to the same partition of __consumer_offsets on, which may be of a group that a sequence knows nothing of.
    Explained(name="a group without a record", kafka="4.3.1", field=r"body\.groups\[\d+\]$", applies=shown_or_dead),
    # Two topic ids in one bucket of a HashMap stand in the order in which they got there. Ours forgets that order when
    # a group is upgraded. Members read an assignment as a set.
    Explained(name="topics in one bucket", kafka="4.3.1", field=r"assignment$", applies=same_partitions),
)


def explanation_of(path: str, broker: Any, ours: Any) -> str | None:
    for entry in EXPLAINED:
        if re.search(entry.field, path) and entry.applies(broker, ours):
            return f"{entry.name}, Kafka {entry.kafka}"
    return None
