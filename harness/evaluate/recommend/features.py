"""Reduce a scenario to a few numbers that say which scenarios are near it: its members, and the events they meet.

Given      a Scenario
Returns    Features; `other` names what the numbers do not cover (pauses, poison, migrations): then nothing is near
Start at   features_of
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import median

from rebalance_lab.harness.evaluate.recommend.client_settings import shared
from rebalance_lab.harness.scenario.model import Crash, Event, Restart, RollingRestart, Scale, Scenario, Start, Stop
from rebalance_lab.harness.scenario.presence import late_starters
from rebalance_lab.protocol_v1.member.config import MemberConfig

SESSION = "session.timeout.ms"
TOLD = (Start, Stop, Crash, Restart, RollingRestart, Scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    members: float
    partitions: float
    restarts: float
    """The part of all changes in which a process restarts with a goodbye. How many there are matters less to which
    strategy is cheapest than of which kind: twice as many deploys cost every strategy twice as much."""
    crashes: float
    """The part without a goodbye, for good or to come back."""
    scaled: float
    """The part in which a process comes or goes for good."""
    downtime_s: float
    """Between a process's stop and its next start; the middle one of the timeline."""
    session_s: float
    callbacks_s: float
    """What a member's callbacks take at a rebalance in which everything moves."""
    busy: float
    """The part of the members' time that the records take."""
    surge: float
    """1: a new process starts before the old one stops."""
    other: tuple[str, ...] = ()

    def numbers(self) -> dict[str, float]:
        return {name: value for name, value in asdict(self).items() if name != "other"}


def features_of(scenario: Scenario) -> Features:
    late = late_starters(scenario.timeline)
    members = max(1, len([one for one in scenario.members if one.name not in late]))
    partitions = sum(topic.partitions for topic in scenario.topics)
    events = scenario.timeline
    kinds = (
        sum(restarts(event, members, kill=False) for event in events),
        sum(restarts(event, members, kill=True) for event in events),
        sum(scaled(event, members) for event in events),
    )
    changes = max(1, sum(kinds))
    downtimes = [event.downtime_ms / 1_000 for event in events if isinstance(event, Restart | RollingRestart)]
    calls = scenario.callbacks
    each_ms = calls.revoked_ms_per_partition + calls.assigned_ms_per_partition
    return Features(
        members=members,
        partitions=partitions,
        restarts=kinds[0] / changes,
        crashes=kinds[1] / changes,
        scaled=kinds[2] / changes,
        downtime_s=median(downtimes) if downtimes else 0.0,
        session_s=shared(scenario).get(SESSION, MemberConfig().session_timeout_ms) / 1_000,
        callbacks_s=(calls.revoked_ms + calls.assigned_ms + each_ms * partitions / members) / 1_000,
        busy=busy(scenario, members),
        surge=float(any(isinstance(event, RollingRestart) and event.surge for event in events)),
        other=tuple(sorted(set(untold(scenario)))),
    )


def restarts(event: Event, members: int, *, kill: bool) -> int:
    if isinstance(event, Crash):
        return len(event.members) if kill else 0
    if isinstance(event, RollingRestart):
        return (len(event.members) or members) * (event.kill == kill)
    if isinstance(event, Restart):
        return len(event.members) * event.times * (event.kill == kill)
    return 0


def scaled(event: Event, members: int) -> int:
    if isinstance(event, Scale):
        return abs(event.to - members)
    return len(event.members) if isinstance(event, Start | Stop) else 0


def busy(scenario: Scenario, members: int) -> float:
    rate = sum(topic.rate.steps[0][1] for topic in scenario.topics)
    record_ms = sum(one.record_ms for one in scenario.members) / max(1, len(scenario.members))
    return rate * record_ms / 1_000 / members


def untold(scenario: Scenario) -> Iterator[str]:
    for event in scenario.timeline:
        if not isinstance(event, TOLD):
            yield event.KIND
        elif getattr(event, "strategy", None):
            yield "migration"
    if scenario.poison:
        yield "poison"
    if scenario.network.loss or scenario.network.duplication:
        yield "lossy network"
    if len({(one.topics, one.pattern) for one in scenario.members}) > 1:
        yield "different subscriptions"
    if any(topic.weights is not None for topic in scenario.topics):
        yield "skewed topics"
