"""Make a scenario around an existing group: a snapshot of a cluster, or the JSON contract's group.

Loads are taken as records per second, which makes them a workload. Where a snapshot holds lags or nothing,
`rate_per_partition` says how much each partition gets. What members own now is left out: a run begins with a
group that has yet to form. Rates and times stay within what a scenario file may say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError, at
from rebalance_lab.assignors.model import Group, Topic
from rebalance_lab.harness.scenario.checks import EventPaths, Paths, check_scenario
from rebalance_lab.harness.scenario.forms.form_base import RATE_LIMITS, RECORD_LIMITS
from rebalance_lab.harness.scenario.model import Event, MemberSpec, Rate, Scenario, TopicSpec
from rebalance_lab.harness.scenario.units import fine_ms, rate_per_second

SHORTEST_MS, LONGEST_MS = map(fine_ms, RECORD_LIMITS)
LOWEST_RATE, HIGHEST_RATE = map(rate_per_second, RATE_LIMITS)


def scenario_of_group(
    group: Group,
    *,
    name: str = "group",
    duration_ms: int = 600_000,
    rate_per_partition: float = 10.0,
    use_load: bool = True,
    record_ms: float = 1.0,
    client: Mapping[str, Any] | None = None,
    broker: Mapping[str, Any] | None = None,
    timeline: Sequence[Event] = (),
    strategy: str | None = None,
    path: str = "",
) -> Scenario:
    """Make the scenario; a member of capacity 2 takes half of `record_ms` a record. Topics without partitions are
    passed over. `path` is where the group stands in its document.
    """
    scenario = Scenario(
        name=name,
        duration_ms=duration_ms,
        topics=tuple(
            topic_spec(topic_name, topic, rate_per_partition, use_load, at(at(path, "topics"), topic_name))
            for topic_name, topic in group.topics.items()
            if topic.partitions
        ),
        members=tuple(
            MemberSpec(
                name=member_id,
                topics=tuple(topic for topic in dict.fromkeys(member.topics) if exists(group, topic)),
                record_ms=min(max(record_ms / member.capacity, SHORTEST_MS), LONGEST_MS),
                rack=member.rack,
                instance_id=member.instance_id,
            )
            for member_id, member in group.members.items()
            if any(exists(group, topic) for topic in member.topics)
        ),
        client=dict(client or {}),
        broker=dict(broker or {}),
        timeline=tuple(sorted(timeline, key=lambda event: event.at_ms)),
        strategy=strategy,
    )
    paths = [f"timeline[{i}].{event.KIND}" for i, event in enumerate(scenario.timeline)]
    check_scenario(scenario, Paths(whole=path, events=[EventPaths(one, at(one, "members")) for one in paths]))
    return scenario


def exists(group: Group, topic: str) -> bool:
    return topic in group.topics and group.topics[topic].partitions > 0


def topic_spec(name: str, topic: Topic, rate_per_partition: float, use_load: bool, path: str) -> TopicSpec:
    total = sum(topic.load) if topic.load is not None and use_load else 0.0
    if topic.load is None or not total:
        return TopicSpec(
            name=name,
            partitions=topic.partitions,
            rate=Rate(((0, rate_per_partition * topic.partitions),)),
            racks=topic.racks,
        )
    if total > HIGHEST_RATE:
        raise ContractError(at(path, "load"), f"adds up to {total:g}/s, and a topic has at most {RATE_LIMITS[1]}")
    return TopicSpec(
        name=name,
        partitions=topic.partitions,
        rate=Rate(((0, max(total, LOWEST_RATE)),)),
        weights=tuple(load / total for load in topic.load),
        racks=topic.racks,
    )
