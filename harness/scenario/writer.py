"""Write a Scenario back to the data of a scenario file: for traces, for failing random runs, for sweeps.

parse_scenario(scenario_json(scenario)) == scenario. What has its default is left out. Counted members are written one
by one, as their own settings may differ by then. A curve stays the steps it was cut into.
"""

from __future__ import annotations

from typing import Any

from rebalance_lab.harness.scenario.events import event_json
from rebalance_lab.harness.scenario.model import Callbacks, MemberSpec, Network, Rate, Scenario, TopicSpec
from rebalance_lab.harness.scenario.units import duration_text, fine_text, rate_text, share_text

METADATA_MAX_AGE_MS = 300_000


def scenario_json(scenario: Scenario) -> dict[str, Any]:
    client = dict(scenario.client)
    if scenario.metadata_max_age_ms != METADATA_MAX_AGE_MS:
        client["metadata.max.age.ms"] = scenario.metadata_max_age_ms
    data: dict[str, Any] = {
        "name": scenario.name,
        "description": scenario.description,
        "duration": duration_text(scenario.duration_ms),
        "strategy": scenario.strategy,
        "topics": {topic.name: topic_json(topic) for topic in scenario.topics},
        "members": {member.name: member_json(member) for member in scenario.members},
        "client": client,
        "broker": dict(scenario.broker),
        "network": network_json(scenario.network),
        "callbacks": callbacks_json(scenario.callbacks),
        "poison": [
            {"topic": one.topic, "partition": one.partition, "offset": one.offset, "stall": duration_text(one.stall_ms)}
            for one in scenario.poison
        ],
        "timeline": [event_json(event, topic_json) for event in scenario.timeline],
    }
    return {key: value for key, value in data.items() if value not in (None, "", {}, [])}


def topic_json(topic: TopicSpec) -> dict[str, Any]:
    data: dict[str, Any] = {"partitions": topic.partitions}
    if topic.rate != Rate():
        data["rate"] = rate_json(topic.rate)
    if topic.weights is not None:
        data["skew"] = list(topic.weights)
    if topic.racks is not None:
        data["racks"] = [list(racks) for racks in topic.racks]
    return data


def rate_json(rate: Rate) -> Any:
    if len(rate.steps) == 1 and rate.steps[0][1] > 0:
        return rate_text(rate.steps[0][1])
    return {"steps": [{"at": duration_text(at_ms), "rate": rate_text(rate)} for at_ms, rate in rate.steps]}


def member_json(member: MemberSpec) -> dict[str, Any]:
    data: dict[str, Any] = {
        "topics": list(member.topics),
        "pattern": member.pattern,
        "record": None if member.record_ms == 1.0 else fine_text(member.record_ms),
        "rack": member.rack,
        "instance_id": member.instance_id,
        "client": dict(member.client),
    }
    return {key: value for key, value in data.items() if value not in (None, {}, [])}


def network_json(network: Network) -> dict[str, Any]:
    usual = Network()
    data = {
        "latency": (network.latency_ms, usual.latency_ms, duration_text(network.latency_ms)),
        "jitter": (network.jitter_ms, usual.jitter_ms, duration_text(network.jitter_ms)),
        "loss": (network.loss, usual.loss, share_text(network.loss)),
        "duplication": (network.duplication, usual.duplication, share_text(network.duplication)),
    }
    return {key: text for key, (value, default, text) in data.items() if value != default}


def callbacks_json(callbacks: Callbacks) -> dict[str, str]:
    data = {
        "revoked": callbacks.revoked_ms,
        "assigned": callbacks.assigned_ms,
        "revoked per partition": callbacks.revoked_ms_per_partition,
        "assigned per partition": callbacks.assigned_ms_per_partition,
    }
    return {key: duration_text(ms) for key, ms in data.items() if ms}
