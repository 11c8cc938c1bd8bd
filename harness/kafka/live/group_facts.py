"""Read from the coordinator's own log which states a group had and when: the `group` facts of a live run.

Classic    a GroupMetadata record is written when a rebalance is over, or the group is empty
Consumer   epochs as they are bumped; Stable when every member has arrived at the group's epoch
"""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_lab.harness.kafka.offsets_topic.topic_reader import Written
from rebalance_lab.harness.measure.trace import Fact

STABLE = 0
"""The state of a ConsumerGroupCurrentMemberAssignment that has nothing to revoke and nothing to wait for."""


def group_facts(records: Iterable[Written], group: str, epoch_s: float) -> list[Fact]:
    facts: list[Fact] = []
    log = GroupLog()
    for written in sorted(records, key=lambda one: (one.partition, one.offset)):
        if written.record.group == group:
            found = log.state_after(written)
            if found is not None:
                at_ms = max(0, int(written.timestamp_ms - epoch_s * 1_000))
                facts.append({"t": at_ms, "fact": "group", "state": found[0], "epoch": found[1]})
    return facts


class GroupLog:
    def __init__(self) -> None:
        self.epoch = 0
        self.members: dict[str, tuple[int, int]] = {}
        """By member id: its epoch and state."""

    def state_after(self, written: Written) -> tuple[str, int] | None:
        record = written.record
        match record.kind:
            case "GroupMetadata" if record.value is not None:
                return "Stable" if record.value["members"] else "Empty", record.value["generation"]
            case "ConsumerGroupMetadata" if record.value is not None:
                self.epoch = record.value["epoch"]
                return "Assigning" if self.members else "Empty", self.epoch
            case "ConsumerGroupCurrentMemberAssignment":
                return self.member_moved(str(record.key["member_id"]), record.value)
        return None

    def member_moved(self, member: str, value: dict[str, int] | None) -> tuple[str, int] | None:
        if value is None:
            self.members.pop(member, None)
            return None
        self.members[member] = (value["member_epoch"], value["state"])
        # A static member that is away (epoch -2) does not hold the others up.
        there = [(epoch, state) for epoch, state in self.members.values() if epoch >= 0]
        settled = all(epoch == self.epoch and state == STABLE for epoch, state in there)
        return ("Stable" if settled else "Reconciling"), self.epoch
