"""Warn of what users should know before they take a strategy, as far as it applies to the scenario."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from rebalance_lab.assignors.strategies import Strategy
from rebalance_lab.harness.evaluate.comparison import Comparison
from rebalance_lab.harness.evaluate.recommend.client_settings import settings_of, static_members
from rebalance_lab.harness.evaluate.recommend.idle_members import idle_members
from rebalance_lab.harness.evaluate.recommend.migration_steps import COOPERATIVE
from rebalance_lab.harness.evaluate.recommend.properties_to_paste import CLASSIC_ONLY
from rebalance_lab.harness.scenario.application import Application
from rebalance_lab.harness.scenario.model import DeleteTopic, RollingRestart, Scenario, Slow
from rebalance_lab.harness.scenario.strategy_lists import parse_strategies
from rebalance_lab.harness.scenario.to_group import group_of, largest_group
from rebalance_lab.harness.scenario.units import duration_text
from rebalance_lab.protocol_v2.coordinator import config as v2_config

CONSUMER_SESSION_MS = 45_000
HEARTBEATS_IN_A_SESSION = 3


def cautions(comparison: Comparison, strategy: str) -> Iterator[str]:
    chosen = parse_strategies(strategy)[0]
    scenario = comparison.scenario
    if chosen.static or static_members(scenario):
        yield from static_cautions(chosen, scenario)
    if chosen.protocol == "consumer":
        yield from consumer_cautions(scenario)
    if chosen.protocol == "classic" and chosen.assignor in ("range", "roundrobin", "sticky"):
        yield "Eager: every rebalance takes all partitions from all members, also where nothing moves."
        yield from deletion_cautions(scenario)
    yield from batch_cautions(chosen, scenario)
    yield from heartbeat_cautions(chosen, scenario)
    yield from idle_cautions(scenario)
    for one in comparison.ranking:
        if one.strategy == strategy and one.failed_processes:
            yield f"Processes ended with an exception {one.failed_processes} times in these runs: see what raised."
        elif one.broken:
            yield f"{one.strategy} did not get through every run and was left out of the choice."


def deletion_cautions(scenario: Scenario) -> Iterator[str]:
    """Warn of deleted topics: the leader hears of it first and commits in vain, then the others do."""
    applications = [Application.from_settings(settings_of(member, scenario)) for member in scenario.members]
    waits_ms = max((one.max_poll_interval_ms for one in applications if not one.commits_after_processing), default=0)
    deleted = [event.topic for event in scenario.timeline if isinstance(event, DeleteTopic)]
    if deleted and waits_ms:
        yield (
            f"Where a topic is deleted ({deleted[0]} here) that eager members read, their last auto-commit is tried "
            f"again until max.poll.interval.ms ({duration_text(waits_ms)}) is over, by the "
            "leader and then by the others, and nobody reads: take it out of the subscription first."
        )


def batch_cautions(strategy: Strategy, scenario: Scenario) -> Iterator[str]:
    """Warn of long batches, for the member whose full batches take longest; a lagging member's batches are full."""
    longest_ms, slowest = 0.0, Application.from_settings({})
    for member in scenario.members:
        application = Application.from_settings(settings_of(member, scenario))
        events = [one for one in scenario.timeline if isinstance(one, Slow) and member.name in one.members]
        batch_ms = application.max_poll_records * member.record_ms * max([1.0, *(one.factor for one in events)])
        if batch_ms > longest_ms:
            longest_ms, slowest = batch_ms, application
    records, poll_ms = slowest.max_poll_records, slowest.max_poll_interval_ms
    session, beat_ms = slowest.session_timeout_ms, slowest.heartbeat_interval_ms
    takes = f"A full batch ({records:,} records, max.poll.records) takes up to {duration_text(round(longest_ms))} here"
    unheard = strategy.protocol == "consumer"  # every second poll() while records wait, with Java's client
    allowed_ms = poll_ms // 2 if unheard else poll_ms
    if longest_ms >= allowed_ms:
        two = " (a KIP-848 consumer's two batches have to fit into it, as Kafka 4.3.1's Java client was seen to need)"
        yield (
            f"{takes}, and max.poll.interval.ms is {duration_text(poll_ms)}{two if unheard else ''}: who falls behind "
            f"is put out of the group, and falls further behind. {remedy(records, longest_ms, allowed_ms)}"
        )
    elif strategy.protocol == "classic" and strategy.assignor in COOPERATIVE and longest_ms >= session - beat_ms:
        yield (
            f"{takes}, and session.timeout.ms is {duration_text(session)}: a cooperative member that works on one "
            "while a rebalance completes does not hear of it, sends its first heartbeat only an interval "
            f"({duration_text(beat_ms)}, heartbeat.interval.ms) after it has, and is removed; two such members can "
            f"throw each other out for ever. {remedy(records, longest_ms, session - beat_ms)}"
        )


