"""Keep the coordinator's log as compaction leaves it: a group's records in order, and the last commit of each offset.

Why        a run of an hour commits each partition hundreds of times; the next coordinator reads only the last of them
Start at   Log.append; a new coordinator iterates over the log
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rebalance_lab.protocol_v1.coordinator.state.records import OffsetCommit, OffsetTombstone


class Log:
    __slots__ = ("_groups", "_offsets")

    def __init__(self) -> None:
        self._groups: list[Any] = []
        self._offsets: dict[tuple[str, str, int], OffsetCommit] = {}

    def append(self, records: Iterable[Any]) -> None:
        for record in records:
            if isinstance(record, OffsetCommit):
                self._offsets[record.group, record.topic, record.partition] = record
            elif isinstance(record, OffsetTombstone):
                self._offsets.pop((record.group, record.topic, record.partition), None)
            else:
                self._groups.append(record)

    def forget(self, topic: str) -> None:
        """Forget a deleted topic, whose offsets the coordinator deletes; also where the topic goes while there is no
        coordinator. (Then Kafka's offsets stay, and a reader of a new topic of that name begins there if it is as long
        by then.)
        """
        self._offsets = {key: record for key, record in self._offsets.items() if key[1] != topic}

    def __iter__(self) -> Iterator[Any]:
        yield from self._groups
        yield from self._offsets.values()
