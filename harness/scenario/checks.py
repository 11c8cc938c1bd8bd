"""Check that a scenario can happen: every member and topic that it names exists, and in time.

Given      a Scenario whose parts are each well-formed, and where they stand in the file
Returns    nothing; ContractError for the first thing that cannot be
Not here   events that have no effect, such as stopping a member that is down; a long random timeline has some
Start at   check_scenario
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

from rebalance_lab.assignors.json_contract import ContractError, at
from rebalance_lab.harness.scenario.forms.scenario_form import MAX_MEMBERS
from rebalance_lab.harness.scenario.forms.topic_form import MAX_PARTITIONS
from rebalance_lab.harness.scenario.model import (
    AddPartitions,
    Autoscale,
    CreateTopic,
    DeleteTopic,
    Event,
    MemberSpec,
    Resubscribe,
    Scale,
    Scenario,
    Start,
    TopicSpec,
)
from rebalance_lab.harness.scenario.presence import kind_of, late_starters
from rebalance_lab.harness.scenario.settings import LEAST_SESSION, MOST_SESSION
from rebalance_lab.harness.scenario.units import duration_text, quoted
from rebalance_lab.protocol_v1.coordinator.config import CoordinatorConfig
from rebalance_lab.protocol_v1.member.config import MemberConfig
from rebalance_lab.protocol_v2.common.regex import compile_regex
from rebalance_lab.protocol_v2.common.regex_program import BadRegex

HEARTBEAT, SESSION = "heartbeat.interval.ms", "session.timeout.ms"
PLAIN = re.compile(r"[\w.~-]{1,80}")


class EventPaths(NamedTuple):
    event: str
    members: str
    """The same where they are all that is written: `crash: [c-1]` has no `members`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Find where things stand in a file, so that an error names the place that the user wrote."""

    whole: str = ""
    members: Mapping[str, str] = field(default_factory=dict)
    """By name, for members of a count and others that do not stand under it."""
    instance_ids: Mapping[str, str] = field(default_factory=dict)
    """By the member's name, for those that do not stand under `instance_id`."""
    events: Sequence[EventPaths]

    def member(self, name: str) -> str:
        return self.members.get(name) or at(at(self.whole, "members"), name)

    def instance_id(self, name: str) -> str:
        return self.instance_ids.get(name) or at(self.member(name), "instance_id")


def check_scenario(scenario: Scenario, places: Paths) -> None:
    total = sum(topic.partitions for topic in scenario.topics)
    if total > MAX_PARTITIONS:
        path = at(places.whole, "topics")
        raise ContractError(path, f"the scenario has more than {MAX_PARTITIONS:,} partitions in all")
    ever = {topic.name for topic in scenario.topics}
    ever |= {event.topic.name for event in scenario.timeline if isinstance(event, CreateTopic)}
    for member in scenario.members:
        check_subscription(member.topics, member.pattern, ever, places.member(member.name))
        check_timeouts(scenario, member, places.member(member.name))
    check_instances(scenario.members, places)
    check_poison(scenario)
    walk = Walk(scenario, ever, total)
    for event, place in zip(scenario.timeline, places.events, strict=True):
        walk.event(event, place)


def check_subscription(topics: Iterable[str], pattern: str | None, ever: Iterable[str], path: str) -> None:
    for topic in topics:
        if topic not in ever:
            raise ContractError(at(path, "topics"), f"there is never a topic {told(topic)}{close(topic, ever)}")
    if pattern is not None:
        try:
            compile_regex(pattern)
        except BadRegex as error:
            what = str(error).removesuffix(f" of '{pattern}'")
            raise ContractError(at(path, "pattern"), f"{quoted(pattern)} does not compile: {what}") from None


def close(name: str, known: Iterable[str]) -> str:
    found = get_close_matches(name, list(known), n=1)
    return f"; did you mean {told(found[0])}?" if found else ""


def told(name: str) -> str:
    """Return a name as it is, unless it would break the line."""
    return name if PLAIN.fullmatch(name) else quoted(name)


def check_timeouts(scenario: Scenario, member: MemberSpec, member_path: str) -> None:
    """Check a classic member's timeouts: a client refuses some when it is made, and a broker others when it joins."""
    settings = {**scenario.client, **member.client}
    defaults = MemberConfig()
    session = settings.get(SESSION, defaults.session_timeout_ms)
    heartbeat = settings.get(HEARTBEAT, defaults.heartbeat_interval_ms)

    def written(name: str) -> str:
        return at(at(member_path, "client") if name in member.client else "client", name)

    if heartbeat >= session:
        # Of two that do not go together the one that stands nearer; a default stands nowhere.
        if HEARTBEAT in member.client or (HEARTBEAT in settings and SESSION not in member.client):
            raise ContractError(written(HEARTBEAT), f"is {heartbeat}, and must be lower than {SESSION} ({session})")
        raise ContractError(written(SESSION), f"is {session}, and must be above {HEARTBEAT} ({heartbeat})")
    broker = CoordinatorConfig()
    low = scenario.broker.get(LEAST_SESSION, broker.group_min_session_timeout_ms)
    high = scenario.broker.get(MOST_SESSION, broker.group_max_session_timeout_ms)
    if not low <= session <= high:
        if SESSION not in settings:
            name, limit = (LEAST_SESSION, low) if session < low else (MOST_SESSION, high)
            raise ContractError(at("broker", name), f"is {limit}; members have a {SESSION} of {session}")
        raise ContractError(
            written(SESSION), f"is {session}; brokers take {low} to {high} ({LEAST_SESSION}, {MOST_SESSION})"
        )


