"""Predict what a run will cost before it runs, so that all Spark tasks get equal work.

The unit is about a millisecond of one core; only proportions matter. A rebalance is work for every member, and every
start or stop is a rebalance. Partitions add to each rebalance. Quiet time costs little, because the simulator leaps it.
Start at   predicted_ms
"""

from __future__ import annotations

from rebalance_lab.harness.scenario.model import Autoscale, Event, Restart, RollingRestart, Scale, Scenario

HOUR_MS = 3_600_000


def predicted_ms(scenario: Scenario) -> float:
    members = max(1, len(scenario.members))
    partitions = sum(topic.partitions for topic in scenario.topics)
    changes = members + sum(changes_of(event, members) for event in scenario.timeline)
    hours = scenario.duration_ms / HOUR_MS
    return round(4 + 0.35 * changes * (members + partitions / 8) + 0.05 * members * hours, 3)


def changes_of(event: Event, members: int) -> float:
    """Count how many processes come or go."""
    if isinstance(event, RollingRestart):
        return 2.0 * (len(event.members) or members)
    if isinstance(event, Restart):
        return 2.0 * len(event.members) * event.times
    if isinstance(event, Scale):
        return abs(event.to - members)
    if isinstance(event, Autoscale):
        return 2.0 * event.most
    return max(1.0, len(getattr(event, "members", ())))
