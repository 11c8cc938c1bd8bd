"""What becomes of commits, whichever protocol the group speaks.

commits kept     what was answered NONE is what OffsetFetch shows from then on, until something later is committed
committed first  who gives up partitions in good order has committed how far it was: nobody reads that again. Asked only
                 of who auto-commits and could be heard, and was not refused; and not of a cooperative classic member,
                 which goes on reading after its commit, until it hears what it is to give up

Given      facts, and the messages of the coordinator's broker
Deleted    of topics that were ever deleted nothing is asked: their names may stand for others by now
Start at   Commits.feed
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_lab.harness.measure.broken_invariant import Broken
from rebalance_lab.harness.measure.trace import Fact, flat
from rebalance_lab.harness.scenario.model import Resubscribe
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.member_effects import Callback, TopicPartition
from rebalance_lab.protocol_v1.common.messages import (
    JoinGroupRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    Request,
    Response,
)
from rebalance_lab.protocol_v2.coordinator.state.states import Event
from tests.harness.rules.health import Health

EAGER = frozenset(("range", "roundrobin", "sticky"))
NONE = Error.NONE
MOMENT_MS = 5_000
"""In which a coordinator that was lost is found again."""


class Commits:
    def __init__(self, health: Health, *, auto_commit: bool = True) -> None:
        self.health = health
        self.auto_commit = auto_commit
        self.deleted: set[str] = set()
        self.kept: dict[TopicPartition, int] = {}
        """The last that was answered NONE."""
        self.committed: dict[TopicPartition, int] = {}
        """The last that is durable."""
        self.under_way: dict[int, tuple[Request, dict[TopicPartition, int]]] = {}
        """Commits without an answer yet; and fetches, with the least that they are to show."""
        self.cooperates: set[str] = set()
        self.resubscribed: set[str] = set()
        """What it no longer wants it stops to read in its own time."""
        self.began: dict[tuple[str, TopicPartition], int] = {}
        self.stopped: dict[tuple[str, TopicPartition], tuple[int, int]] = {}
        """Where, and when."""
        self.refused_ms: dict[str, int] = {}
        self.gives_up: set[tuple[str, TopicPartition]] = set()
        """What a process was called to revoke, and still reads."""

    def feed(self, fact: Fact) -> None:
        match fact["fact"]:
            case "asks":
                self.asks(fact["request"])
            case "answers":
                self.answers(fact["request"], fact["response"], fact["t"])
            case "durable":
                for tp, offset in offsets_in(fact, "offsets"):
                    self.committed[tp] = offset
            case "reads" if "removed" not in fact:
                for tp, offset in offsets_in(fact, "from"):
                    self.began[fact["member"], tp] = offset
                    self.stopped.pop((fact["member"], tp), None)
            case "stops":
                self.on_stops(fact)
            case "callback":
                self.on_callback(fact)
            case "topic" if not fact["partitions"]:
                self.deleted.add(fact["topic"])
            case "group" if fact["state"] == "Dead" and fact["because"] != Event.DOWNGRADED.value:
                self.kept.clear()
            case "expired":
                for topic, indexes in fact["partitions"].items():
                    for index in indexes:
                        self.kept.pop((topic, index), None)
                        self.committed.pop((topic, index), None)
            case "coordinator":
                self.under_way.clear()
            case "event" if fact["what"] == Resubscribe.KIND:
                self.resubscribed.update(fact["members"])
            case "process" if fact["is"] == "started":
                self.cooperates.discard(fact["member"])
                self.resubscribed.discard(fact["member"])

    # Kept

    def asks(self, request: Request) -> None:
        match request:
            case JoinGroupRequest() if not {one.name for one in request.protocols} <= EAGER:
                self.cooperates.add(request.client_id)
            case OffsetCommitRequest():
                self.under_way[id(request)] = request, commits_in(request)
            case OffsetFetchRequest():
                least = dict(self.kept)
                for other, offsets in self.under_way.values():
                    if isinstance(other, OffsetCommitRequest):
                        least |= {tp: min(offset, least[tp]) for tp, offset in offsets.items() if tp in least}
                self.under_way[id(request)] = request, least

    def answers(self, request: Request, response: Response, now_ms: int) -> None:
        match request, response:
            case OffsetCommitRequest(), OffsetCommitResponse():
                self.on_commit(request, response, now_ms)
            case OffsetFetchRequest(), OffsetFetchResponse():
                _, least = self.under_way.pop(id(request), (request, {}))
                for topic in (topic for group in response.groups for topic in group.topics):
                    for one in topic.partitions:
                        self.check_kept(
                            (topic.name, one.partition_index), one.error_code, one.committed_offset, least, now_ms
                        )

    def on_commit(self, request: OffsetCommitRequest, response: OffsetCommitResponse, now_ms: int) -> None:
        _, offsets = self.under_way.pop(id(request), (request, commits_in(request)))
        for topic in response.topics:
            for one in topic.partitions:
                tp = topic.name, one.partition_index
                if one.error_code is not NONE:
                    self.refused_ms[request.client_id] = now_ms
                elif tp in offsets:
                    self.kept[tp] = offsets[tp]
                    for other, least in self.under_way.values():
                        if isinstance(other, OffsetFetchRequest) and tp in least:
                            least[tp] = min(least[tp], offsets[tp])

    def check_kept(
        self, tp: TopicPartition, error: Error, found: int, least: dict[TopicPartition, int], now_ms: int
    ) -> None:
        if error is NONE and tp[0] not in self.deleted and found < least.get(tp, -1):
            message = f"{tp[0]}-{tp[1]} was committed up to {least[tp]}, and {found} is fetched"
            raise Broken("commits kept", message, now_ms)

    # First

    def on_callback(self, fact: Fact) -> None:
        name = fact["member"]
        for tp in flat(fact["partitions"]):
            if fact["callback"] != Callback.REVOKED.value:
                self.gives_up.discard((name, tp))
                self.stopped.pop((name, tp), None)  # that was before; it may be revoked without having been read again
            elif (name, tp) in self.stopped:
                at, since_ms = self.stopped[name, tp]
                self.check_committed(name, tp, at, since_ms, fact["t"])
            elif (name, tp) in self.began:
                self.gives_up.add((name, tp))

    def on_stops(self, fact: Fact) -> None:
        name, now_ms = fact["member"], fact["t"]
        for tp, at in offsets_in(fact, "at"):
            self.stopped[name, tp] = at, now_ms
            if (name, tp) in self.gives_up:
                self.gives_up.discard((name, tp))
                self.check_committed(name, tp, at, now_ms, now_ms)

    def check_committed(self, name: str, tp: TopicPartition, at: int, since_ms: int, now_ms: int) -> None:
        asked = self.auto_commit and not self.deleted and name not in self.cooperates | self.resubscribed
        was_read = at > self.began.get((name, tp), at)
        if not asked or not was_read or at <= self.committed.get(tp, 0):
            return
        refused = self.refused_ms.get(name, -1) >= since_ms - MOMENT_MS
        if not refused and self.health.is_well(self.health.life_of(name), since_ms - MOMENT_MS):
            message = f"{name} gives up {tp[0]}-{tp[1]} at {at}, committed is {self.committed.get(tp, 0)}"
            raise Broken("committed first", message, now_ms)


def offsets_in(fact: Fact, name: str) -> Iterator[tuple[TopicPartition, int]]:
    for topic, indexes in fact["partitions"].items():
        for index, offset in zip(indexes, fact[name][topic], strict=True):
            yield (topic, index), offset


def commits_in(request: OffsetCommitRequest) -> dict[TopicPartition, int]:
    return {
        (topic.name, one.partition_index): one.committed_offset for topic in request.topics for one in topic.partitions
    }
