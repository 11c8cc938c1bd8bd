"""`python -m benchmarks.protocol_v2`: what the coordinator and members of KIP-848 cost, in CPU time alone, no I/O.

First      a heartbeat with no change, at 10, 100, 1,000 and 10,000 members: it must not depend on the group's size. The
           exponent is the slope of time over members, both logarithmic: 0 is constant, 1 is linear
Then       10,000 members of 100,000 partitions: one more joins, and virtual time runs until everybody is at the target.
           Told apart: the one heartbeat that computes the target, the coordinator's other work, and everything with
           real members' machines included
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import process_time

from rebalance_lab.harness.conversation.conversations import consumer_group
from rebalance_lab.protocol_v1.common.effects import Effect, Reply
from rebalance_lab.protocol_v2.common.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from rebalance_lab.protocol_v2.coordinator.coordinator import Coordinator, at_once
from rebalance_lab.protocol_v2.coordinator.state.states import GroupState

GROUP, TOPIC = "g", "orders"
SIZES = (10, 100, 1_000, 10_000)
INTERVAL_MS = 5_000


@dataclass(slots=True)
class Client:
    """A consumer reduced to its messages: it gives up and takes over at once."""

    member_id: str
    epoch: int = 0
    owned: tuple[TopicPartitions, ...] = ()
    news: bool = False

    def request(self) -> ConsumerGroupHeartbeatRequest:
        who = {"group_id": GROUP, "member_id": self.member_id, "member_epoch": self.epoch}
        if self.epoch == 0:
            return ConsumerGroupHeartbeatRequest(
                **who, rebalance_timeout_ms=300_000, subscribed_topic_names=(TOPIC,), topic_partitions=()
            )
        says, self.news = self.owned if self.news else None, False
        return ConsumerGroupHeartbeatRequest(**who, topic_partitions=says)

    def hear(self, response: ConsumerGroupHeartbeatResponse) -> None:
        assert not response.error_code, response
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.owned, self.news = response.assignment.topic_partitions, True


@dataclass(slots=True)
class Load:
    """A coordinator with Kafka's defaults, and as many clients as wanted."""

    members: int
    partitions: int
    now_ms: int = 0
    coordinator: Coordinator = field(init=False)
    clients: list[Client] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.coordinator = Coordinator(topics={TOPIC: self.partitions})
        self.clients = [Client(f"member-{i:05}") for i in range(self.members)]
        self.settle()

    def handle(self, request: ConsumerGroupHeartbeatRequest) -> list[Effect]:
        return at_once(self.coordinator, self.coordinator.handle(request, self.now_ms), self.now_ms)

    def beat(self, client: Client) -> None:
        response = next(one.response for one in self.handle(client.request()) if isinstance(one, Reply))
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        client.hear(response)

    def settle(self) -> int:
        """Everybody heartbeats, at once where there is something to acknowledge; how many rounds it took."""
        for rounds in range(1, 20):
            for client in self.clients:
                self.beat(client)
                if client.news:
                    self.beat(client)
            self.now_ms += INTERVAL_MS
            group = self.coordinator.groups[GROUP]
            if group.state is GroupState.STABLE and sum(map(count, self.clients)) == self.partitions:
                return rounds
        raise RuntimeError("the group does not settle")


def count(client: Client) -> int:
    return sum(len(topic.partitions) for topic in client.owned)


def timed(calls: Sequence[Callable[[], object]]) -> float:
    """Median microseconds of a call, in batches because the clock is coarse."""
    batch = 50
    costs = []
    for start in range(0, len(calls), batch):
        begun = process_time()
        for call in calls[start : start + batch]:
            call()
        costs.append((process_time() - begun) / len(calls[start : start + batch]))
    return median(costs) * 1e6


def heartbeat_us(size: int) -> float:
    load = Load(size, 10 * size)
    requests = [load.clients[i * 7919 % size].request() for i in range(2_000)]
    return timed([lambda request=request: load.handle(request) for request in requests])  # type: ignore[misc]


def one_joins(members: int, partitions: int) -> tuple[float, float, int]:
    """CPU seconds of the heartbeat that computes the target, of all the others until rest, and their rounds."""
    load = Load(members, partitions)
    late = Client("late")
    load.clients.append(late)
    begun = process_time()
    load.beat(late)
    joined = process_time()
    rounds = load.settle()
    return joined - begun, process_time() - joined, rounds


def with_members(members: int, partitions: int) -> tuple[float, int]:
    """Real members on a real coordinator: CPU seconds and virtual ms from the join until everybody is there."""
    group = consumer_group(
        {TOPIC: partitions}, properties={"group.consumer.assignment.interval.ms": 1_000}, enable_auto_commit=False
    )
    group.at_rest = lambda: False  # type: ignore[method-assign]  # asking after every event would cost more than all else
    for i in range(members):
        group.join(f"m{i:05}")
    while not everybody_is_there(group, partitions):
        group.run(INTERVAL_MS)
    begun, at_ms = process_time(), group.now_ms
    group.join("late").run(INTERVAL_MS)
    while not everybody_is_there(group, partitions):
        group.run(INTERVAL_MS)
    return process_time() - begun, group.now_ms - at_ms


def everybody_is_there(group: object, partitions: int) -> bool:
    machine = group.group  # type: ignore[attr-defined]
    owned = sum(len(client.owned) for client in group.live)  # type: ignore[attr-defined]
    return machine is not None and machine.state is GroupState.STABLE and owned == partitions


def exponent(costs: Sequence[float]) -> float:
    xs, ys = [math.log(size) for size in SIZES], [math.log(cost) for cost in costs]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="without the members' machines")
    arguments = parser.parse_args()
    costs = [heartbeat_us(size) for size in SIZES]
    print("Microseconds of CPU per heartbeat with no change, by members of the group")
    print("  " + "".join(f"{size:>10,}" for size in SIZES) + "  exponent   10,000 / 10")
    print("  " + "".join(f"{cost:10.1f}" for cost in costs) + f"{exponent(costs):10.2f}{costs[-1] / costs[0]:14.2f}")
    target, rest, rounds = one_joins(10_000, 100_000)
    print("\nOne member joins 10,000 with 100,000 partitions, until everybody is at the target (CPU seconds)")
    print(f"  the heartbeat that joins, with the target {target:8.2f}")
    print(f"  all heartbeats after it, {rounds} rounds        {rest:8.2f}")
    print(f"  together                                  {target + rest:8.2f}")
    if not arguments.quick:
        cpu, virtual_ms = with_members(10_000, 100_000)
        print(f"  with 10,001 real members                  {cpu:8.2f}   ({virtual_ms / 1_000:.0f} s of virtual time)")


if __name__ == "__main__":
    main()
