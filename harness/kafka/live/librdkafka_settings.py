"""Write a strategy and a scenario as librdkafka's settings, for the consumers of a live run.

Refused    what librdkafka does not have: sticky and load-aware assignors, custom ones, cutting a member's network
Start at   check_live, client_settings
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.kafka.brokers import BrokerConfig
from rebalance_lab.harness.scenario.instance_ids import InstanceIds
from rebalance_lab.harness.scenario.model import FailOver, Isolate, MemberSpec, RollingRestart, Scenario
from rebalance_lab.harness.scenario.strategy_lists import parse_strategies

CLASSIC = ("range", "roundrobin", "cooperative-sticky")
"""The classic assignors that librdkafka has."""
PASSED_ON = (
    "max.poll.interval.ms",
    "enable.auto.commit",
    "auto.commit.interval.ms",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
)
CLASSIC_ONLY = ("session.timeout.ms", "heartbeat.interval.ms")


def check_live(scenario: Scenario, strategy: str) -> None:
    """Raise ContractError for what cannot be done with real consumers, before anything is started."""
    steps = [event.strategy for event in scenario.timeline if isinstance(event, RollingRestart) and event.strategy]
    for text in (strategy, *steps):
        offered = {one.assignor == "cooperative-sticky" for one in parse_strategies(text)}
        if len(offered) > 1:
            raise ContractError("strategy", f"{text}: librdkafka does not mix eager and cooperative assignors")
        for one in parse_strategies(text):
            if one.protocol == "classic" and one.assignor not in CLASSIC:
                raise ContractError(
                    "strategy",
                    f"{text}: librdkafka's consumers have {', '.join(CLASSIC)}; "
                    "`live --assignor` runs others in the lab's own members",
                )
            if one.is_custom:
                raise ContractError("strategy", f"{text}: a broker has uniform and range")
    for number, event in enumerate(scenario.timeline):
        if isinstance(event, Isolate):
            raise ContractError(f"timeline[{number}].isolate", "a live run cannot cut a member's network; pause it")


def nodes_for(scenario: Scenario) -> int:
    return 3 if any(isinstance(event, FailOver) for event in scenario.timeline) else 1


def broker_config(scenario: Scenario) -> BrokerConfig:
    """Return the scenario's broker settings over Kafka's own defaults, not over those that suit a test."""
    defaults: dict[str, Any] = {
        "group.initial.rebalance.delay.ms": 3_000,
        "group.consumer.heartbeat.interval.ms": 5_000,
        "group.consumer.session.timeout.ms": 45_000,
        "group.consumer.assignment.interval.ms": 1_000,
    }
    settings = {**defaults, **scenario.broker}
    chosen = {name: ",".join(value) if isinstance(value, tuple) else str(value) for name, value in settings.items()}
    return BrokerConfig(extra=chosen)


def client_settings(scenario: Scenario, spec: MemberSpec, name: str, strategy: str) -> dict[str, Any]:
    chosen = parse_strategies(strategy)
    given: Mapping[str, Any] = {**scenario.client, **spec.client}
    passed = PASSED_ON if chosen[0].protocol == "consumer" else (*PASSED_ON, *CLASSIC_ONLY)
    settings: dict[str, Any] = {
        "client.id": name,
        "group.protocol": chosen[0].protocol,
        "enable.auto.commit": True,
        "auto.offset.reset": "earliest",
        "enable.auto.offset.store": False,
        "topic.metadata.refresh.interval.ms": scenario.metadata_max_age_ms,
        "log_level": 0,
        **{setting: given[setting] for setting in passed if setting in given},
    }
    if chosen[0].protocol == "consumer":
        settings["group.remote.assignor"] = chosen[0].assignor
    else:
        settings["partition.assignment.strategy"] = ",".join(one.assignor for one in chosen)
    instance_id = InstanceIds(scenario).of(spec, name, static=chosen[0].static)
    if instance_id is not None:
        settings["group.instance.id"] = instance_id
    if spec.rack is not None:
        settings["client.rack"] = spec.rack
    return settings


def is_incremental(strategy: str) -> bool:
    """Tell whether assignments come as differences."""
    chosen = parse_strategies(strategy)
    return chosen[0].protocol == "consumer" or chosen[0].assignor == "cooperative-sticky"
