"""`python -m benchmarks.protocol_v1`: what the classic coordinator costs, in CPU time, without network or disk.

First      one coordinator, 1,000 members, a full eager rebalance of 10,000 partitions: join, sync, assign with range.
           Told apart: the coordinator's part, the leader's part, and everything with the members' machines included
Then       the cost of one message at 10, 100, 1,000 and 10,000 members. The exponent is the slope of time over members,
           both logarithmic: 0 is constant, 1 is linear. The answer to a leader's JoinGroup lists the whole group, so a
           rebalance is given per member
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from time import process_time

from rebalance_lab.assignors.classic.range import RangeAssignor
from rebalance_lab.assignors.interface import RebalanceProtocol
from rebalance_lab.assignors.model import Topic
from rebalance_lab.harness.conversation.conversations import classic_group
from rebalance_lab.protocol_v1.common.consumer_protocol import Subscription, encode_subscription
from rebalance_lab.protocol_v1.common.effects import Effect, Reply
from rebalance_lab.protocol_v1.common.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    Protocol,
    Request,
    Response,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from rebalance_lab.protocol_v1.coordinator.config import CoordinatorConfig
from rebalance_lab.protocol_v1.coordinator.coordinator import Coordinator, at_once
from rebalance_lab.protocol_v1.coordinator.state.states import State
from rebalance_lab.protocol_v1.member.leader import assignments_of

GROUP, TOPIC = "g", "orders"
SIZES = (10, 100, 1_000, 10_000)
METADATA = encode_subscription(Subscription(topics=(TOPIC,)))


class Load:
    """A coordinator and as many clients as wanted, each reduced to its messages."""

    def __init__(self, members: int) -> None:
        config = CoordinatorConfig(group_initial_rebalance_delay_ms=10)
        self.coordinator = Coordinator(config, topics={TOPIC: 10_000})
        self.now_ms = 0
        self.numbers = 0
        self.ids = [self.answer(self.join(""))[0] for _ in range(members)]

    def handle(self, request: Request) -> list[Effect]:
        return at_once(self.coordinator, self.coordinator.handle(request, self.now_ms), self.now_ms)

    def answer(self, request: JoinGroupRequest) -> tuple[str, Response]:
        response = next(effect.response for effect in self.handle(request) if isinstance(effect, Reply))
        assert isinstance(response, JoinGroupResponse)
        return response.member_id, response

    def join(self, member_id: str, metadata: bytes = METADATA) -> JoinGroupRequest:
        self.numbers += 1
        protocols = (Protocol(name="range", metadata=metadata),)
        return JoinGroupRequest(
            group_id=GROUP,
            member_id=member_id,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            protocol_type="consumer",
            protocols=protocols,
            correlation_id=self.numbers,
        )

    def sync(self, member_id: str, plan: tuple[SyncGroupRequestAssignment, ...] = ()) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=plan,
        )

    @property
    def generation(self) -> int:
        return self.coordinator.groups[GROUP].generation_id

    def join_all(self, metadata: bytes = METADATA) -> JoinGroupResponse:
        """The answer to the leader."""
        effects: list[Effect] = []
        for member_id in self.ids:
            effects += self.handle(self.join(member_id, metadata))
        if self.coordinator.groups[GROUP].state is State.PREPARING_REBALANCE:  # the first time: the initial delay
            effects += self.coordinator.on_timer(("join", GROUP), self.now_ms)
            while self.coordinator.groups[GROUP].state is State.PREPARING_REBALANCE:
                effects += self.coordinator.on_timer(("join", GROUP), self.now_ms)
        answers = (effect.response for effect in effects if isinstance(effect, Reply))
        return next(one for one in answers if isinstance(one, JoinGroupResponse) and one.members)

    def sync_all(self, leader: str, plan: tuple[SyncGroupRequestAssignment, ...]) -> None:
        for member_id in self.ids:
            if member_id != leader:
                self.handle(self.sync(member_id))
        self.handle(self.sync(leader, plan))
        assert self.coordinator.groups[GROUP].state is State.STABLE

    def rebalance(self, metadata: bytes = METADATA) -> tuple[float, float]:
        """CPU seconds of the coordinator, and of the leader's assignment."""
        begun = process_time()
        listed = self.join_all(metadata)
        joined = process_time()
        topics = {TOPIC: Topic(10_000)}
        plan = assignments_of(RangeAssignor(), RebalanceProtocol.EAGER, listed.members, topics)
        assigned = process_time()
        self.sync_all(listed.leader, plan)
        return joined - begun + process_time() - assigned, assigned - joined


