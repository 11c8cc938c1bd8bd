"""Read a live group as it is now, without changing it: its members, which partitions they own, how far behind they are.

    found = describe("127.0.0.1:9092", "billing", timeout_s=10)
    print(found.state, found.members[0].owned, found.partitions[0].lag)
    snapshot(found)  # the JSON that assign, compare and recommend take

live_group.py            GroupDescription and its parts, GroupError
group_reader.py          describe: confluent-kafka's AdminClient within one deadline
member_subscriptions.py  what each member subscribes to, which the AdminClient does not tell
lag_status.py            working, behind, rewound, stalled, stopped or unknown, from a window of looks
offset_window.py         the looks, and what they cannot tell
unread_records.py        lags behind which there is no record
snapshot.py              the JSON contract's group
"""

from rebalance_lab.harness.kafka.groups.group_reader import describe, look_at_offsets
from rebalance_lab.harness.kafka.groups.live_group import GroupDescription, GroupError
from rebalance_lab.harness.kafka.groups.snapshot import snapshot

__all__ = ["GroupDescription", "GroupError", "describe", "look_at_offsets", "snapshot"]
