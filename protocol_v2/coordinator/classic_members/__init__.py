"""Serve classic members in a consumer group, and convert groups between the protocols.

migration.py     JoinGroup, SyncGroup, Heartbeat and LeaveGroup inside a consumer group
conversion.py    upgrades, downgrades, empty groups that become the other kind
member_assignment.py  a member's partitions as bytes, in the broker's order
classic_side.py  what migration.py and conversion.py need of a classic coordinator, which is handed in
"""
