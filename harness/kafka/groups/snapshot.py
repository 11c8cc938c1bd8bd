"""Write a live group in the form of the JSON contract, so that assign, compare and recommend can take it.

Loads      records written a second, where two samples were taken and anything was written; lags with `load="lag"`
Strategy   the protocol and assignor that the group runs, where the lab knows that assignor
"""

from __future__ import annotations

from typing import Any

from rebalance_lab.assignors.strategies import BUILT_IN
from rebalance_lab.harness.kafka.groups.live_group import GroupDescription, LiveMember

LOADS = ("rate", "lag", "none")


def snapshot(found: GroupDescription, *, load: str = "rate") -> dict[str, Any]:
    document: dict[str, Any] = {"group": {"topics": topics(found, load), "members": members(found)}}
    strategy = f"{found.protocol}/{found.assignor}"
    return {"strategy": strategy, **document} if strategy in BUILT_IN else document


def topics(found: GroupDescription, load: str) -> dict[str, Any]:
    loads: dict[str, list[float]] = {}
    for one in found.partitions:
        value = {"rate": one.rate, "lag": one.lag, "none": None}[load]
        loads.setdefault(one.topic, []).append(round(value or 0.0, 3))
    anything = any(value for values in loads.values() for value in values)
    described: dict[str, Any] = {}
    for name, topic in found.topics.items():
        described[name] = {"partitions": topic.partitions, "id": topic.topic_id}
        if topic.racks is not None:
            described[name]["racks"] = [list(racks) for racks in topic.racks]
        if anything and len(loads.get(name, ())) == topic.partitions:
            described[name]["load"] = loads[name]
    return described


def members(found: GroupDescription) -> dict[str, Any]:
    return {member.member_id: member_json(member) for member in found.members}


def member_json(member: LiveMember) -> dict[str, Any]:
    owned = {topic: list(numbers) for topic, numbers in member.owned.items()}
    optional = {"owned": owned, "instance_id": member.instance_id, "rack": member.rack}
    return {"topics": list(member.topics), **{name: value for name, value in optional.items() if value}}
