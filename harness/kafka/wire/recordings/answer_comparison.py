"""Compare what a broker and our coordinator answered to the same requests, field by field.

Given      a recording and its replay
Returns    a Difference for every field that is not equal, with the path; those that are explained carry a name
Order      topics and partitions of an assignment are sets in Kafka. So are the groups of a view, which come from
           several partitions of __consumer_offsets
Time       a parked request must be answered at about the same moment
Start at   differences
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rebalance_lab.assignors.json_contract import at, shown
from rebalance_lab.harness.kafka.wire.recordings.explained import explanation_of
from rebalance_lab.harness.kafka.wire.recordings.recording import Recording
from rebalance_lab.harness.kafka.wire.recordings.replay import Replay, answers_of

LATENESS_MS = 400
"""How far apart the two may answer; a loaded machine is slow, and timers are seconds."""
UNORDERED = ("topic_partitions", "topics", "partitions", "subscribed_topic_names", "groups")
NAMED_BY = ("topic_name", "name", "group_id", "partition_index")
ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    step: str
    path: str
    broker: Any
    ours: Any
    explained: str | None = None

    def __str__(self) -> str:
        why = f" ({self.explained})" if self.explained else ""
        return f"{self.step}: {self.path}: the broker says {shown(self.broker)}, our machine {shown(self.ours)}{why}"


def differences(recording: Recording, replayed: Replay) -> tuple[list[Difference], int]:
    """Return the differences, and how many answers were compared."""
    ours, sure_until_ms = answers_of(replayed.transcript), replayed.sure_until_ms
    patience_ms = LATENESS_MS + 2 * recording.stall_ms
    found, compared = [], 0
    for name in recording.sent_ms:
        theirs_at, theirs = recording.answers.get(name, (sure_until_ms, None))
        ours_at, mine = ours.get(name, (sure_until_ms, None))
        if recording.sent_ms[name] >= sure_until_ms or max(theirs_at, ours_at) >= sure_until_ms + patience_ms:
            continue
        if min(theirs_at, ours_at) >= sure_until_ms:
            continue
        compared += 1
        if abs(theirs_at - ours_at) > patience_ms:
            found.append(Difference(step=name, path="at_ms", broker=theirs_at, ours=ours_at))
        found += [
            Difference(step=name, path=path, broker=b, ours=o, explained=explanation_of(path, b, o))
            for path, b, o in unequal(theirs, mine, "body")
        ]
    return found, compared


def unequal(broker: Any, ours: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    broker, ours = in_order(broker, path), in_order(ours, path)
    if broker != ours and explanation_of(path, broker, ours) is not None:
        yield path, broker, ours  # as a whole, where a whole is explained
    elif isinstance(broker, dict) and isinstance(ours, dict):
        for key in dict.fromkeys((*broker, *ours)):
            yield from unequal(broker.get(key, ABSENT), ours.get(key, ABSENT), at(path, key))
    elif isinstance(broker, list) and isinstance(ours, list) and len(broker) == len(ours):
        for i, (theirs, mine) in enumerate(zip(broker, ours, strict=True)):
            yield from unequal(theirs, mine, at(path, i))
    elif broker != ours or type(broker) is not type(ours):
        yield path, broker, ours


def in_order(value: Any, path: str) -> Any:
    if not isinstance(value, list) or not path.endswith(UNORDERED):
        return value
    return sorted(value, key=named)


def named(item: Any) -> tuple[bool, Any]:
    """Return what an entry of such a list is sorted by: a text, or a number."""
    if isinstance(item, dict):
        item = next((item[key] for key in NAMED_BY if key in item), "")
    return isinstance(item, str), item
