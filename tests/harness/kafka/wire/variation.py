"""Vary the optional fields of a request: each is left out where it is given, and given where it is left out.

A field is optional if its dataclass has a default for it. Which fields a version has on the wire, the dataclass says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from random import Random
from typing import Any

from rebalance_lab.harness.conversation.message_json import HEADER, on_wire, wire_name
from rebalance_lab.protocol_v1.common.messages import Request

OTHER_VALUES: Mapping[str, Sequence[Any]] = {
    "group_instance_id": (None, "pod-a", "pod-b"),
    "instance_id": (None, "pod-a", "pod-b", ""),
    "member_id": ("", "stranger-1234"),
    "protocol_type": (None, "consumer", "connect"),
    "protocol_name": (None, "range", "sticky"),
    "rebalance_timeout_ms": (-1, 900, 6_000),
    "reason": (None, "because"),
    "rack_id": (None, "rack-1", ""),
    "server_assignor": (None, "range", "uniform"),
    "subscribed_topic_names": (None, ["orders"], ["clicks", "orders"]),
    "subscribed_topic_regex": (None, ""),
    "topic_partitions": (None, []),
    "committed_leader_epoch": (-1, 3),
    "committed_metadata": (None, "", "here"),
    "require_stable": (True, False),
    "states_filter": ([], ["Stable"], ["Empty", "PreparingRebalance"]),
    "types_filter": ([], ["consumer"], ["classic"]),
}
"""What a field can be instead. A field that is not listed is not varied."""


def vary(kind: type[Request], version: int, body: Mapping[str, Any], random: Random, chance: float) -> dict[str, Any]:
    """Return the body with some of its optional fields dropped, added or changed."""
    varied = dict(body)
    for field in fields(kind):
        if field.default is MISSING or field.name in HEADER or not on_wire(field, version):
            continue
        name = wire_name(field, version)
        if name not in OTHER_VALUES or random.random() >= chance:
            continue
        if name in varied and random.random() < 0.5:
            del varied[name]
        else:
            varied[name] = random.choice(OTHER_VALUES[name])
    return varied
