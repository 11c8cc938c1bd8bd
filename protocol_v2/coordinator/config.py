"""Hold the broker's settings that a coordinator of consumer groups obeys, with Kafka 4.3.1's names and defaults.

A group may override three of them (`GROUP_SETTINGS`) while it lives. The override counts from the next timer, answer
or computation on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

INT32_MAX = 2**31 - 1


class MigrationPolicy(Enum):
    """Name which way a group with members may change its protocol; empty groups change it under every policy."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def downgrades(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSetting:
    """A setting that is a list of names, as text with commas or as a list."""

    names: Mapping[str, str]
    """What a broker accepts, and the name by which the coordinator knows it."""
    required: str | None = None
    """A name without which no broker starts."""

    def read(self, value: Any) -> tuple[str, ...]:
        """Return the names, or raise ValueError with what is wrong in one sentence."""
        entries = [entry.strip() for entry in value.split(",")] if isinstance(value, str) else value
        if not isinstance(entries, (list, tuple)) or not all(isinstance(entry, str) for entry in entries):
            raise ValueError(f"expected names from {self.known}")
        if not entries:
            raise ValueError(f"must not be empty; known: {self.known}")
        for entry in entries:
            if entry not in self.names:
                raise ValueError(f"expected names from {self.known}, found {entry!r}")
        if len(set(entries)) < len(entries):
            raise ValueError("lists a name twice")
        found = tuple(self.names[entry] for entry in entries)
        if self.required is not None and self.required not in found:
            raise ValueError(f"must list {self.required}: no broker starts without it")
        return found

    @property
    def known(self) -> str:
        return ", ".join(dict.fromkeys(self.names.values()))


ASSIGNORS = "group.consumer.assignors"
REBALANCE_PROTOCOLS = "group.coordinator.rebalance.protocols"
KAFKA_ASSIGNORS = "org.apache.kafka.coordinator.group.assignor"
LISTS: Mapping[str, ListSetting] = {
    ASSIGNORS: ListSetting(
        names={
            "uniform": "uniform",
            "range": "range",
            f"{KAFKA_ASSIGNORS}.UniformAssignor": "uniform",
            f"{KAFKA_ASSIGNORS}.RangeAssignor": "range",
        }
    ),
    REBALANCE_PROTOCOLS: ListSetting(
        names={name: name for name in ("classic", "consumer", "share", "streams")}, required="classic"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    """Hold the settings by their names with underscores: group_max_size is `group.max.size`."""

    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_min_session_timeout_ms: int = 45_000
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_min_heartbeat_interval_ms: int = 5_000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_assignment_interval_ms: int = 1_000
    """At least so long lie between two targets of a group; 0 computes at once."""
    group_consumer_min_assignment_interval_ms: int = 0
    group_consumer_max_assignment_interval_ms: int = 15_000
    group_consumer_max_size: int = INT32_MAX
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """By name. A group whose members name none gets the first; a name that is not listed is refused."""
    group_coordinator_rebalance_protocols: tuple[str, ...] = ("classic", "consumer", "streams")
    """Without `consumer`, requests of KIP-848 are answered UNSUPPORTED_VERSION."""
    group_max_size: int = INT32_MAX
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    offsets_commit_timeout_ms: int = 5_000
    """How long the coordinator's host waits for an append, before it reports REQUEST_TIMED_OUT."""

    wakes_classic_members: bool = False
    """Not a setting of Kafka: also wake classic members when the target is out of date, not only when they are behind
    it. Kafka does not, and a group of classic members alone then never hears of a leaver's partitions."""

    forgets_empty_groups: bool = True
    """Nor is this: a JoinGroup with a foreign member id makes Kafka forget an empty consumer group, though not in its
    log, so that the next member starts again at epoch 2."""

    keeps_join_timers: bool = True
    """Nor is this: an upgrade does not cancel the timer of the classic group's join phase. If the group has been
    downgraded by the time the timer is due, Kafka ends a join phase that the new group never began, and removes its
    dynamic members."""

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> CoordinatorConfig:
        values = {name.replace(".", "_"): value for name, value in properties.items()}
        policy = values.get("group_consumer_migration_policy")
        if policy is not None:
            values["group_consumer_migration_policy"] = MigrationPolicy(policy)
        for name in LISTS:
            if name in properties:
                values[name.replace(".", "_")] = LISTS[name].read(properties[name])
        return cls(**values)


QUIRKS = ("wakes_classic_members", "forgets_empty_groups", "keeps_join_timers")
PROPERTIES = tuple(field.name.replace("_", ".") for field in fields(CoordinatorConfig) if field.name not in QUIRKS)
"""What a sequence or a scenario may set. All are numbers, except the migration policy's word and LISTS."""

SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"
GROUP_SETTINGS = (SESSION_TIMEOUT, HEARTBEAT_INTERVAL, ASSIGNMENT_INTERVAL)
GroupSettings = Mapping[str, int]


def setting(config: CoordinatorConfig, group: GroupSettings, name: str) -> int:
    """Return the group's own value, held within the broker's limits, or else the broker's."""
    if name not in group:
        return default_of(config, name)
    low, high = limits(config, name)
    return min(max(group[name], low), high)


DEFAULTS = {name: "group_" + name.replace(".", "_") for name in GROUP_SETTINGS}
"""Where the broker's own value stands."""


def default_of(config: CoordinatorConfig, name: str) -> int:
    return int(getattr(config, DEFAULTS[name]))


def limits(config: CoordinatorConfig, name: str) -> tuple[int, int]:
    what = name.removeprefix("consumer.").replace(".", "_")
    return int(getattr(config, f"group_consumer_min_{what}")), int(getattr(config, f"group_consumer_max_{what}"))


def refusal_of(config: CoordinatorConfig, group: GroupSettings) -> str | None:
    """Return in one sentence why a broker would not store these settings, or None."""
    for name, value in group.items():
        low, high = limits(config, name)
        if not low <= value <= high:
            return f"{name} must be between {low} and {high}, got {value}"
    if setting(config, group, SESSION_TIMEOUT) <= setting(config, group, HEARTBEAT_INTERVAL):
        return f"{SESSION_TIMEOUT} must be greater than {HEARTBEAT_INTERVAL}"
    return None
