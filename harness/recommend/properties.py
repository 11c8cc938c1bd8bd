"""What to paste: the same strategy in Java's words, in librdkafka's and in the broker's.

The two clients share names but not values: Java takes assignors as classes, librdkafka by name, and librdkafka knows
range, roundrobin and cooperative-sticky only. In the consumer protocol both refuse session.timeout.ms,
heartbeat.interval.ms and partition.assignment.strategy: those are the broker's there.

Start at   properties
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assignors.strategies import Strategy
from harness.scenario.model import Scenario
from harness.scenario.strategy_lists import JAVA_CLASSES, parse_strategies

JAVA_PACKAGE = "org.apache.kafka.clients.consumer"
CLASS_OF = {name: f"{JAVA_PACKAGE}.{java}" for java, name in JAVA_CLASSES.items()}
IN_LIBRDKAFKA = ("range", "roundrobin", "cooperative-sticky")
INSTANCE_ID = "a name that is this instance's own and survives its restart, such as a StatefulSet's pod name"

KEPT = ("max.poll.interval.ms", "max.poll.records", "enable.auto.commit", "auto.commit.interval.ms")
"""A scenario's own settings that belong to both protocols."""
CLASSIC_ONLY = ("session.timeout.ms", "heartbeat.interval.ms")
JAVA_ONLY = ("max.poll.records",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Properties:
    java: Mapping[str, str] | None
    """None: no Java client has this strategy."""
    librdkafka: Mapping[str, str] | None
    broker: Mapping[str, str]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "java": self.java and dict(self.java),
            "librdkafka": self.librdkafka and dict(self.librdkafka),
            "broker": dict(self.broker),
            "notes": list(self.notes),
        }


def properties(strategy: str, scenario: Scenario) -> Properties:
    offered = parse_strategies(strategy)
    if offered[0].protocol == "consumer":
        return consumer_properties(offered[0], scenario)
    notes = []
    own = [one.assignor for one in offered if one.assignor not in CLASS_OF]
    foreign = [one.assignor for one in offered if one.assignor not in IN_LIBRDKAFKA]
    if own:
        notes.append(f"{', '.join(own)}: an assignor that no client brings along; yours has to implement it")
    elif foreign:
        notes.append(f"librdkafka has no {', '.join(foreign)} assignor: its clients cannot be in this group")
    rest = common(offered[0], scenario, CLASSIC_ONLY)
    java = {
        "group.protocol": "classic",
        "partition.assignment.strategy": ",".join(CLASS_OF.get(one.assignor, one.assignor) for one in offered),
        **rest,
    }
    librdkafka = {
        "group.protocol": "classic",
        "partition.assignment.strategy": ",".join(one.assignor for one in offered),
        **without(rest, JAVA_ONLY),
    }
    mixed = len(offered) > 1 and any(one.assignor == "cooperative-sticky" for one in offered)
    if mixed and not foreign:
        notes.append("librdkafka refuses a list that mixes eager and cooperative assignors")
    return Properties(
        java=None if own else java,
        librdkafka=None if foreign or mixed else librdkafka,
        broker={},
        notes=tuple(notes),
    )


def consumer_properties(strategy: Strategy, scenario: Scenario) -> Properties:
    client = {
        "group.protocol": "consumer",
        "group.remote.assignor": strategy.assignor,
        **common(strategy, scenario, ()),
    }
    broker = {name: str(value) for name, value in scenario.broker.items() if name.startswith("group.consumer.")}
    return Properties(
        java=client,
        librdkafka=without(client, JAVA_ONLY),
        broker=broker,
        notes=(
            "Remove session.timeout.ms, heartbeat.interval.ms and partition.assignment.strategy: clients refuse them "
            "together with group.protocol=consumer. The first two are the broker's group.consumer.session.timeout.ms "
            "and group.consumer.heartbeat.interval.ms, or the group's own consumer.session.timeout.ms and "
            "consumer.heartbeat.interval.ms (kafka-configs.sh --entity-type groups)",
            "Needs brokers of Kafka 4.0 or newer, Java clients of 4.0 or librdkafka 2.12 or newer",
        ),
    )


def common(strategy: Strategy, scenario: Scenario, more: tuple[str, ...]) -> dict[str, str]:
    found = {name: as_text(scenario.client[name]) for name in (*more, *KEPT) if name in scenario.client}
    if strategy.static:
        found["group.instance.id"] = f"<{INSTANCE_ID}>"
    return found


def without(settings: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name not in names}


def as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_lines(settings: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in settings.items())
