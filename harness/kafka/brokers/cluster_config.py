"""Hold the broker settings that decide how groups behave, typed, with defaults that make tests quick.

Given      values by keyword; whatever is not a field goes into `extra` under Kafka's own name
Returns    Kafka properties for one node, to be written as server.properties (jvm) or as KAFKA_* variables (containers)
Invariant  a value that no broker would accept is refused here, by the setting's name, before anything is started
Start at   BrokerConfig
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError

if TYPE_CHECKING:
    from collections.abc import Mapping

MIGRATION_POLICIES = ("disabled", "upgrade", "downgrade", "bidirectional")

BOUNDS = (
    # setting, at least, at most: either a number or the name of another setting
    ("group_initial_rebalance_delay_ms", 0, None),
    ("group_min_session_timeout_ms", 1, "group_max_session_timeout_ms"),
    ("group_max_session_timeout_ms", 1, None),
    ("group_consumer_min_heartbeat_interval_ms", 1, "group_consumer_max_heartbeat_interval_ms"),
    ("group_consumer_max_heartbeat_interval_ms", 1, None),
    (
        "group_consumer_heartbeat_interval_ms",
        "group_consumer_min_heartbeat_interval_ms",
        "group_consumer_max_heartbeat_interval_ms",
    ),
    ("group_consumer_min_session_timeout_ms", 1, "group_consumer_max_session_timeout_ms"),
    ("group_consumer_max_session_timeout_ms", 1, None),
    (
        "group_consumer_session_timeout_ms",
        "group_consumer_min_session_timeout_ms",
        "group_consumer_max_session_timeout_ms",
    ),
    ("group_consumer_assignment_interval_ms", 0, 15_000),
    ("group_max_size", 1, None),
    ("offsets_topic_num_partitions", 1, None),
    ("offsets_topic_replication_factor", 1, None),
    ("broker_session_timeout_ms", "broker_heartbeat_interval_ms", None),
    ("broker_heartbeat_interval_ms", 1, None),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """Hold Kafka's settings with underscores for dots; what is None is left to Kafka or to the number of nodes."""

    group_initial_rebalance_delay_ms: int = 0
    """Kafka waits 3 s for more members before a new group's first rebalance; a test wants the first one at once."""

    group_min_session_timeout_ms: int = 100
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int | None = None

    group_consumer_heartbeat_interval_ms: int = 500
    """KIP-848 members learn of a new assignment with a heartbeat: this bounds how soon (Kafka's default is 5 s)."""
    group_consumer_min_heartbeat_interval_ms: int = 50
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_session_timeout_ms: int = 10_000
    group_consumer_min_session_timeout_ms: int = 100
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_assignment_interval_ms: int = 0
    """How long a KIP-848 group batches changes before it computes a new target (from 4.3 on; Kafka waits 1 s)."""
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """The first is the default of members that name none; a Java class name is also accepted."""
    group_consumer_migration_policy: str = "bidirectional"

    offsets_topic_num_partitions: int = 4
    """Kafka's 50 are slow to create on three nodes, and the coordinator of a group is found just as well among four."""
    offsets_topic_replication_factor: int | None = None

    broker_session_timeout_ms: int = 6_000
    """How long the controller waits before it moves a dead node's work; a fail-over can be no quicker than this."""
    broker_heartbeat_interval_ms: int = 500

    racks: tuple[str, ...] = ()
    """`broker.rack` of node 1, 2, ...; empty, or one for each node."""

    auto_create_topics_enable: bool = False

    extra: Mapping[str, str] = field(default_factory=dict)
    """Anything else, by Kafka's name (`log.retention.ms`); it wins over the fields above."""

    def __post_init__(self) -> None:
        for name, least, most in BOUNDS:
            self._check_bounds(name, least, most)
        if self.group_consumer_heartbeat_interval_ms >= self.group_consumer_session_timeout_ms:
            raise BrokerError(
                f"group.consumer.heartbeat.interval.ms is {self.group_consumer_heartbeat_interval_ms}: it must be less"
                f" than group.consumer.session.timeout.ms ({self.group_consumer_session_timeout_ms})"
            )
        if self.group_consumer_migration_policy not in MIGRATION_POLICIES:
            raise BrokerError(
                f"group.consumer.migration.policy is {self.group_consumer_migration_policy!r}:"
                f" it must be one of {', '.join(MIGRATION_POLICIES)}"
            )
        if isinstance(self.group_consumer_assignors, str) or not self.group_consumer_assignors:
            raise BrokerError("group.consumer.assignors must be a tuple of at least one assignor")
        if not isinstance(self.auto_create_topics_enable, bool):
            raise BrokerError(
                f"auto.create.topics.enable is {self.auto_create_topics_enable!r}: it must be True or False"
            )
        for key, value in self.extra.items():
            if not re.fullmatch(r"[a-z0-9._-]+", key) or not isinstance(value, str) or "\n" in value:
                raise BrokerError(
                    f"extra setting {key!r} is {value!r}: a Kafka setting's name and a one-line text go here"
                )

    def _check_bounds(self, name: str, least: int | str, most: int | str | None) -> None:
        value = getattr(self, name)
        if value is None:
            return
        setting = kafka_name(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise BrokerError(f"{setting} is {value!r}: it must be a whole number")
        for bound, wrong, words in ((least, int.__lt__, "at least"), (most, int.__gt__, "at most")):
            limit = getattr(self, bound) if isinstance(bound, str) else bound
            if isinstance(limit, int) and wrong(value, limit):
                source = f" ({kafka_name(bound)})" if isinstance(bound, str) else ""
                raise BrokerError(f"{setting} is {value}: it must be {words} {limit}{source}")

    def properties(self, *, node: int, nodes: int) -> dict[str, str]:
        """Return all settings of one node except where it listens, which only the provider knows."""
        if self.racks and len(self.racks) != nodes:
            raise BrokerError(
                f"broker.rack: {len(self.racks)} racks for {nodes} nodes; give one for each node, or none"
            )
        if (self.offsets_topic_replication_factor or 1) > nodes:
            raise BrokerError(
                f"offsets.topic.replication.factor is {self.offsets_topic_replication_factor}: there are {nodes} nodes"
            )
        replicas = str(min(3, nodes))
        settings = {
            "offsets.topic.replication.factor": replicas,
            "default.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": str(min(2, nodes)),
            "transaction.state.log.num.partitions": "4",
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": str(min(2, nodes)),
            "share.coordinator.state.topic.num.partitions": "4",
        }
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name in ("racks", "extra") or value is None:
                continue
            settings[kafka_name(each.name)] = _text(value)
        if self.racks:
            settings["broker.rack"] = self.racks[node - 1]
        return {**settings, **self.extra}


def kafka_name(field_name: str) -> str:
    return field_name.replace("_", ".")


def _text(value: bool | int | str | tuple[str, ...]) -> str:
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def as_properties_file(settings: Mapping[str, str]) -> str:
    """Write Java's format: only a backslash needs care, since neither names nor values begin with a space."""
    return "".join(f"{key}={value.replace(chr(92), chr(92) * 2)}\n" for key, value in settings.items())


def as_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Follow the official image's convention: KAFKA_ + upper case, with `_` for a dot, `__` for `_` and `___` for
    `-`.
    """

    def variable(key: str) -> str:
        return "KAFKA_" + key.replace("_", "__").replace("-", "___").replace(".", "_").upper()

    return {variable(key): value for key, value in settings.items()}
