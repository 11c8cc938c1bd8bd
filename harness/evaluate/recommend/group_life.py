"""Assume a life for a group of which only the present is known: a deploy, a crash and a scale-out.

Rates      the group's loads as records per second where it has any; members so fast that they are half busy
Start at   life_of_group
"""

from __future__ import annotations

from dataclasses import replace

from rebalance_lab.assignors.json_contract import ContractError, at
from rebalance_lab.assignors.model import Group
from rebalance_lab.harness.scenario.from_group import scenario_of_group
from rebalance_lab.harness.scenario.model import Crash, Event, RollingRestart, Scenario, Start

MINUTE_MS = 60_000
DEPLOY_AT_MS = 2 * MINUTE_MS
DOWNTIME_MS, GAP_MS = 15_000, 15_000
APART_MS = 2_000
REST_MS = 3 * MINUTE_MS
MOST_STEPS = 20
"""A deploy of hundreds goes several at a time, as teams do it."""
RATE_PER_PARTITION = 10.0
BUSY = 0.5

ASSUMED = (
    "a life was assumed for the group: a rolling deploy (15 s down, 15 s apart), then one member crashes for good, "
    "then a tenth more members start; members are half busy"
)


def life_of_group(group: Group, *, name: str = "group", strategy: str | None = None, path: str = "group") -> Scenario:
    """Make the scenario; `path` is where the group stands in its document."""
    members = [member for member, one in group.members.items() if any(topic in group.topics for topic in one.topics)]
    if not members:
        raise ContractError(
            at(path, "members"), "nobody subscribes to a topic that exists: there is nothing to simulate"
        )
    at_once = -(-len(members) // MOST_STEPS)
    deploy_ms = -(-len(members) // at_once) * (DOWNTIME_MS + GAP_MS)
    crash_ms = DEPLOY_AT_MS + deploy_ms + REST_MS
    scale_ms = crash_ms + REST_MS
    like = replace(group.members[members[0]], instance_id=None)
    late = [fresh_name(group, number) for number in range(1, max(1, len(members) // 10) + 1)]
    timeline: list[Event] = [
        RollingRestart(
            at_ms=DEPLOY_AT_MS, members=tuple(members), downtime_ms=DOWNTIME_MS, gap_ms=GAP_MS, parallelism=at_once
        ),
        Crash(at_ms=crash_ms, members=(members[-1],)),
        *(Start(at_ms=scale_ms + number * APART_MS, members=(one,)) for number, one in enumerate(late)),
    ]
    return scenario_of_group(
        Group(group.topics, {**group.members, **dict.fromkeys(late, like)}),
        name=name,
        duration_ms=scale_ms + len(late) * APART_MS + REST_MS,
        rate_per_partition=RATE_PER_PARTITION,
        record_ms=record_ms(group),
        timeline=timeline,
        strategy=strategy,
        path=path,
    )


def fresh_name(group: Group, number: int) -> str:
    name = f"new-{number}"
    while name in group.members:
        name = f"new-{name}"
    return name


def record_ms(group: Group) -> float:
    """Return how long a record takes a member of capacity 1, so that all of them together are half busy."""
    rate = sum(
        sum(topic.load) if topic.load and sum(topic.load) else RATE_PER_PARTITION * topic.partitions
        for topic in group.topics.values()
    )
    capacity = sum(member.capacity for member in group.members.values())
    return 1_000 * BUSY * capacity / max(rate, 0.001)
