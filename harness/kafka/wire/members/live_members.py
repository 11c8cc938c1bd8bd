"""Run our members in a real group: any assignor of ours or of a user's, beside the clients that are there already.

Given      a strategy, a group, topics, how many members, a bootstrap address
Returns    after it is told to stop and every member has left; Change values as assignments change meanwhile
Start at   run_members
"""

from __future__ import annotations

import asyncio
import base64
import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_lab.assignors.strategies import Strategy, load_named
from rebalance_lab.harness.kafka.wire.addresses import WireError, parse_bootstrap
from rebalance_lab.harness.kafka.wire.cluster import Cluster
from rebalance_lab.harness.kafka.wire.members.driver import Machine, WireMember
from rebalance_lab.protocol_v1.common.member_effects import Call, Callback, Committed, TopicPartition
from rebalance_lab.protocol_v1.member.config import MemberConfig as ClassicConfig
from rebalance_lab.protocol_v1.member.member import Member as ClassicMember
from rebalance_lab.protocol_v2.member.config import MemberConfig as ConsumerConfig
from rebalance_lab.protocol_v2.member.member import Member as ConsumerMember

LEAVE_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    bootstrap: str
    group: str
    topics: Sequence[str]
    strategy: Strategy
    members: int = 1
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 500
    max_poll_interval_ms: int = 30_000
    auto_commit_interval_ms: int = 1_000
    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Report what a callback told a member, and what the member owns since."""

    member: str
    callback: str
    partitions: tuple[TopicPartition, ...]
    owned: frozenset[TopicPartition]


class Consumer:
    """Run one member with its application, which counts what it reads and reports what it is given."""

    def __init__(self, plan: GroupPlan, name: str, cluster: Cluster, tell: Callable[[Change], None]) -> None:
        self.name, self.tell = name, tell
        self.machine = machine_of(plan, name)
        self.member = WireMember(self.machine, cluster, plan.group, self)
        self.records = 0
        self.commits = 0
        self.owned: frozenset[TopicPartition] = frozenset()

    def called(self, call: Call) -> None:
        partitions = frozenset(call.partitions)
        self.owned = self.owned | partitions if call.callback is Callback.ASSIGNED else self.owned - partitions
        self.tell(Change(member=self.name, callback=call.callback.value, partitions=call.partitions, owned=self.owned))

    def consumed(self, partition: TopicPartition, values: Sequence[bytes | None]) -> None:
        self.records += len(values)

    def committed(self, commit: Committed) -> None:
        self.commits += 1


async def run_members(plan: GroupPlan, tell: Callable[[Change], None], stop: asyncio.Event) -> list[Consumer]:
    """Run until `stop` is set, or a member fails: then the others leave, and its error is raised."""
    consumers = [await enter(plan, f"{plan.group}-{number}", tell) for number in range(1, plan.members + 1)]
    running = [asyncio.create_task(consumer.member.run()) for consumer in consumers]
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([stopped, *running], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        for consumer in consumers:
            consumer.member.close()
        _, late = await asyncio.wait(running, timeout=LEAVE_WITHIN_S)
        for task in late:
            task.cancel()
    for task in running:
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            raise error
    return consumers


async def enter(plan: GroupPlan, name: str, tell: Callable[[Change], None]) -> Consumer:
    cluster = await Cluster.open(parse_bootstrap(plan.bootstrap), client_id=name, timeout_s=plan.timeout_s)
    if missing := [topic for topic in plan.topics if topic not in cluster.metadata.topics]:
        await cluster.close()
        raise WireError(f"no topic {', '.join(missing)} at {plan.bootstrap}")
    return Consumer(plan, name, cluster, tell)


def machine_of(plan: GroupPlan, name: str) -> Machine:
    shared: dict[str, Any] = {
        "group_id": plan.group,
        "client_id": name,
        "group_instance_id": name if plan.strategy.static else None,
        "max_poll_interval_ms": plan.max_poll_interval_ms,
        "auto_commit_interval_ms": plan.auto_commit_interval_ms,
        "request_timeout_ms": 10_000,
    }
    if plan.strategy.protocol == "consumer":
        config = ConsumerConfig(**shared, group_remote_assignor=plan.strategy.assignor)
        return ConsumerMember(config, member_id=new_member_id(), topics=plan.topics, jitter=jitter)
    shared |= {"session_timeout_ms": plan.session_timeout_ms, "heartbeat_interval_ms": plan.heartbeat_interval_ms}
    assignors = [load_named(plan.strategy, "assignor")]
    return ClassicMember(ClassicConfig(**shared), assignors=assignors, topics=plan.topics, jitter=jitter)


def new_member_id() -> str:
    """Make a member id as Java's consumer does (KIP-1082)."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def jitter() -> float:
    return random.uniform(0.8, 1.2)
