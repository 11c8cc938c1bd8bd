"""Remember KIP-848 groups, and rebuild them from the log.

states.py        states of groups and members, each as a table; ../STATES.md is printed from it
group.py         a group and its indices; member_order.py walks its members as a broker does
values.py        what is stored about a member
shard.py         the coordinator's memory, and Turn: one event's work
records.py       what is appended, and replay(); offset_store.py: committed offsets
"""
