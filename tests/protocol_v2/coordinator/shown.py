"""Partitions and records as the vectors write them."""

from __future__ import annotations

from typing import Any

from rebalance_lab.protocol_v1.coordinator.state import records as v1_records
from rebalance_lab.protocol_v2.common.topic_image import topic_name
from rebalance_lab.protocol_v2.coordinator.state import records as v2
from rebalance_lab.protocol_v2.coordinator.state.values import CurrentAssignment


def partitions(default: str, text: str) -> list[tuple[str, int, int | None]]:
    """`{0-2,5@3 u2:0,1}` as topic, partition and, where written, assignment epoch."""
    found: list[tuple[str, int, int | None]] = []
    for entry in text.strip("{}").split():
        topic, _, numbers = entry.rpartition(":")
        listed, _, epoch = numbers.partition("@")
        for span in listed.split(","):
            first, _, last = span.partition("-")
            for number in range(int(first), int(last or first) + 1):
                found.append((topic or default, number, int(epoch) if epoch else None))
    return found


def shown(found: list[tuple[str, int, int | None]]) -> str:
    items = (f"{topic}-{number}{'' if epoch is None else f'@{epoch}'}" for topic, number, epoch in sorted(found))
    return "{" + " ".join(items) + "}"


def from_listed(listed: list[dict[str, Any]]) -> list[tuple[str, int, int | None]]:
    return [(entry["topic_name"], number, None) for entry in listed for number in entry["partitions"]]


def sort_neighbours(records: list[str]) -> list[str]:
    """Kafka's order among members of one kind of record is that of a hash map."""
    runs: list[list[str]] = []
    for record in records:
        if runs and runs[-1][0].split()[0] == record.split()[0]:
            runs[-1].append(record)
        else:
            runs.append([record])
    return [record for run in runs for record in sorted(run)]


def shown_record(record: Any) -> str:
    gone = "-" if getattr(record, "value", True) is None else ""
    match record:
        case v2.ConsumerGroupMetadata():
            hashed = "" if gone or record.value.metadata_hash else " hash=0"
            return "-Group" if gone else f"Group {record.value.epoch}{hashed}"
        case v2.ConsumerGroupPartitionMetadata():
            return "-PartitionMetadata"
        case v2.ConsumerGroupMemberMetadata():
            if gone:
                return f"-Member {record.member_id}"
            names = " ".join(record.value.subscribed_topic_names)
            return f"Member {record.member_id} [{names}]" + (" classic" if record.value.classic else "")
        case v2.ConsumerGroupTargetAssignmentMetadata():
            if gone:
                return "-Epoch"
            never = record.value.assignment_timestamp is None
            return f"Epoch {record.value.assignment_epoch}" + (" ts=0" if never else "")
        case v2.ConsumerGroupTargetAssignmentMember():
            if gone:
                return f"-Target {record.member_id}"
            found = [(topic_name(topic), partition, None) for topic, partition in record.value.partitions]
            return f"Target {record.member_id} {shown(found)}"
        case v2.ConsumerGroupCurrentMemberAssignment():
            current = "" if gone else f" {shown_current(record.value)}"
            return f"{gone}Current {record.member_id}{current}"
        case v2.ConsumerGroupRegularExpression():
            return f"-Regex {record.regex}" if gone else f"Regex {record.regex} {{{' '.join(record.value.topics)}}}"
        case v1_records.GroupMetadata():
            return "Classic"
        case v1_records.GroupTombstone():
            return "-Classic"
        case v1_records.OffsetCommit():
            return f"Offset {shown_offset(record)}"
        case v1_records.OffsetTombstone():
            return f"-Offset {shown_offset(record)}"
    raise AssertionError(record)


def shown_offset(record: Any) -> str:
    return f"{record.partition}" if record.topic == "t4" else f"{record.topic}:{record.partition}"


def shown_current(value: CurrentAssignment) -> str:
    def held(partitions: Any) -> str:
        return shown([(topic_name(topic), number, epoch) for (topic, number), epoch in partitions.items()])

    letter = {0: "S", 1: "R", 2: "L"}[int(value.state)]
    text = f"{letter} {value.member_epoch}/{value.previous_member_epoch} {held(value.assigned)}"
    return text + (f" -{held(value.revoking)}" if value.revoking else "")
