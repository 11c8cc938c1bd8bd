"""Make the group that a scenario begins with, as an assignor sees it, and the largest that it may become.

Patterns are resolved, and loads come from the first rates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import count, islice

from rebalance_lab.assignors.model import Group, Member, Topic
from rebalance_lab.harness.scenario.model import (
    AddPartitions,
    Autoscale,
    CreateTopic,
    MemberSpec,
    Scale,
    Scenario,
    TopicSpec,
)
from rebalance_lab.harness.scenario.presence import kind_of, late_starters
from rebalance_lab.protocol_v2.common.regex import compile_regex


def group_of(scenario: Scenario) -> Group:
    late = late_starters(scenario.timeline)
    return Group(
        topics={topic.name: topic_of(topic) for topic in scenario.topics},
        members={
            member.name: Member(
                subscription(member, [topic.name for topic in scenario.topics]),
                instance_id=member.instance_id,
                rack=member.rack,
                capacity=1.0 / member.record_ms,
            )
            for member in scenario.members
            if member.name not in late
        },
    )


def largest_group(scenario: Scenario) -> Group:
    """Return the group with all members and partitions that there may be at some time. It has late starters, members
    that a scaling starts, and added topics and partitions.
    """
    topics = {topic.name: topic.partitions for topic in scenario.topics}
    members = {member.name: member for member in scenario.members}
    most: dict[str, tuple[int, str]] = {}
    for event in scenario.timeline:
        if isinstance(event, AddPartitions):
            topics[event.topic] = max(topics[event.topic], event.to)
        elif isinstance(event, CreateTopic):
            topics[event.topic.name] = max(topics.get(event.topic.name, 0), event.topic.partitions)
        elif isinstance(event, Scale | Autoscale):
            to = event.to if isinstance(event, Scale) else event.most
            kind = kind_of(event.template)
            most[kind] = max(most.get(kind, (0, "")), (to, event.template))
    kin = Counter(map(kind_of, members))
    for kind, (to, template) in most.items():
        free = (f"{kind}-{number}" for number in count(1) if f"{kind}-{number}" not in members)
        members |= dict.fromkeys(islice(free, max(0, to - kin[kind])), members[template])
    return Group(
        topics={name: Topic(partitions) for name, partitions in topics.items()},
        members={name: Member(subscription(member, topics)) for name, member in members.items()},
    )


def topic_of(topic: TopicSpec) -> Topic:
    rate = topic.rate.steps[0][1]
    weights = topic.weights or (1 / topic.partitions,) * topic.partitions
    return Topic(topic.partitions, racks=topic.racks, load=tuple(rate * weight for weight in weights))


def subscription(member: MemberSpec, topics: Iterable[str]) -> tuple[str, ...]:
    if member.pattern is None:
        return member.topics
    matches = compile_regex(member.pattern)
    return tuple(topic for topic in topics if matches(topic))
