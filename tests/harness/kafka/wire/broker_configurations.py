"""Draw the settings of a broker for the differential test: every setting that our coordinators obey, varied.

Timers stay short enough that a sequence meets them, and far enough apart that a sequence can keep clear of them.
"""

from __future__ import annotations

from random import Random
from typing import Any

from rebalance_lab.harness.kafka.brokers import BrokerConfig


def draw_configuration(number: int) -> BrokerConfig:
    random = Random(f"broker configuration {number}")
    heartbeat_ms = random.choice((300, 400, 900))
    named: dict[str, Any] = {
        "group_initial_rebalance_delay_ms": random.choice((0, 200, 600)),
        "group_max_size": random.choice((2, 3, 5, 100)),
        "group_min_session_timeout_ms": random.choice((100, 600)),
        "group_max_session_timeout_ms": random.choice((12_000, 1_800_000)),
        "group_consumer_heartbeat_interval_ms": heartbeat_ms,
        "group_consumer_session_timeout_ms": random.choice((1_500, 2_500)),
        "group_consumer_assignment_interval_ms": random.choice((0, 0, 700, 1_000)),
        "group_consumer_assignors": random.choice(
            (("uniform", "range"), ("range", "uniform"), ("range",), ("uniform",))
        ),
        "group_consumer_migration_policy": random.choice(
            ("bidirectional", "bidirectional", "bidirectional", "upgrade", "downgrade", "disabled")
        ),
    }
    extra = {
        "group.consumer.max.size": str(random.choice((2, 3, 5, 100))),
        "offset.metadata.max.bytes": str(random.choice((2, 4_096))),
    }
    if random.random() < 0.1:
        extra["group.coordinator.rebalance.protocols"] = random.choice(("classic", "classic,consumer"))
    return BrokerConfig(**named, extra=extra)
