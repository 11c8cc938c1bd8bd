"""Write the settings to paste for a strategy: for Java clients, for librdkafka clients, and for brokers.

The two clients share names but not values: Java takes assignors as classes, librdkafka by name, and librdkafka knows
range, roundrobin and cooperative-sticky only. In the consumer protocol both refuse session.timeout.ms,
heartbeat.interval.ms and partition.assignment.strategy: those are the broker's there. Settings of the scenario's
members and brokers are listed as well, because the runs had them.

Start at   properties
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_lab.assignors.strategies import Strategy
from rebalance_lab.harness.evaluate.recommend.client_settings import (
    as_text,
    listed,
    shared,
    static_members,
    who_differs,
)
from rebalance_lab.harness.evaluate.recommend.librdkafka_limits import IN_LIBRDKAFKA, for_librdkafka
from rebalance_lab.harness.scenario.model import Scenario
from rebalance_lab.harness.scenario.strategy_lists import JAVA_CLASSES, parse_strategies
from rebalance_lab.protocol_v1.coordinator import config as v1
from rebalance_lab.protocol_v2.coordinator import config as v2

JAVA_PACKAGE = "org.apache.kafka.clients.consumer"
CLASS_OF = {name: f"{JAVA_PACKAGE}.{java}" for java, name in JAVA_CLASSES.items()}
INSTANCE_ID = "a name that is this instance's own and survives its restart, such as a StatefulSet's pod name"

KEPT = ("max.poll.interval.ms", "max.poll.records", "enable.auto.commit", "auto.commit.interval.ms")
"""A scenario's own settings that belong to both protocols."""
CLASSIC_ONLY = ("session.timeout.ms", "heartbeat.interval.ms")
POLICY = "group.consumer.migration.policy"
"""Of which the migration's steps say what it must become."""


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
    names = (*CLASSIC_ONLY, *KEPT)
    rest = common(offered[0], scenario, names)
    java = {
        "group.protocol": "classic",
        "partition.assignment.strategy": ",".join(CLASS_OF.get(one.assignor, one.assignor) for one in offered),
        **rest,
    }
    librdkafka, limits = for_librdkafka(rest, classic=True)
    mixed = len(offered) > 1 and any(one.assignor == "cooperative-sticky" for one in offered)
    if mixed and not foreign:
        notes.append("librdkafka refuses a list that mixes eager and cooperative assignors")
    can_join = not foreign and not mixed
    return Properties(
        java=None if own else java,
        librdkafka={
            "group.protocol": "classic",
            "partition.assignment.strategy": ",".join(one.assignor for one in offered),
            **librdkafka,
        }
        if can_join
        else None,
        broker=of_brokers(scenario, v1.PROPERTIES),
        notes=(*notes, *(limits if can_join else ()), *of_members(offered[0], scenario, names)),
    )


def consumer_properties(strategy: Strategy, scenario: Scenario) -> Properties:
    chosen = {"group.protocol": "consumer", "group.remote.assignor": strategy.assignor}
    rest = common(strategy, scenario, KEPT)
    librdkafka, limits = for_librdkafka(rest, classic=False)
    return Properties(
        java={**chosen, **rest},
        librdkafka={**chosen, **librdkafka},
        broker=of_brokers(scenario, v2.PROPERTIES),
        notes=(
            "Remove session.timeout.ms, heartbeat.interval.ms and partition.assignment.strategy: clients refuse them "
            "together with group.protocol=consumer. The first two are the broker's group.consumer.session.timeout.ms "
            "and group.consumer.heartbeat.interval.ms, or the group's own consumer.session.timeout.ms and "
            "consumer.heartbeat.interval.ms (kafka-configs.sh --entity-type groups)",
            "Needs brokers of Kafka 4.0 or newer, Java clients of 4.0 or librdkafka 2.12 or newer",
            *limits,
            *of_members(strategy, scenario, KEPT),
        ),
    )


def common(strategy: Strategy, scenario: Scenario, names: tuple[str, ...]) -> dict[str, str]:
    known = shared(scenario)
    found = {name: as_text(known[name]) for name in names if name in known}
    if strategy.static or static_members(scenario):
        found["group.instance.id"] = f"<{INSTANCE_ID}>"
    return found


def of_members(strategy: Strategy, scenario: Scenario, names: tuple[str, ...]) -> Iterator[str]:
    """List settings of single members, which a user cannot paste for all."""
    static = static_members(scenario)
    if not strategy.static and 0 < len(static) < len(scenario.members):
        yield f"In these runs {listed(static)} had a group.instance.id"
    yield from who_differs(scenario, names)


def of_brokers(scenario: Scenario, names: Sequence[str]) -> dict[str, str]:
    return {name: str(value) for name, value in scenario.broker.items() if name in names and name != POLICY}


def as_lines(settings: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in settings.items())