def metadata_of(generation: int) -> bytes:
    """Java's members send their generation, so that every rejoin is a change."""
    return encode_subscription(Subscription(topics=(TOPIC,), generation_id=generation))


def timed(calls: Iterable[Callable[[], object]]) -> float:
    """Median microseconds of a call, in batches because the clock is coarse."""
    calls = list(calls)
    batch = 50
    costs = []
    for start in range(0, len(calls), batch):
        begun = process_time()
        for call in calls[start : start + batch]:
            call()
        costs.append((process_time() - begun) / len(calls[start : start + batch]))
    return median(costs) * 1e6


def per_message(size: int) -> dict[str, float]:
    load = Load(size)
    load.rebalance()
    coordinator, assign = load.rebalance(metadata_of(1))
    picks = [load.ids[i * 7919 % size] for i in range(1_000)]

    def beat(member_id: str) -> HeartbeatRequest:
        return HeartbeatRequest(group_id=GROUP, generation_id=load.generation, member_id=member_id)

    def commit(member_id: str) -> OffsetCommitRequest:
        parts = (OffsetCommitRequestPartition(partition_index=0, committed_offset=1),)
        topics = (OffsetCommitRequestTopic(name=TOPIC, partitions=parts),)
        generation = load.generation
        return OffsetCommitRequest(
            group_id=GROUP, member_id=member_id, generation_id_or_member_epoch=generation, topics=topics
        )

    def sending(requests: Sequence[Request]) -> list[Callable[[], object]]:
        return [lambda request=request: load.handle(request) for request in requests]  # type: ignore[misc]

    return {
        "Heartbeat": timed(sending([beat(one) for one in picks])),
        "OffsetCommit": timed(sending([commit(one) for one in picks])),
        "SyncGroup, Stable": timed(sending([load.sync(one) for one in picks])),
        "JoinGroup + SyncGroup": coordinator / size * 1e6,
        "assign, leader": assign / size * 1e6,
    }


def exponent(costs: Sequence[float]) -> float:
    xs, ys = [math.log(size) for size in SIZES], [math.log(cost) for cost in costs]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def with_members(size: int, partitions: int) -> tuple[float, float]:
    """Real members and a real coordinator: from the first JoinGroup to the last callback; and one more rebalance."""
    config = CoordinatorConfig(group_initial_rebalance_delay_ms=1_000)
    group = classic_group({TOPIC: partitions}, coordinator=config, enable_auto_commit=False)
    group.at_rest = lambda: False  # type: ignore[method-assign]  # asking after every event would cost more than all else
    begun = process_time()
    for i in range(size):
        group.join(f"m{i}")
    group.run(2_500)
    first = process_time() - begun
    assert sum(len(client.owned) for client in group.live) == partitions
    begun = process_time()
    group.join("late").run(4_000)
    assert sum(len(client.owned) for client in group.live) == partitions
    return first, process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="without the members' machines")
    arguments = parser.parse_args()
    load = Load(1_000)
    load.rebalance()
    coordinator, assign = min(load.rebalance(metadata_of(turn)) for turn in range(1, 4))
    print("Full eager rebalance, 1,000 members, 10,000 partitions, range (CPU seconds)")
    print(f"  coordinator: join and sync of all {coordinator:8.3f}")
    print(f"  leader: decode, assign, encode    {assign:8.3f}")
    print(f"  together                          {coordinator + assign:8.3f}")
    if not arguments.quick:
        first, again = with_members(1_000, 10_000)
        print(f"  with 1,000 real members, first    {first:8.3f}")
        print(f"  with 1,000 real members, one more {again:8.3f}")
    rows = [per_message(size) for size in SIZES]
    print("\nMicroseconds of CPU per message, by members of the group")
    print("  " + " " * 22 + "".join(f"{size:>10,}" for size in SIZES) + "  exponent")
    for what in rows[0]:
        costs = [row[what] for row in rows]
        print(f"  {what:22}" + "".join(f"{cost:10.1f}" for cost in costs) + f"{exponent(costs):10.2f}")
    print("  JoinGroup + SyncGroup and assign: a whole rebalance divided by its members; 10,000 partitions throughout")


if __name__ == "__main__":
    main()
