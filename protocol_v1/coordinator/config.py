"""Hold the broker's settings that a classic coordinator obeys, under Kafka's names and with Kafka 4.3.1's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    """Hold the settings by their names with underscores: group_max_size is `group.max.size`."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = INT32_MAX
    offset_metadata_max_bytes: int = 4_096
    """In spite of its name Kafka counts UTF-16 units."""
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    offsets_commit_timeout_ms: int = 5_000
    """How long the coordinator's host waits for an append, before it reports REQUEST_TIMED_OUT."""

    new_member_join_timeout_ms: int = 300_000
    """Not a setting but a constant of the broker: how long a first JoinGroup may stay parked."""

    @classmethod
    def from_properties(cls, properties: Mapping[str, int]) -> CoordinatorConfig:
        return cls(**{name.replace(".", "_"): value for name, value in properties.items()})


PROPERTIES = tuple(
    field.name.replace("_", ".") for field in fields(CoordinatorConfig) if field.name != "new_member_join_timeout_ms"
)
"""What a sequence or a scenario may set."""
