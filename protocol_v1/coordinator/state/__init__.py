"""Remember classic groups, and rebuild them from the log.

states.py        group states, events and TRANSITIONS; ../STATES.md is printed from it
group.py         a group and its members; member_order.py is Java's order of them
shard.py         the coordinator's memory, and Turn: one event's work
records.py       what is written down, and replay()
"""
