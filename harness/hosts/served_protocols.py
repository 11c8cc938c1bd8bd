"""List the protocols that can be served by name: their requests and settings, and how to make their coordinator.

classic    groups of the classic protocol alone
consumer   KIP-848 groups, classic groups, and groups on their way between them
Start at   PROTOCOLS
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.harness.hosts.coordinator_host import (
    CoordinatorMachine,
    NewMemberId,
    ServedProtocol,
    Topics,
    partition_counts,
)
from rebalance_lab.harness.hosts.dual_coordinator import make_dual_coordinator
from rebalance_lab.protocol_v1.common.effects import Effect
from rebalance_lab.protocol_v1.common.messages import REQUESTS as CLASSIC_REQUESTS
from rebalance_lab.protocol_v1.common.txn_messages import TXN_REQUESTS
from rebalance_lab.protocol_v1.coordinator import config as v1_config
from rebalance_lab.protocol_v1.coordinator.coordinator import Coordinator
from rebalance_lab.protocol_v2.common.messages import REQUESTS
from rebalance_lab.protocol_v2.coordinator import config as v2_config

POLICY = "group.consumer.migration.policy"


class ClassicMachine(Coordinator):
    """Pass topics on by name and size alone, which is all that classic groups know of them."""

    def update_topics(self, topics: Topics, now_ms: int) -> list[Effect]:
        return super().update_topics(partition_counts(topics), now_ms)


def make_classic_coordinator(
    config: Mapping[str, int], new_member_id: NewMemberId, topics: Topics | None
) -> CoordinatorMachine:
    counts = None if topics is None else partition_counts(topics)
    return ClassicMachine(
        v1_config.CoordinatorConfig.from_properties(config), new_member_id=new_member_id, topics=counts
    )


PROTOCOLS: dict[str, ServedProtocol] = {
    "classic": ServedProtocol(
        requests={**CLASSIC_REQUESTS, **TXN_REQUESTS},
        properties=v1_config.PROPERTIES,
        build=make_classic_coordinator,
    ),
    "consumer": ServedProtocol(
        requests=REQUESTS,
        properties=tuple(dict.fromkeys((*v2_config.PROPERTIES, *v1_config.PROPERTIES))),
        build=make_dual_coordinator,
        words={POLICY: [policy.value for policy in v2_config.MigrationPolicy]},
        lists=v2_config.LISTS,
        may_be_zero=("group.consumer.assignment.interval.ms", "group.consumer.min.assignment.interval.ms"),
    ),
}
"""`"protocol"` in a sequence names one of them."""
