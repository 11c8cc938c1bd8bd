"""Explain why a live run may differ from a simulated one: named reasons, each with what it allows and no more.

The simulator's members are Java's; the live ones are librdkafka's (2.x, as confluent-kafka brings it). Where the two
differ by design, a difference is explained, within the bound that the reason itself sets.
Start at   explanation
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from rebalance_lab.harness.scenario.application import Application
from rebalance_lab.harness.scenario.model import (
    AddPartitions,
    Crash,
    CreateTopic,
    DeleteTopic,
    Pause,
    Restart,
    RollingRestart,
    Scenario,
)
from rebalance_lab.harness.scenario.strategy_lists import parse_strategies
from rebalance_lab.protocol_v1.member.config import MemberConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    scenario: Scenario
    strategy: str
    measure: str
    low: float
    high: float
    """Of the simulated seeds."""
    live: float

    def has(self, *kinds: type) -> bool:
        return any(isinstance(event, kinds) for event in self.scenario.timeline)

    @property
    def is_classic(self) -> bool:
        return parse_strategies(self.strategy)[0].protocol == "classic"

    @property
    def steps(self) -> int:
        """Return how often a member is disturbed."""
        members = len(self.scenario.members)
        return sum(members if isinstance(event, RollingRestart) else 1 for event in self.scenario.timeline)


@dataclass(frozen=True, slots=True)
class Reason:
    name: str
    text: str
    allows: Callable[[Case], bool]


def commit_window(case: Case) -> bool:
    """Allow what comes in between two auto-commits, at most, each time a member is interrupted."""
    interval_s = case.scenario.client.get("auto.commit.interval.ms", 5_000) / 1_000
    rate = sum(max(value for _, value in topic.rate.steps) for topic in case.scenario.topics)
    interrupted = case.has(Crash, Pause, Restart, RollingRestart)
    return case.measure == "read_twice" and interrupted and case.live <= rate * interval_s * case.steps


def batches_after_standstills(scenario: Scenario) -> int:
    """Count the records, at most, that are worked on after standstills that outlast a session: one batch each time."""
    session_ms = scenario.client.get("session.timeout.ms", MemberConfig().session_timeout_ms)
    pauses = [event for event in scenario.timeline if isinstance(event, Pause) and event.for_ms > session_ms]
    return Application.from_settings(scenario.client).max_poll_records * sum(len(event.members) for event in pauses)


def notices_its_session_is_over(case: Case) -> bool:
    """Allow for fewer records read twice, at most those that Java's application still works on."""
    spared = batches_after_standstills(case.scenario)
    return case.measure == "read_twice" and case.low - spared <= case.live < case.low


def fetches_before_it_hears(case: Case) -> bool:
    """Allow one more batch after a standstill. In eight live runs four had such a batch, or a part of one."""
    worked_on = batches_after_standstills(case.scenario)
    return case.measure == "read_twice" and not case.is_classic and case.high < case.live <= case.high + worked_on


def new_partitions_are_noticed_late(case: Case) -> bool:
    age_s = case.scenario.metadata_max_age_ms / 1_000
    new = sum(event.to for event in case.scenario.timeline if isinstance(event, AddPartitions))
    new += sum(event.topic.partitions for event in case.scenario.timeline if isinstance(event, CreateTopic))
    allowed = {"unowned_s": new * 2 * age_s, "settle_mean_s": 2 * age_s}
    return bool(new) and case.measure in allowed and case.low <= case.live <= case.high + allowed[case.measure]


def everybody_watches_metadata(case: Case) -> bool:
    """Allow fewer costs and more rebalances: the first member to notice is enough, and each may want a rebalance of its
    own.
    """
    within = case.live < case.low
    if case.measure == "rebalances":
        within = case.live <= case.high + len(case.scenario.members) - 1
    told = case.measure in ("rebalances", "unowned_s", "settle_mean_s")
    return case.is_classic and case.has(AddPartitions, CreateTopic) and told and within