def check_instances(members: Iterable[MemberSpec], places: Paths) -> None:
    taken: dict[str, str] = {}
    for member in members:
        if member.instance_id is not None and taken.setdefault(member.instance_id, member.name) != member.name:
            raise ContractError(
                places.instance_id(member.name),
                f"{told(member.instance_id)} is {told(taken[member.instance_id])}'s already",
            )


def check_poison(scenario: Scenario) -> None:
    most = {topic.name: topic.partitions for topic in scenario.topics}
    for event in scenario.timeline:
        if isinstance(event, CreateTopic):
            most[event.topic.name] = max(most.get(event.topic.name, 0), event.topic.partitions)
        elif isinstance(event, AddPartitions):
            most[event.topic] = max(most.get(event.topic, 0), event.to)
    for i, poison in enumerate(scenario.poison):
        path = at("poison", i)
        if poison.topic not in most:
            raise ContractError(
                at(path, "topic"), f"there is never a topic {told(poison.topic)}{close(poison.topic, most)}"
            )
        if poison.partition >= most[poison.topic]:
            raise ContractError(
                at(path, "partition"), f"{poison.topic} has partitions 0 to {most[poison.topic] - 1} at most"
            )


class Walk:
    """Go through the timeline in order of time: which members have started by then, which topics exist."""

    def __init__(self, scenario: Scenario, ever: Iterable[str], partitions: int) -> None:
        self.named = {member.name for member in scenario.members}
        self.started = self.named - late_starters(scenario.timeline)
        self.instance_ids = {member.name: member.instance_id for member in scenario.members}
        self.scaled_to: dict[str, int] = {}
        self.topics: dict[str, int] = {topic.name: topic.partitions for topic in scenario.topics}
        self.ever = ever
        self.partitions = partitions

    def event(self, event: Event, place: EventPaths) -> None:
        check: Callable[[Any, str], None] | None = self.checks.get(type(event))
        if check is not None:
            check(event, place.event)
            return
        for name in getattr(event, "members", ()):
            self.exists(name, place.members)
            if isinstance(event, Start):
                self.started.add(name)
            elif name not in self.started:
                raise ContractError(place.members, f"{told(name)} has not started by {duration_text(event.at_ms)}")
        if isinstance(event, Resubscribe):
            if bool(event.topics) == (event.pattern is not None):
                raise ContractError(place.event, "say either topics or a pattern")
            check_subscription(event.topics, event.pattern, self.ever, place.event)

    def exists(self, name: str, path: str) -> None:
        if name not in self.named:
            raise ContractError(path, f"there is no member {told(name)}{close(name, self.named)}")

    def on_scale(self, event: Scale, path: str) -> None:
        self.scaled(event.template, event.to, path, "to")

    def on_autoscale(self, event: Autoscale, path: str) -> None:
        self.scaled(event.template, event.most, path, "most")

    def scaled(self, template: str, to: int, path: str, key: str) -> None:
        """Note the members that a scaling may start: from here on the timeline may name them, and the run decides which
        run.
        """
        self.exists(template, at(path, "members"))
        if self.instance_ids.get(template):
            raise ContractError(
                at(path, "members"),
                f"new members would share {told(template)}'s instance_id: leave it out and use a +static strategy",
            )
        kind = kind_of(template)
        done = self.scaled_to.get(kind, 0)
        new = {f"{kind}-{number}" for number in range(done + 1, min(to, done + MAX_MEMBERS + 1) + 1)} - self.named
        if len(self.named) + len(new) > MAX_MEMBERS:
            raise ContractError(at(path, key), f"the scenario would have more than {MAX_MEMBERS:,} members")
        self.scaled_to[kind] = max(done, to)
        self.named |= new
        self.started |= new

    def on_add(self, event: AddPartitions, path: str) -> None:
        now = self.topic(event.topic, at(path, "topic"), event.at_ms)
        if event.to <= now:
            raise ContractError(at(path, "to"), f"{event.topic} has {now} partitions then, and they only become more")
        self.grow(event.to - now, at(path, "to"))
        self.topics[event.topic] = event.to

    def on_create(self, event: CreateTopic, path: str) -> None:
        topic: TopicSpec = event.topic
        if topic.name in self.topics:
            raise ContractError(at(path, "name"), f"there is a topic {topic.name} already")
        self.grow(topic.partitions, at(path, "partitions"))
        self.topics[topic.name] = topic.partitions

    def on_delete(self, event: DeleteTopic, path: str) -> None:
        self.partitions -= self.topic(event.topic, path, event.at_ms)
        del self.topics[event.topic]

    def topic(self, name: str, path: str, at_ms: int) -> int:
        if name not in self.topics:
            raise ContractError(
                path, f"there is no topic {told(name)} at {duration_text(at_ms)}{close(name, self.topics)}"
            )
        return self.topics[name]

    def grow(self, more: int, path: str) -> None:
        self.partitions += more
        if self.partitions > MAX_PARTITIONS:
            raise ContractError(path, f"the scenario would have more than {MAX_PARTITIONS:,} partitions in all")

    @property
    def checks(self) -> Mapping[type, Callable[[Any, str], None]]:
        return {
            Scale: self.on_scale,
            Autoscale: self.on_autoscale,
            AddPartitions: self.on_add,
            CreateTopic: self.on_create,
            DeleteTopic: self.on_delete,
        }
