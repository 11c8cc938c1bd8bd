"""Collect a trace: an append-only list of facts in order of time, kept as JSON lines. Live runs write the same.

run          the run that this trace is of: scenario, strategy, seed
event        an event of the timeline happens
process      a member's process: started, closing, closed, killed, paused, resumed, cut off, connected, stalled, failed
group        the group's state as the coordinator says it, with generation or epoch, and the reason
callback     onPartitionsRevoked, -Lost, -Assigned, when it begins, and how long it takes
reads        from now on this process reads these partitions, from these offsets on; `removed` where the coordinator no
             longer counts it
stops        it no longer does; the offsets it had reached
committed    a process hears that its offsets were committed (those of the auto-commit's interval are left out)
durable      not kept: offsets were made durable
expired      the coordinator has deleted these committed offsets: the next reader begins at the beginning
asks         not kept, and only if a caller wants messages: a request comes to the coordinator's broker
answers      likewise: the broker answers a request
timer        likewise: a timer of the coordinator goes off
removed      the coordinator no longer counts this process, which may not have heard of it
topic        how many partitions a topic has now
wanted       the topics that some member subscribes to from now on
coordinator  down, up
lag          records that are written and not processed yet (or are to be again), and how unequal the members' loads are
end          partitions that are not read although a member subscribes to them, and whether there was time for it
fetch sessions  after the end: how many sessions brokers are predicted to have lost for lack of slots
requests     after the end: how many of each kind the coordinator was sent, and their bytes

Start at   Trace.tell
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from rebalance_lab.protocol_v1.common.member_effects import TopicPartition

Fact: TypeAlias = dict[str, Any]
"""`t` is the time in milliseconds, `fact` the kind, and the rest is the kind's own."""


class Trace:
    def __init__(self, watch: Callable[[Fact], None] | None = None, *, messages: bool = False) -> None:
        """Take `watch`, which is shown every fact when it happens, also those that are not kept; messages only if it
        asks for them.
        """
        self.facts: list[Fact] = []
        self._watch = watch
        self.tells_messages = messages and watch is not None

    def tell(self, now_ms: int, fact: str, **more: Any) -> None:
        told = {"t": now_ms, "fact": fact, **more}
        self.facts.append(told)
        if self._watch is not None:
            self._watch(told)

    @property
    def is_watched(self) -> bool:
        return self._watch is not None

    def whisper(self, now_ms: int, fact: str, **more: Any) -> None:
        """Show a fact to the watcher only: it is too frequent to be kept."""
        if self._watch is not None:
            self._watch({"t": now_ms, "fact": fact, **more})


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return found


def offsets_by_topic(offsets: Mapping[TopicPartition, int]) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Return partitions by topic, and beside them the offsets in the same places."""
    partitions = by_topic(offsets)
    return partitions, {topic: [offsets[topic, index] for index in found] for topic, found in partitions.items()}


def flat(partitions: Mapping[str, Iterable[int]]) -> Iterator[TopicPartition]:
    for topic, indexes in partitions.items():
        for index in indexes:
            yield topic, index


def lines(facts: Iterable[Fact]) -> Iterator[str]:
    """Return facts as they are written to a file: the same facts give the same bytes."""
    for fact in facts:
        yield json.dumps(fact, ensure_ascii=False, separators=(",", ":"))


def read_lines(text: Iterable[str]) -> list[Fact]:
    return [json.loads(line) for line in text if line.strip()]
