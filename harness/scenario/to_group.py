"""The group that a scenario begins with, as an assignor sees it: patterns resolved, loads from the first rates."""

from __future__ import annotations

from assignors.model import Group, Member, Topic
from harness.scenario.model import MemberSpec, Scenario, TopicSpec
from harness.scenario.timeline import late_starters
from protocol_v1.regex import compile_regex


def group_of(scenario: Scenario) -> Group:
    late = late_starters(scenario.timeline)
    return Group(
        topics={topic.name: topic_of(topic) for topic in scenario.topics},
        members={
            member.name: Member(
                subscription(member, scenario),
                instance_id=member.instance_id,
                rack=member.rack,
                capacity=1.0 / member.record_ms,
            )
            for member in scenario.members
            if member.name not in late
        },
    )


def topic_of(topic: TopicSpec) -> Topic:
    rate = topic.rate.steps[0][1]
    weights = topic.weights or (1 / topic.partitions,) * topic.partitions
    return Topic(topic.partitions, racks=topic.racks, load=tuple(rate * weight for weight in weights))


def subscription(member: MemberSpec, scenario: Scenario) -> tuple[str, ...]:
    if member.pattern is None:
        return member.topics
    matches = compile_regex(member.pattern)
    return tuple(topic.name for topic in scenario.topics if matches(topic.name))