def heartbeats_run_on(case: Case) -> bool:
    """Allow a rebalance to be noticed up to a heartbeat's interval sooner; one member's share waits so much less for
    it.
    """
    interval_s = case.scenario.client.get("heartbeat.interval.ms", MemberConfig().heartbeat_interval_ms) / 1_000
    share = ceil(sum(topic.partitions for topic in case.scenario.topics) / len(case.scenario.members))
    allowed = {"unowned_s": share * interval_s * case.steps, "settle_mean_s": interval_s}
    return case.is_classic and case.measure in allowed and case.low - allowed[case.measure] <= case.live < case.low


def joins_once_a_second(case: Case) -> bool:
    """Allow each join of each step up to a second more, and with it every partition that waits for it."""
    partitions = sum(topic.partitions for topic in case.scenario.topics)
    allowed = {"unowned_s": float(partitions * case.steps), "settle_mean_s": 2.0}
    return case.is_classic and case.measure in allowed and case.low <= case.live <= case.high + allowed[case.measure]


def the_broker_matches(case: Case) -> bool:
    """Allow one rebalance instead of one for each member, and no move to the first member to notice and on from
    there.
    """
    patterns = any(member.pattern is not None for member in case.scenario.members)
    told = case.measure in ("rebalances", "moved", "unowned_s", "settle_mean_s")
    return not case.is_classic and patterns and case.has(CreateTopic) and told and case.live < case.low


def nobody_waits_for_the_commit(case: Case) -> bool:
    """Allow lower costs, because no member waits for the commit or is put out for having waited too long."""
    told = case.measure in ("rebalances", "moved", "unowned_s", "settle_mean_s", "read_twice")
    return case.is_classic and case.has(DeleteTopic) and told and case.live < case.low


REASONS = (
    Reason(
        "pattern",
        "librdkafka leaves patterns of a KIP-848 group to the broker, which gives a new topic to all at once; Java's "
        "subscribe(Pattern) matches in each member, and each that notices brings about a rebalance",
        the_broker_matches,
    ),
    Reason(
        "deleted topic",
        "a commit that is refused for a topic that is gone is not tried again by librdkafka; Java's members try until "
        "max.poll.interval.ms is over before they join, and some are put out for it",
        nobody_waits_for_the_commit,
    ),
    Reason(
        "own session",
        "after a standstill librdkafka sees by its own clock that its session is over and drops what it has fetched; "
        "Java's application works on one more batch, which others have read meanwhile",
        notices_its_session_is_over,
    ),
    Reason(
        "one more batch",
        "after a standstill the answers to a KIP-848 member's fetch and to its heartbeat race: before librdkafka hears "
        "that it was put out, it may give the application one more batch, which others have read meanwhile",
        fetches_before_it_hears,
    ),
    Reason(
        "commit window",
        "inside the auto-commit's window: librdkafka counts its interval from another moment than Java does",
        commit_window,
    ),
    Reason(
        "metadata age",
        "librdkafka reads a new partition only once its own metadata has it, up to metadata.max.age.ms later",
        new_partitions_are_noticed_late,
    ),
    Reason(
        "metadata watchers",
        "in librdkafka every member rejoins when it notices new partitions, and the first is enough; in Java only the "
        "leader does",
        everybody_watches_metadata,
    ),
    Reason(
        "heartbeat clock",
        "librdkafka's heartbeats go on in their rhythm through a rebalance, Java's begin anew with each: so the next "
        "one is noticed up to heartbeat.interval.ms sooner",
        heartbeats_run_on,
    ),
    Reason(
        "join interval",
        "librdkafka sends at most one JoinGroup a second, so what waits for a (re)join waits up to a second longer",
        joins_once_a_second,
    ),
)


def explanation(case: Case) -> str | None:
    return next((f"{reason.name}: {reason.text}" for reason in REASONS if reason.allows(case)), None)