def heartbeat_cautions(strategy: Strategy, scenario: Scenario) -> Iterator[str]:
    """Warn of heartbeats that are further apart than a third of the session, for the member with the fewest in it."""
    if strategy.protocol == "consumer":
        known = {name: value for name, value in scenario.broker.items() if name in v2_config.PROPERTIES}
        config = v2_config.CoordinatorConfig.from_properties(known)
        session_ms, beat_ms = config.group_consumer_session_timeout_ms, config.group_consumer_heartbeat_interval_ms
        prefix = "group.consumer."
    else:
        applications = [Application.from_settings(settings_of(member, scenario)) for member in scenario.members]
        worst = max(applications, key=lambda one: one.heartbeat_interval_ms / one.session_timeout_ms)
        session_ms, beat_ms, prefix = worst.session_timeout_ms, worst.heartbeat_interval_ms, ""
    if beat_ms * HEARTBEATS_IN_A_SESSION > session_ms:
        yield (
            f"{prefix}heartbeat.interval.ms is {beat_ms:,} ms, and {prefix}session.timeout.ms is {session_ms:,} ms. "
            f"A member whose {lost_heartbeats(session_ms, beat_ms)} late or lost is removed from the group. The rule "
            f"is a third of the session: at most {session_ms // HEARTBEATS_IN_A_SESSION:,} ms."
        )


def lost_heartbeats(session_ms: int, beat_ms: int) -> str:
    """Name the fewest heartbeats whose loss ends a session."""
    fewest = max(1, ceil(session_ms / beat_ms) - 1)
    return "heartbeat is" if fewest == 1 else f"{fewest} heartbeats are"


def idle_cautions(scenario: Scenario) -> Iterator[str]:
    """Warn of members without a partition, at the start of the scenario or when its group is largest."""
    for group, when in ((group_of(scenario), "at the start"), (largest_group(scenario), "when the group is largest")):
        idle, members = idle_members(group), len(group.members)
        if idle:
            read = {topic for member in group.members.values() for topic in member.topics if topic in group.topics}
            partitions = sum(group.topics[topic].partitions for topic in read)
            yield (
                f"The group has {members:,} member{'s' * (members != 1)} and {partitions:,} "
                f"partition{'s' * (partitions != 1)} {when}: {idle:,} member{'s are' if idle != 1 else ' is'} idle, "
                "whatever the strategy. Idle members take part in each rebalance and read nothing until another "
                "member leaves."
            )
            return


def remedy(records: int, takes_ms: float, allowed_ms: int) -> str:
    most = ceil(records * allowed_ms / takes_ms) - 1
    return f"At most {most:,} records a poll would do." if most else "Even a single record takes as long."


def session_ms(strategy: Strategy, scenario: Scenario) -> int:
    """Return the longest session timeout, where members differ."""
    if strategy.protocol == "consumer":
        return int(scenario.broker.get("group.consumer.session.timeout.ms", CONSUMER_SESSION_MS))
    return max(
        Application.from_settings(settings_of(member, scenario)).session_timeout_ms for member in scenario.members
    )


def static_cautions(strategy: Strategy, scenario: Scenario) -> Iterator[str]:
    session = duration_text(session_ms(strategy, scenario))
    yield (
        f"Static membership: nobody takes over from a member that crashed or was stopped for good before its session "
        f"ends ({session}); until then its partitions stand still."
    )
    if strategy.protocol == "consumer":
        yield (
            "KIP-848: a static member that was killed and is back before its session ended is refused "
            f"(UNRELEASED_INSTANCE_ID, fatal for the Java client) for up to {session}: let processes close, or start "
            "them again until they get in."
        )
    if any(isinstance(event, RollingRestart) and event.surge for event in scenario.timeline):
        yield (
            "The new pod starts before the old one stops (surge), so it cannot have the old one's group.instance.id: "
            "static membership is for StatefulSets."
        )


def consumer_cautions(scenario: Scenario) -> Iterator[str]:
    settings = [settings_of(member, scenario) for member in scenario.members]
    set_here = [name for name in CLASSIC_ONLY if any(name in one for one in settings)]
    if set_here:
        yield (
            f"{' and '.join(set_here)} of the clients mean nothing in the consumer protocol: the broker's "
            "group.consumer.session.timeout.ms and group.consumer.heartbeat.interval.ms hold there, and held in these "
            "runs."
        )
    yield (
        "In the consumer protocol a partition that moves waits for heartbeats, every "
        f"{duration_text(int(scenario.broker.get('group.consumer.heartbeat.interval.ms', 5_000)))} here "
        "(group.consumer.heartbeat.interval.ms, or consumer.heartbeat.interval.ms for one group)."
    )


def fetch_session_caution(scenario: Scenario, brokers: int, strategy: str) -> str | None:
    """Warn where the brokers' fetch session slots do not suffice for this group alone, with all that its life
    brings.
    """
    from rebalance_lab.harness.evaluate.fetch_sessions.prediction import predict, warning

    first = parse_strategies(strategy)[0]
    prediction = predict(
        [largest_group(scenario)],
        brokers=brokers,
        replication=min(3, brokers),
        strategy=f"{first.protocol}/{first.assignor}",
    )
    return warning(prediction)
