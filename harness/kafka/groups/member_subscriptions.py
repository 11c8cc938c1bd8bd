"""Find what members subscribe to, which confluent-kafka's description of a group leaves out.

Classic    the deprecated list_groups still hands out the members' own subscription bytes (not in the middle of a join)
Consumer   ConsumerGroupDescribe over harness/kafka/wire, where that may connect: on this machine, or the test cluster
Otherwise  None: the caller infers them from what members own
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_lab.protocol_v1.common.consumer_protocol import decode_subscription
from rebalance_lab.protocol_v1.common.errors import MalformedBytes
from rebalance_lab.protocol_v2.common.regex import compile_regex

CONSUMER_GROUP_DESCRIBE = 69


@dataclass(frozen=True, slots=True)
class Subscription:
    topics: tuple[str, ...]
    rack: str | None


def classic_subscriptions(admin: Any, group: str, timeout_s: float) -> Mapping[str, Subscription] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = admin.list_groups(group, timeout=timeout_s)
    members = [member for one in found for member in one.members]
    try:
        decoded = {member.id: decode_subscription(member.metadata) for member in members if member.metadata}
    except MalformedBytes:  # of another kind of group than consumers'
        return None
    if len(decoded) < len(members):
        return None
    return {member_id: Subscription(each.topics, each.rack_id) for member_id, each in decoded.items()}


def consumer_subscriptions(bootstrap: str, group: str, timeout_s: float) -> Mapping[str, Subscription] | None:
    from rebalance_lab.harness.kafka.wire.addresses import WireError

    try:
        return asyncio.run(asyncio.wait_for(_ask(bootstrap, group, timeout_s), timeout_s))
    except (WireError, OSError, TimeoutError):
        return None


async def _ask(bootstrap: str, group: str, timeout_s: float) -> Mapping[str, Subscription] | None:
    from kio.index import load_request_schema
    from kio.schema.errors import ErrorCode

    from rebalance_lab.harness.kafka.wire.addresses import parse_bootstrap
    from rebalance_lab.harness.kafka.wire.cluster import Cluster

    cluster = await Cluster.open(parse_bootstrap(bootstrap), timeout_s=timeout_s)
    try:
        node = await cluster.node(await cluster.coordinator_of(group))
        kind: Any = load_request_schema(CONSUMER_GROUP_DESCRIBE, cluster.version(CONSUMER_GROUP_DESCRIBE, 0, 1))
        answer = await node.call(kind(group_ids=(group,), include_authorized_operations=False), timeout_s)
    finally:
        await cluster.close()
    (found,) = answer.groups
    if found.error_code is not ErrorCode.none:
        return None
    topics = sorted(cluster.metadata.topics)
    return {
        member.member_id: Subscription(
            tuple(dict.fromkeys((*member.subscribed_topic_names, *matching(member.subscribed_topic_regex, topics)))),
            member.rack_id,
        )
        for member in found.members
    }


def matching(regex: str | None, topics: Sequence[str]) -> list[str]:
    """Find the topics that match, because the coordinator does not tell what it found."""
    if not regex:
        return []
    matches = compile_regex(regex)
    return [topic for topic in topics if matches(topic)]
